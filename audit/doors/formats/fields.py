"""One field of a foreign row as a typed value; nothing is guessed, and a wrong one is named.

A `Row` knows its file and place, so that every error says file, line, field, value and what would be right.
"""

import difflib
import math
import re
from collections.abc import Collection, Iterator
from typing import Any

from audit.words import clock
from audit.words.errors import BadFile

_TRUE = frozenset({"true", "1", "yes"})
_FALSE = frozenset({"false", "0", "no"})
# Far above every count of tokens or trials, and twice as much still fits the databases' integers.
_LARGEST = 10**15
_DIGITS = 1000
_SURROGATE = re.compile("[\ud800-\udfff]")


class Row:
    """The fields of one row of one file; an absent field, null and an empty text are the same: unknown."""

    __slots__ = ("fields", "file", "place")

    def __init__(self, file: str, place: str, fields: dict[str, Any]) -> None:
        self.file = file
        self.place = place
        self.fields = fields

    def wrong(self, field: str, problem: str) -> BadFile:
        """The error to raise for `field`, which is a column's name and as such may be anything."""
        name = field if field.isprintable() else repr(field)
        return BadFile(self.file, self.place, f"{name}: {problem}")

    def has(self, field: str) -> bool:
        """Is there anything in the field?"""
        return self.fields.get(field) not in (None, "")

    def text(self, field: str) -> str | None:
        """Text kept as it is; a JSON integer becomes its digits. A float or an object is refused."""
        value = self.fields.get(field)
        if value.__class__ is str:
            if "\x00" in value or (not value.isascii() and _SURROGATE.search(value)):
                raise self.wrong(
                    field, f"expected text without NUL or lone surrogates, found {_shown(value)}"
                )
            return value or None
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        raise self.wrong(field, f"expected text, found {_shown(value)}")

    def needed_text(self, field: str) -> str:
        """As `text`, and refused where there is none."""
        value = self.text(field)
        if value is None:
            raise self.wrong(field, "is missing")
        return value

    def string(self, field: str) -> str | None:
        """A reply or a response: text in which the empty one is a value of its own; NULL where absent."""
        value = self.fields.get(field)
        if value is None or isinstance(value, str):
            return value
        raise self.wrong(field, f"expected text, found {_shown(value)}")

    def needed_string(self, field: str) -> str:
        """As `string`, and refused where there is none."""
        value = self.string(field)
        if value is None:
            raise self.wrong(field, "is missing")
        return value

    def flag(self, field: str) -> int | None:
        """0/1/NULL from true/false, 1/0, yes/no in any case, as JSON or as text."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        if value is True or value is False:
            return int(value)
        word = str(value).strip().lower() if isinstance(value, str | int) else ""
        if word in _TRUE:
            return 1
        if word in _FALSE:
            return 0
        raise self.wrong(field, f"expected true or false, found {_shown(value)}")

    def number(self, field: str, *, low: float = -math.inf, high: float = math.inf) -> float | None:
        """A finite number from `low` to `high`, as JSON number or as text."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        if value.__class__ is float or value.__class__ is int:
            found = _float(value)
        elif isinstance(value, str):
            found = _float(value.strip()) if _is_number(value) else math.nan
        else:
            found = math.nan
        if not math.isfinite(found):
            raise self.wrong(field, f"expected a finite number, found {_shown(value)}")
        if not low <= found <= high:
            raise self.wrong(field, f"expected a number {_range(low, high)}, found {_shown(value)}")
        return found

    def needed_number(self, field: str) -> float:
        """As `number`, and refused where there is none."""
        value = self.number(field)
        if value is None:
            raise self.wrong(field, "is missing")
        return value

    def count(self, field: str) -> int | None:
        """A whole number from 0 up that a database can hold."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        count = value
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            count = int(value) if len(value) <= _DIGITS else _LARGEST + 1
        if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= _LARGEST:
            raise self.wrong(field, f"expected a whole number from 0 to 10^15, found {_shown(value)}")
        return count

    def one_of(self, field: str, allowed: dict[str, str]) -> str | None:
        """A closed word: `allowed` maps the text in the file, in lower case, to the value."""
        value = self.fields.get(field)
        if value is None or value == "":
            return None
        found = allowed.get(str(value).strip().lower()) if isinstance(value, str | int) else None
        if found is None:
            raise self.wrong(field, f"expected one of {', '.join(allowed)}, found {_shown(value)}")
        return found

    def moment(self, field: str) -> str | None:
        """An ISO 8601 time with its zone, as UTC."""
        value = self.text(field)
        if value is None:
            return None
        try:
            return clock.from_text(value)
        except (ValueError, OverflowError) as error:
            raise self.wrong(
                field, f"expected an ISO 8601 time with a zone, found {_shown(value)}"
            ) from error

    def inner(self, field: str) -> "Row":
        """The object in `field`, its place named with it."""
        value = self.fields.get(field)
        if not isinstance(value, dict):
            raise self.wrong(field, f"expected an object, found {_shown(value)}")
        return Row(self.file, self._under(field), value)

    def _under(self, field: str) -> str:
        return f"{self.place}, {field}" if self.place else field

    def maybe(self, field: str) -> "Row":
        """As `inner`, without fields where there is null or nothing."""
        return Row(self.file, self.place, {}) if self.fields.get(field) is None else self.inner(field)

    def each(self, field: str, *, needed: bool = True) -> Iterator["Row"]:
        """The objects of the array in `field`; none where it is not `needed`, and null or absent."""
        if not needed and self.fields.get(field) is None:
            return
        for index, item in enumerate(self.items(field)):
            place = self._under(f"{field}[{index}]")
            if not isinstance(item, dict):
                raise BadFile(self.file, place, f"expected an object, found {_shown(item)}")
            yield Row(self.file, place, item)

    def items(self, field: str) -> list[Any]:
        """The array in `field`."""
        value = self.fields.get(field)
        if not isinstance(value, list):
            raise self.wrong(field, f"expected an array, found {_shown(value)}")
        return value


def _float(value: float | str) -> float:
    try:
        return float(value)
    except (OverflowError, ValueError):
        return math.nan


def _is_number(text: str) -> bool:
    # float() also takes "nan", "infinity" and "1_000"; none of them is a number in a file.
    return text.isascii() and "_" not in text


def _range(low: float, high: float) -> str:
    if high == math.inf:
        return f"from {low:g} up"
    return f"from {low:g} to {high:g}"


def _shown(value: object) -> str:
    # What is nested may be too deep to be shown, what is long too long.
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    shown = repr(value[:60] if isinstance(value, str) else value)
    return shown if len(shown) <= 60 else shown[:57] + "..."


def strange_columns(row: Row, known: Collection[str]) -> set[str]:
    """The columns of `row` that are not ours: passed over, but refused where one looks like a slip.

    A misspelt optional column would otherwise be lost without a word.
    """
    strange = row.fields.keys() - set(known)
    for column in sorted(strange):
        near = nearest(column, known)
        if near:
            raise row.wrong(column, f"is not a known column; did you mean {' or '.join(near)}?")
    return strange


def nearest(column: str, known: Collection[str]) -> list[str]:
    """The known columns that are as near as any, where one is near: `raw_a` may be either of two."""
    column = re.sub(r"[\W_]+", "_", column.strip().lower())
    near = difflib.get_close_matches(column, known, n=3, cutoff=0.85)
    closeness = [difflib.SequenceMatcher(None, column, name).ratio() for name in near]
    return sorted(name for name, ratio in zip(near, closeness, strict=True) if ratio == max(closeness))
