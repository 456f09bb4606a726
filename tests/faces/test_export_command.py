"""`export` gives back what is stored, and what was imported."""

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine

from audit.doors import db
from audit.doors.query import ask_sql
from audit.pipeline.exporting import export_gauge_csv, export_table
from audit.pipeline.importing import Wish, import_file
from audit.words.errors import BadRequest
from audit.words.text import from_stored

# What breaks an export that guesses: ids that look like numbers, formulas, NUL, half a character, line ends.
RAW_AB = "cut \ud83d off\x00, [[A]]\r\n"
RAW_BA = "␀ and ␛ are themselves; 平局\u2028 [[B]]"
PAIRS = (
    {
        "pair_id": "007", "task_id": "=1+1", "category": "@x", "agent_a": "ash", "agent_b": "-elm",
        "reward_a": 0.30000000000000004, "reward_b": 1e-9, "success_a": True, "success_b": False,
        "judge_score_a": 4, "judge_score_b": 2.5, "gap": 0.2,
        "grammar": "mtbench_3way", "raw_ab": RAW_AB, "raw_ba": RAW_BA, "response_a": "x\x00y",
    },
    {
        "pair_id": "NA", "task_id": "1e5", "agent_a": "a,\"b\"\nc", "agent_b": "elm",
        "pref_ab": "tie", "raw_ab": "", "raw_ba": "no verdict", "grammar": "mtbench_3way",
    },
)  # fmt: skip


@pytest.fixture
def engine(database_url: str, tmp_path: Path) -> Iterator[Engine]:
    file = tmp_path / "judged.jsonl"
    file.write_text("".join(json.dumps(pair) + "\n" for pair in PAIRS), encoding="utf-8")
    engine = db.open_database(database_url, create=True)
    try:
        import_file(engine, Wish("jsonl", (file,)))
        yield engine
    finally:
        engine.dispose()


def stored(engine: Engine, table: str, key: str) -> list[dict[str, Any]]:
    found = ask_sql(engine, f"select * from {table} order by {key}")
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def typed(rows: list[dict[str, Any]]) -> list[dict[str, tuple[type, Any]]]:
    return [{name: (type(value), value) for name, value in row.items()} for row in rows]


