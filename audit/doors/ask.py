"""The door for reads: runs, pairs and views, as plain values."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, text

from audit.doors.ask_review import BEST_SUCCESS, SAID_SUCCESS
from audit.words.errors import BadRequest
from audit.words.records import Pair, Run, Session
from audit.words.text import from_stored

_PAIRS = ", ".join(Pair._fields)


def run_named(connection: Connection, wanted: str) -> Run:
    """The run with this id, the newest one for `latest`. Raises BadRequest where there is none."""
    where = "" if wanted == "latest" else "where run_id = :wanted"
    row = connection.execute(
        text(
            f"select {', '.join(Run._fields)} from audit_runs {where} "  # noqa: S608 - our own names
            "order by created_at desc, run_id desc limit 1"
        ),
        {"wanted": wanted} if where else {},
    ).first()
    if row is None and wanted == "latest":
        raise BadRequest("there is no run yet: make one with `reward-audit import`")
    if row is None:
        raise BadRequest(f"there is no run {wanted!r}: `reward-audit runs` lists them")
    return Run(*row)


def prompts(connection: Connection) -> list[dict[str, Any]]:
    """Every prompt that was sent, with how many calls and runs it stands in, when first and when last."""
    query = """
        select
            prompt_versions.prompt_hash,
            prompt_versions.role,
            prompt_versions.name,
            prompt_versions.version,
            sum(prompt_versions.calls) as calls,
            count(distinct prompt_versions.run_id) as runs,
            min(prompt_versions.first_at) as first_at,
            max(prompt_versions.last_at) as last_at
        from prompt_versions
        group by 1, 2, 3, 4
        order by last_at desc, role, prompt_hash
    """
    return [row | {"calls": int(row["calls"])} for row in rows(connection, query)]


def prompt_text(connection: Connection, wanted: str) -> dict[str, Any]:
    """The prompt whose hash begins so. Raises BadRequest where there is none, or more than one."""
    found = rows(connection, "select * from prompts where substr(prompt_hash, 1, :size) = :wanted",
                 size=len(wanted), wanted=wanted)  # fmt: skip
    if len(found) != 1:
        raise BadRequest(
            f"{len(found)} prompts have a hash that begins with {wanted!r}: `reward-audit prompts` lists them"
        )
    return found[0]


def runs(connection: Connection) -> list[dict[str, Any]]:
    """All runs with how far each has come, newest first."""
    return rows(connection, "select * from run_progress order by created_at desc, run_id desc")


def imported_from(connection: Connection, digest: str) -> str | None:
    """A run that was imported from a file of this SHA-256, if there is one."""
    found: str | None = connection.execute(
        text("select run_id from audit_runs where kind = 'import' and config_json like :holds limit 1"),
        {"holds": f"%{digest}%"},
    ).scalar()
    return found


def imported_before(connection: Connection, name: str, config_hash: str) -> str | None:
    """The run that the same import under the same name made, if there is one."""
    found: str | None = connection.execute(
        text(
            "select run_id from audit_runs "
            "where kind = 'import' and name = :name and config_hash = :config_hash"
        ),
        {"name": name, "config_hash": config_hash},
    ).scalar()
    return found


def gates(connection: Connection, run_id: str) -> list[str]:
    """The gates of a run, by name."""
    found = connection.execute(
        text("select distinct gate from audit_pairs where run_id = :run_id order by gate"), {"run_id": run_id}
    )
    return [str(row[0]) for row in found]


def has_binary_rewards(connection: Connection, run_id: str, gate: str) -> bool:
    """Is every known reward of the gate's pairs 0 or 1?"""
    query = (
        "select 1 from audit_pairs where run_id = :run_id and gate = :gate "
        "and (reward_a not in (0, 1) or reward_b not in (0, 1)) limit 1"
    )
    return connection.execute(text(query), {"run_id": run_id, "gate": gate}).first() is None


