"""Settling two orders: from what each order answered to the one preference of the gate.

Answers are by side (`A`, `B`, `tie`) or say why there is none: `unreadable` (an answer came, no verdict could
be read in it), `failed` (the call brought no answer), `missing` (never asked). An unreadable answer is never
a tie, and a failed call is not an unreadable answer.
"""

from typing import NamedTuple

from audit.words.names import Answer, Choice, Order, Preference, SwapRule

_READ = ("A", "B", "tie")
_VOTE = {"A": 1, "B": -1}


class Settled(NamedTuple):
    """`preference` is NULL where the rule gives neither side nor tie; `reason` then says why."""

    preference: Preference | None
    reason: str | None  # incomplete, unreadable, inconsistent; None where there is a preference


def preference_of(choice: Choice | None, order: Order) -> Preference | None:
    """A choice by position as a preference by side: in `BA` the first on the screen is side B."""
    if choice is None or choice == "tie":
        return choice
    return "A" if (choice == "first") == (order == "AB") else "B"


def choice_of(preference: Preference | None, order: Order) -> Choice | None:
    """The way back: which position a side stood in."""
    if preference is None or preference == "tie":
        return preference
    return "first" if (preference == "A") == (order == "AB") else "second"


def is_consistent(ab: Answer, ba: Answer) -> int | None:
    """1 where both orders say the same of the sides, 0 where not; NULL unless both were read."""
    if ab not in _READ or ba not in _READ:
        return None
    return int(ab == ba)


def settle(ab: Answer, ba: Answer, rule: SwapRule) -> Settled:
    """The pair's preference from the answers in order AB and in order BA.

    both_agree   a side wins only if both orders name it, a tie only if both say tie
                 (MT-Bench, arXiv:2306.05685, section 3.4)
    net_vote     +1 for A, -1 for B, 0 for a tie or an unreadable answer; the sign of the sum
                 (JudgeBench, arXiv:2410.12784, section 4)
    first_order  one order only: AB where it was asked, else BA
    """
    if rule == "first_order":
        return _one(ba if ab == "missing" else ab)
    if "failed" in (ab, ba) or "missing" in (ab, ba):
        return Settled(None, "incomplete")
    if rule == "both_agree":
        return _both_agree(ab, ba)
    return _net_vote(ab, ba)


def _one(answer: Answer) -> Settled:
    if answer == "failed" or answer == "missing":
        return Settled(None, "incomplete")
    if answer == "unreadable":
        return Settled(None, "unreadable")
    if answer == "split":
        return Settled(None, "inconsistent")
    return Settled(answer, None)


def _both_agree(ab: Answer, ba: Answer) -> Settled:
    if ab == "unreadable" or ba == "unreadable":
        return Settled(None, "unreadable")
    if ab == ba:
        return _one(ab)
    return Settled(None, "inconsistent")


def _net_vote(ab: Answer, ba: Answer) -> Settled:
    total = _VOTE.get(ab, 0) + _VOTE.get(ba, 0)
    if total:
        return Settled("A" if total > 0 else "B", None)
    if ab == "unreadable" or ba == "unreadable":
        return Settled(None, "unreadable")
    if ab == ba == "tie":
        return Settled("tie", None)
    return Settled(None, "inconsistent")
