"""The report's parts about agents: what each achieved, whom the judge picks of two, and the error curve."""

import array as compact
import json
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal, localcontext
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import ask, counts
from audit.pipeline.standing import config_of
from audit.statistics.achieved import TaskSum, agent_row
from audit.statistics.agents import (
    AgentPair,
    agent_pair,
    is_near,
    misselection,
    paired_se,
    pick_of,
    summary,
)
from audit.statistics.arrays import columns, in_order
from audit.statistics.curve import error_curve, error_curve_of_agents
from audit.statistics.rates import Rate, clustered_rate_of_groups
from audit.verbs.gaps import GAUGE
from audit.words.names import SUCCESS_AT, TOLERANCE
from audit.words.records import Run

NO_AGENT_PAIRS = "no pair names two different agents that share more than one task with known rewards"
# Formats of published judgments: a pair is in the file because one side of it is the right one.
_CHOSEN_PAIRS = ("judgebench", "llmbar", "pandalm")
# The sum of the largest and the smallest float, to the last digit.
_DIGITS = 700
_TRUSTED_ERROR = 0.05
# A curve through fewer misselected agent pairs is one that a single pair could turn.
_FEW_ERRORS = 5


class Met(NamedTuple):
    """Two agents over all their pairs: the statistics' pair, and the counts behind it."""

    pair: AgentPair
    pairs: int
    tasks: int
    wins_a: int
    wins_b: int


def agents(connection: Connection, run: Run) -> list[dict[str, Any]]:
    """The part `agents`, by name."""
    asked = config_of(run) | json.loads(run.config_json)
    success_at = asked.get("success_at", SUCCESS_AT)
    rows = groupby(ask.task_sums(connection, run.run_id, success_at), key=itemgetter(0))
    found = []
    for agent, group in rows:
        tasks = list(group)
        sums = [TaskSum(row[3], row[4], row[5] or 0.0, row[6], row[7]) for row in tasks]
        found.append(agent_row(agent, sums, has_tasks=all(row[1] is not None for row in tasks)))
    why = no_pass_hat_k(run)
    if why is not None:
        found = [row | {"pass_hat_k": None} for row in found]
    # The databases do not agree on how names are sorted.
    return sorted(found, key=itemgetter("agent"))


def no_pass_hat_k(run: Run) -> str | None:
    """Why pass^k says nothing of this run's agents; NULL where it does."""
    made = json.loads(run.config_json)
    if made.get("format") in _CHOSEN_PAIRS:
        return (
            f"pass^k: the pairs of a {made['format']} file were chosen by which answer is right, so how "
            "often an agent is right in it says nothing of the agent"
        )
    if "outside_rewards" in made:
        return "pass^k: the rewards came from elsewhere, on a scale of their own, which tells no success"
    return None


def met(connection: Connection, run: Run, gate: str | None) -> list[Met]:
    """Every two agents that share more than one task whose rewards are both known."""
    if gate is None:
        return []
    meetings = counts.agent_meetings(connection, run.run_id, gate)
    with localcontext(prec=_DIGITS):
        found = [_met(one, other, rows) for (one, other), rows in groupby(meetings, key=itemgetter(0, 1))]
    return [one for one in found if one is not None]


def _met(one: str, other: str, rows: Iterable[tuple[Any, ...]]) -> Met | None:
    difference, pairs, all_pairs, wins, verdicts = Decimal(0), 0, 0, [0, 0], 0
    sums, ns = compact.array("d"), compact.array("d")
    last = None
    for _, _, task, reward_one, reward_other, n, for_one, for_other, said in rows:
        all_pairs += n
        wins[0] += for_one
        wins[1] += for_other
        verdicts += said
        if reward_one is None or reward_other is None:
            continue
        difference += (Decimal(repr(reward_one)) - Decimal(repr(reward_other))) * n
        pairs += n
        if task != last:  # they come in the order of the tasks
            last = task
            sums.append(0.0)
            ns.append(0.0)
        sums[-1] += (reward_one - reward_other) * n
        ns[-1] += n
    if len(ns) < 2:
        return None
    se = paired_se(sums, ns)
    pick = pick_of(*wins) if verdicts else None
    pair = agent_pair(one, other, difference / pairs, pick, se)
    return Met(pair, all_pairs, len(ns), *wins)


def agent_pairs(connection: Connection, run: Run, found: Sequence[Met]) -> dict[str, Any] | None:
    """The part `agent_pairs`; NULL without any."""
    if not found:
        return None
    edge = near_below(connection, run)
    made = summary([one.pair for one in found], edge)
    for row, one in zip(made["rows"], found, strict=True):
        row |= {
            "is_near": int(is_near(one.pair.gap, edge)),
            "pairs": one.pairs,
            "tasks": one.tasks,
            "wins_a": one.wins_a,
            "wins_b": one.wins_b,
        }
    return {"near_below": edge} | made