def from_jsonl(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_pairs_when_exported_then_every_format_holds_the_rows_of_the_database(
    engine: Engine, tmp_path: Path
) -> None:
    expected = stored(engine, "audit_pairs", "pair_id")

    for ending in ("jsonl", "parquet", "csv"):
        assert export_table(engine, "pairs", "latest", tmp_path / f"pairs.{ending}")[1] == len(expected) == 2

    assert typed(from_jsonl(tmp_path / "pairs.jsonl")) == typed(expected)
    parquet = pq.read_table(tmp_path / "pairs.parquet")
    assert typed(parquet.to_pylist()) == typed(expected)
    assert {str(parquet.schema.field(name).type) for name in ("misselected", "success_a", "trial")} == {
        "int64"
    }
    with (tmp_path / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    in_csv = [{name: "" if value is None else str(value) for name, value in row.items()} for row in expected]
    for name, text in (("task_id", "=1+1"), ("category", "@x"), ("agent_b", "-elm")):
        assert in_csv[0][name] == text
        in_csv[0][name] = f"'{text}"
    assert rows == in_csv


def test_logs_when_exported_as_jsonl_then_each_call_is_one_object_with_its_reply_as_it_came(
    engine: Engine, tmp_path: Path
) -> None:
    expected = [
        row | {"raw_output": from_stored(row["raw_output"])} for row in stored(engine, "judge_logs", "log_id")
    ]

    export_table(engine, "logs", "latest", tmp_path / "logs.jsonl")
    found = from_jsonl(tmp_path / "logs.jsonl")

    assert typed(found) == typed(expected)
    assert [row["raw_output"] for row in found] == [RAW_AB, RAW_BA, "", "no verdict"]
    assert [row["choice"] for row in found] == ["first", "second", "tie", None]
    assert {"log_id", "pair_id", "role", "model", "prompt_hash", "parsed_json", "created_at"} <= found[
        0
    ].keys()


def test_logs_when_exported_to_other_formats_then_half_a_character_is_shown_by_its_code(
    engine: Engine, tmp_path: Path
) -> None:
    for ending in ("parquet", "csv"):
        export_table(engine, "logs", "latest", tmp_path / f"logs.{ending}")
    with (tmp_path / "logs.csv").open(encoding="utf-8", newline="") as file:
        in_csv = [row["raw_output"] for row in csv.DictReader(file)]
    in_parquet = pq.read_table(tmp_path / "logs.parquet").column("raw_output").to_pylist()

    assert in_csv == in_parquet == ["cut \\ud83d off\x00, [[A]]\r\n", RAW_BA, "", "no verdict"]


HEADER = (
    "run_id,sim_user_model,judge_model,agent_model,satisfaction,task_success,"
    "prompt_tokens,completion_tokens,total_tokens,judge_flip"
)
CANONICAL = {
    "without tasks": f"{HEADER}\n"
    "r1,sim,judge,@org/agent-a,0.8,1,100,20,120,0\n"
    "r1,sim,judge,@org/agent-a,0.25,0,90,10,100,1\n"
    'r2,,"a, ""b""",007,,,,,,\n'
    "r2,-sim,=judge,NA,1.0,0,0,0,0,0.125\n",
    "with tasks": f"{HEADER},task_id\n"
    "r1,sim,judge,agent,0.8,1,100,20,120,0,007\n"
    "r1,sim,judge,agent,0.5,0,1,2,3,1,\n",
}  # fmt: skip


@pytest.mark.parametrize("content", CANONICAL.values(), ids=CANONICAL.keys())
def test_gauge_csv_when_imported_and_exported_then_it_is_the_same_file(
    database_url: str, tmp_path: Path, content: str
) -> None:
    file, again = tmp_path / "sessions.csv", tmp_path / "again.csv"
    file.write_text(content, encoding="utf-8")
    engine = db.open_database(database_url, create=True)
    try:
        import_file(engine, Wish("gauge-csv", (file,)))
        export_gauge_csv(engine, "latest", again)
    finally:
        engine.dispose()

    assert again.read_bytes() == file.read_bytes()


def test_gauge_csv_when_written_another_way_then_its_values_come_back(
    sqlite_url: str, tmp_path: Path
) -> None:
    file, again = tmp_path / "sessions.csv", tmp_path / "again.csv"
    columns = HEADER.split(",")
    values = ["r1", "sim", "judge", "agent", "0.8", "1", "100", "20", "120", "0"]
    shuffled = ",".join(reversed(columns))
    # BOM, CRLF, another order of columns, other words for the same values.
    file.write_bytes(
        b"\xef\xbb\xbf" + f"{shuffled}\r\nfalse,120,20,100,TRUE,0.80,agent,judge,sim,r1\r\n".encode()
    )
    engine = db.open_database(sqlite_url, create=True)
    try:
        import_file(engine, Wish("gauge-csv", (file,)))
        export_gauge_csv(engine, "latest", again)
    finally:
        engine.dispose()

    with again.open(encoding="utf-8", newline="") as read:
        found = list(csv.DictReader(read))
    assert found == [dict(zip(columns, values, strict=True))]


def test_gauge_csv_when_sessions_name_no_agent_then_nothing_is_written(
    sqlite_url: str, tmp_path: Path
) -> None:
    file = tmp_path / "judged.jsonl"
    file.write_text(
        '{"pair_id": "p", "response_a": "x", "response_b": "y", "pref_ab": "A"}\n', encoding="utf-8"
    )
    engine = db.open_database(sqlite_url, create=True)
    try:
        import_file(engine, Wish("jsonl", (file,)))
        with pytest.raises(BadRequest, match=r"names no agent: gauge-csv is for sessions of named agents$"):
            export_gauge_csv(engine, "latest", tmp_path / "out.csv")
    finally:
        engine.dispose()
    assert not list(tmp_path.glob("*out.csv*"))


def test_export_when_run_as_a_command_then_it_says_what_it_wrote(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "judged.csv"
    file.write_text("pair_id,pref_ab,label\np1,A,B\n", encoding="utf-8")
    run_id = json.loads(cli("import", "csv", file, "--json").stdout)["run_id"]

    said = cli("export", "pairs", "--output", "pairs.jsonl")
    in_json = cli("export", "logs", "-o", "logs.csv", "--run", run_id, "--json")

    assert (said.code, said.stdout) == (0, f"wrote 1 rows of run {run_id} to pairs.jsonl\n")
    assert json.loads(in_json.stdout) == {"run_id": run_id, "file": "logs.csv", "rows": 1}
    assert sorted(path.name for path in (tmp_path / "cwd").iterdir()) == ["logs.csv", "pairs.jsonl"]
