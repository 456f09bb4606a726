"""Scoring one pair: from rewards and answers to its outcome, `misselected`, its gap and its bucket."""

from typing import NamedTuple

from audit.verbs.gaps import BucketSet, bucket_of, chosen_gap, judge_gap, session_gap
from audit.verbs.settle import is_consistent, settle
from audit.words.names import TOLERANCE, Answer, GapSource, Outcome, SwapRule

_NO_VERDICT_ON_REWARDS = frozenset({"unverified", "reward_tie", "incomplete", "unreadable"})


class Scored(NamedTuple):
    """What `score` makes of a pair; field names are column names of audit_pairs."""

    judge_pref: str | None
    is_consistent: int | None
    reward_gap: float | None
    gap_bucket: str
    session_gap: float | None
    judge_gap: float | None
    outcome: Outcome
    misselected: int | None


class Scale(NamedTuple):
    """How a run wants its pairs scored."""

    swap_rule: SwapRule
    gap_source: GapSource
    buckets: BucketSet


def score(
    scale: Scale,
    ab: Answer,
    ba: Answer,
    *,
    reward_a: float | None,
    reward_b: float | None,
    score_a: float | None = None,
    score_b: float | None = None,
    agent_gap: float | None = None,
    external_gap: float | None = None,
) -> Scored:
    """Everything that follows from what is known of a pair. Rewards and gaps are finite or NULL."""
    settled = settle(ab, ba, scale.swap_rule)
    by_session = session_gap(reward_a, reward_b)
    by_judge = judge_gap(score_a, score_b)
    gap = chosen_gap(
        scale.gap_source, agent=agent_gap, session=by_session, judge=by_judge, external=external_gap
    )
    result = outcome(reward_a, reward_b, settled.preference, settled.reason)
    return Scored(
        judge_pref=settled.preference,
        is_consistent=is_consistent(ab, ba),
        reward_gap=gap,
        gap_bucket=bucket_of(gap, scale.buckets),
        session_gap=by_session,
        judge_gap=by_judge,
        outcome=result,
        misselected=misselected(result),
    )


def outcome(
    reward_a: float | None, reward_b: float | None, preference: str | None, reason: str | None
) -> Outcome:
    """Exactly one a pair, the first that applies, in the order of `words.names.OUTCOMES`.

    `preference` and `reason` are what `settle` gave. A pair is decidable where both rewards are known and
    differ by more than 1e-9.
    """
    if reward_a is None or reward_b is None:
        return "unverified"
    if abs(reward_a - reward_b) <= TOLERANCE:
        return "reward_tie"
    if reason == "incomplete":
        return "incomplete"
    if reason == "unreadable":
        return "unreadable"
    if preference == "tie":
        return "judge_tie"
    if preference is None:
        return "inconsistent"
    return "correct" if (preference == "A") == (reward_a > reward_b) else "misselected"


def misselected(result: Outcome) -> int | None:
    """1 where the settled preference is the lower-reward side, NULL where that could not be told, else 0."""
    if result in _NO_VERDICT_ON_REWARDS:
        return None
    return int(result == "misselected")
