"""From what a file says to the rows that are stored."""

import hashlib
from typing import Any

from audit.verbs.pairing import Held
from audit.verbs.score import Scale, Scored, score
from audit.words.names import UNJUDGED, Answer
from audit.words.records import (
    ImportedPair,
    ImportedSession,
    JudgeLog,
    Judgment,
    Pair,
    RawAnswer,
    Run,
    Session,
)
from audit.words.text import as_json


def id_tail(run: Run) -> str:
    """What the ids of a run's pairs and sessions begin with."""
    return run.run_id[-8:]


def two_agents(pair: ImportedPair) -> bool:
    """Are the sides two different agents, both named?"""
    return pair.agent_a is not None and pair.agent_b is not None and pair.agent_a != pair.agent_b


def pair_row(
    run: Run,
    scale: Scale,
    item: ImportedPair,
    pair_id: str,
    session_a: str | None,
    session_b: str | None,
    judgments: list[Judgment],
) -> Pair:
    """The pair, settled and scored; its agent gap is not known before the whole file is in."""
    ab = answer_in("AB", judgments)
    ba = answer_in("BA", judgments)
    score_a = mean_score([judgment.score_a for judgment in judgments])
    score_b = mean_score([judgment.score_b for judgment in judgments])
    scored = score(
        scale,
        ab,
        ba,
        reward_a=item.reward_a,
        reward_b=item.reward_b,
        score_a=score_a,
        score_b=score_b,
        external_gap=item.external_gap,
    )
    prefs = (preference_or_null(ab), preference_or_null(ba))
    is_judged = ab != "missing" or ba != "missing"
    judged_at = (item.judged_at or run.created_at) if is_judged else None
    return _pair_of(run, item, (pair_id, session_a, session_b), prefs, (score_a, score_b), scored, judged_at)


def _pair_of(
    run: Run,
    item: ImportedPair,
    ids: tuple[str, str | None, str | None],
    prefs: tuple[str | None, str | None],
    scores: tuple[float | None, float | None],
    scored: Scored,
    judged_at: str | None,
) -> Pair:
    """The row, its columns in their order: naming each costs a fifth of an import's time."""
    is_verified = item.reward_a is not None and item.reward_b is not None
    return Pair(
        ids[0],
        item.source_pair_id,
        run.run_id,
        item.gate,
        item.task_id,
        item.category,
        item.trial,
        item.agent_a,
        item.agent_b,
        ids[1],
        ids[2],
        item.success_a,
        item.success_b,
        item.reward_a,
        item.reward_b,
        scored.judge_pref,
        *prefs,
        scored.is_consistent,
        *scores,
        scored.reward_gap,
        scored.gap_bucket,
        scored.session_gap,
        None,
        scored.judge_gap,
        item.external_gap,
        scored.outcome,
        scored.misselected,
        None,
        None,
        None,
        None,
        judged_at,
        run.created_at if is_verified else None,
        run.created_at,
        run.created_at,
    )


def log_row(run: Run, gate: str, pair_id: str, raw: RawAnswer, judgment: Judgment) -> JudgeLog:
    """One recorded call of the judge; what the file does not tell stays unknown."""
    return JudgeLog(
        run.run_id,
        pair_id,
        None,
        "judge",
        gate,
        gate,
        None,
        None,
        raw.order,
        1,
        None,
        None,
        raw.raw_output,
        judgment.parsed_json,
        judgment.choice,
        judgment.preference,
        judgment.parse_status,
        raw.finish_reason,
        None,
        None,
        None,
        None,
        None,
        None,
        None,
        raw.error,
        run.created_at,
    )


def answer_in(order: str, judgments: list[Judgment]) -> Answer:
    """What the order answered; missing where it was not asked."""
    for judgment in judgments:
        if judgment.order == order:
            return judgment.answer
    return "missing"


def preference_or_null(answer: Answer) -> str | None:
    """The side or tie that was read, NULL where none was."""
    return answer if answer in ("A", "B", "tie") else None


def mean_score(scores: list[float | None]) -> float | None:
    """The mean over the orders that gave a score, NULL where none did."""
    given = [score for score in scores if score is not None]
    # Divided before it is added up, because two huge scores add up to infinity.
    return sum(score / len(given) for score in given) if given else None


