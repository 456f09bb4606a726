"""The door for reads of what failed for good: calls that none came after, and sessions of no use."""

from collections.abc import Mapping

from sqlalchemy import Connection, text

from audit.words.names import CUT

# The judge's call failed, and this judge was not asked again in this order.
LAST_FAILED = """
    failed.role = 'judge'
    and failed.parse_status = 'error'
    and not exists (
        select 1
        from judge_logs as later
        where later.pair_id = failed.pair_id
            and later.presented_order = failed.presented_order
            and later.profile = failed.profile
            and later.log_id > failed.log_id
    )
"""
# A check was put to a model that did not answer.
ASKED_IN_VAIN = """
    sessions.session_id in (
        select session_id
        from judge_logs
        where run_id = :run_id and role = 'verifier' and parse_status = 'error'
    )
    and sessions.checks_json like '%"passed"\\:null%'
"""

# The budget did not cut the session, which would be gone on with; with the values of `CUT_VALUES`.
NOT_CUT = "substr(coalesce(end_reason, ''), 1, :size) <> :cut"
CUT_VALUES = {"size": len(CUT), "cut": CUT}


def failed_calls(connection: Connection, run_id: str) -> tuple[int, int]:
    """How many calls the run has made, and how many of them failed for good: none came after them."""
    found = connection.execute(
        text(
            f"""
            select
                (select count(*) from judge_logs where run_id = :run_id),
                (
                    select count(*)
                    from judge_logs as failed
                    where failed.run_id = :run_id and {LAST_FAILED}
                ),
                (
                    select count(*)
                    from sessions
                    where run_id = :run_id and fault = 'gateway' and end_reason = 'gateway_error'
                ),
                (
                    select count(distinct judge_logs.session_id)
                    from judge_logs
                    inner join sessions on sessions.session_id = judge_logs.session_id
                    where judge_logs.run_id = :run_id
                        and judge_logs.role = 'satisfaction'
                        and judge_logs.parse_status = 'error'
                        and sessions.satisfaction is null
                ),
                (select count(*) from sessions where run_id = :run_id and {ASKED_IN_VAIN})
            """  # noqa: S608 - our own conditions
        ),
        {"run_id": run_id},
    ).one()
    calls, *failed = map(int, found)
    return calls, sum(failed)


def failed_calls_of(connection: Connection, run_id: str, since: Mapping[str, int]) -> tuple[int, int]:
    """As `failed_calls`, of recorded sessions: the calls of these gates alone, each from its log_id on.

    `since`: gate -> the last log_id before it, the gate first that asks of satisfaction. What other judges
    were asked, or the same one under an address that never answered, says nothing of these.
    """
    of_pairs = text(
        f"""
        select count(*), count(*) filter (where {LAST_FAILED})
        from judge_logs as failed
        inner join audit_pairs on audit_pairs.pair_id = failed.pair_id
        where failed.run_id = :run_id and audit_pairs.gate = :gate and failed.log_id > :since
        """  # noqa: S608 - our own conditions
    )
    of_sessions = text(
        """
        select
            count(*),
            count(distinct case
                when judge_logs.parse_status = 'error' and sessions.satisfaction is null
                    then sessions.session_id
            end)
        from judge_logs
        inner join sessions on sessions.session_id = judge_logs.session_id
        where judge_logs.run_id = :run_id and judge_logs.role = 'satisfaction' and judge_logs.log_id > :since
        """
    )
    found = [
        connection.execute(of_pairs, {"run_id": run_id, "gate": gate, "since": after}).one()
        for gate, after in since.items()
    ]
    first = next(iter(since.values()), 0)
    found.append(connection.execute(of_sessions, {"run_id": run_id, "since": first}).one())
    return sum(int(calls) for calls, _ in found), sum(int(failed) for _, failed in found)


def broken_sessions(connection: Connection, run_id: str) -> tuple[int, int]:
    """How many sessions the run holds, and how many of them the gateway, the simulated user or a check broke.

    Those that the budget cut are not broken, they are to be gone on with.
    """
    found = connection.execute(
        text(
            "select count(*), count(*) filter (where fault in ('gateway', 'simulator', 'verifier') "  # noqa: S608
            f"and {NOT_CUT}) from sessions where run_id = :run_id"
        ),
        {"run_id": run_id} | CUT_VALUES,
    ).one()
    return int(found[0]), int(found[1])
