"""One field of a foreign row: typed without guessing, refused with its name and value."""

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.doors.formats.fields import Row, strange_columns
from audit.words.errors import BadFile

ABSENT = [None, ""]


def row(value: object) -> Row:
    return Row("FILE", "line 2", {"x": value})


def problem(read: Any, value: object) -> str:
    with pytest.raises(BadFile) as caught:
        read(row(value))
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("007", "007"),
        ("NA", "NA"),
        ("1e5", "1e5"),
        (" a b ", " a b "),
        ("ü", "ü"),
        (7, "7"),
        (2**64, "18446744073709551616"),
        (0, "0"),
        ("", None),
        (None, None),
    ],
)
def test_text_when_it_is_text_or_a_whole_number_then_it_stays_as_it_is(
    value: object, expected: object
) -> None:
    assert row(value).text("x") == expected


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (1.0, "expected text, found 1.0"),
        (True, "expected text, found True"),
        ([1], "expected text, found an array"),
        ({"a": 1}, "expected text, found an object"),
        ("a\0b", r"expected text without NUL or lone surrogates, found 'a\x00b'"),
        ("\ud800", r"expected text without NUL or lone surrogates, found '\ud800'"),
    ],
)
def test_text_when_it_is_something_else_then_it_is_refused(value: object, found: str) -> None:
    assert problem(lambda r: r.text("x"), value) == f"FILE, line 2: x: {found}"


@pytest.mark.parametrize("value", ABSENT)
@pytest.mark.parametrize("read", ["needed_text", "needed_number"])
def test_needed_when_there_is_nothing_then_it_is_missing(value: object, read: str) -> None:
    assert problem(lambda r: getattr(r, read)("x"), value) == "FILE, line 2: x: is missing"


def test_string_when_it_is_empty_then_it_is_a_value_of_its_own() -> None:
    assert row("").string("x") == row("").needed_string("x") == ""
    assert row(None).string("x") is None
    assert row("a\0\ud800").string("x") == "a\0\ud800"
    assert problem(lambda r: r.needed_string("x"), None) == "FILE, line 2: x: is missing"
    assert problem(lambda r: r.string("x"), 5) == "FILE, line 2: x: expected text, found 5"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([True, 1, "true", "TRUE", "True", " true ", "1", "yes", "YES"], 1),
        ([False, 0, "false", "FALSE", "False", "0", "no", "No"], 0),
        ([None, ""], None),
    ],
)
def test_flag_when_it_is_written_in_any_usual_way_then_it_is_read(
    words: list[object], expected: object
) -> None:
    assert [row(word).flag("x") for word in words] == [expected] * len(words)


@pytest.mark.parametrize("value", ["maybe", "2", 2, 1.0, "1.0", -1, "t", "null", "NA", " ", [], {"a": True}])
def test_flag_when_it_is_another_word_then_it_is_never_true(value: object) -> None:
    """Case JP-05: only what says true is true."""
    assert problem(lambda r: r.flag("x"), value).startswith("FILE, line 2: x: expected true or false, found ")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1, 1.0),
        (-0.5, -0.5),
        ("10", 10.0),
        ("9.0", 9.0),
        ("1e1", 10.0),
        (" -1.5 ", -1.5),
        (".5", 0.5),
        (10**300, 1e300),
        ("", None),
        (None, None),
    ],
)
def test_number_when_it_is_finite_then_it_is_a_float(value: object, expected: float | None) -> None:
    assert row(value).number("x") == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        ("NaN", "'NaN'"),
        ("Infinity", "'Infinity'"),
        ("1e999", "'1e999'"),
        (10**400, "1" + "0" * 56 + "..."),
        ("1_000", "'1_000'"),
        ("1,5", "'1,5'"),
        ("0x10", "'0x10'"),
        ("٣", "'٣'"),
        ("x" * 1000, "'" + "x" * 56 + "..."),
        (True, "True"),
        ([1.0], "an array"),
        (" ", "' '"),
    ],
)
def test_number_when_it_is_not_finite_or_no_number_then_it_is_refused(value: object, shown: str) -> None:
    expected = f"FILE, line 2: x: expected a finite number, found {shown}"
    assert problem(lambda r: r.number("x"), value) == expected


