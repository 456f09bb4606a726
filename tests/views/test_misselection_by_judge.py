"""misselection_by_judge: one row for each gate of a run, with every outcome counted beside the rates."""

from typing import Any

import pytest

from audit.words.names import OUTCOMES


def view(given: Any, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(
        f"select {columns} from misselection_by_judge order by run_id, gate"
    )
    return found


def test_gate_when_it_has_every_outcome_then_they_add_up_and_rates_name_their_denominator(given: Any) -> None:
    given.run()
    given.pairs(2, "misselected", is_consistent=1)
    given.pairs(3, "correct", is_consistent=1)
    given.pairs(1, "judge_tie", is_consistent=1)
    given.pairs(4, "inconsistent", is_consistent=0)
    given.pairs(5, "unreadable")
    given.pairs(6, "incomplete")
    given.pairs(7, "reward_tie", is_consistent=0)
    given.pairs(8, "unverified")

    assert view(given, f"pairs, decidable, both_read, consistent, {', '.join(OUTCOMES)}") == [
        (36, 21, 17, 6, 8, 7, 6, 5, 1, 4, 3, 2)
    ]
    assert view(given, "accuracy, misselected_of_decidable, misselected_of_decided, consistent_rate") == [
        (3 / 21, 2 / 21, 2 / 5, 6 / 17)
    ]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcome_when_counted_then_stands_in_its_own_column_alone(given: Any, outcome: str) -> None:
    given.run()
    given.pairs(2, outcome)
    assert view(given, f"pairs, {', '.join(OUTCOMES)}") == [
        (2, *(2 if name == outcome else 0 for name in OUTCOMES))
    ]


def test_rates_when_no_pair_is_scored_then_are_null(given: Any) -> None:
    given.run()
    given.pairs(3, None, "unknown")
    assert view(
        given,
        "gate, pairs, decidable, accuracy, misselected_of_decidable, misselected_of_decided, consistent_rate",
    ) == [("g1", 3, 0, None, None, None, None)]


def test_gates_when_two_judged_the_same_run_then_have_a_row_each_and_runs_do_not_mix(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given.run("r3")
    given.pairs(1, "correct", gate="g1")
    given.pairs(2, "misselected", gate="g2")
    given.pairs(3, "correct", run_id="r2")
    assert view(given, "run_id, gate, pairs, accuracy") == [
        ("r1", "g1", 1, 1.0),
        ("r1", "g2", 2, 0.0),
        ("r2", "g1", 3, 1.0),
    ]
