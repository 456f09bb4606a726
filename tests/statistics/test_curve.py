"""The error curve p(err) = Phi(-gap/s): fitted scale, trustworthy gaps, and when there is none."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from audit.statistics.curve import NO_ERRORS, NO_FALL, NO_PAIRS, error_curve, error_curve_of_agents
from audit.statistics.intervals import degrees_of_freedom, t_quantile

GAPS = [0.02, 0.05, 0.05, 0.1, 0.1, 0.15, 0.2, 0.2, 0.3, 0.3, 0.4, 0.5]
ERRORS = [1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0]
TASKS = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
LEVELS = {"gap_at_25": 0.25, "gap_at_10": 0.10, "gap_at_5": 0.05}


def test_scale_when_a_reference_fits_it_then_it_is_that() -> None:
    # statsmodels 0.15: Probit(1 - errors, gaps) without a constant, beta = 3.97266954.
    found = error_curve(GAPS, ERRORS, [1] * 12, TASKS)

    assert found["s"] == pytest.approx(1 / 3.97266954, rel=1e-7)
    assert found["unit"] == "pairs"
    for key, share in LEVELS.items():
        assert norm.cdf(-found[key]["value"] / found["s"]) == pytest.approx(share)


def test_interval_when_pairs_cluster_then_it_is_the_sandwich_of_beta_on_the_scale_of_logs() -> None:
    beta = 3.97266954
    right, wrong = (
        norm.pdf(beta * np.array(GAPS)) / norm.cdf(sign * beta * np.array(GAPS)) for sign in (1, -1)
    )
    gaps, errors = np.array(GAPS), np.array(ERRORS)
    scores = np.bincount(TASKS, weights=gaps * np.where(errors, -wrong, right))
    steps = [beta * (1 + 1e-5), beta * (1 - 1e-5)]
    slopes = [
        sum(
            g * (-norm.pdf(b * g) / norm.cdf(-b * g) if e else norm.pdf(b * g) / norm.cdf(b * g))
            for g, e in zip(GAPS, ERRORS, strict=True)
        )
        for b in steps
    ]
    curvature = -(slopes[0] - slopes[1]) / (steps[0] - steps[1])
    se = math.sqrt(6 / 5 * (scores**2).sum()) / curvature / beta
    half = t_quantile(degrees_of_freedom(scores)) * se
    found = error_curve(GAPS, ERRORS, [1] * 12, TASKS)["gap_at_10"]

    assert found["low"] == pytest.approx(found["value"] * math.exp(-half), rel=1e-5)
    assert found["high"] == pytest.approx(found["value"] * math.exp(half), rel=1e-5)


def test_scale_when_it_is_planted_then_it_is_found_again() -> None:
    chance = np.random.default_rng(8)
    gaps = chance.uniform(0, 0.6, 4000)
    errors = chance.random(4000) < norm.cdf(-gaps / 0.2)
    found = error_curve(gaps, errors, np.ones(4000), np.arange(4000) // 8)

    assert found["s"] == pytest.approx(0.2, rel=0.06)
    assert found["gap_at_10"]["low"] < 0.2 * norm.isf(0.1) < found["gap_at_10"]["high"]
    assert found["gap_at_10"]["high"] / found["gap_at_10"]["low"] < 1.3


ROWS = st.lists(
    st.tuples(st.floats(0.001, 1.0), st.integers(0, 4), st.integers(0, 8), st.integers(0, 5)),
    min_size=1,
    max_size=20,
)


@example([(1.0, 0, 1, 0), (1.0, 4, 3, 0)], 1.0)
@given(ROWS, st.floats(0.01, 100))
def test_curve_when_any_run_is_given_then_it_follows_the_unit_and_equal_rows_may_be_one(
    rows: list[tuple[float, int, int, int]], unit: float
) -> None:
    gaps, errors, right, tasks = (list(column) for column in zip(*rows, strict=True))
    n = [e + r for e, r in zip(errors, right, strict=True)]
    found = error_curve(gaps, errors, n, tasks)
    scaled = error_curve([unit * gap for gap in gaps], errors, n, tasks)
    single = [(g, i < e, t) for g, e, m, t in zip(gaps, errors, n, tasks, strict=True) for i in range(m)]

    if found["s"] is None:
        assert found["why"] in (NO_ERRORS, NO_FALL, NO_PAIRS)
        assert scaled["why"] == found["why"]
        return
    assert scaled["s"] == pytest.approx(unit * found["s"], rel=1e-6)
    g, e, t = zip(*single, strict=True)
    spread = error_curve(g, e, [1] * len(g), t)
    assert spread["s"] == pytest.approx(found["s"], rel=1e-6)
    gap = found["gap_at_10"]
    if gap["low"] is not None:
        assert 0 <= gap["low"] <= gap["value"] <= gap["high"]


@pytest.mark.parametrize(
    ("gaps", "errors", "why"),
    [
        ([0.1, 0.2], [0, 0], NO_ERRORS),
        ([0.1, 0.2], [0, 1], NO_FALL),
        ([0.0, 0.0], [0, 1], NO_PAIRS),
        ([], [], NO_PAIRS),
    ],
)
def test_curve_when_no_scale_fits_then_it_is_null_and_says_why(
    gaps: list[float], errors: list[int], why: str
) -> None:
    agents = ["a", "b"][: len(gaps)]
    for found in (
        error_curve(gaps, errors, [1] * len(gaps), agents),
        error_curve_of_agents(gaps, errors, agents, agents),
    ):
        assert found["s"] is found["gap_at_25"] is found["gap_at_5"] is None
        assert found["why"] == why


def test_curve_when_a_gap_is_negative_then_it_is_refused() -> None:
    with pytest.raises(ValueError, match="a gap is a number from 0 up"):
        error_curve([-0.1], [0], [1], [0])


def test_curve_when_agents_are_resampled_then_the_interval_is_seeded_and_holds_the_scale() -> None:
    chance = np.random.default_rng(2)
    skill = chance.uniform(0, 0.6, 16)
    first, second = np.triu_indices(16, 1)
    gaps = abs(skill[first] - skill[second])
    errors = chance.random(len(gaps)) < norm.cdf(-gaps / 0.15)
    found, again = (error_curve_of_agents(gaps, errors, first, second, seed=4) for _ in range(2))
    other = error_curve_of_agents(gaps, errors, first, second, seed=5)
    gap = found["gap_at_25"]

    assert found == again != other
    assert (found["unit"], found["method"], found["clusters"]) == ("agent_pairs", "bootstrap_of_agents", 16)
    assert gap["low"] < gap["value"] < gap["high"]
    assert other["gap_at_25"]["high"] == pytest.approx(gap["high"], rel=0.1)
    assert found["s"] == error_curve(gaps, errors, np.ones(len(gaps)), first)["s"]


def test_curve_when_resamples_leave_its_end_open_then_that_end_is_null() -> None:
    # Three agents, an error on the widest gap: many resamples have errors that do not fall.
    found = error_curve_of_agents([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 0], list("abca"), list("bcad"))

    assert found["s"] is not None
    assert found["gap_at_10"]["high"] is None
    assert found["gap_at_10"]["low"] >= 0
