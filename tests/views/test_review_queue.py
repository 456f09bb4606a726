"""review_queue: which pairs people could look at, why they should, and whether they have."""

from typing import Any

import pytest
from sqlalchemy import insert

from audit.words import schema
from audit.words.review import REASONS

T = "2026-03-05T17:15:00.000Z"


def queue(given: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows("select pair_id, reason from review_queue order by pair_id")
    return found


# the pair, both sessions, the calls of panel members -> the reason
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], list[tuple[str, str]], str]] = {
    "nothing stands out": ({}, {}, [], "random"),
    "satisfied and failed": ({}, {"satisfaction": 0.8, "success": 0}, [], "satisfied_failed"),
    "not quite satisfied": ({}, {"satisfaction": 0.79, "success": 0}, [], "random"),
    "satisfied, not known whether it failed": ({}, {"satisfaction": 0.9}, [], "random"),
    "inconsistent": ({"outcome": "inconsistent"}, {}, [], "inconsistent"),
    "members differ": ({}, {}, [("judge-1", "A"), ("judge-2", "B")], "panel_disagrees"),
    "members agree": ({}, {}, [("judge-1", "A"), ("judge-2", "A")], "random"),
    "one judge asked twice": ({}, {}, [("judge-1", "A"), ("judge-1", "B")], "random"),
    "near tie": ({"gap_bucket": "near"}, {}, [], "near_tie"),
    "labelled by a model": ({}, {"label_source": "llm"}, [], "llm_labelled"),
    "the first reason counts": (
        {"outcome": "inconsistent", "gap_bucket": "near"},
        {"satisfaction": 1.0, "success": 0, "label_source": "llm"},
        [],
        "satisfied_failed",
    ),
}


@pytest.mark.parametrize("side", ["s1", "s2"])
@pytest.mark.parametrize(("pair", "session", "said", "reason"), CASES.values(), ids=CASES.keys())
def test_pair_when_something_stands_out_then_the_first_reason_is_told(
    given: Any,
    pair: dict[str, Any],
    session: dict[str, Any],
    said: list[tuple[str, str]],
    reason: str,
    side: str,
) -> None:
    given.run()
    for name in ("s1", "s2"):
        given.session(name, transcript_json="[]", **(session if name == side else {}))
    given.pairs(
        1, **{"outcome": "correct", "gap_bucket": "far", "session_a": "s1", "session_b": "s2", **pair}
    )
    for profile, preference in said:
        given.call(pair_id="p1", profile=profile, presented_order="AB", preference=preference)
    assert queue(given) == [("p1", reason)]
    assert reason in REASONS


def test_pair_when_a_transcript_is_not_stored_then_nobody_can_look_at_it(given: Any) -> None:
    given.run()
    given.session("s1", transcript_json="[]")
    given.session("s2")
    given.pairs(1, "correct", "far", session_a="s1", session_b="s2")
    given.pairs(1, "correct", "far")
    assert queue(given) == []


def test_pair_when_it_went_out_then_its_reason_stays_and_its_annotators_are_counted(given: Any) -> None:
    given.run()
    for name in ("s1", "s2"):
        given.session(name, transcript_json="[]")
    given.pairs(1, "inconsistent", "near", session_a="s1", session_b="s2", category="berths")
    item = {
        "review_id": "v1",
        "run_id": "r1",
        "pair_id": "p1",
        "reason": "random",
        "weight": 2.0,
        "created_at": T,
    }
    with given.writing() as connection:
        connection.execute(insert(schema.review_items), item)
    for who, value in (("ann", "A"), ("ann", "B"), ("bo", "tie")):
        given.label(value, pair_id="p1", annotator=who)
    assert given.rows("select * from review_queue") == [
        ("p1", "r1", "g1", "t1", "berths", "near", "random", "v1", T, 2)
    ]
