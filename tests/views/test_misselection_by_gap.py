"""misselection_by_gap: counts and rates of each gap bucket, the empty ones too."""

from typing import Any

COUNTS = "gap_bucket, pairs, decidable, correct, misselected, undecided, both_read, consistent"
RATES = "gap_bucket, misselected_of_decidable, misselected_of_decided, consistent_rate"


def view(given: Any, columns: str, where: str = "1 = 1") -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(
        f"select {columns} from misselection_by_gap where {where} order by run_id, gate, lower is null, lower"
    )
    return found


def test_bucket_when_it_has_one_error_in_four_then_the_rate_is_a_quarter_and_an_empty_one_has_none(
    given: Any,
) -> None:
    """Case GB-03: integer division shows 0, and an empty bucket that shows 0.0 looks like a perfect judge."""
    given.run()
    given.pairs(1, "misselected", "near", is_consistent=1)
    given.pairs(3, "correct", "near", is_consistent=1)
    given.pairs(1, "correct", "far", is_consistent=1)

    assert view(given, COUNTS) == [
        ("near", 4, 4, 3, 1, 0, 4, 4),
        ("middle", 0, 0, 0, 0, 0, 0, 0),
        ("far", 1, 1, 1, 0, 0, 1, 1),
        ("unknown", 0, 0, 0, 0, 0, 0, 0),
    ]
    assert view(given, RATES) == [
        ("near", 0.25, 0.25, 1.0),
        ("middle", None, None, None),
        ("far", 0.0, 0.0, 1.0),
        ("unknown", None, None, None),
    ]


def test_edges_when_read_then_are_those_of_the_bucket_set(given: Any) -> None:
    given.run()
    given.pairs(1, "correct", "far")
    assert view(given, "gap_bucket, lower, upper, is_near") == [
        ("near", 0.0, 0.1, 1),
        ("middle", 0.1, 0.3, 0),
        ("far", 0.3, None, 0),
        ("unknown", None, None, None),
    ]


def test_rates_when_pairs_are_without_a_verdict_then_each_has_its_own_denominator(given: Any) -> None:
    given.run()
    given.pairs(1, "misselected", is_consistent=1)
    given.pairs(1, "correct", is_consistent=1)
    given.pairs(2, "inconsistent", is_consistent=0)
    given.pairs(1, "judge_tie", is_consistent=1)
    given.pairs(1, "unreadable")
    given.pairs(2, "incomplete")
    given.pairs(3, "reward_tie", is_consistent=1)
    given.pairs(4, "unverified")

    assert view(given, COUNTS, "gap_bucket = 'near'") == [("near", 15, 8, 1, 1, 6, 8, 6)]
    assert view(given, RATES, "gap_bucket = 'near'") == [("near", 1 / 8, 1 / 2, 6 / 8)]


def test_rates_when_every_pair_is_undecided_then_of_decided_is_null_and_of_decidable_is_zero(
    given: Any,
) -> None:
    given.run()
    given.pairs(2, "inconsistent", is_consistent=0)
    assert view(given, RATES, "gap_bucket = 'near'") == [("near", 0.0, None, 0.0)]


def test_pairs_when_not_scored_yet_then_count_as_unknown_and_as_nothing_else(given: Any) -> None:
    given.run()
    given.pairs(2, None, "unknown")
    given.pairs(1, "unverified", "unknown")
    given.pairs(1, "correct", "near")
    assert view(given, COUNTS, "pairs > 0") == [
        ("near", 1, 1, 1, 0, 0, 0, 0),
        ("unknown", 3, 0, 0, 0, 0, 0, 0),
    ]


def test_runs_and_gates_when_their_bucket_sets_differ_then_do_not_mix(given: Any) -> None:
    given.buckets("two", [("near", 0.0, 0.5, "left", 1), ("rest", 0.5, None, "left", 0)])
    given.run("r1")
    given.run("r2", bucket_set="two")
    given.run("r3")  # has no pairs: no gate, no row
    given.pairs(1, "misselected", "near", gate="g1")
    given.pairs(2, "correct", "far", gate="g2")
    given.pairs(3, "correct", "near", run_id="r2", gate="g1")

    assert view(given, "run_id, gate, gap_bucket, pairs, upper, misselected_of_decidable") == [
        ("r1", "g1", "near", 1, 0.1, 1.0),
        ("r1", "g1", "middle", 0, 0.3, None),
        ("r1", "g1", "far", 0, None, None),
        ("r1", "g1", "unknown", 0, None, None),
        ("r1", "g2", "near", 0, 0.1, None),
        ("r1", "g2", "middle", 0, 0.3, None),
        ("r1", "g2", "far", 2, None, 0.0),
        ("r1", "g2", "unknown", 0, None, None),
        ("r2", "g1", "near", 3, 0.5, 0.0),
        ("r2", "g1", "rest", 0, None, None),
    ]


def test_pairs_when_their_bucket_is_not_in_the_set_then_are_still_counted(given: Any) -> None:
    given.buckets("two", [("near", 0.0, 0.5, "left", 1), ("rest", 0.5, None, "left", 0)])
    given.run(bucket_set="two")
    given.pairs(1, "correct", "older label")
    given.pairs(1, None, "unknown")
    given.pairs(1, "correct", "near")
    assert sorted(view(given, "gap_bucket, pairs, is_near", "pairs > 0")) == [
        ("near", 1, 1),
        ("older label", 1, None),
        ("unknown", 1, None),
    ]
