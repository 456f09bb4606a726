"""The one door for writes. Each function writes inside the caller's transaction (`db.writing`).

Rows go in as driver-level statements in batches: SQLAlchemy's own inserts cost 1.7 times the processor time
for the same rows, its ORM 17 times. PostgreSQL takes many new rows by COPY.
"""

import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from audit.doors.copying import WORTH_IT, copy_new_rows, copy_rows
from audit.words import clock
from audit.words.records import JudgeLog, Pair, Run, Session
from audit.words.text import to_stored

# No I, L, O, U: an id is read aloud and typed.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class ScoreUpdate(NamedTuple):
    """What `score` changes in one pair; the last field says which."""

    agent_gap: float | None
    judge_pref: str | None
    is_consistent: int | None
    reward_gap: float | None
    gap_bucket: str
    session_gap: float | None
    judge_gap: float | None
    outcome: str
    misselected: int | None
    scored_at: str
    pair_id: str


class AgentGap(NamedTuple):
    """What all pairs of agent_a as side A and agent_b as side B get.

    `category` is NULL where gap_scope is `run`; the last two count where gap_source is `agent`.
    """

    agent_a: str
    agent_b: str
    category: str | None
    agent_gap: float
    reward_gap: float | None
    gap_bucket: str


class RewardUpdate(NamedTuple):
    """Outside rewards of one pair; the last field says which."""

    reward_a: float
    reward_b: float
    external_gap: float | None
    verified_at: str
    pair_id: str


def new_run_id() -> str:
    """A run id that sorts by time; its last eight letters begin the ids of the run's pairs and sessions."""
    tail = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    now = datetime.now(UTC)
    return f"{now:%Y%m%d-%H%M%S}{now.microsecond // 1000:03d}-{tail}"


def add_run(connection: Connection, run: Run) -> None:
    """One new run."""
    insert(connection, "audit_runs", Run._fields, [run])


def add_buckets(connection: Connection, bucket_set: str, buckets: Sequence[tuple[Any, ...]]) -> None:
    """The rows (label, lower, upper, closed, is_near) of a bucket set, where they are not there yet."""
    columns = ("bucket_set", "label", "lower", "upper", "closed", "is_near")
    rows = [(bucket_set, *bucket) for bucket in buckets]
    insert(connection, "gap_buckets", columns, rows, once="bucket_set, label")


def add_sessions(connection: Connection, rows: Sequence[Session]) -> None:
    """New sessions; one that is stored already under the same id is left as it is.

    Raises IntegrityError where another session holds the same run, task, agent and trial.
    """
    insert(connection, "sessions", Session._fields, storable_sessions(rows), once="session_id")


def add_pairs(connection: Connection, rows: Sequence[Pair]) -> None:
    """New pairs. Raises IntegrityError where a source_pair_id stands twice under one run and gate."""
    insert(connection, "audit_pairs", Pair._fields, rows)


def add_logs(connection: Connection, rows: Sequence[JudgeLog]) -> None:
    """New calls; nothing in this table is ever changed. What others wrote is made storable here."""
    stored = [
        row
        if _is_plain(row.raw_output)
        and _is_plain(row.error)
        and _is_plain(row.finish_reason)
        and _is_plain(row.served_model)
        else _storable_log(row)
        for row in rows
    ]
    insert(connection, "judge_logs", JudgeLog._fields, stored)


def storable_sessions(rows: Sequence[Session]) -> list[Session]:
    """The sessions with storable errors: the other texts are JSON, or come from files that are checked."""
    return [row if _is_plain(row.error) else row._replace(error=_storable(row.error)) for row in rows]


def set_scores(connection: Connection, rows: Sequence[ScoreUpdate]) -> None:
    """Score pairs anew."""
    update(connection, "audit_pairs", ScoreUpdate._fields, rows)


def set_agent_gaps(
    connection: Connection,
    run_id: str,
    gate: str,
    rows: Sequence[AgentGap],
    *,
    by_category: bool,
    is_reward_gap: bool,
) -> None:
    """Set agent_gap, and what follows from it where it `is_reward_gap`, of all pairs that two agents have.

    One statement for all: a row at a time costs a million look-ups for what is two hundred different values.
    """
    changes = ("agent_gap", "reward_gap", "gap_bucket") if is_reward_gap else ("agent_gap",)
    same_category = (
        "and (audit_pairs.category = new_gaps.category "
        "or (audit_pairs.category is null and new_gaps.category is null))"
    )
    connection.exec_driver_sql(
        "create temporary table new_gaps (agent_a text, agent_b text, category text, "
        "agent_gap double precision, reward_gap double precision, gap_bucket text, "
        "unique (agent_a, agent_b, category))"
    )
    insert(connection, "new_gaps", AgentGap._fields, rows)
    connection.execute(
        text(
            f"update audit_pairs set {', '.join(f'{name} = new_gaps.{name}' for name in changes)} "  # noqa: S608
            "from new_gaps where audit_pairs.run_id = :run_id and audit_pairs.gate = :gate "
            "and audit_pairs.agent_a = new_gaps.agent_a and audit_pairs.agent_b = new_gaps.agent_b "
            + (same_category if by_category else "")
        ),
        {"run_id": run_id, "gate": gate},
    )
    connection.exec_driver_sql("drop table new_gaps")


