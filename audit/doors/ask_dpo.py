"""The door for the reads of `export dpo`: pairs, what their sessions hold, their flags, what people said."""

import sqlite3
from collections.abc import Generator, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

from sqlalchemy import Connection, text

from audit.doors.ask_review import NEWEST


class Candidate(NamedTuple):
    """One pair."""

    pair_id: str
    task_id: str
    gap_bucket: str
    reward_gap: float | None
    reward_a: float | None
    reward_b: float | None
    judge_pref: str | None
    session_a: str | None
    session_b: str | None


class Told(NamedTuple):
    """What a session holds: the JSON of its messages, and of its task and policy where that is asked for."""

    session_id: str
    transcript_json: str | None
    source_json: str | None


class Streamed(Protocol):
    """Rows as they come; to be closed where they are not read to the end."""

    def __iter__(self) -> Iterator[Any]: ...

    def __next__(self) -> Any: ...

    def close(self) -> None: ...


# Of queries that read a whole run: `|| ''` keeps SQLite from an index of run_id. By that it would fetch each
# pair from another page, twice as slowly as by reading all of them, and sort them, transcripts included.
_OF_RUN = "run_id || '' = :run_id and gate = :gate"


FLAGS_SQL = f"select pair_id, flag from flagged_pairs where {_OF_RUN} order by pair_id"  # noqa: S608


def candidates(connection: Connection, run_id: str, gate: str) -> Streamed:
    """The columns of Candidate of all pairs of the gate, streamed, in the order of pair_id."""
    columns = ", ".join(Candidate._fields)
    query = f"select {columns} from audit_pairs where {_OF_RUN} order by pair_id"  # noqa: S608 - our own text
    return _rows(connection, query, run_id=run_id, gate=gate)


def sessions(connection: Connection, session_ids: Sequence[str], *, with_source: bool) -> Iterator[Told]:
    """What these few sessions hold, in the order of their ids as they are given."""
    if not session_ids:
        return
    values = {f"s{number}": one for number, one in enumerate(session_ids)}
    marks = ", ".join(f":{name}" for name in values)
    columns = f"session_id, transcript_json, {'source_json' if with_source else 'null'}"
    query = f"select {columns} from sessions where session_id in ({marks})"  # noqa: S608 - marks
    found = {row[0]: row for row in _rows(connection, query, **values)}
    yield from (Told._make(found[one]) for one in session_ids if one in found)


def flags(connection: Connection, run_id: str, gate: str) -> Streamed:
    """(pair_id, flag), streamed, in the order in which `candidates` come."""
    return _rows(connection, FLAGS_SQL, run_id=run_id, gate=gate)


def decided(connection: Connection, run_id: str, gate: str) -> Iterator[Any]:
    """(gap_bucket, reward_gap, task_id, 1 where misselected) of every decidable pair with a verdict."""
    return _rows(
        connection,
        "select gap_bucket, reward_gap, task_id, misselected from audit_pairs "  # noqa: S608 - our own text
        f"where {_OF_RUN} and outcome in ('correct', 'misselected')",
        run_id=run_id,
        gate=gate,
    )


def count_tasks(connection: Connection, run_id: str, gate: str) -> int:
    """How many tasks the pairs are of."""
    found = connection.execute(
        text(f"select count(distinct task_id) from audit_pairs where {_OF_RUN}"),  # noqa: S608
        {"run_id": run_id, "gate": gate},
    )
    return int(found.scalar_one())


def said_of_pairs(connection: Connection, run_id: str, gate: str) -> dict[str, str]:
    """pair_id -> the side (or tie) that people prefer, each with their newest word, the majority of them.

    Where nobody compared the two, but both sessions were called succeeded or failed, that tells it. Only
    pairs that people have looked at are read.
    """
    votes = _votes(connection, run_id, gate)
    return {pair_id: _majority(counts) for pair_id, counts in votes.items()}


_NEWEST = f"with last_labels as ({NEWEST}) "
_SAYS = "last_labels.nth = 1 and lower(h.value) not in ('cannot tell', 'withdrawn')"


