"""Counts of groups add up by cluster, however they are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.groups import Groups
from audit.statistics.rates import clustered_rate, clustered_rate_of_groups

ROWS = [("t1", "x", 3, 1), ("t2", None, 2, 2), ("t1", None, 5, 0), ("t3", "y", 1, 1)]
GROUPS = Groups(ROWS, ("task", "kind"), ("n", "k"))


def test_groups_when_cut_by_a_key_then_only_its_clusters_are_left_and_null_is_a_value() -> None:
    assert GROUPS.values("kind") == ["x", None, "y"]
    assert GROUPS.totals() == {"n": 11, "k": 4}
    assert GROUPS.totals(kind=[None]) == {"n": 7, "k": 2}
    assert list(GROUPS.by_cluster()["n"]) == [8, 2, 1]
    assert list(GROUPS.by_cluster(kind=[None])["k"]) == [0, 2]
    assert list(GROUPS.on_all_clusters(kind=[None])["n"]) == [5, 2, 0]
    assert GROUPS.totals(kind=["nobody"]) == {"n": 0, "k": 0}


def test_groups_when_there_are_none_then_every_count_is_0() -> None:
    none = Groups([], ("task",), ("n", "k"))
    assert none.totals() == {"n": 0, "k": 0}
    assert clustered_rate(none.by_cluster()["k"], none.by_cluster()["n"])["value"] is None


rows = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.sampled_from(["x", "y", None]), st.integers(0, 9), st.integers(0, 9)
    ),
    max_size=30,
)


@given(rows)
def test_groups_when_cut_into_all_values_of_a_key_then_the_parts_are_the_whole(found) -> None:
    groups = Groups(found, ("task", "kind"), ("n", "k"))
    parts = [groups.on_all_clusters(kind=[kind])["n"] for kind in groups.values("kind")]
    assert sum(part.sum() for part in parts) == groups.totals()["n"] == sum(row[2] for row in found)
    for place, task in enumerate(groups.values("task")):
        assert sum(part[place] for part in parts) == sum(row[2] for row in found if row[0] == task)


def test_rate_of_groups_when_some_do_not_count_then_it_is_the_rate_of_the_others() -> None:
    found = clustered_rate_of_groups(
        ["a", "b", "a", "c"], [1, 0, 1, 1], [2, 3, 1, 1], [True, True, True, False]
    )
    assert found == clustered_rate([2, 0], [3, 3])
    assert found["value"] == pytest.approx(1 / 3)
