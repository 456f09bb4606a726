"""Arguments that an agent sends are held against the schema in bounded time, whatever both say."""

import json
import time
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from audit.doors.arguments import read_arguments, schema_faults, validator_of
from audit.doors.world_sql import WorldError


def of(**schema: Any) -> dict[str, Any]:
    """A tool's parameters with one argument of this schema."""
    return {"type": "object", "properties": {"a": schema}}


def complaint(schema: dict[str, Any], arguments: Any) -> str | None:
    try:
        read_arguments(validator_of(schema), arguments)
    except WorldError as error:
        return str(error)
    return None


SLOW = "a" * 40 + "!"
SCHEMAS: dict[str, dict[str, Any]] = {
    "nested": of(pattern="^(a+)+$"),
    "one or the other": of(pattern="^(a|a)*$"),
    "in a list": of(type="array", items={"pattern": "^(a|aa)+$"}),
    "one of two": of(anyOf=[{"pattern": "^(a*)*$"}, {"pattern": "^([a-z]+)*$"}]),
    "by reference": of(**{"$ref": "#/$defs/d"}) | {"$defs": {"d": {"pattern": "^(a+)+$"}}},
    "with a version": of(**{"$ref": "#/$defs/d"})
    | {
        "$defs": {"d": {"pattern": "^(a+)+$"}},
        "$schema": "https://json-schema.org/draft/2020-12/schema",
    },
    "of names": {"type": "object", "propertyNames": {"pattern": "^(a+)+$"}},
}


@pytest.mark.parametrize("case", SCHEMAS)
def test_arguments_when_a_pattern_would_try_forever_then_they_are_refused_at_once(case: str) -> None:
    schema = SCHEMAS[case]
    assert list(schema_faults(schema)) == []
    value: Any = [SLOW] if case == "in a list" else SLOW
    began = time.monotonic()
    arguments = {SLOW: 1} if case == "of names" else {"a": value}
    assert complaint(schema, arguments) is not None
    assert time.monotonic() - began < 2


def test_arguments_when_a_list_is_long_then_its_items_are_compared_at_once() -> None:
    schema = of(type="array", uniqueItems=True)
    items = [{"n": number} for number in range(60_000)]
    began = time.monotonic()
    assert complaint(schema, {"a": items}) is None
    assert complaint(schema, {"a": [*items, {"n": 5.0}]}) is not None
    assert time.monotonic() - began < 10


def test_arguments_when_their_text_is_endless_then_it_is_not_read() -> None:
    text = json.dumps({"a": "x" * 1_000_000})
    assert complaint(of(), text) == "the arguments are too long: 1,000,009 characters, at most 1,000,000"


ALIKE: list[tuple[dict[str, Any], list[Any]]] = [
    (of(pattern="^[A-Z]{2}-\\d+$"), ["AB-1", "AB-", "xAB-1", 5, None, ["AB"]]),
    (of(pattern="b"), ["abc", "", "ac", "\ud83d b", "\ud83d"]),
    (of(pattern="^\\S+@\\S+\\.[a-z]{2,}$"), ["me@example.org", "me@", "a b@c.de"]),
    (of(pattern="^(?:wan|door)$"), ["wan", "door", "doors"]),
    (
        of(uniqueItems=True),
        [[1, 1.0], [1, True], [[1], [1]], [{"a": 1}, {"a": 2}], "aa", [0, False], ["1", 1]],
    ),
]


@pytest.mark.parametrize("number", range(len(ALIKE)))
def test_arguments_when_nothing_is_slow_then_the_answer_is_that_of_the_library(number: int) -> None:
    schema, values = ALIKE[number]
    wanted = [Draft202012Validator(schema).is_valid({"a": value}) for value in values]
    assert [complaint(schema, {"a": value}) is None for value in values] == wanted
    assert len(set(wanted)) == 2


FAULTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "look-ahead": (
        of(pattern="^(?=.*a)b"),
        "properties.a.pattern",
        "cannot be run in limited time: look-around, including look-ahead and look-behind, is not supported",
    ),
    "a back-reference, deep inside": (
        of(items={"anyOf": [{}, {"pattern": "(a)\\1"}]}),
        "properties.a.items.anyOf.1.pattern",
        "cannot be run in limited time: backreferences are not supported",
    ),
    "too many repeats": (
        of(pattern="(?:(?:a{1000}){1000}){100}"),
        "properties.a.pattern",
        "cannot be run in limited time: Compiled regex exceeds size limit of 10485760 bytes.",
    ),
    "no pattern at all": (
        of(pattern="("),
        "properties.a.pattern",
        "no valid JSON schema: '(' is not a 'regex'",
    ),
    "patterns of names": (
        {"type": "object", "patternProperties": {"^(a+)+$": {}}},
        "patternProperties",
        "is not supported: name the properties",
    ),
    "a version within": (
        of(**{"$schema": "http://json-schema.org/draft-07/schema#"}),
        "properties.a.$schema",
        "has its place at the top only",
    ),
}


@pytest.mark.parametrize("case", FAULTS)
def test_schema_when_it_cannot_be_held_to_in_limited_time_then_the_place_is_told(case: str) -> None:
    schema, place, problem = FAULTS[case]
    assert [(".".join(map(str, path)), said) for path, said in schema_faults(schema)] == [(place, problem)]


def test_schema_when_an_argument_is_called_like_a_keyword_then_it_is_no_keyword() -> None:
    names = {name: {"type": "string"} for name in ("pattern", "patternProperties", "$schema")}
    schema = {"type": "object", "properties": names, "default": {"pattern": "("}}
    assert list(schema_faults(schema)) == []