def test_number_when_it_is_out_of_range_then_the_range_is_named() -> None:
    found = problem(lambda r: r.number("x", low=0), "-0.1")
    assert found == "FILE, line 2: x: expected a number from 0 up, found '-0.1'"
    found = problem(lambda r: r.number("x", low=0, high=1), 1.5)
    assert found == "FILE, line 2: x: expected a number from 0 to 1, found 1.5"


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_number_when_a_float_was_written_as_text_then_it_is_the_same_float(value: float) -> None:
    assert row(repr(value)).number("x") == row(value).number("x") == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0, 0), ("12", 12), (" 7 ", 7), ("007", 7), (10**15, 10**15), (None, None), ("", None)],
)
def test_count_when_it_is_a_whole_number_then_it_is_read(value: object, expected: int | None) -> None:
    assert row(value).count("x") == expected


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (-1, "-1"),
        (1.0, "1.0"),
        ("1.5", "'1.5'"),
        (True, "True"),
        (10**15 + 1, "1000000000000001"),
        (2**64, "18446744073709551616"),
        ("9" * 5000, "'" + "9" * 56 + "..."),
        ("²", "'²'"),
    ],
)
def test_count_when_it_is_not_or_no_database_holds_it_then_it_is_refused(value: object, shown: str) -> None:
    expected = f"FILE, line 2: x: expected a whole number from 0 to 10^15, found {shown}"
    assert problem(lambda r: r.count("x"), value) == expected


def test_one_of_when_the_word_is_known_in_any_case_then_it_is_its_value() -> None:
    allowed = {"a": "A", "b": "B", "tie": "tie"}
    assert [row(word).one_of("x", allowed) for word in ("A", " b ", "TIE", "", None)] == [
        "A",
        "B",
        "tie",
        None,
        None,
    ]
    for value, shown in [("c", "'c'"), (1, "1"), (["a"], "an array")]:
        expected = f"FILE, line 2: x: expected one of a, b, tie, found {shown}"
        assert problem(lambda r: r.one_of("x", allowed), value) == expected


@pytest.mark.parametrize(
    "written", ["2026-03-05T09:15:00-08:00", "2026-03-05T17:15:00Z", "2026-03-06T02:15:00+09:00"]
)
def test_moment_when_it_has_a_zone_then_it_is_that_instant_in_utc(written: str) -> None:
    """Case ST-09: three ways to write one instant."""
    assert row(written).moment("x") == "2026-03-05T17:15:00.000Z"


@pytest.mark.parametrize(
    "written",
    [
        "2026-03-05T17:15:00",
        "2026-03-05",
        "yesterday",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_moment_when_its_instant_is_a_guess_or_out_of_time_then_it_is_refused(written: str) -> None:
    expected = f"FILE, line 2: x: expected an ISO 8601 time with a zone, found {written!r}"
    assert problem(lambda r: r.moment("x"), written) == expected


def test_inner_and_items_when_the_shape_is_another_then_it_is_named() -> None:
    assert row({"y": 1}).inner("x").place == "line 2, x"
    assert row([1]).items("x") == [1]
    assert problem(lambda r: r.inner("x"), "a") == "FILE, line 2: x: expected an object, found 'a'"
    assert problem(lambda r: r.items("x"), None) == "FILE, line 2: x: expected an array, found None"


def nested(depth: int) -> object:
    value: object = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("read", ["text", "string", "flag", "number", "count", "moment", "inner"])
def test_fields_when_the_value_is_nested_too_deep_to_be_shown_then_they_are_still_refused(read: str) -> None:
    assert problem(lambda r: getattr(r, read)("x"), nested(5000)).endswith("found an array")


def test_wrong_when_a_column_has_a_strange_name_then_the_error_stays_one_line() -> None:
    assert str(Row("FILE", "line 2", {}).wrong("a\nb", "is wrong")) == "FILE, line 2: 'a\\nb': is wrong"


def test_strange_columns_when_one_looks_like_a_slip_then_it_is_refused() -> None:
    known = ("pair_id", "reward_a", "reward_b")
    assert strange_columns(Row("FILE", "line 2", {"pair_id": 1, "note": 2}), known) == {"note"}
    with pytest.raises(BadFile) as caught:
        strange_columns(Row("FILE", "line 2", {"rewrad_a": 1}), known)
    assert str(caught.value) == "FILE, line 2: rewrad_a: is not a known column; did you mean reward_a?"


def test_place_when_an_error_is_raised_then_it_carries_file_place_and_problem() -> None:
    error = Row(str(Path("a", "b.csv")), "line 9", {}).wrong("x", "is wrong")
    assert (error.file, error.place, error.problem) == (str(Path("a", "b.csv")), "line 9", "x: is wrong")
