"""near_tie_vs_wide_gap: the buckets of a gate put together into near, wide and unknown."""

from typing import Any

COUNTS = "gap_kind, is_near, pairs, decidable, correct, misselected, undecided, both_read, consistent"
RATES = "gap_kind, misselected_of_decidable, misselected_of_decided, consistent_rate"


def view(given: Any, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(
        f"select {columns} from near_tie_vs_wide_gap order by run_id, gate, gap_kind"
    )
    return found


def test_kinds_when_buckets_differ_then_wide_holds_all_that_are_not_near(given: Any) -> None:
    given.run()
    given.pairs(2, "misselected", "near", is_consistent=1)
    given.pairs(1, "correct", "near", is_consistent=1)
    given.pairs(1, "inconsistent", "near", is_consistent=0)
    given.pairs(1, "misselected", "middle", is_consistent=1)
    given.pairs(3, "correct", "far", is_consistent=1)
    given.pairs(2, "unverified", "unknown")

    assert view(given, COUNTS) == [
        ("near", 1, 4, 4, 1, 2, 1, 4, 3),
        ("unknown", None, 2, 0, 0, 0, 0, 0, 0),
        ("wide", 0, 4, 4, 3, 1, 0, 4, 4),
    ]
    assert view(given, RATES) == [
        ("near", 2 / 4, 2 / 3, 3 / 4),
        ("unknown", None, None, None),
        ("wide", 1 / 4, 1 / 4, 1.0),
    ]


def test_kind_when_it_is_empty_then_is_a_row_without_rates(given: Any) -> None:
    """Case GB-03: with 0/1 rewards no pair is near, and that is no good news."""
    given.run()
    given.pairs(2, "correct", "far")
    assert view(given, f"{COUNTS}, misselected_of_decidable") == [
        ("near", 1, 0, 0, 0, 0, 0, 0, 0, None),
        ("unknown", None, 0, 0, 0, 0, 0, 0, 0, None),
        ("wide", 0, 2, 2, 2, 0, 0, 0, 0, 0.0),
    ]


def test_pairs_when_without_a_known_bucket_then_are_counted_as_unknown_once(given: Any) -> None:
    given.run()
    given.pairs(1, None, "unknown")
    given.pairs(2, "unverified", "unknown")
    given.pairs(4, "correct", "older label")
    assert view(given, "gap_kind, pairs") == [("near", 0), ("unknown", 7), ("wide", 0)]


def test_runs_and_gates_when_their_bucket_sets_differ_then_do_not_mix(given: Any) -> None:
    given.buckets("two", [("near", 0.0, 0.5, "left", 1), ("far", 0.5, None, "left", 1)])
    given.run("r1")
    given.run("r2", bucket_set="two")
    given.pairs(1, "misselected", "far", gate="g1")
    given.pairs(2, "correct", "near", gate="g2")
    given.pairs(3, "correct", "far", run_id="r2")
    assert view(given, "run_id, gate, gap_kind, pairs, misselected") == [
        ("r1", "g1", "near", 0, 0),
        ("r1", "g1", "unknown", 0, 0),
        ("r1", "g1", "wide", 1, 1),
        ("r1", "g2", "near", 2, 0),
        ("r1", "g2", "unknown", 0, 0),
        ("r1", "g2", "wide", 0, 0),
        ("r2", "g1", "near", 3, 0),
    ]
