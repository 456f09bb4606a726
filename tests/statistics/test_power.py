"""Power, precision and the cost of label noise: published figures, and what must hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from audit.statistics.intervals import wilson
from audit.statistics.noise import data_cost, label_smoothing
from audit.statistics.power import (
    Z80,
    change_variance,
    pairs_for_precision,
    pairs_to_see_change,
    smallest_change,
    smallest_seen,
)


def test_power_when_miller_gives_it_then_it_is_that() -> None:
    # arXiv:2411.00640: delta .03, omega^2 1/9, no noise within a question, 80%.
    assert pairs_to_see_change(0.03, 1 / 9) == 969
    assert pytest.approx(norm.ppf(0.8)) == Z80


@given(st.floats(0.005, 0.5), st.floats(0.01, 1), st.floats(0, 1), st.floats(0.5, 0.99))
def test_power_when_the_smallest_change_is_asked_back_then_the_number_is_enough(
    delta: float, omega2: float, noise: float, power: float
) -> None:
    n = pairs_to_see_change(delta, omega2, noise, noise / 2, power)

    assert smallest_change(n, omega2, noise, noise / 2, power) <= delta * (1 + 1e-9)
    if n > 1:
        assert smallest_change(n - 1, omega2, noise, noise / 2, power) > delta * (1 - 1e-9)
    # The chance, by the normal distribution, that a difference of that size is called one.
    se = ((omega2 + 1.5 * noise) / n) ** 0.5
    assert norm.sf(1.959964 - delta / se) >= power - 1e-6
    assert pairs_to_see_change(-delta, omega2, noise, noise / 2, power) == n


def test_precision_when_pairs_are_independent_then_it_is_the_textbooks_else_times_the_effect() -> None:
    assert pairs_for_precision(0.5, 0.05) == 385
    assert pairs_for_precision(0.2, 0.05) == 246
    assert pairs_for_precision(0.5, 0.05, 2.5) == 961
    assert pairs_for_precision(0.0, 0.05) == 1


@given(st.floats(0.1, 0.9), st.floats(0.01, 0.1))
def test_precision_when_that_many_pairs_are_there_then_wilsons_interval_is_about_that_wide(
    share: float, half_width: float
) -> None:
    n = pairs_for_precision(share, half_width)
    low, high = wilson(share * n, n)

    assert (high - low) / 2 == pytest.approx(half_width, rel=0.12)


def test_variance_when_answers_are_yes_or_no_then_it_is_what_differs_less_the_square() -> None:
    # 30 of 100 differ, 20 one way and 10 the other.
    differences = [1] * 20 + [-1] * 10 + [0] * 70
    mean = sum(differences) / 100

    assert change_variance(0.3, 0.1) == pytest.approx(sum((d - mean) ** 2 for d in differences) / 100)
    with pytest.raises(ValueError, match="cannot be"):
        change_variance(0.1, 0.2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: pairs_to_see_change(0, 0.1), "the size to see must be a number other than 0"),
        (lambda: pairs_to_see_change(0.1, -1), "a variance is from 0 up"),
        (lambda: pairs_to_see_change(0.1, 1, power=1), "a power is from 0.5 to below 1, not 1"),
        (lambda: smallest_change(0, 1), "expected a number of pairs above 0, not 0"),
        (lambda: pairs_for_precision(1.5, 0.1), "a share is from 0 to 1, not 1.5"),
        (lambda: pairs_for_precision(0.5, 0.1, 0.5), "a design effect is from 1 up, not 0.5"),
        (lambda: data_cost(0.5), "a flip rate is from 0 to below 1/2, not 0.5"),
        (lambda: data_cost(-0.1), "a flip rate is from 0 to below 1/2, not -0.1"),
        (lambda: label_smoothing([1], [0.6]), "a flip rate is from 0 to below 1/2, not 0.6"),
    ],
)
def test_power_when_the_question_makes_no_sense_then_it_is_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(("flip_rate", "cost"), [(0, 1.0), (0.097, 1.54), (0.31, 6.9), (0.25, 4.0)])
def test_cost_when_labels_flip_then_it_is_rdpos(flip_rate: float, cost: float) -> None:
    assert data_cost(flip_rate) == pytest.approx(cost, rel=5e-3)


@given(st.lists(st.tuples(st.integers(0, 50), st.floats(0, 0.49)), max_size=6))
def test_smoothing_when_rows_have_their_rates_then_it_is_their_mean(sets: list[tuple[int, float]]) -> None:
    rows, rates = [n for n, _ in sets], [e for _, e in sets]
    found = label_smoothing(rows, rates)
    each = [e for n, e in sets for _ in range(n)]

    assert found == (pytest.approx(sum(each) / len(each)) if each else None)


def test_smallest_seen_when_an_interval_is_given_then_it_is_the_smallest_change_of_its_standard_error() -> (
    None
):
    # A mean of 400 differences with variance 0.25: se .025, the interval -+ 1.96 x .025.
    half = 1.959963984540054 * 0.025
    assert smallest_seen(0.1 - half, 0.1 + half) == pytest.approx(smallest_change(400, 0.25))
    assert smallest_seen(0.1 - half, 0.1 + half) == pytest.approx(2.8016 * 0.025, rel=1e-4)
    assert smallest_seen(None, 0.3) is None
