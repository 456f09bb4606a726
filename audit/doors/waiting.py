"""The door for reads of a run under way: what of each stage is still to be done.

The database is the checkpoint.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, String, bindparam, text

from audit.doors.failed import ASKED_IN_VAIN, CUT_VALUES, LAST_FAILED, NOT_CUT
from audit.words.names import CUT
from audit.words.text import from_stored

# Faults that are not the agent's: what such a session holds says nothing of it.
_BROKEN = "('gateway', 'simulator')"
_UNJUDGED = f"""
    audit_pairs.run_id = :run_id
    and (
        audit_pairs.judged_at is null
        or (:retry = 1 and exists (
            select 1
            from judge_logs as failed
            where failed.pair_id = audit_pairs.pair_id
                and {LAST_FAILED}
        ))
    )
    and coalesce(a.fault, '') not in ('gateway', 'simulator')
    and coalesce(b.fault, '') not in ('gateway', 'simulator')
"""  # noqa: S608 - our own conditions
# A satisfaction question is answered for good: by a reply that can be read, or one that again cannot.
_ANSWERED = """
    (
        parse_status <> 'error'
        and (
            attempt > 1
            or not (parse_status = 'unreadable' or (parse_status = 'truncated' and parsed_json is null))
        )
    )
"""
_UNVERIFIED = f"""
    sessions.run_id = :run_id
    and (
        sessions.verified_at is null
        or (:retry = 1 and (sessions.fault = 'verifier' or {ASKED_IN_VAIN}))
    )
    and coalesce(sessions.fault, '') not in ('gateway', 'simulator')
"""
_SIDES = (
    "from audit_pairs inner join sessions as a on a.session_id = audit_pairs.session_a "
    "inner join sessions as b on b.session_id = audit_pairs.session_b"
)
_GATES: Any = bindparam("gates", expanding=True, type_=String())
_BY_TASK = "audit_pairs.task_id, audit_pairs.trial, audit_pairs.pair_id"


class Asked(NamedTuple):
    """One call that asked a judge of a pair in one order; with it were `attempts`.

    `unreadable`: so many of them in a row, this one the last, could not be read.
    """

    attempts: int
    unreadable: int
    log_id: int
    profile: str
    parse_status: str
    raw_output: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None

    @property
    def is_error(self) -> bool:
        return self.parse_status == "error"


def session_faults(connection: Connection, run_id: str) -> dict[str, str | None]:
    """session_id -> fault of every stored session of the run; `tool_error` where a tool broke its world."""
    query = """
        select session_id, case when end_reason = 'tool_error' then end_reason else fault end
        from sessions
        where run_id = :run_id
    """
    found = connection.execute(text(query), {"run_id": run_id})
    return {row[0]: row[1] for row in found}


def cut_sessions(connection: Connection, run_id: str) -> dict[str, dict[str, Any]]:
    """session_id -> what is stored of every session that the budget cut."""
    query = """
        select session_id, transcript_json, end_reason, prompt_tokens, completion_tokens, total_tokens
        from sessions
        where run_id = :run_id and fault = 'gateway' and substr(end_reason, 1, :size) = :reason
    """
    found = _rows(connection, query, run_id=run_id, size=len(CUT), reason=CUT)
    return {row["session_id"]: row for row in found}


def agents(connection: Connection, run_id: str) -> list[str]:
    """The agents of the run's sessions."""
    query = "select distinct agent from sessions where run_id = :run_id order by agent"
    return list(connection.execute(text(query), {"run_id": run_id}).scalars())