def answered_gates(connection: Connection, run_id: str) -> set[str]:
    """The gates of a run of whose pairs a verdict is stored, or that answered at all."""
    found = connection.execute(
        text(
            "select gate from audit_pairs where run_id = :run_id "
            "and (pref_ab is not null or pref_ba is not null or judge_pref is not null) group by gate "
            "union select audit_pairs.gate from judge_logs inner join audit_pairs "
            "on audit_pairs.pair_id = judge_logs.pair_id "
            "where judge_logs.run_id = :run_id and judge_logs.role = 'judge' "
            "and judge_logs.parse_status <> 'error' group by audit_pairs.gate"
        ),
        {"run_id": run_id},
    )
    return {str(row[0]) for row in found}


def bucket_rows(connection: Connection, bucket_set: str) -> list[tuple[Any, ...]]:
    """(label, lower, upper, closed, is_near) of a stored bucket set, in order, `unknown` last."""
    found = connection.execute(
        text(
            "select label, lower, upper, closed, is_near from gap_buckets where bucket_set = :bucket_set "
            "order by lower is null, lower"
        ),
        {"bucket_set": bucket_set},
    )
    return [tuple(row) for row in found]


def pairs(connection: Connection, run_id: str, size: int = 2000) -> Iterator[list[Pair]]:
    """All pairs of a run in batches, in the order of pair_id; safe to update what was handed out."""
    first, last = connection.execute(
        text("select min(pair_id), max(pair_id) from audit_pairs where run_id = :run_id"), {"run_id": run_id}
    ).one()
    if first is None:
        return
    found = _pairs_between(connection, run_id, ">=", first, last, size)
    while found:
        yield found
        found = _pairs_between(connection, run_id, ">", found[-1].pair_id, last, size)


def _pairs_between(
    connection: Connection, run_id: str, sign: str, start: str, last: str, size: int
) -> list[Pair]:
    # `run_id || ''` keeps SQLite from an index of run_id: with that it sorts the whole run for every batch.
    query = text(
        f"select {_PAIRS} from audit_pairs "  # noqa: S608 - our own names
        f"where run_id || '' = :run_id and pair_id {sign} :start and pair_id <= :last "
        "order by pair_id limit :size"
    )
    values = {"run_id": run_id, "start": start, "last": last, "size": size}
    return [Pair(*row) for row in connection.execute(query, values)]


def last_answers(
    connection: Connection, pair_ids: Sequence[str]
) -> dict[tuple[str, str], dict[str | None, tuple[str | None, str]]]:
    """(pair_id, presented_order) -> profile -> preference and parse_status of that judge's last call."""
    marks = ", ".join(f":p{i}" for i in range(len(pair_ids)))
    found = connection.execute(
        text(
            "select pair_id, presented_order, profile, preference, parse_status from judge_logs "  # noqa: S608 - only marks
            f"where role = 'judge' and pair_id in ({marks}) "
            "order by pair_id, presented_order, log_id"
        ),
        {f"p{i}": pair_id for i, pair_id in enumerate(pair_ids)},
    )
    by_order: dict[tuple[str, str], dict[str | None, tuple[str | None, str]]] = {}
    for pair_id, order, profile, preference, status in found:
        by_order.setdefault((pair_id, order), {})[profile] = (preference, status)
    return by_order


def agent_rewards(
    connection: Connection, run_id: str, gate: str, *, by_category: bool
) -> Iterator[tuple[str, str, str | None, float, float, int]]:
    """(agent_a, agent_b, category, reward_a, reward_b, pairs) over pairs that two named agents finished."""
    category = "category" if by_category else "null"
    yield from _tuples(
        connection,
        f"select agent_a, agent_b, {category}, reward_a, reward_b, count(*) from audit_pairs "  # noqa: S608
        f"where {_BOTH_FINISHED} group by 1, 2, 3, 4, 5",
        run_id=run_id,
        gate=gate,
    )


