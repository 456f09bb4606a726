"""Corrected rates: the papers' figures, a reference library's, and what must hold."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.statistics.corrected import FEW_LABELS, corrected, more_labels, ppi_mean
from audit.statistics.labelled import covariance, of_tasks, sample
from audit.statistics.rogan_gladen import fieller, rogan_gladen

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


@pytest.mark.parametrize("counts", [(2, 5, 1, 4, 1, 1), (5, 20, 1, 1, 1, 5), (1, 20, 2, 7, 1, 1)])
def test_rogan_gladen_when_labels_are_so_few_that_the_added_ones_outweigh_them_then_all_is_possible(
    counts: tuple[int, ...],
) -> None:
    found = rogan_gladen(*counts)
    assert (found["low"], found["high"]) == (0.0, 1.0)
    assert 0 <= found["value"] <= 1
    said, n, right_no, m0, right_yes, m1 = counts
    labels = [0] * m0 + [1] * m1
    answers = [0] * right_no + [1] * (m0 - right_no + right_yes) + [0] * (m1 - right_yes)
    own = corrected(labels, answers, [n / (m0 + m1)] * (m0 + m1), said, n)["rogan_gladen"]
    assert 0 <= own["low"] <= own["value"] <= own["high"] <= 1


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
TRUTHS = [(0.3, 0.85, 0.9), (0.15, 0.8, 0.95), (0.5, 0.7, 0.7), (0.5, 0.95, 0.95)]


SAMPLES = ("plain", "by what was said", "in tasks")


@pytest.mark.parametrize("sample_of", SAMPLES)
@pytest.mark.parametrize("truth", TRUTHS, ids=str)
def test_corrected_when_simulated_with_100_labels_of_2000_then_it_holds_the_truth_95_times_in_100(
    truth: tuple[float, float, float], sample_of: str
) -> None:
    """Both intervals, 93 to 97%: of any 100 rows, of 50 that were said 1 and 50 others (Rogan-Gladen up to
    98%), of 100 rows of 100 tasks that have rates of their own. tests/benchmarks/corrected.py has more.
    """
    rate, sensitivity, specificity = truth
    chance = np.random.default_rng(7)
    task = np.arange(2000) % 100
    repeats, held = 2000, {"ppi": 0, "rogan_gladen": 0}
    for _ in range(repeats):
        often = chance.beta(rate * 7 / 3, (1 - rate) * 7 / 3, 100)[task] if sample_of == "in tasks" else rate
        true = chance.random(2000) < often
        said = np.where(true, chance.random(2000) < sensitivity, chance.random(2000) >= specificity)
        if sample_of == "by what was said":
            strata = said.astype(int)
            picked = np.concatenate(
                [chance.permutation(np.flatnonzero(said == value))[:50] for value in (0, 1)]
            )
            weights = (np.bincount(strata) / 50)[strata[picked]]
        else:
            strata, picked, weights = np.zeros(2000, int), chance.permutation(2000)[:100], np.full(100, 20.0)
        of_tasks = sample_of == "in tasks"
        found = corrected(
            true[picked],
            said[picked],
            weights,
            np.bincount(task, weights=said) if of_tasks else int(said.sum()),
            np.bincount(task) if of_tasks else 2000,
            task[picked] if of_tasks else None,
            strata[picked],
        )
        for method in held:
            held[method] += found[method]["low"] <= rate <= found[method]["high"]

    assert 0.93 <= held["ppi"] / repeats <= 0.97
    assert 0.93 <= held["rogan_gladen"] / repeats <= (0.98 if sample_of == "by what was said" else 0.97)


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
    found = corrected(labels, said, [21.0] * 100, 817, 2100)["rogan_gladen"]
    plain = rogan_gladen(817, 2100, 54, 68, 29, 32)
    assert found["value"] == pytest.approx(plain["value"])
    assert found["independent"] == pytest.approx({"low": plain["low"], "high": plain["high"]})
    # The labelled rows are some of all rows: that is known, so the interval is the narrower.
    assert plain["low"] < found["low"] < found["value"] < found["high"] < plain["high"]


def test_corrected_when_every_row_is_labelled_then_only_other_rows_could_have_come() -> None:
    """All of 400 rows: no sampling is left, and the standard error is that of what people say."""
    table = (200, 40, 20, 140)
    labels, said = (np.array(row, float) for row in labelled(table))
    given = sample(labels, said, [1.0] * 400, 180, 400, strata=[0] * 400)
    share, q0, q1 = labels.mean(), 200 / 240, 140 / 160
    specific = (1 - labels) * (1 - said - q0) / 240
    influence = np.column_stack([specific, specific + labels * (said - q1) / 160])
    spread = covariance(given, influence, np.array([1.0, 0.0]))
    at = np.array([1.0, -share])
    assert at @ spread @ at / (q0 + q1 - 1) ** 2 == pytest.approx(share * (1 - share) / 400)


def test_corrected_when_no_task_has_two_rows_then_tasks_change_nothing() -> None:
    labels, said = labelled((54, 14, 3, 29))
    flagged, rows = [1] * 43 + [0] * 57 + [1] * 774 + [0] * 1226, [1] * 2100
    places = list(range(100))
    plain = corrected(labels, said, [21.0] * 100, 817, 2100)
    assert corrected(labels, said, [21.0] * 100, flagged, rows, places) == plain


def test_of_tasks_when_rows_of_a_task_go_together_then_their_products_are_added() -> None:
    """Against the sum over all rows, one by one: 3 tasks of 4, 2 and 3 rows, of which 4 are labelled."""
    said = np.array([1, 1, 0, 1, 0, 0, 1, 0, 0])
    task = np.array([0, 0, 0, 0, 1, 1, 2, 2, 2])
    picked = np.array([0, 2, 4, 6])
    weights, influence, of_share = np.array([2, 3, 2, 2.0]), np.array([[0.2], [-0.3], [0.1], [0.1]]), 0.5
    given = sample(
        [1, 0, 0, 1], said[picked], weights, np.bincount(task, weights=said), np.bincount(task), task[picked]
    )
    moves = of_share * (said - 4 / 9) / 9
    moves[picked] += weights * influence[:, 0]
    products = sum(moves[i] * moves[j] for i in range(9) for j in range(9) if i != j and task[i] == task[j])
    added, tasks = of_tasks(given, influence, np.array([of_share]))
    assert added[0, 0] == pytest.approx(3 / 2 * products)
    assert tasks[:, 0] == pytest.approx(np.bincount(task, weights=moves))


def test_corrected_when_tasks_differ_then_the_intervals_are_wider_and_more_labels_help_less() -> None:
    """100 tasks of 20 rows: the judge says 1 of all rows of 30 of them and of none of the others."""
    chance = np.random.default_rng(5)
    task = np.arange(2000) % 100
    said = (task < 30).astype(float)
    picked = chance.permutation(2000)[:100]
    true = np.where(chance.random(2000) < 0.9, said, 1 - said)
    args = (true[picked], said[picked], [20.0] * 100)
    plain = corrected(*args, said.sum(), 2000)
    found = corrected(*args, np.bincount(task, weights=said), np.bincount(task), task[picked])
    assert found["clusters"] == len(set(task[picked])) < 100
    for method in ("ppi", "rogan_gladen"):
        assert found[method]["value"] == plain[method]["value"]
        assert found[method]["high"] - found[method]["low"] > 1.2 * (
            plain[method]["high"] - plain[method]["low"]
        )
    # How much 100 tasks differ is more than a third of the rest: no number of labels halves the interval.
    assert plain["ppi"]["more_to_halve"] > 0
    assert found["ppi"]["more_to_halve"] is None


@pytest.mark.parametrize(
    ("above", "below", "spread", "expected"),
    [
        (0.2, 0.5, [[0.01, 0], [0, 0]], (0.2, 0.6)),
        (0.2, 0.5, [[0.01, 0], [0, 0.16]], (0.1618, 1.0)),  # the other end is 2.06
        (0.2, 0.3, [[0.01, 0], [0, 0.16]], (0.2214, 1.0)),  # below may be 0: all but -1.94 to 0.22
        (0.0, 0.3, [[0.01, 0], [0, 0.16]], (0.0, 1.0)),  # nothing is ruled out
    ],
)
def test_fieller_when_given_then_its_ends_are_where_the_difference_is_as_large_as_its_errors(
    above: float, below: float, spread: list[list[float]], expected: tuple[float, float]
) -> None:
    low, high = (min(max(end, 0), 1) for end in fieller(above, below, np.array(spread)))
    for end in (low, high):
        if 0 < end < 1:
            at = np.array([1, -end])
            assert (above - end * below) ** 2 == pytest.approx(at @ np.array(spread) @ at)
    assert (low, high) == pytest.approx(expected, abs=5e-4)


@pytest.mark.parametrize(("tasks", "strata"), [([0, 3], None), ([0, -1], None), ([0], None), (None, [0, 2])])
def test_sample_when_a_place_is_not_there_then_it_is_refused(
    tasks: list[int] | None, strata: list[int] | None
) -> None:
    with pytest.raises(ValueError, match=r"expected 2 places from 0 up to \d"):
        sample([1, 0], [1, 1], [1, 1], [1, 1, 1], [2, 2, 2], tasks, strata, [1, 1])


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

    # With what tasks add, which stays: a fifth of what the labels leave.
    stays = variance(n) / 5
    more = more_labels(n, others, explained, 0.2)
    assert more is not None
    assert variance(n + more) + stays <= (variance(n) + stays) / 4 < variance(n + more - 1) + stays
    assert more_labels(n, others, explained, 1 / 3) is None


def test_more_labels_when_the_judge_says_what_people_say_then_it_takes_more_rows_as_well() -> None:
    assert more_labels(100, 2000, 1.0) == pytest.approx(3 * 2000 + 3 * 100, abs=2)


ROW = st.tuples(st.integers(0, 1), st.integers(0, 1), st.floats(1, 50), st.integers(0, 3), st.integers(0, 1))


@example([(0, 0, 1.0, 0, 0)] * 3 + [(0, 1, 3.0, 1, 0), (1, 1, 1.0, 0, 0)], [0, 0, 0, 1])
@given(st.lists(ROW, max_size=30), st.lists(st.integers(0, 20), min_size=4, max_size=4))
def test_corrected_when_given_anything_then_it_tells_a_share_within_its_interval_or_why_not(
    rows: list[tuple[int, int, float, int, int]], others: list[int]
) -> None:
    """Labels of up to four tasks and two strata, among up to twenty rows a task that are not labelled."""
    labels, said, weights, tasks, strata = (list(column) for column in zip(*rows, strict=True)) if rows else (
        [], [], [], [], [],
    )  # fmt: skip
    whole = [other + tasks.count(task) for task, other in enumerate(others)]
    flagged = [
        other // 2 + sum(f for f, of in zip(said, tasks, strict=True) if of == task)
        for task, other in enumerate(others)
    ]
    found = corrected(labels, said, weights, flagged, whole, tasks, strata, [len(rows) + 1] * 2)
    for method in ("ppi", "rogan_gladen"):
        one = found[method]
        assert (one is None or one["low"] is None) == (method in found["why"])
        if one is not None and one["low"] is not None:
            assert 0 <= one["low"] <= one["high"] <= 1
            assert one["low"] - 1e-9 <= one["value"] <= one["high"] + 1e-9
