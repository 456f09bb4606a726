"""The door for reads of what went wrong in a run: failed calls by cause, sessions and checks that broke."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from audit.doors.failed import CUT_VALUES, NOT_CUT

# Failed for good: no later call made up for it.
_CALLS = """
    select failed.profile, failed.error, count(*) as calls, sum(count(*)) over () as of_all
    from judge_logs as failed
    left join sessions on sessions.session_id = failed.session_id
    where failed.run_id = :run_id
        and failed.parse_status = 'error'
        and case
            when failed.pair_id is not null then not exists (
                select 1
                from judge_logs as later
                where later.pair_id = failed.pair_id
                    and later.presented_order = failed.presented_order
                    and later.profile = failed.profile
                    and later.parse_status <> 'error'
                    and later.log_id > failed.log_id
            )
            when failed.role = 'satisfaction' then sessions.satisfaction is null
            when failed.role = 'verifier'
                then sessions.fault = 'verifier' or sessions.checks_json like '%"passed"\\:null%'
            else sessions.session_id is null or sessions.fault = 'gateway'
        end
    group by failed.profile, failed.error
    order by calls desc, failed.profile, failed.error
    limit :most
"""
_SESSIONS = f"""
    select
        fault,
        end_reason,
        max(error),
        count(*) as broken,
        (select count(*) from sessions where run_id = :run_id)
    from sessions
    where run_id = :run_id and fault is not null and {NOT_CUT}
    group by fault, end_reason
    order by broken desc, fault, end_reason
    limit :most
"""  # noqa: S608 - our own condition
_CHECKS = """
    select checks_json
    from sessions
    where run_id = :run_id and fault = 'verifier' and checks_json is not null and checks_json <> '[]'
    order by session_id
    limit 1
"""


class FailedCalls(NamedTuple):
    """So many calls of a profile failed with one and the same error, of so many that failed."""

    profile: str
    error: str
    calls: int
    of: int


class BrokenSessions(NamedTuple):
    """So many of all sessions have one fault; `error` is what one of them says."""

    fault: str
    end_reason: str | None
    error: str | None
    sessions: int
    of: int


def failed_calls(connection: Connection, run_id: str, most: int = 3) -> list[FailedCalls]:
    """The most frequent errors of the run's calls that nothing made up for."""
    found = connection.execute(text(_CALLS), {"run_id": run_id, "most": most})
    return [FailedCalls(row[0], row[1], row[2], int(row[3])) for row in found]


def broken_sessions(connection: Connection, run_id: str, most: int = 3) -> list[BrokenSessions]:
    """The faults of the run's sessions, the most frequent first; one that is gone on with has none."""
    found = connection.execute(text(_SESSIONS), {"run_id": run_id, "most": most} | CUT_VALUES)
    return [BrokenSessions(*row) for row in found]


def broken_check(connection: Connection, run_id: str) -> str | None:
    """The checks of one session that the verifier could not judge, as JSON."""
    found: str | None = connection.execute(text(_CHECKS), {"run_id": run_id}).scalar()
    return found
