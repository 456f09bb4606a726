"""A database copied to another kind and back: equal there, and nothing kept where it cannot be."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from audit.doors import store
from audit.doors.db import open_database, writing
from audit.doors.db_copy import Copied, copy_database
from audit.words.errors import BadDatabase
from audit.words.records import JudgeLog, Run

KEPT = Path(__file__).parents[2] / "data" / "judged_pairs.jsonl"


def add_odd_call(url: str) -> None:
    """A call whose text and numbers are hard to carry over."""
    engine = open_database(url, create=True)
    run = dict.fromkeys(Run._fields, "x") | {"run_id": "odd", "kind": "import", "finished_at": None}
    run |= {"swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run", "status": "complete"}
    run |= {"config_json": "{}", "created_at": "2000-01-01T00:00:00.000Z"}
    call = dict.fromkeys(JudgeLog._fields) | {"run_id": "odd", "role": "judge", "parse_status": "ok"}
    call |= {"raw_output": "a\tb\\N\r\n\x00 你🙂 \ud800", "latency_ms": 0.1 + 0.2, "temperature": 1e-300}
    call |= {"attempt": 1, "created_at": "2026-01-01T00:00:00.000Z"}
    with writing(engine) as connection:
        store.add_run(connection, Run(**run))
        store.add_logs(connection, [JudgeLog(**call)] * 60)
    engine.dispose()


def test_database_when_copied_there_and_back_then_all_three_are_equal(
    command_in: Callable[..., Any], sqlite_url: str, postgres_url: str, tmp_path: Path
) -> None:
    cli = command_in(tmp_path)
    assert cli("import", "jsonl", KEPT, "--db", sqlite_url).code == 0
    add_odd_call(sqlite_url)
    back = f"sqlite:///{tmp_path / 'back.db'}"
    there = json.loads(cli("db", "copy", sqlite_url, postgres_url, "--json").stdout)
    again = json.loads(cli("db", "copy", postgres_url, back, "--json").stdout)
    assert there == again
    rows = {table["table"]: table["rows"] for table in there["tables"]}
    assert rows["audit_pairs"] > 100
    reports = [
        json.loads(cli("report", "--json", "--db", url).stdout) for url in (sqlite_url, postgres_url, back)
    ]
    assert reports[0] == reports[1] == reports[2]
    # The counter of the calls goes on behind those that were copied.
    add_more = open_database(postgres_url, create=False)
    with writing(add_more) as connection:
        highest = connection.execute(text("select max(log_id) from judge_logs")).scalar_one()
        connection.execute(
            text(
                "insert into judge_logs (run_id, role, attempt, parse_status, created_at) "
                "values ('odd', 'judge', 1, 'ok', '2026-01-01T00:00:00.000Z')"
            )
        )
        assert connection.execute(text("select max(log_id) from judge_logs")).scalar_one() == highest + 1
    add_more.dispose()


def test_database_when_the_other_one_holds_rows_then_it_is_left_as_it_is(
    database_url: str, tmp_path: Path
) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    add_odd_call(source)
    told: list[Copied] = []
    copy_database(source, database_url, told.append)
    assert sum(table.rows for table in told) == 61
    with pytest.raises(BadDatabase, match=r"holds rows \(audit_runs, judge_logs\): copy into an empty one"):
        copy_database(source, database_url, told.append)
    engine = create_engine(database_url)
    with engine.connect() as connection:
        assert connection.execute(text("select count(*) from judge_logs")).scalar_one() == 60
    engine.dispose()


def test_database_when_it_is_copied_onto_itself_or_is_not_there_then_one_line_says_so(tmp_path: Path) -> None:
    source = f"sqlite:///{tmp_path / 'source.db'}"
    with pytest.raises(BadDatabase, match="there is no database"):
        copy_database(source, f"sqlite:///{tmp_path / 'target.db'}", lambda _copied: None)
    assert not (tmp_path / "target.db").exists()
    add_odd_call(source)
    with pytest.raises(BadDatabase, match="holds rows"):
        copy_database(source, source, lambda _copied: None)
