"""Reading the judge's answer to the pointwise question: how satisfied can the customer be, 0 to 1."""

import math
from typing import Any, NamedTuple

from audit.verbs.verdict_find import find_objects, json_safe
from audit.verbs.verdict_text import plain
from audit.words.text import as_json


class Satisfaction(NamedTuple):
    """`value` is NULL where none was given on the scale; `status` is a parse_status of judge_logs."""

    value: float | None
    status: str
    parsed_json: str | None


def read_satisfaction(raw: str | None, is_cut: bool = False) -> Satisfaction:
    """The number under `satisfaction` in the last JSON object that has one; never guessed, never rescaled."""
    reply = raw or ""
    found = [item for item in find_objects(plain(reply), reply)[0] if "satisfaction" in item.fields]
    if not found:
        return Satisfaction(None, "truncated" if is_cut else "unreadable", None)
    value = _on_scale(found[-1].fields["satisfaction"])
    status = (
        "truncated" if is_cut else "unreadable" if value is None else "ok" if found[-1].strict else "repaired"
    )
    return Satisfaction(value, status, as_json(json_safe(found[-1].fields)))


def _on_scale(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None
