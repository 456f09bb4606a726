"""Troubles: what went wrong in a run, in sentences that say how often and why."""

import json

from sqlalchemy import Engine

from audit.doors import troubles
from audit.doors.db import reading

_LONGEST = 200


def troubles_of(engine: Engine, run_id: str) -> list[str]:
    """The most frequent causes of failed calls and of sessions of no use; empty where all is well."""
    with reading(engine) as connection:
        calls = troubles.failed_calls(connection, run_id)
        sessions = troubles.broken_sessions(connection, run_id)
        check = troubles.broken_check(connection, run_id)
    said = [f"{one.calls:,} failed calls of {one.profile}: {_cut(one.error)}" for one in calls]
    if calls and (others := calls[0].of - sum(one.calls for one in calls)):
        said.append(f"{others:,} failed calls more, of other causes")
    for one in sessions:
        is_of_checks = one.fault == "verifier" and one.end_reason != "tool_error"
        why = _check_that_broke(check) if is_of_checks else one.error
        said.append(
            f"{one.sessions:,} of {one.of:,} sessions are of no use, fault {one.fault}"
            + (f", {one.end_reason}" if one.end_reason and not is_of_checks else "")
            + (f": {_cut(why)}" if why else "")
        )
    return said


def not_found(engine: Engine, run_id: str) -> list[str]:
    """The profiles whose model or address the gateway does not have, where half of all failures say so."""
    with reading(engine) as connection:
        calls = troubles.failed_calls(connection, run_id)
    lost = [one for one in calls if one.error.startswith("HTTP 404")]
    is_cause = bool(lost) and 2 * sum(one.calls for one in lost) >= lost[0].of
    return sorted({one.profile for one in lost}) if is_cause else []


def _check_that_broke(checks_json: str | None) -> str | None:
    for check in json.loads(checks_json or "[]"):
        if check["passed"] is None and check["kind"] != "llm":
            return f"check {check['name']!r} {check['evidence']}"
    return None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