def near_below(connection: Connection, run: Run) -> float:
    """Below which gap two agents are near: by the run's buckets where those are of rewards, else GAUGE's."""
    buckets = ask.bucket_rows(connection, run.bucket_set) if run.gap_source in ("agent", "session") else ()
    near = [row[2] for row in buckets if row[4] == 1 and row[2] is not None]
    return max(near) if near else max(row.upper for row in GAUGE.buckets if row.is_near and row.upper)


def curve(connection: Connection, run: Run, gate: str | None, found: Sequence[Met]) -> dict[str, Any] | None:
    """The part `error_curve`: over agent pairs where enough are misselected, else over pairs of sessions.

    NULL where there are neither; `instead_of` says why agent pairs were not taken. `trust` says from which
    gap on errors are fewer than one in twenty, and what is seen below it; NULL with `trust_why` where what
    was seen does not bear it out.
    """
    pairs = [one.pair for one in found if one.pair.misselected is not None]
    over_agents = _over_agents(pairs) if pairs else None
    errors = sum(pair.misselected or 0 for pair in pairs)
    if over_agents and over_agents["s"] is not None and errors >= _FEW_ERRORS:
        return over_agents
    over_pairs = _over_pairs(counts.decided_by_gap(connection, run.run_id, gate)) if gate else None
    if over_pairs is None or (over_agents and over_pairs["s"] is None):
        return over_agents
    if over_agents:
        why = over_agents.get("why") or f"only {errors:,} of {len(pairs):,} agent pairs are misselected"
        over_pairs["instead_of"] = {"unit": "agent_pairs", "why": why}
    return over_pairs | {"gap_source": run.gap_source}


def _over_agents(pairs: Sequence[AgentPair]) -> dict[str, Any]:
    fitted = error_curve_of_agents(
        [pair.gap for pair in pairs],
        [pair.misselected for pair in pairs],
        [pair.agent_a for pair in pairs],
        [pair.agent_b for pair in pairs],
    )

    def seen(from_gap: float) -> tuple[Rate, Rate]:
        below = [pair for pair in pairs if is_near(pair.gap, from_gap)]
        above = [pair for pair in pairs if not is_near(pair.gap, from_gap)]
        return misselection(below, {}), misselection(above, {})

    return _whole(fitted, [pair.gap for pair in pairs], seen)


def _over_pairs(rows: Iterator[tuple[str, float, int, int]]) -> dict[str, Any] | None:
    (tasks, gaps, errors, n), _ = columns(rows, "cfii")
    if not len(gaps):
        return None
    tasks, gaps, errors, n = in_order(tasks, gaps, errors, n)
    fitted = error_curve(gaps, errors, n, tasks)

    def seen(from_gap: float) -> tuple[Rate, Rate]:
        below = gaps < from_gap - TOLERANCE
        return (
            clustered_rate_of_groups(tasks, errors, n, below),
            clustered_rate_of_groups(tasks, errors, n, ~below),
        )

    return _whole(fitted, sorted(set(gaps.tolist())), seen)


def _whole(fitted: dict[str, Any], gaps: Sequence[float], seen: Any) -> dict[str, Any]:
    """The curve with the largest gap that was seen, beyond which it only continues, and whom to trust."""
    return fitted | {"largest_gap": max(gaps)} | _trust(fitted, gaps, seen)


def _trust(fitted: dict[str, Any], gaps: Sequence[float], seen: Any) -> dict[str, Any]:
    """The gap from which the judge is to be trusted, if what was seen on both sides of it agrees."""
    gap = fitted["gap_at_5"]
    if gap is None:
        return {"trust": None, "trust_why": fitted["why"]}
    below, above = seen(gap["value"])
    if gap["low"] is None or gap["high"] is None:
        why = "the gap's interval has no end: too few errors, or too few pairs"
    elif (errors := below["k"] + above["k"]) < _FEW_ERRORS:
        why = f"only {errors:,} of {below['n'] + above['n']:,} are wrong: too few to say from where on"
    elif not gap["low"]:
        why = "a gap of 0 would do as well: too few errors"
    elif len(set(gaps)) < 3 or not below["n"] or not above["n"]:
        why = "there are no pairs on both sides of that gap, or of three gaps at least"
    elif above["low"] > _TRUSTED_ERROR:
        why = f"from that gap on {above['k']:,} of {above['n']:,} are wrong, more than the curve has it"
    else:
        return {"trust": {"gap": gap, "below": below, "from_there_on": above}}
    return {"trust": None, "trust_why": why}
