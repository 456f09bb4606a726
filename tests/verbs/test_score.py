"""One pair, scored: its outcome is the first of eight that applies; the first four are no verdict."""

import math
import sys
from typing import get_args

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.verbs.gaps import GAUGE, SCORES
from audit.verbs.score import Scale, Scored, misselected, outcome, score
from audit.verbs.settle import preference_of, settle
from audit.words.names import GAP_SOURCES, OUTCOMES, SWAP_RULES, Answer, Choice, Order, Outcome, SwapRule

ANSWERS: tuple[Answer, ...] = get_args(Answer)
BOTH = Scale("both_agree", "session", GAUGE)
NET = Scale("net_vote", "session", GAUGE)
ONE = Scale("first_order", "session", GAUGE)

answers = st.sampled_from(ANSWERS)
rewards = st.one_of(
    st.none(),
    st.sampled_from([0.0, -0.0, 0.5, 1.0, 1.0 + 1e-10]),
    st.floats(allow_nan=False, allow_infinity=False),
)
scales = st.builds(
    Scale, st.sampled_from(SWAP_RULES), st.sampled_from(GAP_SOURCES), st.sampled_from([GAUGE, SCORES])
)


@pytest.mark.parametrize(
    ("scale", "ab", "ba", "reward_a", "reward_b", "expected", "is_misselected"),
    [
        # A reward that is not known comes before everything else.
        (BOTH, "A", "A", None, 0.0, "unverified", None),
        (BOTH, "A", "A", 1.0, None, "unverified", None),
        (BOTH, "failed", "missing", None, None, "unverified", None),
        (BOTH, "B", "B", 1.0, 1.0, "reward_tie", None),
        (BOTH, "failed", "failed", 0.5, 0.5, "reward_tie", None),
        (BOTH, "B", "B", 1.0, 1.0 - 1e-9, "reward_tie", None),
        (BOTH, "B", "B", 1e-9, 0.0, "reward_tie", None),
        (BOTH, "B", "B", 1.0, 1.0 - 2e-9, "misselected", 1),
        (BOTH, "A", "missing", 1.0, 0.0, "incomplete", None),
        (BOTH, "A", "failed", 1.0, 0.0, "incomplete", None),
        (BOTH, "unreadable", "failed", 1.0, 0.0, "incomplete", None),
        (BOTH, "A", "unreadable", 1.0, 0.0, "unreadable", None),
        (BOTH, "unreadable", "unreadable", 1.0, 0.0, "unreadable", None),
        (BOTH, "tie", "tie", 1.0, 0.0, "judge_tie", 0),
        (BOTH, "A", "B", 1.0, 0.0, "inconsistent", 0),
        (BOTH, "A", "tie", 1.0, 0.0, "inconsistent", 0),
        (BOTH, "A", "A", 1.0, 0.0, "correct", 0),
        (BOTH, "A", "A", 0.0, 1.0, "misselected", 1),
        (BOTH, "B", "B", 0.0, 1.0, "correct", 0),
        (BOTH, "B", "B", -0.2, -0.9, "misselected", 1),
        (NET, "A", "tie", 1.0, 0.0, "correct", 0),
        (NET, "unreadable", "B", 1.0, 0.0, "misselected", 1),
        (NET, "tie", "unreadable", 1.0, 0.0, "unreadable", None),
        (NET, "A", "B", 1.0, 0.0, "inconsistent", 0),
        (NET, "A", "failed", 1.0, 0.0, "incomplete", None),
        (ONE, "A", "missing", 1.0, 0.0, "correct", 0),
        (ONE, "missing", "A", 0.0, 1.0, "misselected", 1),
        (ONE, "A", "B", 1.0, 0.0, "correct", 0),
        (ONE, "tie", "missing", 1.0, 0.0, "judge_tie", 0),
        (ONE, "unreadable", "A", 1.0, 0.0, "unreadable", None),
        (ONE, "missing", "missing", 1.0, 0.0, "incomplete", None),
    ],
)
def test_outcome_when_several_could_apply_then_it_is_the_first(
    scale: Scale,
    ab: Answer,
    ba: Answer,
    reward_a: float | None,
    reward_b: float | None,
    expected: Outcome,
    is_misselected: int | None,
) -> None:
    scored = score(scale, ab, ba, reward_a=reward_a, reward_b=reward_b)
    assert (scored.outcome, scored.misselected) == (expected, is_misselected)


