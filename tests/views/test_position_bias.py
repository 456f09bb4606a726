"""position_bias: what the two orders of a pair say of the place on the screen, whatever the reward."""

from typing import Any

import pytest

COUNTS = "pairs, both_read, consistent, primacy, recency, first_named, side_named"
RATES = "consistent_rate, preference_fairness, first_share"


def overall(given: Any, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(f"select {columns} from position_bias where gap_bucket = 'all'")
    return found


# (preference in order AB, in order BA): both_read, consistent, primacy, recency, first_named, side_named
PATTERNS = {
    "first and first": (("A", "B"), (1, 0, 1, 0, 2, 2)),
    "second and second": (("B", "A"), (1, 0, 0, 1, 0, 2)),
    "A twice": (("A", "A"), (1, 1, 0, 0, 1, 2)),
    "B twice": (("B", "B"), (1, 1, 0, 0, 1, 2)),
    "tie twice": (("tie", "tie"), (1, 1, 0, 0, 0, 0)),
    "first and tie": (("A", "tie"), (1, 0, 1, 0, 1, 1)),
    "tie and first": (("tie", "B"), (1, 0, 1, 0, 1, 1)),
    "second and tie": (("B", "tie"), (1, 0, 0, 1, 0, 1)),
    "tie and second": (("tie", "A"), (1, 0, 0, 1, 0, 1)),
    "first and unreadable": (("A", None), (0, 0, 0, 0, 1, 1)),
    "unreadable and first": ((None, "B"), (0, 0, 0, 0, 1, 1)),
    "second and unreadable": (("B", None), (0, 0, 0, 0, 0, 1)),
    "tie and unreadable": (("tie", None), (0, 0, 0, 0, 0, 0)),
    "unreadable twice": ((None, None), (0, 0, 0, 0, 0, 0)),
}


@pytest.mark.parametrize(("answers", "counts"), PATTERNS.values(), ids=PATTERNS.keys())
def test_pair_when_answered_like_this_then_is_counted_like_that(
    given: Any, answers: tuple[str | None, str | None], counts: tuple[int, ...]
) -> None:
    given.run()
    given.pairs(1, "unverified", pref_ab=answers[0], pref_ba=answers[1])
    assert overall(given, COUNTS) == [(1, *counts)]


def test_rates_when_patterns_are_mixed_then_are_over_the_pairs_with_both_orders_read(given: Any) -> None:
    given.run()
    given.pairs(3, "inconsistent", pref_ab="A", pref_ba="B")
    given.pairs(1, "inconsistent", pref_ab="B", pref_ba="A")
    given.pairs(4, "correct", pref_ab="A", pref_ba="A")
    given.pairs(2, "unreadable", pref_ab="A", pref_ba=None)
    assert overall(given, COUNTS) == [(10, 8, 4, 3, 1, 12, 18)]
    assert overall(given, RATES) == [(4 / 8, -2 / 8, 12 / 18)]


def test_rates_when_no_order_was_read_then_are_null(given: Any) -> None:
    given.run()
    given.pairs(2, "unreadable")
    assert overall(given, f"pairs, {RATES}") == [(2, None, None, None)]


def test_buckets_when_some_are_empty_then_are_rows_and_add_up_to_all(given: Any) -> None:
    given.run()
    given.pairs(2, "inconsistent", "near", pref_ab="A", pref_ba="B")
    given.pairs(1, "correct", "far", pref_ab="A", pref_ba="A")
    given.pairs(1, None, "unknown", pref_ab="B", pref_ba="A")
    assert sorted(
        given.rows("select gap_bucket, pairs, primacy, recency, preference_fairness from position_bias")
    ) == [
        ("all", 4, 2, 1, -0.25),
        ("far", 1, 0, 0, 0.0),
        ("middle", 0, 0, 0, None),
        ("near", 2, 2, 0, -1.0),
        ("unknown", 1, 0, 1, 1.0),
    ]


def test_run_when_it_asked_one_order_only_then_has_no_row_and_others_keep_theirs(given: Any) -> None:
    given.run("r1", swap_rule="first_order")
    given.run("r2", swap_rule="net_vote")
    given.pairs(2, "correct", pref_ab="A")
    given.pairs(1, "correct", run_id="r2", gate="g1", pref_ab="A", pref_ba="A")
    given.pairs(3, "correct", run_id="r2", gate="g2", pref_ab="B", pref_ba="B")
    assert sorted(
        given.rows("select run_id, gate, pairs from position_bias where gap_bucket in ('all', 'near')")
    ) == [
        ("r2", "g1", 1),
        ("r2", "g1", 1),
        ("r2", "g2", 3),
        ("r2", "g2", 3),
    ]
