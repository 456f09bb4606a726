"""Export parquet: the tables as files for DuckDB, Polars, Spark and the like, partitioned by run."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, Table

from audit.doors import ask
from audit.doors.db import reading
from audit.doors.tables import write_table
from audit.pipeline.exporting import kinds_of
from audit.words.errors import BadRequest
from audit.words.schema import audit_pairs, audit_runs, gap_buckets, judge_logs, sessions

BY_RUN = (audit_pairs, judge_logs, sessions)
WHOLE = (audit_runs, gap_buckets)


class Written(NamedTuple):
    """One file."""

    table: str
    run_id: str | None
    rows: int
    file: Path


def export_parquet(
    engine: Engine, folder: Path, wanted: str | None, tell: Callable[[Written], None]
) -> list[Written]:
    """Write DIR/TABLE/run_id=RUN/part.parquet for every run, or for the one that is wanted.

    The column run_id is the folder's name, as these programs take it; small tables are one file each. Texts
    are as they are stored. Each file appears whole or not at all; one that is there is replaced. Raises
    BadRequest where there is no run, MissingExtra without pyarrow.
    """
    found = []
    with reading(engine) as connection:
        if wanted is None:
            runs = [row["run_id"] for row in ask.runs(connection)]
        else:
            runs = [ask.run_named(connection, wanted).run_id]
        if not runs:
            raise BadRequest("there is no run to export: make one with `reward-audit import` or `run`")
        for table in WHOLE:
            found.append(_write(connection, table, folder / table.name / "part.parquet", None))
            tell(found[-1])
        for run_id in runs:
            for table in BY_RUN:
                file = folder / table.name / f"run_id={run_id}" / "part.parquet"
                found.append(_write(connection, table, file, run_id))
                tell(found[-1])
    return found


def _write(connection: Connection, table: Table, file: Path, run_id: str | None) -> Written:
    columns = [column.name for column in table.columns if run_id is None or column.name != "run_id"]
    rows = ask.table_rows(connection, table.name, columns, run_id, table.primary_key.columns[0].name)
    file.parent.mkdir(parents=True, exist_ok=True)
    return Written(table.name, run_id, write_table(file, columns, rows, kinds_of(table, columns)), file)
