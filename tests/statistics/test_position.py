"""Position bias from counts per task."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from audit.statistics.position import position
from audit.statistics.rates import clustered_rate


def counts(rows: list[tuple[int, ...]]) -> dict[str, list[int]]:
    names = ("both_read", "consistent", "primacy", "recency", "side_named", "first_named")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def test_position_when_it_is_the_table_of_mt_bench_then_its_shares_come_out() -> None:
    # arXiv:2306.05685, Table 2, GPT-4 with the default prompt over 80 questions: consistent 65.0%, biased
    # toward first 30.0%, toward second 5.0%. One question a cluster, no tie among the answers.
    rows = [(1, 1, 0, 0, 2, 1)] * 52 + [(1, 0, 1, 0, 2, 2)] * 24 + [(1, 0, 0, 1, 2, 0)] * 4
    found = position(counts(rows))

    assert found["both_read"] == 80
    assert found["consistent"] == clustered_rate([1] * 52 + [0] * 28, [1] * 80)
    assert found["consistent"]["value"] == 0.65
    assert (found["primacy"], found["recency"]) == (24, 4)
    assert found["preference_fairness"] == pytest.approx(-0.25)
    assert found["preference_fairness_interval"]["high"] < 0
    assert (found["first_share"]["k"], found["first_share"]["n"]) == (100, 160)
    assert found["mcnemar_p"] == pytest.approx(binomtest(24, 28).pvalue)


PAIRS = st.integers(0, 5).flatmap(
    lambda n: st.integers(0, n).flatmap(
        lambda consistent: st.tuples(
            st.just(n), st.just(consistent), st.integers(0, n - consistent), st.integers(0, 2 * n)
        )
    )
)


@given(st.lists(PAIRS, min_size=1, max_size=15))
def test_position_when_first_and_second_change_places_then_the_lean_turns(
    tasks: list[tuple[int, int, int, int]],
) -> None:
    rows = [(n, c, lean, n - c - lean, 2 * n, first) for n, c, lean, first in tasks]
    found = position(counts(rows))
    turned = position(counts([(n, c, r, p, named, named - first) for n, c, p, r, named, first in rows]))

    assert found["consistent"] == turned["consistent"]
    assert found["mcnemar_p"] == turned["mcnemar_p"]
    assert found["first_share"]["k"] == turned["first_share"]["n"] - turned["first_share"]["k"]
    if not found["both_read"]:
        assert found["preference_fairness"] is found["consistent"]["value"] is found["mcnemar_p"] is None
        return
    assert found["preference_fairness"] == pytest.approx(-turned["preference_fairness"], abs=1e-12)
    assert -1 <= found["preference_fairness"] <= 1


def test_position_when_leans_are_more_than_pairs_then_it_is_refused() -> None:
    with pytest.raises(ValueError, match="a part must be from 0 up to its whole"):
        position(counts([(1, 0, 1, 1, 2, 1)]))
