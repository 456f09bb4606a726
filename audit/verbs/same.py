"""When two values are the same: as rows of SQL, and as JSON."""

from collections.abc import Mapping, Sequence
from typing import Any

from audit.words.names import TOLERANCE


def same_rows(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]], *, any_order: bool) -> bool:
    """Are these the rows that were wanted? `any_order`: as a multiset."""
    if len(found) != len(wanted):
        return False
    if not any_order:
        return all(map(_same_row, found, wanted))
    left = list(found)
    for row in wanted:
        place = next((i for i, other in enumerate(left) if _same_row(other, row)), None)
        if place is None:
            return False
        del left[place]
    return True


def _same_row(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(map(_same_value, one, other))


def _same_value(one: Any, other: Any) -> bool:
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other or abs(one - other) <= TOLERANCE
    return type(one) is type(other) and bool(one == other)


def has_arguments(given: Any, wanted: Mapping[str, Any]) -> bool:
    """Is every wanted argument given with the same JSON value? Further ones do not matter."""
    return isinstance(given, Mapping) and all(
        name in given and same_json(given[name], value) for name, value in wanted.items()
    )


def same_json(one: Any, other: Any) -> bool:
    """Are these the same JSON value? 17 is 17.0; 17, "17" and true are three values."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, float | int) and isinstance(other, float | int):
        return one == other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(same_json, one, other))
    return type(one) is type(other) and bool(one == other)
