"""`gauge-csv`: one session a line, with a simulator, a judge's satisfaction and the verified success.

Columns: run_id, sim_user_model, judge_model, agent_model, satisfaction (0..1), task_success, prompt_tokens,
completion_tokens, total_tokens, judge_flip; optional task_id. What the tables have no column for is kept in
sessions.source_json, so that `export gauge-csv` gives the file back.
"""

from collections.abc import Iterator
from pathlib import Path

from audit.doors.files import Progress, csv_rows
from audit.doors.formats.fields import Row, strange_columns
from audit.words.records import ImportedSession
from audit.words.text import as_json

COLUMNS = (
    "run_id",
    "sim_user_model",
    "judge_model",
    "agent_model",
    "satisfaction",
    "task_success",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "judge_flip",
)
KEPT = ("run_id", "sim_user_model", "judge_model")


def read(path: Path, progress: Progress | None) -> Iterator[ImportedSession]:
    """The sessions of one file."""
    is_checked = False
    for number, fields in csv_rows(path, progress):
        row = Row(str(path), f"line {number}", fields)
        if not is_checked:
            _check_header(row)
            is_checked = True
        yield ImportedSession(
            place=row.place,
            task_id=row.text("task_id"),
            agent=row.needed_text("agent_model"),
            success=row.flag("task_success"),
            satisfaction=row.number("satisfaction", low=0, high=1),
            judge_flip=_flip(row),
            prompt_tokens=row.count("prompt_tokens"),
            completion_tokens=row.count("completion_tokens"),
            total_tokens=row.count("total_tokens"),
            source_json=as_json({column: row.text(column) for column in KEPT}),
        )


def _check_header(row: Row) -> None:
    strange_columns(row, (*COLUMNS, "task_id"))
    for column in COLUMNS:
        if column not in row.fields:
            raise row.wrong(column, "is missing: the header does not name it")


def _flip(row: Row) -> float | None:
    """A flag or a rate, 0..1."""
    word = (row.text("judge_flip") or "").strip().lower()
    if word in ("true", "false", "yes", "no"):
        return row.flag("judge_flip")
    return row.number("judge_flip", low=0, high=1)
