"""Tables as Parquet, partitioned by run: every value as stored; the README's recipes equal the view."""

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import create_engine, text

CHECKOUT = Path(__file__).parents[2]
JUDGED = CHECKOUT / "data" / "judged_pairs.jsonl"
VIEW = """
    select run_id, gate, is_near, misselected, misselected + correct
    from near_tie_vs_wide_gap
    where pairs > 0
    order by run_id, gate, is_near desc
"""


def recipes() -> dict[str, str]:
    section = (CHECKOUT / "README.md").read_text(encoding="utf-8").split("## When it gets big")[1]
    found = re.findall(r"```python\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    return {re.search(r"(duckdb|polars|pyspark)", code)[1]: code for code in found}  # type: ignore[index]


def exported(here: Any, url: str) -> list[tuple[Any, ...]]:
    """Two runs, exported; what the view says of them."""
    for name in ("one", "two"):
        assert here("import", "jsonl", JUDGED, "--name", name, db=url).code == 0
    did = here("export", "parquet", "columns", db=url)
    assert did.code == 0, did.stderr
    engine = create_engine(url)
    with engine.connect() as connection:
        found = [tuple(row) for row in connection.execute(text(VIEW))]
    engine.dispose()
    return found


@pytest.mark.parametrize("library", ["duckdb", "polars", "pyspark"])
def test_recipe_when_run_as_written_then_it_equals_the_view(
    library: str, here: Any, sqlite_url: str, tmp_path: Path
) -> None:
    if find_spec(library) is None or (library == "pyspark" and shutil.which("java") is None):
        pytest.skip(f"{library} is not installed, or there is no Java")
    of_view = exported(here, sqlite_url)
    ran = subprocess.run(
        [sys.executable, "-c", recipes()[library]],
        cwd=tmp_path, capture_output=True, encoding="utf-8", check=True, timeout=120,
    )  # fmt: skip
    lines = [re.findall(r"[^\s│┆|]+", line) for line in ran.stdout.splitlines()]
    rows = [line for line in lines if len(line) == 5 and line[2].isdigit()]
    assert len(of_view) >= 4
    assert [(run, gate, *map(int, rest)) for run, gate, *rest in rows] == of_view


def test_tables_when_exported_then_each_row_is_there_with_its_values(
    database_url: str, here: Any, tmp_path: Path
) -> None:
    exported(here, database_url)
    engine = create_engine(database_url)
    with engine.connect() as connection:
        for table in ("audit_pairs", "judge_logs", "sessions"):
            key = {"audit_pairs": "pair_id", "judge_logs": "log_id", "sessions": "session_id"}[table]
            stored = [dict(row) for row in connection.execute(text(f"select * from {table}")).mappings()]
            read = []
            for part in sorted((tmp_path / "columns" / table).glob("run_id=*/part.parquet")):
                rows = pq.ParquetFile(part).read().to_pylist()
                read += [row | {"run_id": part.parent.name.removeprefix("run_id=")} for row in rows]
            assert sorted(read, key=lambda row: row[key]) == sorted(stored, key=lambda row: row[key])
    engine.dispose()
    # One run alone replaces its own folder, and leaves no half of a file.
    assert here("export", "parquet", "-o", "columns", "--run", "latest", db=database_url).code == 0
    assert not list((tmp_path / "columns").rglob("*.partial"))


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("pairs", "columns"), "columns: only `export parquet` takes a folder; name the file after -o"),
        (("parquet", "columns", "-o", "other"), "name the folder once"),
        (("parquet",), "name the folder to write to"),
        (("pairs",), "Missing option '-o' / '--output' (help: "),
    ],
)
def test_export_when_its_target_is_none_then_it_is_a_wrong_command_line(
    args: tuple[str, ...], why: str, here: Any
) -> None:
    did = here("export", *args)
    assert (did.code, why in did.stderr) == (2, True), did.stderr