def shared_tasks(
    connection: Connection, run_id: str, gate: str, *, by_category: bool
) -> Iterator[tuple[str, str, str | None, int]]:
    """(one agent, the other, category, tasks on which both finished), whichever side each stood on."""
    category = "category" if by_category else "null"
    yield from _tuples(
        connection,
        "select case when agent_a < agent_b then agent_a else agent_b end, "  # noqa: S608 - our own names
        f"case when agent_a < agent_b then agent_b else agent_a end, {category}, count(distinct task_id) "
        f"from audit_pairs where {_BOTH_FINISHED} group by 1, 2, 3",
        run_id=run_id,
        gate=gate,
    )


_BOTH_FINISHED = (
    "run_id = :run_id and gate = :gate and agent_a <> agent_b "
    "and reward_a is not null and reward_b is not null"
)


def answer_counts(connection: Connection, run_id: str, gate: str) -> dict[str, int]:
    """parse_status -> number of the calls made for this gate, by whichever judges."""
    # With one gate all the run's answers are its own, and an index alone counts them.
    of_gate = (
        "and pair_id in (select pair_id from audit_pairs where run_id = :r and gate = :g) "
        if len(gates(connection, run_id)) > 1
        else ""
    )
    found = connection.execute(
        text(
            "select parse_status, count(*) from judge_logs "  # noqa: S608 - our own condition
            f"where run_id = :r and role = 'judge' {of_gate}group by parse_status"
        ),
        {"r": run_id, "g": gate} if of_gate else {"r": run_id},
    )
    return {row[0]: row[1] for row in found}


def count_calls(connection: Connection, run_id: str) -> int:
    """How many calls the run has made, of any role."""
    query = "select count(*) from judge_logs where run_id = :run_id"
    return int(connection.execute(text(query), {"run_id": run_id}).scalar_one())


def cost(connection: Connection, run_id: str, gate: str, *, calls: int) -> dict[str, Any]:
    """Calls, tokens and price of the gate's pairs, as far as they are known; NULL where nothing is.

    The price is NULL too where that of one judged pair is not known: a part of it would look like all.
    `unknown_calls`: of so many calls no gateway told the tokens.
    """
    usd = connection.execute(
        text(
            "select case when count(cost_usd) = count(judged_at) then sum(cost_usd) end "
            "from audit_pairs where run_id = :r and gate = :g"
        ),
        {"r": run_id, "g": gate},
    ).scalar()
    found = connection.execute(
        text(
            "select sum(judge_logs.prompt_tokens), sum(judge_logs.completion_tokens), "
            "sum(judge_logs.total_tokens), count(*) - count(judge_logs.total_tokens) "
            "from audit_pairs inner join judge_logs on judge_logs.pair_id = audit_pairs.pair_id "
            "where audit_pairs.run_id = :r and audit_pairs.gate = :g and judge_logs.role = 'judge'"
        ),
        {"r": run_id, "g": gate},
    ).one()
    tokens = [None if value is None else int(value) for value in found[:3]]
    return {
        "calls": calls,
        "unknown_calls": int(found[3]),
        "prompt_tokens": tokens[0],
        "completion_tokens": tokens[1],
        "total_tokens": tokens[2],
        "usd": usd,
    }


def rows(connection: Connection, query: str, **values: Any) -> list[dict[str, Any]]:
    """The rows of one of our own queries, as column -> value."""
    return [dict(row) for row in connection.execute(text(query), values).mappings()]


def _tuples(connection: Connection, query: str, **values: Any) -> Iterator[Any]:
    # For this statement alone: set on the connection, it would turn later updates into cursors.
    result = connection.execute(text(query), values, execution_options={"yield_per": 1000})
    for row in result:
        yield tuple(row)


def table_rows(
    connection: Connection, table: str, columns: Sequence[str], run_id: str | None, order: str
) -> Iterator[tuple[Any, ...]]:
    """All rows of a run, or of all runs, in one of our tables; streamed, in the order of its key."""
    of_run = "" if run_id is None else "where run_id = :run_id "
    query = f"select {', '.join(columns)} from {table} {of_run}order by {order}"  # noqa: S608 - our own names
    yield from _tuples(connection, query, **({"run_id": run_id} if run_id is not None else {}))


