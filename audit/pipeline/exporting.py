"""Export: pairs, calls or sessions of a run as a file, streamed."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, Float, Table, Text

from audit.doors import ask
from audit.doors.db import reading
from audit.doors.formats import gauge_csv
from audit.doors.tables import write_csv, write_table
from audit.words.errors import BadRequest
from audit.words.schema import audit_pairs, judge_logs
from audit.words.text import from_stored

GAUGE_COLUMNS = (*gauge_csv.COLUMNS, "task_id")


def export_table(engine: Engine, what: str, wanted: str, path: Path) -> tuple[str, int]:
    """Write `pairs` or `logs` of a run, all columns; the run id and how many rows there were."""
    table = audit_pairs if what == "pairs" else judge_logs
    columns = [column.name for column in table.columns]
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        found = ask.table_rows(connection, table.name, columns, run.run_id, table.primary_key.columns[0].name)
        rows = _as_they_came(columns, found) if what == "logs" else found
        return run.run_id, write_table(path, columns, rows, kinds_of(table, columns))


def export_gauge_csv(engine: Engine, wanted: str, path: Path) -> tuple[str, int]:
    """Write the sessions of a run in the form that `import gauge-csv` reads.

    Raises BadRequest for a run without sessions of named agents, BadFile for another ending than .csv.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        has_tasks = ask.has_tasks(connection, run.run_id)
        if has_tasks is None:
            raise BadRequest(f"run {run.run_id} holds no sessions")
        columns = GAUGE_COLUMNS if has_tasks else gauge_csv.COLUMNS
        rows = (_gauge_row(session, columns) for session in ask.sessions(connection, run.run_id))
        return run.run_id, write_csv(path, columns, rows)


def _gauge_row(session: dict[str, Any], columns: Sequence[str]) -> list[Any]:
    if session["agent"] is None:
        raise BadRequest(
            f"session {session['session_id']} names no agent: gauge-csv is for sessions of named agents"
        )
    source = json.loads(session["source_json"] or "{}")
    known = {
        "run_id": source.get("run_id", session["run_id"]),
        "sim_user_model": source.get("sim_user_model"),
        "judge_model": source.get("judge_model"),
        "agent_model": session["agent"],
        "satisfaction": session["satisfaction"],
        "task_success": session["success"],
        "prompt_tokens": session["prompt_tokens"],
        "completion_tokens": session["completion_tokens"],
        "total_tokens": session["total_tokens"],
        "judge_flip": _short(session["judge_flip"]),
        "task_id": session["task_id"],
    }
    return [known[column] for column in columns]


def _short(value: float | None) -> float | int | None:
    """A flag as 0 or 1, a rate as it is."""
    return int(value) if value in (0, 1) else value


def _as_they_came(columns: Sequence[str], rows: Iterator[Sequence[Any]]) -> Iterator[list[Any]]:
    raw = columns.index("raw_output")
    for row in rows:
        values = list(row)
        if values[raw] is not None:
            values[raw] = from_stored(values[raw])
        yield values


def kinds_of(table: Table, columns: Sequence[str]) -> list[str]:
    """`text`, `real` or `integer` of each column."""
    types = [table.columns[name].type for name in columns]
    return ["text" if isinstance(t, Text) else "real" if isinstance(t, Float) else "integer" for t in types]