def set_session_rewards(connection: Connection, rewards: Mapping[str, float | None]) -> None:
    """session_id -> its reward, for sessions whose pairs were given others."""
    update(connection, "sessions", ("reward", "session_id"), [(r, name) for name, r in rewards.items()])


def set_rewards(connection: Connection, rows: Sequence[RewardUpdate]) -> None:
    """Set outside rewards; success is left as it is."""
    update(connection, "audit_pairs", RewardUpdate._fields, rows)


def set_scale(
    connection: Connection, run_id: str, swap_rule: str, gap_source: str, gap_scope: str, bucket_set: str
) -> None:
    """How the run's pairs are scored from now on."""
    connection.execute(
        text(
            "update audit_runs set swap_rule = :swap_rule, gap_source = :gap_source, gap_scope = :gap_scope, "
            "bucket_set = :bucket_set where run_id = :run_id"
        ),
        {
            "swap_rule": swap_rule,
            "gap_source": gap_source,
            "gap_scope": gap_scope,
            "bucket_set": bucket_set,
            "run_id": run_id,
        },
    )


def set_gate(connection: Connection, run_id: str, gate: str, name: str) -> None:
    """Give the pairs of a gate another gate's name; nothing else of them changes."""
    connection.execute(
        text("update audit_pairs set gate = :name where run_id = :run_id and gate = :gate"),
        {"run_id": run_id, "gate": gate, "name": name},
    )


def set_config(connection: Connection, run_id: str, config_json: str) -> None:
    """What an import found while it read its files, beside what it was asked for."""
    connection.execute(
        text("update audit_runs set config_json = :config_json where run_id = :run_id"),
        {"config_json": config_json, "run_id": run_id},
    )


def finish_run(connection: Connection, run_id: str, status: str) -> None:
    """Close a run, and let the database count what it holds, so that later questions use its indexes."""
    connection.execute(
        text("update audit_runs set status = :status, finished_at = :now where run_id = :run_id"),
        {"status": status, "now": clock.now(), "run_id": run_id},
    )
    analyze(connection)


def analyze(connection: Connection) -> None:
    """Let the database count what its tables hold: autovacuum would, but a minute after many rows came."""
    if connection.dialect.name == "sqlite":
        connection.execute(text("pragma analysis_limit = 400"))
        connection.execute(text("analyze"))
    else:
        connection.execute(text("analyze audit_runs, sessions, audit_pairs, judge_logs, human_labels"))


def insert(
    connection: Connection,
    table: str,
    columns: Sequence[str],
    rows: Sequence[tuple[Any, ...]],
    once: str | None = None,
    over: str | None = None,
) -> None:
    """Insert rows; where the key `once` stands already they are left out, where `over` does they replace."""
    if connection.dialect.name == "postgresql" and not over and len(rows) >= WORTH_IT:
        if once:
            copy_new_rows(connection, table, columns, rows, once)
        else:
            copy_rows(connection, table, columns, rows)
    elif rows:
        statement = _insert_statement(connection.dialect.name, table, tuple(columns), once, over)
        connection.exec_driver_sql(statement, list(rows))


def update(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Set all columns but the last one in the row that the last one names."""
    if rows:
        connection.exec_driver_sql(
            _update_statement(connection.dialect.name, table, tuple(columns)), list(rows)
        )


@cache
def _insert_statement(
    dialect: str, table: str, columns: tuple[str, ...], once: str | None, over: str | None
) -> str:
    marks = ", ".join([_mark(dialect)] * len(columns))
    tail = ""
    if once:
        tail = f" on conflict ({once}) do nothing"
    elif over:
        changes = ", ".join(f"{column} = excluded.{column}" for column in columns if column != over)
        tail = f" on conflict ({over}) do update set {changes}"
    return f"insert into {table} ({', '.join(columns)}) values ({marks}){tail}"  # noqa: S608 - our own names


@cache
def _update_statement(dialect: str, table: str, columns: tuple[str, ...]) -> str:
    mark = _mark(dialect)
    changes = ", ".join(f"{column} = {mark}" for column in columns[:-1])
    return f"update {table} set {changes} where {columns[-1]} = {mark}"  # noqa: S608 - our own names


def _mark(dialect: str) -> str:
    return "?" if dialect == "sqlite" else "%s"


def _is_plain(text: str | None) -> bool:
    return text is None or (text.isascii() and "\x00" not in text)


def _storable(text: str | None) -> str | None:
    return None if text is None else to_stored(text)


def _storable_log(row: JudgeLog) -> JudgeLog:
    return row._replace(
        served_model=_storable(row.served_model),
        raw_output=_storable(row.raw_output),
        finish_reason=_storable(row.finish_reason),
        error=_storable(row.error),
    )
