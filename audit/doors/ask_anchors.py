"""The door for reads of anchors: pairs that people compared, and the same pairs in other runs."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, bindparam, text

from audit.doors.ask_review import NEWEST
from audit.words.records import Session


class Placed(NamedTuple):
    """A pair of a run with what tells that it is the same as one of another run."""

    gate: str
    pair_id: str
    task: str
    trial: int
    agent_a: str | None
    agent_b: str | None
    source_pair_id: str | None
    judge_pref: str | None
    session_a: str | None
    session_b: str | None


def compared_runs(connection: Connection) -> list[str]:
    """The runs in which people compared a pair, the oldest first."""
    found = connection.execute(
        text(
            "select audit_runs.run_id from audit_runs where exists (select 1 from human_labels "
            "inner join audit_pairs on audit_pairs.pair_id = human_labels.pair_id "
            "where human_labels.kind = 'preference' and audit_pairs.run_id = audit_runs.run_id) "
            "order by audit_runs.created_at, audit_runs.run_id"
        )
    )
    return [str(row[0]) for row in found]


def judged_runs(connection: Connection) -> list[str]:
    """The runs with a judged pair, the oldest first."""
    found = connection.execute(
        text(
            "select run_id from audit_runs where exists (select 1 from audit_pairs "
            "where audit_pairs.run_id = audit_runs.run_id and outcome is not null) "
            "order by created_at, run_id"
        )
    )
    return [str(row[0]) for row in found]


def preferences(connection: Connection, run_id: str) -> list[tuple[str, str, str]]:
    """(pair_id, annotator, value), each annotator's newest word on the pairs of a run."""
    found = connection.execute(
        text(
            f"with newest as ({NEWEST}) "  # noqa: S608 - our own text
            "select human_labels.pair_id, human_labels.annotator, human_labels.value from newest "
            "inner join human_labels on human_labels.label_id = newest.label_id "
            "inner join audit_pairs on audit_pairs.pair_id = human_labels.pair_id "
            "where newest.nth = 1 and human_labels.kind = 'preference' and human_labels.value <> 'withdrawn' "
            "and audit_pairs.run_id = :run_id "
            "order by human_labels.created_at, human_labels.label_id"
        ),
        {"run_id": run_id},
    )
    return [(row[0], row[1], row[2]) for row in found]


def tasks_of(connection: Connection, pair_ids: Sequence[str]) -> set[str]:
    """The task_id of each of these pairs."""
    query = text("select distinct task_id from audit_pairs where pair_id in :ids").bindparams(
        bindparam("ids", expanding=True)
    )
    found: set[str] = set()
    for start in range(0, len(pair_ids), 500):
        found |= set(connection.execute(query, {"ids": list(pair_ids[start : start + 500])}).scalars())
    return found


def placed(connection: Connection, run_id: str, tasks: Sequence[str]) -> Iterator[Placed]:
    """The pairs of a run on these tasks, by pair_id; the task as its fingerprint, where there is one."""
    query = text(
        "select audit_pairs.gate, audit_pairs.pair_id, "
        "coalesce(a.task_fingerprint, audit_pairs.task_id), audit_pairs.trial, audit_pairs.agent_a, "
        "audit_pairs.agent_b, audit_pairs.source_pair_id, audit_pairs.judge_pref, audit_pairs.session_a, "
        "audit_pairs.session_b from audit_pairs "
        "left join sessions as a on a.session_id = audit_pairs.session_a "
        "where audit_pairs.run_id = :run_id and audit_pairs.task_id in :tasks order by audit_pairs.pair_id"
    ).bindparams(bindparam("tasks", expanding=True))
    for row in connection.execute(query, {"run_id": run_id, "tasks": list(tasks)}):
        yield Placed(*row)


def transcripts(connection: Connection, session_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(session_id, transcript_json) of those of the sessions that store one."""
    query = text(
        "select session_id, transcript_json from sessions "
        "where session_id in :ids and transcript_json is not null"
    ).bindparams(bindparam("ids", expanding=True))
    for start in range(0, len(session_ids), 500):
        for row in connection.execute(query, {"ids": list(session_ids[start : start + 500])}):
            yield row[0], row[1]


def sessions(connection: Connection, session_ids: Sequence[str]) -> Iterator[Session]:
    """Those of the sessions that have a transcript, whole."""
    query = text(
        f"select {', '.join(Session._fields)} from sessions "  # noqa: S608 - our own names
        "where session_id in :ids and transcript_json is not null"
    ).bindparams(bindparam("ids", expanding=True))
    for start in range(0, len(session_ids), 500):
        for row in connection.execute(query, {"ids": list(session_ids[start : start + 500])}):
            yield Session(*row)
