"""Corrected rates: the papers' figures, a reference library's, and what must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.corrected import ppi_mean, rogan_gladen

LABELS = [1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 1, 0]
SAID = [1, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 1]


def test_rogan_gladen_when_the_paper_gives_it_then_it_is_that() -> None:
    # arXiv:2511.21140: p = .4, n = 1000, q0 = .7, q1 = .9, m0 = m1 = 200.
    found = rogan_gladen(400, 1000, 140, 200, 180, 200)

    assert found["value"] == pytest.approx(1 / 6)
    assert (found["low"], found["high"]) == pytest.approx((0.05635, 0.26273), abs=5e-6)


@pytest.mark.parametrize(("q0", "q1"), [(100, 100), (60, 140), (0, 0), (199, 0)])
def test_rogan_gladen_when_the_judge_tells_nothing_then_it_refuses(q0: int, q1: int) -> None:
    with pytest.raises(ValueError, match="the judge tells nothing of the truth"):
        rogan_gladen(400, 1000, q0, 200, q1, 200)


@pytest.mark.parametrize("counts", [(5, 4, 1, 1, 1, 1), (1, 4, 0, 0, 1, 1), (-1, 4, 1, 1, 1, 1)])
def test_rogan_gladen_when_a_share_cannot_be_then_it_is_refused(counts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="is no share"):
        rogan_gladen(*counts)


@given(st.integers(0, 300), st.integers(160, 200), st.integers(120, 200))
def test_rogan_gladen_when_yes_and_no_change_places_then_so_does_all_else(
    said: int, q0: int, q1: int
) -> None:
    found, turned = rogan_gladen(said, 300, q0, 200, q1, 200), rogan_gladen(300 - said, 300, q1, 200, q0, 200)

    assert 0 <= found["low"] <= found["high"] <= 1
    assert found["value"] == pytest.approx(1 - turned["value"], abs=1e-9)
    assert (found["low"], found["high"]) == pytest.approx((1 - turned["high"], 1 - turned["low"]), abs=1e-9)


def test_rogan_gladen_when_the_judge_is_always_right_then_the_value_is_what_it_said() -> None:
    assert rogan_gladen(123, 1000, 500, 500, 500, 500)["value"] == pytest.approx(0.123)


def test_ppi_when_the_reference_library_gives_it_then_it_is_that() -> None:
    # ppi-python 0.2.3: point 0.57611326, interval 0.32715 to 0.82507, with variances over n where ours have
    # n - 1: wider by the root of 12/11 for the labelled part.
    found = ppi_mean(LABELS, SAID, [1] * 12, 100, 0.65, 0.65 * 0.35)

    assert found["value"] == pytest.approx(0.57611326, abs=1e-8)
    left = np.array(LABELS) - found["lambda"] * np.array(SAID)
    theirs = 1.959964 * np.sqrt(left.var() / 12 + found["lambda"] ** 2 * 0.65 * 0.35 / 100)
    assert pytest.approx(theirs, abs=1e-6) == (0.82507161 - 0.32715491) / 2
    assert (found["high"] - found["low"]) / 2 == pytest.approx(
        1.959964 * np.sqrt(left.var() / 11 + found["lambda"] ** 2 * 0.65 * 0.35 / 100), abs=1e-6
    )


def test_ppi_when_the_judge_says_what_people_say_then_it_is_worth_many_labels() -> None:
    truth = [1, 0, 1, 1, 0] * 40
    found = ppi_mean(truth, truth, [1] * 200, 20_000, 0.6, 0.24)

    assert found["lambda"] == pytest.approx(1 / (1 + 200 / 20_000), rel=1e-2)
    assert found["high"] - found["low"] < 0.2 * 2 * 1.96 * np.sqrt(0.24 / 200)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=3, max_size=30))
def test_ppi_when_there_is_nobody_else_then_the_labels_speak_alone(pairs: list[tuple[int, int]]) -> None:
    labels, said = zip(*pairs, strict=True)
    found = ppi_mean(labels, said, [1] * len(pairs), 0, 0.0, 0.0)

    assert found["lambda"] == 0
    assert found["value"] == pytest.approx(np.mean(labels))
    assert found["high"] - found["low"] == pytest.approx(
        2 * 1.959964 * np.std(labels, ddof=1) / len(labels) ** 0.5
    )


def test_ppi_when_items_are_drawn_unequally_then_the_weights_set_it_right() -> None:
    # Flagged items, where people say no, were drawn four times as often.
    chance = np.random.default_rng(12)
    truth = chance.random(4000) < np.where(np.arange(4000) < 1000, 0.2, 0.8)
    said = np.where(chance.random(4000) < 0.85, truth, ~truth)
    drawn = chance.random(4000) < np.where(np.arange(4000) < 1000, 0.4, 0.1)
    weights = np.where(np.arange(4000) < 1000, 2.5, 10)[drawn]
    rest = said[~drawn]
    # Who was not drawn stands for nobody: the judge's mean is that of all.
    found = ppi_mean(truth[drawn], said[drawn], weights, len(said), said.mean(), said.var())
    plain = ppi_mean(truth[drawn], said[drawn], np.ones(drawn.sum()), len(rest), rest.mean(), rest.var())

    assert found["low"] < truth.mean() < found["high"]
    assert abs(found["value"] - truth.mean()) < abs(truth[drawn].mean() - truth.mean()) / 3
    assert plain["value"] < found["value"]


@pytest.mark.parametrize(
    ("labels", "weights", "message"),
    [([1], [1], "expected two labels or more, found 1"), ([1, 0], [1, 0], "a weight must be above 0")],
)
def test_ppi_when_it_cannot_be_told_then_it_is_refused(
    labels: list[int], weights: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        ppi_mean(labels, labels, weights, 10, 0.5, 0.25)
