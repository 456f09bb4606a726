"""The door for reads of what went wrong in a run: failed calls by cause, sessions and checks that broke."""

from typing import NamedTuple

from sqlalchemy import Connection, text

_CALLS = """
    select profile, error, count(*) as calls
    from judge_logs
    where run_id = :run_id and parse_status = 'error'
    group by profile, error
    order by calls desc, profile, error
    limit :most
"""
_SESSIONS = """
    select
        fault,
        end_reason,
        max(error),
        count(*) as broken,
        (select count(*) from sessions where run_id = :run_id)
    from sessions
    where run_id = :run_id and fault is not null
    group by fault, end_reason
    order by broken desc, fault, end_reason
    limit :most
"""
_CHECKS = """
    select checks_json
    from sessions
    where run_id = :run_id and fault = 'verifier' and checks_json is not null and checks_json <> '[]'
    order by session_id
    limit 1
"""


class FailedCalls(NamedTuple):
    """So many calls of a profile failed with one and the same error."""

    profile: str
    error: str
    calls: int


class BrokenSessions(NamedTuple):
    """So many of all sessions have one fault; `error` is what one of them says."""

    fault: str
    end_reason: str | None
    error: str | None
    sessions: int
    of: int


def failed_calls(connection: Connection, run_id: str, most: int = 3) -> list[FailedCalls]:
    """The most frequent errors of the run's calls, those that were mended later too."""
    found = connection.execute(text(_CALLS), {"run_id": run_id, "most": most})
    return [FailedCalls(*row) for row in found]


def broken_sessions(connection: Connection, run_id: str, most: int = 3) -> list[BrokenSessions]:
    """The faults of the run's sessions, the most frequent first."""
    found = connection.execute(text(_SESSIONS), {"run_id": run_id, "most": most})
    return [BrokenSessions(*row) for row in found]


def broken_check(connection: Connection, run_id: str) -> str | None:
    """The checks of one session that the verifier could not judge, as JSON."""
    found: str | None = connection.execute(text(_CHECKS), {"run_id": run_id}).scalar()
    return found