def session_rows(run: Run, item: ImportedPair) -> tuple[Session, Session]:
    """The sessions of both sides. Two sides of one agent, or of unnamed ones, are two trials."""
    if two_agents(item):
        trial_a = trial_b = item.trial
    else:
        trial_a, trial_b = 2 * item.trial, 2 * item.trial + 1
    return (
        _session(run, item, item.agent_a, trial_a, item.transcript_a, item.reward_a, item.success_a),
        _session(run, item, item.agent_b, trial_b, item.transcript_b, item.reward_b, item.success_b),
    )


def session_slots(run: Run, item: ImportedPair) -> dict[tuple[object, ...], str]:
    """(task, agent, trial) -> session id of both sides; empty where the file does not say what they did."""
    if item.transcript_a is None and item.transcript_b is None:
        return {}
    return {(row.task_id, row.agent, row.trial): row.session_id for row in session_rows(run, item)}


def _session(
    run: Run,
    item: ImportedPair,
    agent: str | None,
    trial: int,
    transcript: str | None,
    reward: float | None,
    success: int | None,
) -> Session:
    # The id tells the content, so that a session two pairs share is stored once and a clash is noticed.
    held = as_json([item.task_id, agent, trial, transcript, reward, success])
    digest = hashlib.blake2b(held.encode(), digest_size=10).hexdigest()
    return _blank_session(run, f"{id_tail(run)}-s{digest}")._replace(
        task_id=item.task_id,
        category=item.category,
        agent=agent,
        trial=trial,
        transcript_json=transcript,
        reward=reward,
        success=success,
        label_source=item.label_source,
        verified_at=run.created_at if reward is not None else None,
    )


def session_row(run: Run, item: ImportedSession, success_at: float) -> Session:
    """A recorded session. Where the file does not say whether it succeeded, its reward does."""
    success = item.success
    if success is None and item.reward is not None:
        success = int(item.reward >= success_at)
    slot = as_json([item.task_id, item.task_fingerprint, item.agent, item.trial])
    digest = hashlib.blake2b(slot.encode(), digest_size=8).hexdigest()
    told = {name: value for name, value in item._asdict().items() if name in Session._fields}
    return _blank_session(run, f"{id_tail(run)}-s{digest}")._replace(
        **(told | {"success": success}), verified_at=None if item.reward is None else run.created_at
    )


def session_pair_row(run: Run, scale: Scale, a: Held, b: Held, pair_id: str) -> Pair:
    """A pair of recorded sessions that no judge has seen; its agents' gap is not known before all are in."""
    scored = score(scale, "missing", "missing", reward_a=a.reward, reward_b=b.reward)
    is_verified = a.reward is not None and b.reward is not None
    blank: dict[str, Any] = dict.fromkeys(Pair._fields)
    return Pair(
        **blank
        | scored._asdict()
        | {
            "pair_id": pair_id,
            "run_id": run.run_id,
            "gate": UNJUDGED,
            "task_id": a.task_id,
            "category": a.category,
            "trial": a.trial,
            "agent_a": a.agent,
            "agent_b": b.agent,
            "session_a": a.session_id,
            "session_b": b.session_id,
            "success_a": a.success,
            "success_b": b.success,
            "reward_a": a.reward,
            "reward_b": b.reward,
            "verified_at": run.created_at if is_verified else None,
            "scored_at": run.created_at,
            "created_at": run.created_at,
        }
    )


def gauge_session_row(run: Run, item: ImportedSession, number: int, trial: int) -> Session:
    """A session of a gauge-csv file."""
    return _blank_session(run, f"{id_tail(run)}-s{number:07d}")._replace(
        task_id=item.task_id,
        agent=item.agent,
        trial=trial,
        reward=None if item.success is None else float(item.success),
        success=item.success,
        label_source="external",
        satisfaction=item.satisfaction,
        judge_flip=item.judge_flip,
        source_json=item.source_json,
        prompt_tokens=item.prompt_tokens,
        completion_tokens=item.completion_tokens,
        total_tokens=item.total_tokens,
        verified_at=None if item.success is None else run.created_at,
    )


def _blank_session(run: Run, session_id: str) -> Session:
    blank = dict.fromkeys(Session._fields)
    blank.update(session_id=session_id, run_id=run.run_id, trial=0, created_at=run.created_at)
    return Session(**blank)  # type: ignore[arg-type]