def sessions(connection: Connection, run_id: str) -> Iterator[dict[str, Any]]:
    """The sessions of a run, streamed, in the order of their ids."""
    names = Session._fields
    for row in table_rows(connection, "sessions", names, run_id, "session_id"):
        yield dict(zip(names, row, strict=True))


def task_sums(
    connection: Connection, run_id: str, success_at: float
) -> Iterator[tuple[str, str | None, str | None, int, int, float | None, int, int]]:
    """Per agent and task, an agent's tasks together: (agent, task_id, task_fingerprint, sessions, of
    known reward, their sum, of known success, successes). Where no success is known the reward tells it; what
    people say counts, but where a rule says it.
    """
    yield from _tuples(
        connection,
        f"with {SAID_SUCCESS} "  # noqa: S608 - our own text
        "select agent, task_id, task_fingerprint, count(*), count(reward), sum(reward), "
        "count(coalesce(success, reward)), "
        "count(*) filter (where success = 1 or (success is null and reward >= :success_at)) from ("
        "select sessions.agent, sessions.task_id, sessions.task_fingerprint, sessions.reward, "
        f"{BEST_SUCCESS} as success from sessions left join said on said.session_id = sessions.session_id "
        "where sessions.run_id = :run_id and sessions.agent is not null) as known "
        "group by agent, task_id, task_fingerprint order by agent, task_id, task_fingerprint",
        run_id=run_id,
        success_at=success_at,
    )


def has_transcripts(connection: Connection, run_id: str) -> bool:
    """Is there a session in the run that says what was done in it?"""
    query = "select 1 from sessions where run_id = :run_id and transcript_json is not null limit 1"
    return connection.execute(text(query), {"run_id": run_id}).first() is not None


def has_tasks(connection: Connection, run_id: str) -> bool | None:
    """Does any session of the run name its task? NULL where the run has no sessions."""
    found = connection.execute(
        text("select count(*), count(task_id) from sessions where run_id = :run_id"), {"run_id": run_id}
    ).one()
    return bool(found[1]) if found[0] else None


def by_id(connection: Connection, wanted: str) -> dict[str, Any]:
    """What has this id: a `run`, a `pair` with its sessions and calls, a `session`, a `call`.

    Raw replies come as they came from the model. Raises BadRequest where nothing has the id.
    """
    if wanted.isascii() and wanted.isdigit() and wanted == str(int(wanted)) and int(wanted) < 2**63:
        calls = _calls(connection, "log_id = :wanted", int(wanted))
        if calls:
            return {"call": calls[0]}
    runs_found = rows(connection, "select * from audit_runs where run_id = :wanted", wanted=wanted)
    if runs_found or wanted == "latest":
        return {"run": run_named(connection, wanted)._asdict()}
    found = rows(
        connection,
        "select * from audit_pairs where pair_id = :wanted or source_pair_id = :wanted "
        "order by created_at desc, pair_id",
        wanted=wanted,
    )
    if found:
        return _pair_whole(connection, found)
    found = rows(connection, "select * from sessions where session_id = :wanted", wanted=wanted)
    if found:
        return {"session": found[0], "calls": _calls(connection, "session_id = :wanted", wanted)}
    raise BadRequest(f"nothing has the id {wanted!r}: `reward-audit runs` lists the runs")


def _pair_whole(connection: Connection, found: list[dict[str, Any]]) -> dict[str, Any]:
    if len(found) > 1:
        return {"pairs": found}
    pair = found[0]
    sides = [
        rows(connection, "select * from sessions where session_id = :wanted", wanted=pair[side])
        for side in ("session_a", "session_b")
        if pair[side] is not None
    ]
    return {
        "pair": pair,
        "sessions": [session for side in sides for session in side],
        "calls": _calls(connection, "pair_id = :wanted", pair["pair_id"]),
    }


def _calls(connection: Connection, where: str, wanted: object) -> list[dict[str, Any]]:
    found = rows(
        connection,
        f"select * from judge_logs where {where} order by log_id",  # noqa: S608 - our own conditions
        wanted=wanted,
    )
    for call in found:
        if call["raw_output"] is not None:
            call["raw_output"] = from_stored(call["raw_output"])
    return found
