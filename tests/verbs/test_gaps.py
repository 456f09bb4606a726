"""Gaps and their buckets: every pair in exactly one bucket, edges where they are said to be, means exact."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.verbs.gaps import (
    GAUGE,
    PRESETS,
    SCORES,
    Bucket,
    BucketSet,
    agent_gaps,
    bucket_of,
    buckets_from_rows,
    buckets_from_text,
    chosen_gap,
    judge_gap,
    make_buckets,
    session_gap,
)

gaps = st.floats(0, allow_nan=False, allow_infinity=False)


@st.composite
def bucket_sets(draw: st.DrawFn) -> BucketSet:
    """Any set of edges, some of them as close together as they may be."""
    steps = draw(st.lists(st.one_of(st.floats(1e-6, 1e3), st.just(2.5e-9)), min_size=1, max_size=6))
    edges: list[float] = []
    for step in steps:
        edges.append((edges[-1] if edges else 0.0) + step)
    if any(b - a <= 1e-9 for a, b in pairwise([0.0, *edges])):
        edges = edges[:1]
    return make_buckets("own", edges, draw(st.sampled_from(["left", "right"])))


@given(bucket_sets(), gaps)
@example(GAUGE, 0.0)
@example(SCORES, 0.0)
@example(GAUGE, 1e308)
def test_bucket_of_when_a_gap_is_known_then_exactly_one_bucket_holds_it(
    buckets: BucketSet, gap: float
) -> None:
    label = bucket_of(gap, buckets)
    holding = [bucket for bucket in buckets.buckets if bucket.label == label]
    assert len(holding) == 1
    lower, upper = holding[0].lower, holding[0].upper
    assert lower is not None
    assert lower - 1.1e-9 <= gap
    assert upper is None or gap <= upper + 1.1e-9


@given(bucket_sets(), st.lists(st.one_of(st.none(), gaps), max_size=50))
def test_bucket_of_when_many_pairs_are_counted_then_the_counts_add_up(
    buckets: BucketSet, found: list[float | None]
) -> None:
    counts = Counter(bucket_of(gap, buckets) for gap in found)
    assert sum(counts[bucket.label] for bucket in buckets.with_unknown()) == len(found)
    assert counts["unknown"] == found.count(None)


@given(bucket_sets())
def test_bucket_of_when_a_gap_is_within_the_tolerance_of_an_edge_then_it_is_on_the_edge(
    buckets: BucketSet,
) -> None:
    for number, edge in enumerate(buckets.inner):
        owner = buckets.buckets[number + (buckets.closed == "left")]
        for gap in (edge, edge - 0.9e-9, edge + 0.9e-9):
            assert bucket_of(gap, buckets) == owner.label
        assert bucket_of(edge - max(1.1e-9, 4 * math.ulp(edge)), buckets) == buckets.buckets[number].label
        assert bucket_of(edge + max(1.1e-9, 4 * math.ulp(edge)), buckets) == buckets.buckets[number + 1].label


@given(bucket_sets())
def test_make_buckets_then_the_buckets_touch_start_at_zero_and_end_open(buckets: BucketSet) -> None:
    rows = buckets.buckets
    assert rows[0].lower == 0
    assert rows[-1].upper is None
    assert all(one.upper == other.lower for one, other in pairwise(rows))
    assert len({row.label for row in buckets.with_unknown()}) == len(rows) + 1
    assert [row.is_near for row in rows] == [1] + [0] * (len(rows) - 1)


@pytest.mark.parametrize(
    ("gap", "gauge", "scores"),
    [
        (0.0, "[0,0.05)", "[0,0.2]"),
        (0.05 - 1e-8, "[0,0.05)", "[0,0.2]"),
        (0.05, "[0.05,0.1)", "[0,0.2]"),
        (0.3 - 0.2, "[0.1,0.15)", "[0,0.2]"),
        (0.1 + 0.2, "[0.3,..)", "(0.2,0.5]"),
        (0.2, "[0.15,0.3)", "[0,0.2]"),
        (0.2 + 1e-8, "[0.15,0.3)", "(0.2,0.5]"),
        (0.5, "[0.3,..)", "(0.2,0.5]"),
        (1.0, "[0.3,..)", "(0.5,1]"),
        (1.0 + 1e-8, "[0.3,..)", "(1,..)"),
        (7.5, "[0.3,..)", "(1,..)"),
        (None, "unknown", "unknown"),
    ],
)
def test_bucket_of_when_a_preset_is_used_then_gauge_is_closed_left_and_scores_right(
    gap: float | None, gauge: str, scores: str
) -> None:
    assert bucket_of(gap, GAUGE) == gauge
    assert bucket_of(gap, SCORES) == scores


def test_presets_then_near_ties_are_as_the_design_says() -> None:
    assert [bucket.label for bucket in GAUGE.buckets if bucket.is_near] == ["[0,0.05)", "[0.05,0.1)"]
    assert [bucket.label for bucket in SCORES.buckets if bucket.is_near] == ["[0,0.2]"]
    assert set(PRESETS) == {"gauge", "scores"}
    assert GAUGE.with_unknown()[-1] == Bucket("unknown", None, None, None, None)


def test_bucket_of_when_gaps_stand_on_edges_beyond_them_or_nowhere_then_none_is_lost() -> None:
    """Case GB-01: of eight gaps seven are counted, and the negative one is refused instead of dropped."""
    buckets = buckets_from_text("0,0.25,0.5,1.0")
    found = Counter(bucket_of(gap, buckets) for gap in (0, 0.1, 0.25, 0.5, 1.0, 1.2, None))
    assert found == {"[0,0.25)": 2, "[0.25,0.5)": 1, "[0.5,1.0)": 1, "[1.0,..)": 2, "unknown": 1}
    with pytest.raises(ValueError, match=r"^a gap is a finite number from 0 up, not -0\.3$"):
        bucket_of(-0.3, buckets)


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf, -1e-9])
def test_bucket_of_when_the_gap_is_no_gap_then_it_is_refused(gap: float) -> None:
    with pytest.raises(ValueError, match=rf"^a gap is a finite number from 0 up, not {gap}$"):
        bucket_of(gap, GAUGE)


@pytest.mark.parametrize(
    ("text", "name", "labels"),
    [
        ("gauge", "gauge", ["[0,0.05)", "[0.05,0.1)", "[0.1,0.15)", "[0.15,0.3)", "[0.3,..)"]),
        (" scores ", "scores", ["[0,0.2]", "(0.2,0.5]", "(0.5,1]", "(1,..)"]),
        ("0,.1,.3", "left:.1,.3", ["[0,.1)", "[.1,.3)", "[.3,..)"]),
        (".1, .3", "left:.1,.3", ["[0,.1)", "[.1,.3)", "[.3,..)"]),
        ("[0,.1) [.1,.3) [.3,..)", "left:.1,.3", ["[0,.1)", "[.1,.3)", "[.3,..)"]),
        ("(0,1] (1,3] (3,8] (8,..)", "right:1,3,8", ["[0,1]", "(1,3]", "(3,8]", "(8,..)"]),
        ("[0,1],(1,3],(3,inf)", "right:1,3", ["[0,1]", "(1,3]", "(3,..)"]),
        ("[0,1/3] (1/3,2/3] (2/3,)", "right:1/3,2/3", ["[0,1/3]", "(1/3,2/3]", "(2/3,..)"]),
    ],
)
def test_buckets_from_text_when_edges_are_written_then_labels_show_them_as_written(
    text: str, name: str, labels: list[str]
) -> None:
    buckets = buckets_from_text(text)
    assert buckets.name == name
    assert [bucket.label for bucket in buckets.buckets] == labels


def test_buckets_from_text_when_edges_are_fractions_then_a_computed_share_is_on_the_edge() -> None:
    buckets = buckets_from_text("[0,1/3] (1/3,2/3] (2/3,..)")
    votes = [abs(a / 3 - b / 3) for a, b in ((2, 1), (1, 0), (2, 0), (3, 0), (1, 1))]
    found = [bucket_of(gap, buckets) for gap in votes]
    assert found == ["[0,1/3]", "[0,1/3]", "(1/3,2/3]", "(2/3,..)", "[0,1/3]"]


def test_buckets_from_text_when_near_is_given_then_the_buckets_that_end_by_it_are_near() -> None:
    buckets = buckets_from_text("0,.1,.3,.5", near_below=0.3)
    assert [bucket.is_near for bucket in buckets.buckets] == [1, 1, 0, 0]
    assert buckets.name == "left:.1,.3,.5:near=0.3"


@pytest.mark.parametrize(
    ("text", "near", "problem"),
    [
        ("", None, "'' is not a number"),
        ("0", None, "give at least one bucket edge above 0"),
        ("[0,..)", None, "give at least one bucket edge above 0"),
        ("0,a", None, "'a' is not a number"),
        ("0,nan", None, "'nan' is not a number"),
        ("0,1e999", None, "'1e999' is not a number"),
        ("0,1e999999999", None, "'1e999999999' is not a number"),
        ("0,1/0", None, "'1/0' is not a number"),
        ("0,.3,.1", None, "bucket edges must be finite and rise from above 0, each by more than 1e-9"),
        ("0,.1,.1", None, "bucket edges must be finite and rise from above 0, each by more than 1e-9"),
        ("-1,1", None, "bucket edges must be finite and rise from above 0, each by more than 1e-9"),
        # So close to 0 that 0 itself would be on the edge and leave the first bucket.
        ("0,1e-10,1", None, "bucket edges must be finite and rise from above 0, each by more than 1e-9"),
        ("[0,.1) [.1,.3)", None, "the last bucket must be open at the top: write (.1,..)"),
        ("[0,.1) [.2,..)", None, "buckets must touch: .1 is not .2"),
        ("[.1,.2) [.2,..)", None, "the first bucket must start at 0, not at .1"),
        ("[0,1] [1,3) [3,..)", None, "all buckets must be closed on the same side"),
        ("[0,1] [1,3] [3,..)", None, "all buckets must be closed on the same side"),
        ("[0,1) (1,3) (3,..)", None, "all buckets must be closed on the same side"),
        (
            "[0,.1) and [.1,..)",
            None,
            "cannot read the buckets '[0,.1) and [.1,..)': write [0,.1) [.1,.3) [.3,..) or 0,.1,.3",
        ),
        ("gauge", 0.1, "the preset 'gauge' says itself what is near: give own edges with --near"),
        ("0,.1,.3", 0.05, "no bucket is near: the first ends at .1, after 0.05"),
        ("0,.1,.3", math.nan, "no bucket is near: the first ends at .1, after nan"),
    ],
)
def test_buckets_from_text_when_they_are_wrong_then_the_error_says_how(
    text: str, near: float | None, problem: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared
        buckets_from_text(text, near)
    assert str(caught.value) == problem


@given(bucket_sets())
def test_buckets_from_rows_when_a_set_was_stored_then_it_comes_back(buckets: BucketSet) -> None:
    assert buckets_from_rows("own", [tuple(row) for row in buckets.with_unknown()]) == buckets


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [(1.0, 0.25, 0.75), (-1.0, 0.5, 1.5), (0.0, -0.0, 0.0), (None, 1.0, None), (1.0, None, None)],
)
def test_session_gap_when_a_reward_is_unknown_then_it_is_null_else_the_distance(
    a: float | None, b: float | None, expected: float | None
) -> None:
    assert session_gap(a, b) == session_gap(b, a) == judge_gap(a, b) == expected


def test_session_gap_when_the_difference_is_no_number_any_more_then_it_is_the_largest_one() -> None:
    assert session_gap(1e308, -1e308) == 1.7976931348623157e308


def test_chosen_gap_then_it_is_the_one_that_is_named() -> None:
    known = {"agent": 1.0, "session": 2.0, "judge": 3.0, "external": None}
    assert [chosen_gap(s, **known) for s in ("agent", "session", "judge", "external")] == [
        1.0,
        2.0,
        3.0,
        None,
    ]  # type: ignore[arg-type]


def test_agent_gaps_when_means_are_equal_as_decimals_then_the_gap_is_exactly_zero() -> None:
    # 0.1 + 0.2 is not 0.3 in floats: a sum of floats leaves 5.6e-17, and the tie is lost.
    rewards = [("a", "b", None, 0.1, 0.3, 1), ("a", "b", None, 0.2, 0.0, 1), ("a", "b", None, 0.7, 0.7, 1)]
    assert agent_gaps(rewards, [("a", "b", None, 3)]) == {("a", "b", None): 0.0, ("b", "a", None): 0.0}


def test_agent_gaps_when_rewards_are_far_apart_in_size_then_nothing_is_rounded_away() -> None:
    rewards = [("a", "b", None, 1e300, 0.0, 1), ("a", "b", None, 1e-300, 1e300, 1)]
    assert agent_gaps(rewards, [("a", "b", None, 2)])["a", "b", None] == 5e-301


def test_agent_gaps_when_means_are_too_far_apart_for_a_number_then_the_gap_is_the_largest_one() -> None:
    rewards = [("a", "b", None, 1e308, -1e308, 2)]
    assert agent_gaps(rewards, [("a", "b", None, 2)])["a", "b", None] == 1.7976931348623157e308


def test_agent_gaps_when_a_pair_stands_either_way_round_then_both_are_one_comparison() -> None:
    rewards = [("a", "b", None, 1.0, 0.0, 3), ("b", "a", None, 1.0, 0.0, 1)]
    found = agent_gaps(rewards, [("a", "b", None, 4)])
    assert found == {("a", "b", None): 0.5, ("b", "a", None): 0.5}
    assert agent_gaps(rewards, [("b", "a", None, 4)]) == found


@pytest.mark.parametrize(
    "tasks",
    [[("a", "b", None, 1)], [], [("a", "c", None, 5)]],
    ids=["one task", "no task", "another agent's tasks"],
)
def test_agent_gaps_when_two_agents_share_no_more_than_one_task_then_they_have_no_gap(
    tasks: list[tuple[str, str, str | None, int]],
) -> None:
    assert agent_gaps([("a", "b", None, 1.0, 0.0, 7)], tasks) == {}


def test_agent_gaps_when_told_by_category_then_each_category_has_its_own() -> None:
    rewards = [("a", "b", "x", 1.0, 0.0, 2), ("a", "b", "y", 0.25, 0.5, 2), ("a", "b", "z", 1.0, 0.0, 1)]
    tasks = [("a", "b", "x", 2), ("a", "b", "y", 2), ("a", "b", "z", 1)]
    found = agent_gaps(rewards, tasks)
    assert found == {
        ("a", "b", "x"): 1.0,
        ("b", "a", "x"): 1.0,
        ("a", "b", "y"): 0.25,
        ("b", "a", "y"): 0.25,
    }


cents = st.integers(-1000, 1000)


@given(st.lists(st.tuples(cents, cents, st.integers(1, 5), st.booleans()), min_size=1, max_size=30))
def test_agent_gaps_then_they_equal_the_difference_of_means_in_exact_fractions(
    found: list[tuple[int, int, int, bool]],
) -> None:
    rewards = [
        ("b", "a", None, b / 100, a / 100, n) if turned else ("a", "b", None, a / 100, b / 100, n)
        for a, b, n, turned in found
    ]
    total = sum(n for _, _, n, _ in found)
    mean_a = Fraction(sum(a * n for a, _, n, _ in found), 100 * total)
    mean_b = Fraction(sum(b * n for _, b, n, _ in found), 100 * total)
    assert agent_gaps(rewards, [("a", "b", None, 2)])["a", "b", None] == float(abs(mean_a - mean_b))
