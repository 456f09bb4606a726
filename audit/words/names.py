"""The two alphabets and the closed sets of names, as they stand in the database.

Side `A`/`B` is an identity, position `first`/`second` a place on the judge's screen. A *choice* speaks of
positions, a *preference* of sides; `presented_order` leads from one to the other.
"""

from collections.abc import Sequence
from typing import Literal, get_args

Side = Literal["A", "B"]
Choice = Literal["first", "second", "tie"]
Preference = Literal["A", "B", "tie"]
Order = Literal["AB", "BA"]

ParseStatus = Literal["ok", "repaired", "unreadable", "error", "truncated", "recorded"]
# What became of one order of one pair: a preference, or the reason why there is none.
# `split`: a panel whose members were read and name different sides.
Answer = Literal["A", "B", "tie", "unreadable", "failed", "missing", "split"]

SwapRule = Literal["both_agree", "net_vote", "first_order"]
GapSource = Literal["agent", "session", "judge", "external"]
GapScope = Literal["run", "category"]
Outcome = Literal[
    "unverified",
    "reward_tie",
    "incomplete",
    "unreadable",
    "judge_tie",
    "inconsistent",
    "correct",
    "misselected",
]

PARSE_STATUSES: tuple[ParseStatus, ...] = get_args(ParseStatus)
SWAP_RULES: tuple[SwapRule, ...] = get_args(SwapRule)
GAP_SOURCES: tuple[GapSource, ...] = get_args(GapSource)
GAP_SCOPES: tuple[GapScope, ...] = get_args(GapScope)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

UNKNOWN_BUCKET = "unknown"
# The gate of imported pairs that no judge has seen yet (pipeline.gating makes them a judge's).
UNJUDGED = "unjudged"
# Two rewards, or a gap and an edge, that are this close are the same.
TOLERANCE = 1e-9
# A graded session counts as a success from here on.
SUCCESS_AT = 1 - 1e-6
# What the command `gate` can hold to a limit; in `report --json` and `compare --json` the same names.
METRICS = (
    "accuracy",
    "misselected_of_decidable",
    "misselected_of_decided",
    "near.misselected_of_decidable",
    "near.misselected_of_decided",
    "near.consistent",
    "wide.misselected_of_decidable",
    "wide.misselected_of_decided",
    "wide.consistent",
    "agent_pairs.near",
    "agent_pairs.wide",
    "position.consistent",
    "position.first_share",
    "position.preference_fairness",
    "satisfied_failed",
    "base_failure",
    "error_calls",
    "gap_at_25",
    "gap_at_10",
    "gap_at_5",
    "drift",
)


def gate_of(name: str | None, members: Sequence[str]) -> str:
    """A panel's name in the database."""
    if name is not None:
        return name
    return members[0] if len(members) == 1 else f"panel({'+'.join(members)})"


# Begins the end_reason of a session that the budget cut: it is gone on with when that is raised.
CUT = "budget_"