def first_that_applies(rule: SwapRule, ab: Answer, ba: Answer, a: float | None, b: float | None) -> str:
    """The design's list, read from the top, in other words than the program's."""
    if rule == "first_order":
        used = [answer for answer in (ab, ba) if answer != "missing"][:1] or ["missing"]
    else:
        used = [ab, ba]
    read = [answer for answer in used if answer in ("A", "B", "tie")]
    votes = read.count("A") - read.count("B")
    names_a_side = bool(votes) if rule == "net_vote" else len(set(used)) == 1 and bool(votes)
    better = "A" if (a or 0) > (b or 0) else "B"
    named = "A" if votes > 0 else "B"
    conditions = [
        ("unverified", a is None or b is None),
        ("reward_tie", a is not None and b is not None and abs(a - b) <= 1e-9),
        ("incomplete", "failed" in used or "missing" in used),
        ("unreadable", not names_a_side and "unreadable" in used),
        ("judge_tie", set(used) == {"tie"}),
        ("inconsistent", not names_a_side),
        ("correct", named == better),
        ("misselected", named != better),
    ]
    assert [name for name, _ in conditions] == list(OUTCOMES)
    return next(name for name, applies in conditions if applies)


@given(scales, answers, answers, rewards, rewards)
def test_outcome_then_it_is_exactly_the_first_of_the_eight_that_applies(
    scale: Scale, ab: Answer, ba: Answer, a: float | None, b: float | None
) -> None:
    scored = score(scale, ab, ba, reward_a=a, reward_b=b)
    assert scored.outcome == first_that_applies(scale.swap_rule, ab, ba, a, b)
    if scored.outcome in OUTCOMES[:4]:
        assert scored.misselected is None
    else:
        assert scored.misselected == int(scored.outcome == "misselected")


@given(scales, answers, answers, rewards, rewards)
def test_score_when_sides_exchange_names_then_only_the_preference_is_mirrored(
    scale: Scale, ab: Answer, ba: Answer, a: float | None, b: float | None
) -> None:
    mirror: dict[str | None, str | None] = {"A": "B", "B": "A"}
    straight = score(scale, ab, ba, reward_a=a, reward_b=b, score_a=3.0, score_b=1.5, agent_gap=0.1)
    mirrored = score(
        scale,
        mirror.get(ab, ab),  # type: ignore[arg-type]
        mirror.get(ba, ba),  # type: ignore[arg-type]
        reward_a=b,
        reward_b=a,
        score_a=1.5,
        score_b=3.0,
        agent_gap=0.1,
    )
    preferred = mirror.get(straight.judge_pref, straight.judge_pref)
    assert mirrored == straight._replace(judge_pref=preferred)


@given(scales, answers, answers, rewards, rewards, st.one_of(st.none(), st.floats(0, 1e300)))
@example(BOTH, "A", "A", sys.float_info.max, -sys.float_info.max, None)
def test_score_then_gaps_are_finite_and_the_pair_is_in_one_bucket(
    scale: Scale, ab: Answer, ba: Answer, a: float | None, b: float | None, external: float | None
) -> None:
    scored = score(
        scale, ab, ba, reward_a=a, reward_b=b, score_a=a, score_b=b, agent_gap=0.1, external_gap=external
    )
    for gap in (scored.reward_gap, scored.session_gap, scored.judge_gap):
        assert gap is None or 0 <= gap < math.inf
    labels = [bucket.label for bucket in scale.buckets.with_unknown()]
    assert labels.count(scored.gap_bucket) == 1
    assert (scored.gap_bucket == "unknown") == (scored.reward_gap is None)


