"""A panel's answer in one order, from what its members answered."""

from collections.abc import Sequence
from typing import Literal

from audit.verbs.settle import Settled
from audit.words.names import Answer

Rule = Literal["majority", "unanimous"]


def vote(answers: Sequence[Answer], rule: Rule) -> Answer:
    """What the panel says in this order.

    majority: what more than half of those asked say; unanimous: what all say. Without that the answer is
    `failed` where a call failed and could have made a difference, `unreadable` likewise, else `split`:
    read, and neither a side nor a tie. One member is its own panel.
    """
    if not answers:
        return "missing"
    needed = len(answers) if rule == "unanimous" else len(answers) // 2 + 1
    said: tuple[Answer, ...] = ("A", "B", "tie")
    for option in said:
        if answers.count(option) >= needed:
            return option
    most = max(answers.count(option) for option in said)
    for trouble in ("missing", "failed", "unreadable"):
        if trouble in answers and most + _silent(answers) >= needed:
            return trouble
    return "split"


def is_contested(settled: Settled, judge_gap: float | None, below: float) -> bool:
    """Must the later members be asked? Where the first gives no preference, or its scores are close."""
    return settled.preference is None or (judge_gap is not None and judge_gap < below)


def _silent(answers: Sequence[Answer]) -> int:
    return sum(answer not in ("A", "B", "tie", "split") for answer in answers)
