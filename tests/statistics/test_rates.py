"""Rates name their denominator, and say how sure they are only where that can be said."""

import pytest
from scipy.stats import binomtest

from audit.statistics.agreement import mcnemar_p
from audit.statistics.intervals import wilson
from audit.statistics.rates import clustered_pair_rates, clustered_rate

RATE_KEYS = {"k", "n", "value", "low", "high", "method", "clusters"}


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (23, 40, 0.422, 0.715),
        (292, 1460, 0.180, 0.221),
        (0, 10, 0.0, 0.278),
        (10, 10, 0.722, 1.0),
        (0, 1, 0.0, 0.793),
        (1, 1, 0.207, 1.0),
    ],
)
def test_interval_when_trials_are_independent_then_it_is_wilsons(
    k: int, n: int, low: float, high: float
) -> None:
    found = clustered_rate([1] * k + [0] * (n - k), [1] * n)

    assert (round(found["low"], 3), round(found["high"], 3)) == (low, high)
    assert found == {
        "k": k,
        "n": n,
        "value": k / n,
        "low": found["low"],
        "high": found["high"],
        "method": "wilson",
        "clusters": n,
    }


@pytest.mark.parametrize(("k", "n"), [(0, 3), (1, 7), (39, 350), (349, 350), (5, 5), (123_456, 1_000_000)])
def test_interval_when_compared_with_scipy_then_they_agree(k: int, n: int) -> None:
    reference = binomtest(k, n).proportion_ci(confidence_level=0.95, method="wilson")

    assert wilson(k, n) == pytest.approx((reference.low, reference.high), abs=1e-12)
    assert 0 <= wilson(k, n)[0] <= k / n <= wilson(k, n)[1] <= 1


@pytest.mark.parametrize("clusters", [0, 3])
def test_rate_when_there_is_nothing_to_count_then_its_value_is_null_and_not_zero(clusters: int) -> None:
    assert clustered_rate([0] * clusters, [0] * clusters) == {
        "k": 0, "n": 0, "value": None, "low": None, "high": None, "method": None, "clusters": 0,
    }  # fmt: skip


# McNemar's p of the two discordant counts; the first is by hand: 2 * (1 + 8) / 2^8.
@pytest.mark.parametrize(
    ("one", "other", "p"),
    [(1, 7, 0.0703125), (74, 36, 0.000371251), (5, 5, 1.0), (0, 1, 1.0), (0, 6, 0.03125)],
)
def test_mcnemar_when_counts_are_discordant_then_p_is_exact_and_the_same_both_ways(
    one: int, other: int, p: float
) -> None:
    assert mcnemar_p(one, other) == pytest.approx(p, rel=1e-6)
    assert mcnemar_p(one, other) == mcnemar_p(other, one)
    assert mcnemar_p(one, other) == pytest.approx(binomtest(one, one + other, 0.5).pvalue, rel=1e-9)


def test_mcnemar_when_counts_are_large_then_it_still_comes_out() -> None:
    assert mcnemar_p(500_000, 500_000) == 1.0
    assert mcnemar_p(500_000, 502_000) == pytest.approx(0.0457, rel=0.01)
    assert mcnemar_p(0, 5000) == 0.0


def test_mcnemar_when_no_pair_leans_either_way_then_there_is_nothing_to_test() -> None:
    assert mcnemar_p(0, 0) is None


COUNTS = {
    "decidable": [30, 10],
    "correct": [15, 5],
    "misselected": [3, 2],
    "both_read": [30, 14],
    "consistent": [20, 10],
}


def test_rates_of_a_group_when_counted_then_each_names_its_own_denominator() -> None:
    rates = clustered_pair_rates(COUNTS)

    assert {name: (found["k"], found["n"]) for name, found in rates.items()} == {
        "accuracy": (20, 40),
        "misselected_of_decidable": (5, 40),
        "misselected_of_decided": (5, 25),
        "consistent": (30, 44),
    }
    assert all(found.keys() == RATE_KEYS for found in rates.values())