@pytest.mark.parametrize(
    ("source", "gap", "bucket"),
    [
        ("session", 0.25, "[0.15,0.3)"),
        ("agent", 0.07, "[0.05,0.1)"),
        ("judge", 4.0, "[0.3,..)"),
        ("external", 0.0, "[0,0.05)"),
    ],
)
def test_score_when_a_gap_source_is_named_then_that_gap_is_the_reward_gap(
    source: str, gap: float, bucket: str
) -> None:
    scored = score(
        Scale("both_agree", source, GAUGE),  # type: ignore[arg-type]
        "A",
        "A",
        reward_a=0.75,
        reward_b=0.5,
        score_a=9.0,
        score_b=5.0,
        agent_gap=0.07,
        external_gap=0.0,
    )
    assert scored == Scored("A", 1, gap, bucket, 0.25, 4.0, "correct", 0)


@pytest.mark.parametrize("source", GAP_SOURCES)
def test_score_when_the_gap_that_is_named_is_not_known_then_the_bucket_is_unknown(source: str) -> None:
    scored = score(Scale("both_agree", source, GAUGE), "A", "A", reward_a=None, reward_b=1.0)  # type: ignore[arg-type]
    assert (scored.reward_gap, scored.gap_bucket) == (None, "unknown")


def test_misselected_then_it_is_null_in_the_first_four_outcomes() -> None:
    assert [misselected(result) for result in OUTCOMES] == [None, None, None, None, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("rewards_of_x_and_y", "expected"),
    [
        ((1.0, 0.0), [0, 0, 1, 1, 0]),
        ((0.2, 0.9), [1, 1, 0, 0, 0]),
        ((0.5, 0.5), [None, None, None, None, None]),
    ],
)
def test_misselected_when_slots_are_named_in_both_orders_then_it_follows_the_side_not_the_slot(
    rewards_of_x_and_y: tuple[float, float], expected: list[int | None]
) -> None:
    """Case SW-01: x is side A; each judgment is one order."""
    judged: list[tuple[Order, Choice]] = [
        ("AB", "first"),
        ("BA", "second"),
        ("AB", "second"),
        ("BA", "first"),
        ("AB", "tie"),
    ]
    found = []
    for order, choice in judged:
        said = {order: preference_of(choice, order)}
        scored = score(
            ONE,
            said.get("AB") or "missing",
            said.get("BA") or "missing",
            reward_a=rewards_of_x_and_y[0],
            reward_b=rewards_of_x_and_y[1],
        )
        found.append(scored.misselected)
    assert found == expected


@pytest.mark.parametrize("rule", ["both_agree", "net_vote"])
def test_score_when_the_judge_was_out_or_wrote_garbage_then_it_is_neither_a_tie_nor_a_win(
    rule: SwapRule,
) -> None:
    """Case SW-03: p1 lost a call (the other order named slot B, which is x), p2 is garbage, p3 ties twice."""
    pairs: dict[str, tuple[Answer, Answer]] = {
        "p1": ("failed", preference_of("second", "BA") or "missing"),
        "p2": ("unreadable", "unreadable"),
        "p3": ("tie", "tie"),
    }
    scored = {
        name: score(Scale(rule, "session", GAUGE), ab, ba, reward_a=1.0, reward_b=0.0)
        for name, (ab, ba) in pairs.items()
    }
    assert {name: (one.outcome, one.judge_pref, one.misselected) for name, one in scored.items()} == {
        "p1": ("incomplete", None, None),
        "p2": ("unreadable", None, None),
        "p3": ("judge_tie", "tie", 0),
    }


def test_outcome_when_net_vote_meets_one_unreadable_answer_then_the_other_order_decides() -> None:
    """The note of case SW-03: an unreadable answer counts 0 under net_vote, and bars both_agree."""
    assert outcome(1.0, 0.0, *settle("unreadable", "A", "net_vote")) == "correct"
    assert outcome(1.0, 0.0, *settle("unreadable", "A", "both_agree")) == "unreadable"
