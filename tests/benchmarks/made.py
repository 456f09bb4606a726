"""What the benchmarks load: judged pairs, made up by arithmetic and so the same in every run.

A pair is made when it is asked for and forgotten after, so that a million of them need no memory.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from audit.pipeline.rows import log_row, pair_row
from audit.verbs.gaps import GAUGE
from audit.verbs.score import Scale
from audit.verbs.settle import preference_of
from audit.words.names import Choice, Order
from audit.words.records import ImportedPair, JudgeLog, Judgment, Pair, RawAnswer, Run

AGENTS = tuple(f"agent-{i:02d}" for i in range(20))
AGENT_PAIRS = tuple((a, b) for b in range(20) for a in range(b))
CATEGORIES = ("airline", "banking", "coding", "math", "medical", "retail", "search", "telecom")
ORDERS: tuple[Order, ...] = ("AB", "BA")
REPLY_BYTES = 400
SCALE = Scale("both_agree", "external", GAUGE)
RUN = Run(
    "20260101-000000-benchmrk",
    "benchmark",
    "import",
    "{}",
    "benchmark",
    None,
    None,
    SCALE.swap_rule,
    SCALE.gap_source,
    "run",
    SCALE.buckets.name,
    "running",
    "2026-01-01T00:00:00.000Z",
    None,
)
_LABELS = {"first": ("A>B", "A>>B"), "second": ("B>A", "B>>A"), "tie": ("A=B", "A=B")}
_PROSE = (
    "Assistant A looks the reservation up before it promises anything and tells the user what a "
    "change would cost. Assistant B is quicker and friendlier, but it never checks whether the fare "
    "can be refunded, and its second tool call repeats the first. Both end with a summary of what was "
    "done. On accuracy the difference is small; on following the policy it is larger, because one of "
    "them asked for a confirmation and the other one did not wait for it."
)


class Drawn(NamedTuple):
    """One pair: who did what, and what the judge chose in each order; NULL: nothing that can be read."""

    number: int
    task: int
    agent_a: int
    agent_b: int
    success_a: int
    success_b: int
    choices: tuple[Choice | None, Choice | None]


def draw(number: int) -> Drawn:
    """The pair with this number. Every task is done by 20 agents, every two of them are a pair."""
    task, which = divmod(number, len(AGENT_PAIRS))
    agent_a, agent_b = AGENT_PAIRS[which]
    success_a, success_b = _succeeds(task, agent_a), _succeeds(task, agent_b)
    better = success_a - success_b or (1 if chance(number, 5) < 0.5 else -1)
    if chance(number, 7) < 0.15:
        better = -better  # a judge that is wrong in both orders: a misselected pair
    choices = (choice(number, "AB", better), choice(number, "BA", better))
    return Drawn(number, task, agent_a, agent_b, success_a, success_b, choices)


def rows(pairs: int, batch: int = 1000) -> Iterator[tuple[list[Pair], list[JudgeLog]]]:
    """Rows for the store, a batch of pairs with the two calls of each: what an import would have made."""
    for start in range(0, pairs, batch):
        drawn = [draw(number) for number in range(start, min(start + batch, pairs))]
        stored = [rows_of(pair) for pair in drawn]
        yield [pair for pair, _ in stored], [log for _, logs in stored for log in logs]


def write_jsonl(path: Path, pairs: int, *, with_agents: bool) -> None:
    """A file for `import jsonl`: both orders' replies in the grammar arena_hard_5way, no decisions."""
    with path.open("w", encoding="ascii") as file:
        for number in range(pairs):
            file.write(json.dumps(_line(draw(number), with_agents)) + "\n")


def reply(drawn: Drawn, order: Order) -> str:
    """What the judge wrote: 400 bytes, no two replies the same."""
    choice = drawn.choices[ORDERS.index(order)]
    label = _LABELS[choice][drawn.number % 2] if choice else "neither"
    end = f"\n\nMy final verdict is: [[{label}]]" if choice else "\n\nI cannot decide between the two."
    start = f"Task {drawn.task}, comparison {drawn.number} in order {order}. "
    return (start + _PROSE)[: REPLY_BYTES - len(end)] + end


def _line(drawn: Drawn, with_agents: bool) -> dict[str, Any]:
    line: dict[str, Any] = {
        "pair_id": f"pair-{drawn.number:08d}",
        "task_id": f"task-{drawn.task:06d}",
        "category": CATEGORIES[drawn.task % len(CATEGORIES)],
        "success_a": bool(drawn.success_a),
        "success_b": bool(drawn.success_b),
        "raw_ab": reply(drawn, "AB"),
        "raw_ba": reply(drawn, "BA"),
        "grammar": "arena_hard_5way",
    }
    if with_agents:
        line |= {"agent_a": AGENTS[drawn.agent_a], "agent_b": AGENTS[drawn.agent_b]}
    return line


def rows_of(drawn: Drawn) -> tuple[Pair, list[JudgeLog]]:
    pair_id = f"benchmrk-p{drawn.number + 1:07d}"
    answers = tuple(RawAnswer(order, reply(drawn, order)) for order in ORDERS)
    judgments = [_judgment(order, choice) for order, choice in zip(ORDERS, drawn.choices, strict=True)]
    item = ImportedPair(
        place="",
        source_pair_id=f"pair-{drawn.number:08d}",
        gate="judge",
        task_id=f"task-{drawn.task:06d}",
        answers=answers,
        category=CATEGORIES[drawn.task % len(CATEGORIES)],
        agent_a=AGENTS[drawn.agent_a],
        agent_b=AGENTS[drawn.agent_b],
        success_a=drawn.success_a,
        success_b=drawn.success_b,
        reward_a=float(drawn.success_a),
        reward_b=float(drawn.success_b),
        external_gap=abs(_rate(drawn.agent_a) - _rate(drawn.agent_b)),
    )
    logs = [
        log_row(RUN, "judge", pair_id, answer, judgment)
        for answer, judgment in zip(answers, judgments, strict=True)
    ]
    return pair_row(RUN, SCALE, item, pair_id, None, None, judgments), logs


def _judgment(order: Order, choice: Choice | None) -> Judgment:
    preference = preference_of(choice, order)
    status = "ok" if choice else "unreadable"
    return Judgment(
        order, preference or "unreadable", choice, preference, status, '{"label":"A>B"}', None, None
    )


def choice(number: int, order: Order, better: int) -> Choice | None:
    """The better side three times in four, else what stands first; now and then a tie, or no verdict."""
    luck = chance(number, 11 if order == "AB" else 13)
    if luck < 0.01:
        return None
    if luck < 0.05:
        return "tie"
    if luck < 0.25:
        return "first"
    return "first" if (better > 0) == (order == "AB") else "second"


def _succeeds(task: int, agent: int) -> int:
    return int(chance(task * len(AGENTS) + agent, 3) < _rate(agent))


def _rate(agent: int) -> float:
    return 0.3 + 0.02 * agent


def chance(number: int, salt: int) -> float:
    """A number from 0 to 1 that looks like chance and is not (the mixing steps of MurmurHash3)."""
    mixed = (number * 0x9E3779B1 + salt * 0x85EBCA77) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 16)) / 0x100000000
