"""Corrected rates: the papers' figures, a reference library's, and what must hold."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.corrected import FEW_LABELS, corrected, more_labels, ppi_mean, rogan_gladen

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


# (labels no said no, no said yes, yes said no, yes said yes), of `rows` others said yes to so many
# -> point, low and high of ppi-python 0.2.3 (alpha .05), theta_hat of judgy 0.1.0; numpy 2.4.6.
REFERENCE = {
    ((25, 4, 1, 10), 183, 500): (0.284811458, 0.185190470, 0.384432445, 0.295747967),
    ((54, 14, 3, 29), 774, 2000): (0.293754966, 0.223827784, 0.363682147, 0.258603675),
    ((86, 6, 1, 7), 297, 2000): (0.088341530, 0.047167049, 0.129516010, 0.102845638),
    ((12, 4, 5, 4), 151, 300): (0.390246874, 0.205507399, 0.574986350, 1.0),
}
Table = tuple[int, int, int, int]


def labelled(table: Table) -> tuple[list[int], list[int]]:
    """Labels, and what was said of the same rows."""
    rows = [
        (y, f) for (y, f), n in zip([(0, 0), (0, 1), (1, 0), (1, 1)], table, strict=True) for _ in range(n)
    ]
    return [y for y, _ in rows], [f for _, f in rows]


@pytest.mark.parametrize(("given_rows", "expected"), REFERENCE.items())
def test_both_when_two_reference_libraries_gave_figures_then_they_are_those_to_a_millionth(
    given_rows: tuple[Table, int, int], expected: tuple[float, float, float, float]
) -> None:
    table, said, others = given_rows
    labels, predictions = labelled(table)
    share = said / others

    ppi = ppi_mean(labels, predictions, [1] * len(labels), others, share, share * (1 - share), ddof=0)
    assert (ppi["value"], ppi["low"], ppi["high"]) == pytest.approx(expected[:3], abs=1e-6)

    no, yes = table[0] + table[1], table[2] + table[3]
    gladen = rogan_gladen(said, others, table[0], no, table[3], yes)
    assert gladen["value"] == pytest.approx(expected[3], abs=1e-6)


@pytest.mark.parametrize("given_rows", REFERENCE)
def test_both_when_the_reference_libraries_are_there_then_they_give_the_same(
    given_rows: tuple[Table, int, int],
) -> None:
    ppi_py = pytest.importorskip("ppi_py", reason="needs the extra `reference`")
    judgy = pytest.importorskip("judgy", reason="needs the extra `reference`")
    table, said, others = given_rows
    labels, predictions = labelled(table)
    rest = np.repeat([1.0, 0.0], [said, others - said])
    share = said / others

    found = ppi_mean(labels, predictions, [1] * len(labels), others, share, share * (1 - share), ddof=0)
    low, high = ppi_py.ppi_mean_ci(np.array(labels, float), np.array(predictions, float), rest, alpha=0.05)
    assert (found["low"], found["high"]) == pytest.approx((low[0], high[0]), abs=1e-6)
    theta, _, _ = judgy.estimate_success_rate(labels, predictions, rest.astype(int), bootstrap_iterations=5)
    no, yes = table[0] + table[1], table[2] + table[3]
    assert rogan_gladen(said, others, table[0], no, table[3], yes)["value"] == pytest.approx(theta, abs=1e-6)


def test_ppi_when_weights_are_unequal_then_the_point_is_the_reference_librarys() -> None:
    # ppi-python 0.2.3 with w = 1, 4, 1, 4.. and lambda .6: 0.6233333333333334.
    weights = np.tile([1.0, 4.0], 6)
    share = weights / weights.sum()
    at_six = 0.6 * 0.65 + float(share @ (np.array(LABELS) - 0.6 * np.array(SAID)))
    assert at_six == pytest.approx(0.6233333333333334, abs=1e-9)
    found = ppi_mean(LABELS, SAID, weights, 100, 0.65, 0.65 * 0.35)
    own = found["lambda"] * 0.65 + float(share @ (np.array(LABELS) - found["lambda"] * np.array(SAID)))
    assert found["value"] == pytest.approx(own, abs=1e-12)


# rate, sensitivity, specificity
TRUTHS = [(0.3, 0.85, 0.9), (0.15, 0.8, 0.95), (0.5, 0.7, 0.7)]


@pytest.mark.parametrize("is_stratified", [False, True], ids=["plain", "by what was said"])
@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_corrected_when_simulated_with_100_labels_of_2000_then_it_holds_the_truth_95_times_in_100(
    truth: tuple[float, float, float], is_stratified: bool
) -> None:
    """PPI++ 93 to 97%. Rogan-Gladen's interval is wider than need be: 96 to 98% of a plain sample, and more
    of an unequal one, where weights count as if they told nothing.
    """
    rate, sensitivity, specificity = truth
    chance = np.random.default_rng(7)
    held = {"ppi": 0, "rogan_gladen": 0}
    for _ in range(800):
        true = chance.random(2000) < rate
        said = np.where(true, chance.random(2000) < sensitivity, chance.random(2000) >= specificity)
        if is_stratified:
            yes, no = (chance.permutation(np.flatnonzero(said == value)) for value in (True, False))
            picked = np.concatenate([yes[:50], no[:50]])
            weights = np.repeat([len(yes) / 50, len(no) / 50], 50)
        else:
            picked, weights = chance.permutation(2000)[:100], np.full(100, 20.0)
        found = corrected(true[picked], said[picked], weights, int(said.sum()), 2000)
        for method in held:
            held[method] += found[method]["low"] <= rate <= found[method]["high"]

    assert 0.93 <= held["ppi"] / 800 <= 0.97
    assert held["rogan_gladen"] / 800 >= 0.95


def test_corrected_when_people_deny_nothing_then_it_is_the_rate_itself_and_not_sure_for_nothing() -> None:
    labels = [1] * 10 + [0] * 30
    found = corrected(labels, labels, [25.0] * 40, 250, 1000)

    assert (found["rows"], found["uncorrected"], found["labels"], found["disagree"]) == (1000, 0.25, 40, 0)
    assert found["ppi"]["value"] == found["rogan_gladen"]["value"] == pytest.approx(0.25)
    # Of 40 labels none denied: up to 3 in 40 might be.
    assert found["ppi"]["high"] - 0.25 > 0.05
    assert found["why"] == {}


def test_corrected_when_labels_carry_no_signal_then_one_is_refused_in_words_the_other_is_of_labels() -> None:
    labels, said = labelled((10, 10, 10, 10))
    found = corrected(labels, said, [10.0] * 40, 300, 400)

    assert found["rogan_gladen"] is None
    assert found["why"] == {
        "rogan_gladen": "sensitivity 0.500 + specificity 0.500 is not above 1: the judge tells nothing of "
        "the truth, so its rate cannot be corrected"
    }
    assert (found["ppi"]["value"], found["ppi"]["lambda"]) == (pytest.approx(0.5), 0.0)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ((0, 0, 0, 0), {"ppi": "expected two labels or more, found 0",
                        "rogan_gladen": "of no labelled row people say that it is not so"}),
        ((0, 0, 3, 3), {"ppi": f"6 labels: no interval under {FEW_LABELS}",
                        "rogan_gladen": "of no labelled row people say that it is not so"}),
        ((30, 3, 0, 0), {"rogan_gladen": "of no labelled row people say that it is so"}),
    ],
)  # fmt: skip
def test_corrected_when_a_part_cannot_be_told_then_it_says_why(table: Table, why: dict[str, str]) -> None:
    labels, said = labelled(table)
    found = corrected(labels, said, [2.0] * len(labels), 30, 100)
    assert found["why"] == why
    assert found["rogan_gladen"] is None
    assert "ppi" not in why or found["ppi"] is None or found["ppi"]["low"] is None


def test_corrected_when_all_weights_are_equal_then_rogan_gladen_is_the_one_of_the_counts() -> None:
    labels, said = labelled((54, 14, 3, 29))
    found = corrected(labels, said, [21.0] * 100, 817, 2100)
    plain = rogan_gladen(817, 2100, 54, 68, 29, 32)
    assert found["rogan_gladen"]["value"] == pytest.approx(plain["value"])
    assert found["rogan_gladen"]["low"] == pytest.approx(plain["low"])


@pytest.mark.parametrize(
    ("n", "others", "explained"), [(40, 0, 0.5), (40, 2000, 0.0), (100, 2000, 0.6), (9, 50, 0.9)]
)
def test_more_labels_when_added_then_the_interval_is_half_as_wide(
    n: int, others: int, explained: float
) -> None:
    def variance(labels: int) -> float:
        return (1 - explained * others / (others + labels)) / labels

    more = more_labels(n, others, explained)
    assert more is not None
    assert variance(n + more) <= variance(n) / 4 < variance(n + more - 1)


def test_more_labels_when_the_judge_says_what_people_say_then_it_takes_more_rows_as_well() -> None:
    assert more_labels(100, 2000, 1.0) == pytest.approx(3 * 2000 + 3 * 100, abs=2)
