"""Score: gaps, buckets, outcomes and `misselected` of stored pairs, without calling anything."""

from collections.abc import Mapping
from typing import cast

from sqlalchemy import Connection, Engine

from audit.doors import ask, store
from audit.doors.db import writing
from audit.pipeline.standing import config_of, settle_status
from audit.verbs.gaps import GAUGE, PRESETS, SCORES, BucketSet, agent_gaps, buckets_from_rows
from audit.verbs.score import Scale, score
from audit.verbs.vote import vote
from audit.words import clock
from audit.words.config import Panel
from audit.words.names import Answer, GapScope, GapSource, SwapRule
from audit.words.records import Pair, Run

AgentGaps = dict[tuple[str, str, str | None], float]


def score_run(
    engine: Engine,
    wanted: str,
    *,
    swap_rule: SwapRule | None = None,
    gap_source: GapSource | None = None,
    gap_scope: GapScope | None = None,
    buckets: BucketSet | None = None,
) -> tuple[Run, int]:
    """Score a run anew; what is not given stays as it was. The run as it now is, and how many pairs changed.

    `gap_source judge` implies the bucket set `scores` unless buckets are given.
    """
    with writing(engine) as connection:
        run = ask.run_named(connection, wanted)
        if (
            buckets is None
            and gap_source is not None
            and (gap_source == "judge") != (run.gap_source == "judge")
        ):
            # The judge's scores have buckets of their own, which come and go with them.
            buckets = SCORES if gap_source == "judge" else GAUGE if run.bucket_set == SCORES.name else None
        chosen = buckets or stored_buckets(connection, run.bucket_set)
        run = run._replace(
            swap_rule=swap_rule or run.swap_rule,
            gap_source=gap_source or run.gap_source,
            gap_scope=gap_scope or run.gap_scope,
            bucket_set=chosen.name,
        )
        store.add_buckets(connection, chosen.name, chosen.with_unknown())
        store.set_scale(connection, run.run_id, run.swap_rule, run.gap_source, run.gap_scope, run.bucket_set)
        changed = rescore(connection, run, Scale(run.swap_rule, run.gap_source, chosen))
        if run.kind == "live" and run.status != "complete":
            settle_status(connection, run, ("score",))
        return run, changed


def stored_buckets(connection: Connection, name: str) -> BucketSet:
    """The bucket set a run was scored with."""
    return PRESETS.get(name) or buckets_from_rows(name, ask.bucket_rows(connection, name))


def set_agent_gaps(connection: Connection, run: Run, scale: Scale) -> None:
    """Give the pairs of a new import their agents' gaps, which are not known before its whole file is in.

    Everything else that `score` makes of a pair is stored with it already, and agents are few where pairs
    are many: so the score of each two agents is worked out once, and the database hands it to their pairs.
    """
    by_category = run.gap_scope == "category"
    for gate in ask.gates(connection, run.run_id):
        updates = []
        for (agent_a, agent_b, category), gap in _agent_gaps(connection, run, gate).items():
            # With the agents' gap as the run's gap, nothing else of a pair decides its bucket.
            scored = score(scale, "missing", "missing", reward_a=None, reward_b=None, agent_gap=gap)
            updates.append(
                store.AgentGap(agent_a, agent_b, category, gap, scored.reward_gap, scored.gap_bucket)
            )
        store.set_agent_gaps(
            connection,
            run.run_id,
            gate,
            updates,
            by_category=by_category,
            is_reward_gap=scale.gap_source == "agent",
        )


def rescore(connection: Connection, run: Run, scale: Scale) -> int:
    """Score every pair of the run; how many changed."""
    by_category = run.gap_scope == "category"
    gaps = {gate: _agent_gaps(connection, run, gate) for gate in ask.gates(connection, run.run_id)}
    panels = _panels(run)
    changed = 0
    now = clock.now()
    for batch in ask.pairs(connection, run.run_id):
        answers = _answers(connection, batch, panels)
        updates = []
        for pair, (ab, ba) in zip(batch, answers, strict=True):
            gap = _agent_gap(pair, gaps[pair.gate], by_category)
            update = _scored(pair, ab, ba, gap, scale, now)
            if _differs(pair, update):
                updates.append(update)
        store.set_scores(connection, updates)
        changed += len(updates)
    return changed


def _scored(
    pair: Pair, ab: Answer, ba: Answer, agent_gap: float | None, scale: Scale, now: str
) -> store.ScoreUpdate:
    scored = score(
        scale,
        ab,
        ba,
        reward_a=pair.reward_a,
        reward_b=pair.reward_b,
        score_a=pair.judge_score_a,
        score_b=pair.judge_score_b,
        agent_gap=agent_gap,
        external_gap=pair.external_gap,
    )
    return store.ScoreUpdate(agent_gap, *scored, now, pair.pair_id)


def _differs(pair: Pair, update: store.ScoreUpdate) -> bool:
    fields = store.ScoreUpdate._fields[:-2]
    return any(getattr(pair, field) != getattr(update, field) for field in fields)


def _agent_gaps(connection: Connection, run: Run, gate: str) -> AgentGaps:
    by_category = run.gap_scope == "category"
    return agent_gaps(
        ask.agent_rewards(connection, run.run_id, gate, by_category=by_category),
        ask.shared_tasks(connection, run.run_id, gate, by_category=by_category),
    )


def _agent_gap(pair: Pair, gaps: AgentGaps, by_category: bool) -> float | None:
    if not gaps or pair.agent_a is None or pair.agent_b is None:
        return None
    return gaps.get((pair.agent_a, pair.agent_b, pair.category if by_category else None))


def _answers(
    connection: Connection, batch: list[Pair], panels: Mapping[str, Panel]
) -> list[tuple[Answer, Answer]]:
    """Both answers of each pair; only where a preference is NULL must the calls be asked why."""
    silent = [pair.pair_id for pair in batch if pair.pref_ab is None or pair.pref_ba is None]
    said: dict[tuple[str, str], dict[str | None, tuple[str | None, str]]] = {}
    for start in range(0, len(silent), 500):
        said |= ask.last_answers(connection, silent[start : start + 500])

    def answer(pair: Pair, order: str, preference: str | None) -> Answer:
        if preference:
            return cast(Answer, preference)
        return _why(said.get((pair.pair_id, order), {}), panels.get(pair.gate))

    return [(answer(pair, "AB", pair.pref_ab), answer(pair, "BA", pair.pref_ba)) for pair in batch]


def _why(said: Mapping[str | None, tuple[str | None, str]], panel: Panel | None) -> Answer:
    """Why a gate gave no preference, from what each of its judges said last.

    Calls of a profile that is none of its panel were made before it took the gate over.
    """
    last = [one for profile, one in said.items() if panel is None or profile in panel.members]
    if len(last) == 1:
        return _trouble(last[0][1])
    rule = "majority" if panel is None else panel.vote
    return vote([cast(Answer, preference) or _trouble(status) for preference, status in last], rule)


def _trouble(status: str) -> Answer:
    if status == "error":
        return "failed"
    # Read, and yet no preference.
    return "split" if status in ("ok", "repaired", "recorded") else "unreadable"


def _panels(run: Run) -> dict[str, Panel]:
    """Gate -> its panel."""
    panels = [Panel(**judge) for judge in config_of(run).get("judges", ())]
    return {panel.gate: panel for panel in panels}
