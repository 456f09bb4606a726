"""Satisfied but failed: rates, relative risk, AUC and J against references and what must hold."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.rates import clustered_rate
from audit.statistics.satisfaction import CUTS, auc, relative_risk, satisfied_but_failed

# (task, satisfaction, failed, n): four tasks, 20 sessions, 7 of them failed.
GROUPS = [
    ("t1", 0.9, 1, 4),
    ("t1", 0.4, 1, 1),
    ("t2", 0.8, 0, 3),
    ("t2", 0.3, 2, 2),
    ("t3", 1.0, 1, 5),
    ("t4", 0.79, 1, 2),
    ("t4", 0.2, 1, 3),
]


def columns(groups: list[tuple[object, float, int, int]]) -> list[list[object]]:
    return [list(column) for column in zip(*groups, strict=True)] if groups else [[], [], [], []]


def test_satisfaction_when_counted_then_the_base_rate_stands_beside_it() -> None:
    found = satisfied_but_failed(*columns(GROUPS))

    assert (found["cut"], found["satisfied"]) == (0.8, 12)
    # Satisfied: t1 1 of 4, t2 0 of 3, t3 1 of 5; t4 has none and is no cluster of this rate.
    assert found["satisfied_failed"] == clustered_rate([1, 0, 1], [4, 3, 5])
    assert found["base_failure"] == clustered_rate([2, 2, 1, 2], [5, 5, 5, 5])
    assert found["relative_risk"] == pytest.approx((2 / 12) / (5 / 8))
    assert (found["tpr"], found["fpr"]) == pytest.approx((10 / 13, 2 / 7))
    assert found["j"] == pytest.approx(10 / 13 - 2 / 7)
    assert found["auc_interval"]["low"] < found["auc"] < found["auc_interval"]["high"]


def test_cut_when_a_satisfaction_is_on_it_then_it_is_satisfied() -> None:
    assert satisfied_but_failed(["t"], [0.1 + 0.2], [1], [1], cut=0.3)["satisfied"] == 1
    assert satisfied_but_failed(["t"], [0.3], [1], [1], cut=0.1 + 0.2)["satisfied"] == 1
    assert satisfied_but_failed(["t"], [0.2999], [1], [1], cut=0.3)["satisfied"] == 0


def test_sweep_when_the_cut_rises_then_fewer_are_satisfied_and_each_cut_is_what_it_is_alone() -> None:
    found = satisfied_but_failed(*columns(GROUPS), cut=0.5)

    assert [one["cut"] for one in found["cuts"]] == list(CUTS)
    assert [one["satisfied"] for one in found["cuts"]] == [14, 14, 14, 12, 9, 5]
    assert found["cuts"][0].items() <= found.items()


def test_risk_when_trials_are_independent_then_it_is_that_of_katz() -> None:
    # statsmodels 0.15, Table2x2([[15, 45], [30, 30]]): 0.5, 0.3014 to 0.8294. One session a cluster.
    exposed = [1] * 60 + [0] * 60
    failed = [1] * 15 + [0] * 45 + [1] * 30 + [0] * 30
    k1, n1 = [f * e for f, e in zip(failed, exposed, strict=True)], exposed
    k0, n0 = [f * (1 - e) for f, e in zip(failed, exposed, strict=True)], [1 - e for e in exposed]
    risk, interval = relative_risk(k1, n1, k0, n0)

    assert risk == 0.5
    # Student's t with 119 degrees at most for the normal, and 120/119.
    assert (interval.low, interval.high) == pytest.approx((0.30143294, 0.82937186), rel=0.03)
    assert interval.low < 0.30143294 < 0.82937186 < interval.high


def test_risk_when_no_satisfied_session_failed_then_it_is_zero_with_an_interval() -> None:
    risk, interval = relative_risk([0, 0, 0], [4, 4, 4], [2, 1, 3], [4, 4, 4])

    assert (risk, interval.low, interval.method) == (0, 0, "from_two_rates")
    assert 0 < interval.high < 10
    assert relative_risk([1], [4], [0], [4]) == (None, (None, None, None))
    assert relative_risk([1], [4], [0], [0]) == (None, (None, None, None))


SESSIONS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([0.0, 0.2, 0.5, 0.8, 1.0]), st.booleans()),
    min_size=1,
    max_size=40,
)


@given(SESSIONS)
def test_auc_when_every_pair_of_sessions_is_looked_at_then_it_is_the_share_in_the_right_order(
    sessions: list[tuple[int, float, bool]],
) -> None:
    good = [s for _, s, failed in sessions if not failed]
    bad = [s for _, s, failed in sessions if failed]
    area, interval = auc(*columns([(t, s, int(failed), 1) for t, s, failed in sessions]))

    if not good or not bad:
        assert (area, interval.low) == (None, None)
        return
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    assert area == pytest.approx(wins / len(good) / len(bad))
    if interval.low is not None and interval.high is not None:
        assert 0 <= interval.low <= area <= interval.high <= 1
    # A satisfaction upside down orders upside down.
    turned, _ = auc(*columns([(t, 1 - s, int(failed), 1) for t, s, failed in sessions]))
    assert turned == pytest.approx(1 - area)


@given(SESSIONS)
def test_satisfaction_when_sessions_are_grouped_then_nothing_changes(
    sessions: list[tuple[int, float, bool]],
) -> None:
    groups: dict[tuple[int, float], list[int]] = {}
    for task, satisfaction, failed in sessions:
        group = groups.setdefault((task, satisfaction), [0, 0])
        group[0] += failed
        group[1] += 1
    one_by_one = satisfied_but_failed(*columns([(t, s, int(failed), 1) for t, s, failed in sessions]))
    grouped = satisfied_but_failed(*columns([(t, s, k, n) for (t, s), (k, n) in groups.items()]))

    assert grouped["satisfied_failed"] == one_by_one["satisfied_failed"]
    assert grouped["base_failure"] == one_by_one["base_failure"]
    for key in ("relative_risk", "auc", "j"):
        assert grouped[key] == (None if one_by_one[key] is None else pytest.approx(one_by_one[key]))
    satisfied, base = one_by_one["satisfied_failed"], one_by_one["base_failure"]
    assert satisfied["k"] <= base["k"]
    assert base["n"] == len(sessions)
    if one_by_one["relative_risk"] is not None:
        assert not math.isnan(one_by_one["relative_risk_interval"]["high"])


def test_satisfaction_when_there_is_no_session_then_every_figure_is_null() -> None:
    found = satisfied_but_failed([], [], [], [])

    assert found["satisfied_failed"]["value"] is found["base_failure"]["value"] is None
    assert found["relative_risk"] is found["auc"] is found["j"] is None
