"""misselection_by_category: where the judge goes wrong, by kind of task."""

from typing import Any

import pytest

from audit.words.names import OUTCOMES


def view(given: Any, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(
        f"select {columns} from misselection_by_category order by run_id, gate, category is null, category"
    )
    return found


def test_category_when_missing_then_is_a_row_of_its_own(given: Any) -> None:
    given.run()
    given.pairs(1, "misselected", category="airline")
    given.pairs(3, "correct", category="airline")
    given.pairs(1, "correct", category="retail")
    given.pairs(2, "misselected", category=None)
    assert view(given, "category, pairs, decidable, correct, misselected, misselected_of_decidable") == [
        ("airline", 4, 4, 3, 1, 0.25),
        ("retail", 1, 1, 1, 0, 0.0),
        (None, 2, 2, 0, 2, 1.0),
    ]


def test_rates_when_nothing_is_decidable_then_are_null(given: Any) -> None:
    given.run()
    given.pairs(2, "unverified", category="airline")
    given.pairs(1, None, "unknown", category="airline")
    assert view(
        given,
        "pairs, decidable, accuracy, misselected_of_decidable, misselected_of_decided, consistent_rate",
    ) == [(3, 0, None, None, None, None)]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_outcome_when_counted_then_stands_in_its_own_column_alone(given: Any, outcome: str) -> None:
    given.run()
    given.pairs(2, outcome, category="airline")
    given.pairs(5, None, category="airline")
    counted = view(given, f"pairs, {', '.join(OUTCOMES)}")
    assert counted == [(7, *(2 if name == outcome else 0 for name in OUTCOMES))]


def test_runs_and_gates_when_they_share_a_category_then_do_not_mix(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given.pairs(1, "correct", category="airline", gate="g1")
    given.pairs(2, "misselected", category="airline", gate="g2")
    given.pairs(3, "correct", category="airline", run_id="r2")
    assert view(given, "run_id, gate, category, correct, misselected") == [
        ("r1", "g1", "airline", 1, 0),
        ("r1", "g2", "airline", 0, 2),
        ("r2", "g1", "airline", 3, 0),
    ]
