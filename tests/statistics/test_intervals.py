"""Intervals of clustered rates, means and changes: the literature's figures, and what always holds."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from audit.statistics.intervals import (
    change_interval,
    degrees_of_freedom,
    design_effect,
    mean_interval,
    paired_interval,
    share_interval,
    t_quantile,
    wilson,
)
from audit.statistics.rates import clustered_pair_rates, clustered_rate

CLUSTERS = st.lists(
    st.integers(1, 12).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=30
)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"), [(23, 40, 0.422, 0.715), (292, 1460, 0.180, 0.221), (0, 50, 0.0, 0.071)]
)
def test_wilson_when_the_literature_gives_it_then_it_is_that(k: int, n: int, low: float, high: float) -> None:
    assert wilson(k, n) == pytest.approx((low, high), abs=5e-4)


@pytest.mark.parametrize(("k", "n"), [(-1, 3), (4, 3), (0, 0)])
def test_wilson_when_it_is_no_share_then_it_is_refused(k: int, n: int) -> None:
    with pytest.raises(ValueError, match=f"{k} of {n} is no share"):
        wilson(k, n)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_share_when_every_cluster_is_one_trial_then_it_is_plain_wilson(k: list[int]) -> None:
    found = clustered_rate(k, [1] * len(k))
    reference = binomtest(sum(k), len(k)).proportion_ci(confidence_level=0.95, method="wilson")

    assert (found["low"], found["high"]) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert (found["method"], found["clusters"]) == ("wilson", len(k))


def test_share_when_clusters_differ_then_it_is_wilsons_for_what_the_run_is_worth() -> None:
    # By hand: p = 6/20, u = 2.5, .5, -1.5, -1.5 (n = 5 each), v = 4/3 (6.25 + .25 + 2 * 2.25)/400 = .0366...,
    # p(1-p)/v = 5.727 trials; m2 = 2.75, m4 = (39.0625 + .0625 + 2 * 5.0625)/4, 2 * 4/(m4/m2^2 - 1) > 3.
    found = clustered_rate([4, 2, 0, 0], [5, 5, 5, 5])
    worth = 0.21 / (4 / 3 * 11 / 400)

    assert worth == pytest.approx(5.727, abs=1e-3)
    assert (found["low"], found["high"]) == pytest.approx(wilson(0.3 * worth, worth, 3.182446), abs=1e-6)
    assert found | {"low": 0, "high": 0} == {
        "k": 6, "n": 20, "value": 0.3, "low": 0, "high": 0, "method": "cluster_wilson_t", "clusters": 4,
    }  # fmt: skip
    assert design_effect([4, 2, 0, 0], [5, 5, 5, 5]) == pytest.approx(20 / worth)


def test_share_when_one_task_carries_the_errors_then_it_has_few_degrees_of_freedom() -> None:
    # By hand: p = .05, u = 4.75 once and -.25 nineteen times: m2 = 1.1875, m4 = 25.4566,
    # df = 40/17.05 = 2.346, t = 3.75 where Student's for 19 is 2.09.
    k = [5, *[0] * 19]
    worth = 0.0475 / (20 / 19 * 23.75 / 100**2)

    found = clustered_rate(k, [5] * 20)
    assert (found["low"], found["high"]) == pytest.approx(
        wilson(0.05 * worth, worth, t_quantile(2.346)), abs=1e-4
    )
    assert t_quantile(2.346) == pytest.approx(3.75, abs=0.01)


@given(CLUSTERS)
def test_share_when_any_run_is_given_then_the_interval_holds_the_rate_and_stays_a_share(
    clusters: list[tuple[int, int]],
) -> None:
    k, n = zip(*clusters, strict=True)
    found = clustered_rate(k, n)

    assert 0 <= found["low"] <= found["value"] <= found["high"] <= 1
    assert found["low"] < found["high"]
    assert found["clusters"] == len(clusters)
    # The order of tasks and tasks without a pair tell nothing.
    again = clustered_rate([0, *reversed(k)], [0, *reversed(n)])
    assert (again["low"], again["high"]) == pytest.approx((found["low"], found["high"]), abs=1e-9)
    # What is not counted is the rest, with the same doubt.
    rest = clustered_rate([b - a for a, b in clusters], n)
    assert (1 - rest["high"], 1 - rest["low"]) == pytest.approx((found["low"], found["high"]), abs=1e-9)


@given(CLUSTERS)
def test_share_when_clusters_are_counted_as_clusters_then_it_is_never_narrower_than_plain(
    clusters: list[tuple[int, int]],
) -> None:
    k, n = zip(*clusters, strict=True)
    found = clustered_rate(k, n)
    low, high = wilson(sum(k), sum(n))

    assert found["high"] - found["low"] >= high - low - 1e-9


@pytest.mark.parametrize("k_of_each", [0, 6])
@pytest.mark.parametrize("tasks", [1, 2, 50])
def test_share_when_nothing_or_everything_is_counted_then_a_task_is_worth_one_trial(
    k_of_each: int, tasks: int
) -> None:
    found = clustered_rate([k_of_each] * tasks, [6] * tasks)

    assert found["method"] == "wilson_on_clusters"
    assert (found["low"], found["high"]) == wilson(tasks if k_of_each else 0, tasks)


def test_share_when_one_task_has_most_of_the_pairs_then_there_are_in_effect_fewer_tasks() -> None:
    # Kish: (90 + 5 + 5)^2 / (90^2 + 5^2 + 5^2) = 1.227.
    found = clustered_rate([0, 0, 0], [90, 5, 5])

    assert found["high"] == pytest.approx(wilson(0, 10_000 / 8150)[1])
    assert found["clusters"] == 3


def test_share_when_all_tasks_are_alike_then_the_interval_is_no_point() -> None:
    found = clustered_rate([3] * 50, [6] * 50)

    assert (found["low"], found["high"]) == pytest.approx(wilson(150, 300, t_quantile(49)))
    assert design_effect([3] * 50, [6] * 50) == 1


def test_share_when_there_is_one_task_then_it_says_hardly_anything() -> None:
    found = clustered_rate([30], [100])

    assert (found["low"], found["high"]) == pytest.approx(wilson(0.3, 1))
    assert found["high"] - found["low"] > 0.7


def test_share_when_there_is_nothing_then_it_is_null_and_not_zero() -> None:
    assert clustered_rate([], []) == clustered_rate([0, 0], [0, 0]) == {
        "k": 0, "n": 0, "value": None, "low": None, "high": None, "method": None, "clusters": 0,
    }  # fmt: skip
    assert share_interval([0], [0]) == (None, None, None)
    assert design_effect([], []) is None


@pytest.mark.parametrize(
    ("k", "n", "message"),
    [
        ([2], [1], "a part must be from 0 up to its whole"),
        ([-1], [1], "a part must be from 0 up to its whole"),
        ([1, 1], [1], "rows of different lengths: 2, 1"),
        ([[1]], [[1]], "expected numbers in one row, found 2 dimensions"),
        ([float("nan")], [1], "expected finite numbers"),
    ],
)
def test_share_when_counts_cannot_be_then_they_are_refused(k: object, n: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        share_interval(k, n)


def test_freedom_when_one_cluster_carries_the_variance_then_it_is_small_and_else_that_of_student() -> None:
    even = np.array([1.0, -1.0] * 10)
    spike = np.array([19.0, *[-1.0] * 19])

    assert degrees_of_freedom(even) == 19
    assert degrees_of_freedom(np.zeros(5)) == 4
    assert 1 <= degrees_of_freedom(spike) < 3


VALUES = st.lists(st.floats(-100, 100), min_size=3, max_size=30).filter(lambda v: np.std(v) > 1e-3)


@given(VALUES)
def test_mean_when_every_cluster_is_one_value_then_it_is_students_or_wider(values: list[float]) -> None:
    mean, interval = mean_interval(values, [1] * len(values))
    student = ttest_1samp(values, 0).confidence_interval(0.95)

    assert mean == pytest.approx(np.mean(values), abs=1e-9)
    assert interval.low is not None
    assert interval.high is not None
    assert interval.low <= student.low + 1e-7
    assert interval.high >= student.high - 1e-7
    deviations = np.asarray(values) - np.mean(values)
    if degrees_of_freedom(deviations) == len(values) - 1:
        assert tuple(interval)[:2] == pytest.approx((student.low, student.high), abs=1e-7)


def test_mean_when_values_cluster_then_the_error_is_the_clustered_one() -> None:
    # statsmodels 0.15: OLS on a constant, cov_type="cluster", times the root of 5/4 for five clusters.
    mean, interval = mean_interval([8, 18, 7, 3, 2], [2, 3, 1, 2, 1])

    assert mean == pytest.approx(4.22222222)
    assert interval.high is not None
    assert interval.high - mean == pytest.approx(1.04629174 * 2.776445, rel=1e-6)
    assert interval.method == "cluster_t"


def test_mean_when_it_has_no_spread_then_it_is_null_unless_it_is_a_share() -> None:
    assert mean_interval([0.3, 0.6], [1, 2]) == (pytest.approx(0.3), (None, None, None))
    assert mean_interval([4], [2]) == (2.0, (None, None, None))
    assert mean_interval([], []) == (None, (None, None, None))
    assert mean_interval([1, 1, 1], [1, 1, 1], 0, 1) == (1.0, (*wilson(3, 3), "wilson_on_clusters"))
    assert mean_interval([-2, -2], [2, 2], -1, 1)[1].low == -1
    with pytest.raises(ValueError, match="a number of values is from 0 up"):
        mean_interval([1], [-1])


@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.integers(0, 6))
def test_change_when_a_run_is_compared_then_it_holds_the_change_and_turns_with_the_order(
    before: list[int], other: int
) -> None:
    after = [*before[1:], other]
    n = [6] * len(before)
    change, interval = change_interval(before, n, after, n)
    back, turned = change_interval(after, n, before, n)

    assert change == pytest.approx((sum(after) - sum(before)) / sum(n))
    assert change == pytest.approx(-back)
    assert -1 <= interval.low <= change + 1e-9
    assert change - 1e-9 <= interval.high <= 1
    assert interval.low < interval.high
    assert (interval.low, interval.high) == pytest.approx((-turned.high, -turned.low), abs=1e-9)


def test_change_when_runs_share_tasks_then_the_tasks_luck_cancels() -> None:
    hard = [5, 0, 6, 1, 5, 0, 6, 1] * 5
    n = [6] * len(hard)
    _, paired = change_interval(hard, n, [max(k - 1, 0) for k in hard], n)
    _, apart = change_interval([*hard, *[0] * 40], [*n, *[0] * 40], [*[0] * 40, *hard], [*[0] * 40, *n])

    assert paired.high - paired.low < (apart.high - apart.low) / 3
    assert paired.high < 0


def test_change_when_there_is_none_anywhere_then_the_two_intervals_make_one() -> None:
    change, interval = change_interval([0] * 20, [5] * 20, [0] * 20, [5] * 20)
    _, high = wilson(0, 20)

    assert change == 0
    assert interval == (pytest.approx(-high), pytest.approx(high), "from_two_intervals")
    assert change_interval([0], [0], [1], [1]) == (None, (None, None, None))


def test_paired_when_nothing_differs_then_it_is_tangos_for_what_the_pairs_are_worth() -> None:
    k, n = [3, 0, 1, 2] * 15, [9] * 60
    change, interval = paired_interval(k, n, k, n)
    worth = sum(n) / design_effect(k, n)
    end = 1.959964**2 / (worth + 1.959964**2)

    assert change == 0
    assert interval == (pytest.approx(-end), pytest.approx(end), "paired_wilson")
    apart = change_interval(k, n, k, n)[1]
    assert end < apart.high / 4
    # One task is worth one trial where none tells how alike its pairs are.
    assert paired_interval([0] * 20, [5] * 20, [0] * 20, [5] * 20)[1].high == pytest.approx(wilson(0, 20)[1])
    assert paired_interval([0], [0], [1], [1]) == (None, (None, None, None))


@given(st.lists(st.integers(0, 6), min_size=2, max_size=30), st.lists(st.integers(0, 6), min_size=30))
def test_paired_when_a_run_is_compared_then_it_turns_with_the_order_and_is_never_the_narrower(
    before: list[int], other: list[int]
) -> None:
    after, n = other[: len(before)], [6] * len(before)
    change, interval = paired_interval(before, n, after, n)
    back, turned = paired_interval(after, n, before, n)

    assert change == pytest.approx(-back)
    assert (interval.low, interval.high) == pytest.approx((-turned.high, -turned.low), abs=1e-9)
    assert -1 <= interval.low <= change + 1e-9
    assert change - 1e-9 <= interval.high <= 1
    spread = change_interval(before, n, after, n)[1]
    if spread.method == "cluster_t":
        assert interval.low <= spread.low
        assert spread.high <= interval.high


@pytest.mark.parametrize("tasks", [20, 60])
@pytest.mark.parametrize(
    ("begins", "ends", "alike"),
    [(0.001, 0.001, 0), (0.01, 0, 0), (0.03, 0.03, 0), (0.02, 0.02, 0.3), (0.05, 0, 0.1), (0.1, 0.1, 0.1)],
)
def test_paired_when_runs_are_drawn_with_a_known_change_then_it_holds_it_as_often_as_it_says(
    tasks: int, begins: float, ends: float, alike: float
) -> None:
    """Of 9 pairs a task 15% are misselected (correlation .1); then so many begin and cease to be."""
    chance, held, runs = np.random.default_rng(7), 0, 200
    truth = 0.85 * begins - 0.15 * ends

    def by_task(mean: float, correlation: float) -> Any:
        size = 1 / correlation - 1 if correlation and mean else None
        drawn = np.full(tasks, mean) if size is None else chance.beta(mean * size, (1 - mean) * size, tasks)
        return drawn[:, None]

    for _ in range(runs):
        first = chance.random((tasks, 9)) < by_task(0.15, 0.1)
        changes = np.where(first, by_task(ends, alike), by_task(begins, alike))
        second = first ^ (chance.random((tasks, 9)) < changes)
        sums = first.sum(axis=1), [9] * tasks, second.sum(axis=1), [9] * tasks
        interval = paired_interval(*sums)[1]
        held += interval.low <= truth <= interval.high

    # Two standard errors of 200 runs below .95.
    assert held / runs >= 0.92


def test_pair_rates_when_clustered_then_each_names_its_own_denominator_and_has_an_interval() -> None:
    counts = {
        "decidable": [4, 4, 0, 5],
        "correct": [2, 1, 0, 5],
        "misselected": [1, 2, 0, 0],
        "both_read": [4, 4, 3, 5],
        "consistent": [3, 3, 0, 5],
    }
    found = clustered_pair_rates(counts)

    assert {name: (rate["k"], rate["n"], rate["clusters"]) for name, rate in found.items()} == {
        "accuracy": (8, 13, 3),
        "misselected_of_decidable": (3, 13, 3),
        "misselected_of_decided": (3, 11, 3),
        "consistent": (11, 16, 4),
    }
    assert all(rate["low"] < rate["value"] < rate["high"] for rate in found.values())
