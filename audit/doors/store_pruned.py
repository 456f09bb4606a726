"""The door for what goes: a run with all that hangs on it. Inside the caller's transaction."""

from typing import Any

from sqlalchemy import Connection, Table, delete, select, text

from audit.words.schema import metadata


def runs_to_prune(connection: Connection) -> list[dict[str, Any]]:
    """run_id, name, status, number of calls and of human labels of every run, the newest first."""
    query = """
        select
            run_id,
            name,
            status,
            (select count(*) from judge_logs where judge_logs.run_id = audit_runs.run_id) as calls,
            (
                select count(*)
                from human_labels
                left join audit_pairs on audit_pairs.pair_id = human_labels.pair_id
                left join sessions on sessions.session_id = human_labels.session_id
                where coalesce(audit_pairs.run_id, sessions.run_id) = audit_runs.run_id
            ) as labels
        from audit_runs
        order by created_at desc, run_id desc
    """
    return [dict(row) for row in connection.execute(text(query)).mappings()]


def delete_run(connection: Connection, run_id: str) -> None:
    """Delete the run and every row that refers to it, its pairs, its sessions or what hangs on those."""
    for table in reversed(metadata.sorted_tables):
        for condition in _of_run(table, run_id):
            connection.execute(delete(table).where(condition))


def _of_run(table: Table, run_id: str) -> list[Any]:
    if "run_id" in table.columns:
        return [table.columns.run_id == run_id]
    return [
        key.parent.in_(select(key.column).where(key.column.table.columns.run_id == run_id))
        for key in table.foreign_keys
        if "run_id" in key.column.table.columns
    ]