def sessions_to_pair(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    """What pairing needs of each session of the run; those of one task and trial one after the other."""
    return _rows(
        connection,
        "select session_id, task_id, task_fingerprint, category, agent, trial from sessions "
        "where run_id = :run_id order by task_id, task_fingerprint, trial, session_id",
        run_id=run_id,
    )


def unjudged(connection: Connection, run_id: str, retry: bool, gates: Sequence[str]) -> list[str]:
    """pair_id of every pair that waits for one of these gates; with `retry`, those whose last call failed.

    Task by task, so that pairs that share sessions come close together.
    """
    query = (
        f"select audit_pairs.pair_id {_SIDES} where {_UNJUDGED} and audit_pairs.gate in :gates "
        f"order by {_BY_TASK}"
    )
    values = {"run_id": run_id, "retry": int(retry), "gates": list(gates)}
    return list(connection.execute(text(query).bindparams(_GATES), values).scalars())


def pairs_to_sample(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    """Every pair of the run's sessions, with what a sample is drawn by."""
    query = (
        "select pair_id, category, agent_a, agent_b, session_a, session_b from audit_pairs "
        "where run_id = :run_id and session_a is not null and session_b is not null"
    )
    return _rows(connection, query, run_id=run_id)


def pairs_to_judge(connection: Connection, pair_ids: Sequence[str]) -> list[dict[str, Any]]:
    """These pairs with both transcripts, in the order of `unjudged`.

    `calls` holds what they were asked before, `asked` the last of it by (profile, order).
    """
    found = _rows_of(
        connection,
        "select audit_pairs.pair_id, audit_pairs.gate, audit_pairs.trial, audit_pairs.judged_at, "
        "a.transcript_json as transcript_a, b.transcript_json as transcript_b, a.source_json as source_json "
        f"{_SIDES} where audit_pairs.pair_id in :ids order by {_BY_TASK}",
        pair_ids,
    )
    for pair in found:
        pair["asked"], pair["calls"] = {}, []
    _add_calls(connection, {pair["pair_id"]: pair for pair in found})
    return found


def paired_sessions(
    connection: Connection, run_id: str, gate: str, also_judged: bool
) -> dict[str, tuple[str, str]]:
    """pair_id -> its sessions, of each pair of the gate that waits for its judge, or of every pair."""
    query = (
        f"select pair_id, session_a, session_b {_SIDES} where audit_pairs.run_id = :run_id "
        "and audit_pairs.gate = :gate and (audit_pairs.judged_at is null or :also_judged = 1) "
        f"and coalesce(a.fault, '') not in {_BROKEN} and coalesce(b.fault, '') not in {_BROKEN} "
        f"order by {_BY_TASK}"
    )
    values = {"gate": gate, "run_id": run_id, "also_judged": int(also_judged)}
    return {row[0]: (row[1], row[2]) for row in connection.execute(text(query), values)}


def transcripts(connection: Connection, run_id: str) -> Iterator[dict[str, Any]]:
    """session_id, transcript_json and source_json of every session of the run, streamed."""
    query = "select session_id, transcript_json, source_json from sessions where run_id = :run_id"
    streamed = connection.execution_options(yield_per=200).execute(text(query), {"run_id": run_id})
    for row in streamed.mappings():
        yield dict(row)


def unasked_satisfaction(connection: Connection, run_id: str, retry: bool, since: int = 0) -> list[str]:
    """session_id where satisfaction is to be asked; with `retry`, those too where every call failed.

    Also where the one answer that came cannot be read: it is asked for once more. Calls up to the log_id
    `since` were another judge's.
    """
    query = (
        "select session_id from sessions "  # noqa: S608 - our own conditions
        f"where run_id = :run_id and satisfaction is null and coalesce(fault, '') not in {_BROKEN} "
        "and session_id not in (select session_id from judge_logs where run_id = :run_id "
        "and role = 'satisfaction' and session_id is not null and log_id > :since "
        f"and ((:retry = 0 and parse_status = 'error') or {_ANSWERED})) order by session_id"
    )
    values = {"run_id": run_id, "retry": int(retry), "since": since}
    return list(connection.execute(text(query), values).scalars())


def satisfaction_calls(connection: Connection, session_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """session_id -> (log_id, attempt) of the last time it was asked; attempt is 0 where that call failed."""
    found = _rows_of(
        connection,
        "select session_id, log_id, attempt, parse_status from judge_logs "
        "where role = 'satisfaction' and session_id in :ids order by log_id",
        session_ids,
    )
    return {
        call["session_id"]: (call["log_id"], 0 if call["parse_status"] == "error" else call["attempt"])
        for call in found
    }


def sessions_to_ask(connection: Connection, session_ids: Sequence[str]) -> list[dict[str, Any]]:
    """These sessions with their transcripts, by session_id."""
    return _rows_of(
        connection,
        "select session_id, transcript_json, source_json from sessions "
        "where session_id in :ids order by session_id",
        session_ids,
    )


def unverified(
    connection: Connection, run_id: str, after: str, size: int, retry: bool
) -> list[dict[str, Any]]:
    """The next sessions without a finding, with what they left behind and what was found before.

    With `retry`, those too of which a model was asked in vain.
    """
    return _rows(
        connection,
        "select session_id, task_id, task_fingerprint, transcript_json, final_state_json, source_json, "  # noqa: S608
        f"checks_json, fault from sessions where {_UNVERIFIED} "
        "and session_id > :after order by session_id limit :size",
        run_id=run_id,
        retry=int(retry),
        after=after,
        size=size,
    )


def recorded_sessions(
    connection: Connection, run_id: str, task_ids: Sequence[str], size: int
) -> Iterator[dict[str, Any]]:
    """The sessions of these tasks with their transcripts, read as they are needed."""
    query = text(
        "select session_id, task_id, agent, transcript_json, source_json, checks_json, reward, success, "
        "label_source, fault, verified_at from sessions where run_id = :run_id and task_id in :ids "
        "and transcript_json is not null and session_id > :after order by session_id limit :size"
    ).bindparams(bindparam("ids", expanding=True))
    after = ""
    while True:
        values = {"run_id": run_id, "ids": list(task_ids), "after": after, "size": size}
        found = [dict(row) for row in connection.execute(query, values).mappings()]
        if not found:
            return
        yield from found
        after = found[-1]["session_id"]


def verdicts(connection: Connection, run_id: str) -> Iterator[dict[str, Any]]:
    """agent, reward, success and source_json of every session of the run."""
    query = "select agent, reward, success, source_json from sessions where run_id = :run_id"
    for row in connection.execute(text(query), {"run_id": run_id}).mappings():
        yield dict(row)


def count_unverified(connection: Connection, run_id: str, retry: bool) -> int:
    """How many sessions wait for a finding; with `retry`, those too of which a model was asked in vain."""
    query = f"select count(*) from sessions where {_UNVERIFIED}"  # noqa: S608 - our own conditions
    return int(connection.execute(text(query), {"run_id": run_id, "retry": int(retry)}).scalar_one())


def judged_by_gate(connection: Connection, run_id: str) -> dict[str, tuple[int, int]]:
    """gate -> its pairs, and how many of them are judged."""
    query = "select gate, count(*), count(judged_at) from audit_pairs where run_id = :run_id group by gate"
    return {row[0]: (row[1], row[2]) for row in connection.execute(text(query), {"run_id": run_id})}


def newest_run(
    connection: Connection, config_hash: str, prompt_set_hash: str | None, name: str | None
) -> tuple[str, str] | None:
    """(run_id, status) of the newest live run of this config and these prompts; `name` where it matters."""
    found = connection.execute(
        text(
            "select run_id, status from audit_runs where kind = 'live' and config_hash = :config_hash "
            "and prompt_set_hash = :prompt_set_hash and name = coalesce(:name, name) "
            "order by created_at desc, run_id desc limit 1"
        ),
        {"config_hash": config_hash, "prompt_set_hash": prompt_set_hash, "name": name},
    ).first()
    return None if found is None else (str(found[0]), str(found[1]))


def count_held(connection: Connection, run_id: str) -> int:
    """How many sessions of the run are stored that no gateway broke."""
    query = "select count(*) from sessions where run_id = :run_id and coalesce(fault, '') <> 'gateway'"
    return int(connection.execute(text(query), {"run_id": run_id}).scalar_one())


def count_ended(connection: Connection, run_id: str) -> int:
    """How many sessions of the run are stored that the budget did not cut."""
    query = f"select count(*) from sessions where run_id = :run_id and {NOT_CUT}"  # noqa: S608 - our own text
    return int(connection.execute(text(query), {"run_id": run_id} | CUT_VALUES).scalar_one())


def _add_calls(connection: Connection, pairs: dict[str, dict[str, Any]]) -> None:
    calls = _rows_of(
        connection,
        "select pair_id, log_id, profile, presented_order, attempt, parse_status, preference, raw_output, "
        "finish_reason, prompt_tokens, completion_tokens, total_tokens from judge_logs "
        "where role = 'judge' and pair_id in :ids order by log_id",
        list(pairs),
    )
    for call in calls:
        pair, place = pairs[call["pair_id"]], (call["profile"], call["presented_order"])
        before = pair["asked"].get(place)
        in_vain = call["parse_status"] != "error" and call["preference"] is None
        asked = Asked(
            attempts=max(call["attempt"], before.attempts if before else 0),
            unreadable=(before.unreadable if before else 0) + 1 if in_vain else 0,
            log_id=call["log_id"],
            profile=call["profile"],
            parse_status=call["parse_status"],
            raw_output=from_stored(call["raw_output"] or ""),
            finish_reason=call["finish_reason"],
            prompt_tokens=call["prompt_tokens"],
            completion_tokens=call["completion_tokens"],
            total_tokens=call["total_tokens"],
        )
        pair["asked"][place] = asked
        pair["calls"].append(asked)


def _rows(connection: Connection, query: str, **values: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(text(query), values).mappings()]


def _rows_of(connection: Connection, query: str, ids: Sequence[str]) -> list[dict[str, Any]]:
    found = connection.execute(text(query).bindparams(bindparam("ids", expanding=True)), {"ids": list(ids)})
    return [dict(row) for row in found.mappings()]
