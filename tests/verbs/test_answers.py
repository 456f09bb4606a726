"""One answer of a file: the recorded decision stands unless it is to be read anew."""

import json
from typing import Any

import pytest

from audit.verbs.answers import read_answer
from audit.words.records import RawAnswer


def raw(order: str = "AB", raw_output: str | None = None, **fields: Any) -> RawAnswer:
    return RawAnswer(order, raw_output, **fields)  # type: ignore[arg-type]


RECORDED: dict[str, Any] = {"is_recorded": True}
JSON: dict[str, Any] = {"grammar": "json"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        # What was recorded, by position or by side, becomes a preference by the order it was shown in.
        (raw("AB", **RECORDED, choice="first"), ("A", "first", "A", "recorded")),
        (raw("BA", **RECORDED, choice="first"), ("B", "first", "B", "recorded")),
        (raw("BA", **RECORDED, preference="A"), ("A", "second", "A", "recorded")),
        (raw("AB", **RECORDED, preference="tie"), ("tie", "tie", "tie", "recorded")),
        (raw("AB", "no idea", **RECORDED), ("unreadable", None, None, "unreadable")),
        # A reply beside a decision is kept, not read.
        (raw("AB", '{"winner":"B"}', **JSON, **RECORDED, choice="first"), ("A", "first", "A", "recorded")),
        (raw("AB", '{"winner":"B"}', **JSON), ("B", "second", "B", "ok")),
        (raw("BA", '{"winner":"B"}', **JSON), ("A", "second", "A", "ok")),
        (raw("BA", '{"winner":"tie"}', **JSON), ("tie", "tie", "tie", "ok")),
        (raw("AB", "I would rather not say.", **JSON), ("unreadable", None, None, "unreadable")),
        (raw("AB", "", **JSON), ("unreadable", None, None, "unreadable")),
        # No reply and no decision: never asked. A call that failed brought neither, whatever stands there.
        (raw("AB", **JSON), ("missing", None, None, "error")),
        (raw("AB", error="HTTP 500"), ("failed", None, None, "error")),
        (raw("AB", '{"winner":"A"}', **JSON, error="HTTP 500"), ("failed", None, None, "error")),
    ],
)
def test_read_answer_when_nothing_is_reread_then_the_decision_stands(
    answer: RawAnswer, expected: tuple[object, ...]
) -> None:
    found = read_answer(answer)
    assert (found.answer, found.choice, found.preference, found.parse_status) == expected
    assert found.order == answer.order


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (raw("AB", '{"winner":"B"}', **JSON, **RECORDED, choice="first"), ("B", "second", "ok")),
        (raw("AB", "garbage", **JSON, **RECORDED, choice="first"), ("unreadable", None, "unreadable")),
        # Scores where there is no reply; equal ones are a tie, whatever was recorded.
        (
            raw("BA", **RECORDED, choice="second", score_first=1.5, score_second=1.5),
            ("tie", "tie", "ok"),
        ),
        (
            raw("BA", **RECORDED, choice="second", score_first=2.0, score_second=1.5),
            ("B", "first", "ok"),
        ),
        (
            raw("AB", **RECORDED, choice="first", score_first=-2.0, score_second=-1.5),
            ("B", "second", "ok"),
        ),
        # With nothing to read anew, the decision stands.
        (raw("AB", **RECORDED, choice="first"), ("A", "first", "recorded")),
        (raw("AB", "a reply in no grammar", **RECORDED, choice="first"), ("A", "first", "recorded")),
        (raw("AB", **RECORDED, choice="first", score_first=1.0), ("A", "first", "recorded")),
        (raw("AB", error="HTTP 500", score_first=1.0, score_second=2.0), ("failed", None, "error")),
    ],
)
def test_read_answer_when_it_is_reread_then_the_reply_or_the_scores_decide(
    answer: RawAnswer, expected: tuple[object, ...]
) -> None:
    found = read_answer(answer, reread=True)
    assert (found.answer, found.choice, found.parse_status) == expected


def test_read_answer_when_scores_were_given_by_position_then_they_come_back_by_side() -> None:
    shown = {
        "is_recorded": True,
        "choice": "first",
        "decision": "A>B",
        "score_first": 7.0,
        "score_second": 3.0,
    }
    ab, ba = read_answer(raw("AB", **shown)), read_answer(raw("BA", **shown))
    assert (ab.score_a, ab.score_b) == (7.0, 3.0)
    assert (ba.score_a, ba.score_b) == (3.0, 7.0)
    assert json.loads(ba.parsed_json or "") == {"decision": "A>B", "scores": [7.0, 3.0]}


def test_read_answer_when_the_reply_holds_scores_then_they_are_by_side_too() -> None:
    found = read_answer(raw("BA", '{"winner":"A","score_a":0.75,"score_b":0.25}', **JSON))
    assert (found.preference, found.score_a, found.score_b) == ("B", 0.25, 0.75)


def test_read_answer_when_a_score_is_no_number_then_it_is_unknown_and_not_stored() -> None:
    """Case JP-07: NaN and Infinity are invalid, and no JSON holds their tokens."""
    scores = []
    for value in ("1.0", "NaN", "0.0", "Infinity"):
        found = read_answer(raw("AB", f'{{"winner":"A","score_a":{value}}}', **JSON))
        scores.append(found.score_a)
        json.loads(found.parsed_json or "null", parse_constant=pytest.fail)
    assert scores == [1.0, None, 0.0, None]


def test_read_answer_when_the_grammar_is_unknown_then_it_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"^unknown verdict grammar 'morse': use one of json, "):
        read_answer(raw("AB", "dot dash", grammar="morse"))


def test_read_answer_when_the_reply_gives_no_scores_then_those_beside_it_in_the_file_stand() -> None:
    beside: dict[str, Any] = {"score_first": 3.0, "score_second": 1.0}
    told = read_answer(raw("BA", "[[A]]", grammar="mtbench_3way", **beside))
    assert (told.score_a, told.score_b) == (1.0, 3.0)
    own = read_answer(raw("AB", '{"winner":"A","score_a":5,"score_b":2}', grammar="json:0-5", **beside))
    assert (own.score_a, own.score_b) == (5.0, 2.0)