def _votes(connection: Connection, run_id: str, gate: str) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    compared = _rows(
        connection,
        _NEWEST + "select p.pair_id, lower(h.value) from last_labels "  # noqa: S608 - our own text
        "inner join human_labels as h on h.label_id = last_labels.label_id "
        "inner join audit_pairs as p on p.pair_id = h.pair_id "
        f"where {_SAYS} and h.kind = 'preference' and p.run_id = :run_id and p.gate = :gate",
        run_id=run_id,
        gate=gate,
    )
    for pair_id, value in compared:
        side = {"a": "A", "b": "B"}.get(value, "tie")
        found.setdefault(pair_id, {}).setdefault(side, 0)
        found[pair_id][side] += 1
    succeeded = _successes(connection, run_id)
    if succeeded:
        both = _rows(
            connection,
            "select pair_id, session_a, session_b from audit_pairs where run_id = :run_id and gate = :gate "
            "and session_a in (select session_id from human_labels where kind = 'success') "
            "and session_b in (select session_id from human_labels where kind = 'success')",
            run_id=run_id,
            gate=gate,
        )
        for pair_id, a, b in both:
            if pair_id not in found and a in succeeded and b in succeeded:
                better = succeeded[a] - succeeded[b]
                found[pair_id] = {"A" if better > 0 else "B" if better < 0 else "tie": 1}
    return found


def _successes(connection: Connection, run_id: str) -> dict[str, float]:
    """session_id -> 1 where most people say it succeeded, 0 where most say it failed, 0.5 between."""
    said: dict[str, list[int]] = {}
    rows = _rows(
        connection,
        _NEWEST + "select s.session_id, lower(h.value) from last_labels "  # noqa: S608 - our own text
        "inner join human_labels as h on h.label_id = last_labels.label_id "
        "inner join sessions as s on s.session_id = h.session_id "
        f"where {_SAYS} and h.kind = 'success' and s.run_id = :run_id",
        run_id=run_id,
    )
    for session_id, value in rows:
        said.setdefault(session_id, []).append(1 if value in ("1", "true", "yes") else -1)
    return {one: (1.0 if sum(votes) > 0 else 0.0 if sum(votes) < 0 else 0.5) for one, votes in said.items()}


def _majority(counts: dict[str, int]) -> str:
    most = max(counts.values())
    first = [side for side, count in counts.items() if count == most]
    return first[0] if len(first) == 1 else "tie"


def tools_by_task(connection: Connection, run_id: str) -> Iterator[Any]:
    """(task_id, task_fingerprint, request_json of an agent's call) for each task of a live run."""
    return _rows(
        connection,
        "select firsts.task_id, firsts.task_fingerprint, judge_logs.request_json from ("
        "select sessions.task_id, sessions.task_fingerprint, min(calls.log_id) as log_id "
        "from judge_logs as calls inner join sessions on sessions.session_id = calls.session_id "
        "where calls.run_id = :run_id and calls.role = 'agent' "
        "group by sessions.task_id, sessions.task_fingerprint) as firsts "
        "inner join judge_logs on judge_logs.log_id = firsts.log_id",
        run_id=run_id,
    )


def _rows(connection: Connection, query: str, **values: Any) -> Streamed:
    if connection.dialect.name == "sqlite":
        # The driver's own cursor, in the same transaction: a row costs a tenth, and there are millions.
        driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
        return driver.execute(query, values)
    return _from_server(connection, query, values)


def _from_server(connection: Connection, query: str, values: dict[str, Any]) -> Generator[Any, None, None]:
    # For this statement alone: rows come as they are read, from a cursor on the server.
    result = connection.execute(text(query), values, execution_options={"yield_per": 500})
    try:
        for batch in result.partitions(500):
            yield from batch
    finally:
        result.close()


class LookedAt(NamedTuple):
    """A pair that people have looked at."""

    pair_id: str
    task_id: str
    reward_a: float | None
    reward_b: float | None
    judge_pref: str | None


def looked_at(connection: Connection, pair_ids: list[str]) -> Iterator[tuple[LookedAt, set[str]]]:
    """These pairs, each with its flags."""
    for start in range(0, len(pair_ids), 500):
        values = {f"p{i}": pair_id for i, pair_id in enumerate(pair_ids[start : start + 500])}
        marks = ", ".join(f":{name}" for name in values)
        columns = ", ".join(LookedAt._fields)
        flags_of: dict[str, set[str]] = {}
        for pair_id, flag in _rows(
            connection,
            f"select pair_id, flag from flagged_pairs where pair_id in ({marks})",  # noqa: S608 - marks
            **values,
        ):
            flags_of.setdefault(pair_id, set()).add(flag)
        for row in _rows(
            connection,
            f"select {columns} from audit_pairs where pair_id in ({marks}) order by pair_id",  # noqa: S608 - marks
            **values,
        ):
            yield LookedAt(*row), flags_of.get(row[0], set())
