"""Reading answers about one session: how satisfied can its customer be, 0 to 1; is one criterion met."""

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


class Criterion(NamedTuple):
    """`met` is NULL where the answer does not say; `evidence` is the quote it gave."""

    met: bool | None
    evidence: str
    status: str
    parsed_json: str | None


def read_satisfaction(raw: str | None, is_cut: bool = False) -> Satisfaction:
    """The number under `satisfaction` in the last JSON object that has one; never guessed, never rescaled."""
    fields, status = _fields(raw, "satisfaction", is_cut)
    value = _on_scale(fields.get("satisfaction"))
    return Satisfaction(value, _status(status, value), _parsed(fields))


def read_criterion(raw: str | None, is_cut: bool = False) -> Criterion:
    """True or false under `met` in the last JSON object that has one; no other word stands for it."""
    fields, status = _fields(raw, "met", is_cut)
    met = fields.get("met")
    evidence = fields.get("evidence")
    return Criterion(
        met if isinstance(met, bool) else None,
        evidence if isinstance(evidence, str) else "",
        _status(status, met if isinstance(met, bool) else None),
        _parsed(fields),
    )


def _fields(raw: str | None, wanted: str, is_cut: bool) -> tuple[dict[str, Any], str]:
    """The last JSON object that has the wanted key, and the parse_status if its value can be read."""
    reply = raw or ""
    found = [item for item in find_objects(plain(reply), reply)[0] if wanted in item.fields]
    if not found:
        return {}, "truncated" if is_cut else "unreadable"
    if is_cut and reply[: found[-1].start].strip("`json \t\r\n"):
        return {}, "truncated"  # among the words of a reply without its end it may be what the judge quotes
    return found[-1].fields, "truncated" if is_cut else "ok" if found[-1].strict else "repaired"


def _status(status: str, value: object) -> str:
    return "unreadable" if value is None and status != "truncated" else status


def _parsed(fields: dict[str, Any]) -> str | None:
    return as_json(json_safe(fields)) if fields else None


def _on_scale(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) and 0 <= value <= 1 else None
