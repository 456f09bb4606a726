"""Every view file: its first line, that it runs by hand, and that one run costs what one run holds."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect, text

from audit.doors import db
from audit.doors.shipped import shipped, view_texts

VIEWS = view_texts()
FILES = sorted(shipped("sql").iterdir())


@pytest.mark.parametrize("path", FILES, ids=[path.name for path in FILES])
def test_file_when_read_then_tells_its_grain_and_holds_one_portable_select(path: Path) -> None:
    body = path.read_text(encoding="utf-8")
    assert path.suffix == ".sql"
    assert body.startswith("-- One row per ")
    assert ";" not in body, "text() and the sqlite3 shell end a statement there, also in a comment"
    assert not re.search(r"(?<=\w):\w|\s:\w", re.sub(r"--.*", "", body)), "text() takes it for a parameter"
    assert not re.search(r"select\s+(\w+\.)?\*", body), "name the columns"
    # What runs on one of the two databases only.
    assert not re.search(r"\b(iif|strftime|group_concat|string_agg|ifnull|json_\w+)\s*\(|::", body)


def test_views_when_listed_then_are_the_files_in_an_order_in_which_they_can_be_made() -> None:
    assert set(VIEWS) == {path.stem for path in FILES}
    made: set[str] = set()
    for name in VIEWS:
        assert reads(name) <= made, f"{name} stands before a view that it reads"
        made.add(name)


def reads(name: str) -> set[str]:
    """The views that a view names outside its comments."""
    return (words(name) & VIEWS.keys()) - {name}


def words(name: str) -> set[str]:
    """All words of a view's file outside its comments."""
    return set(re.findall(r"\w+", re.sub(r"--.*", "", VIEWS[name])))


@pytest.mark.parametrize("name", VIEWS)
def test_view_when_it_reads_another_then_that_one_reads_none(name: str) -> None:
    assert [other for other in reads(name) if reads(other)] == []


@pytest.mark.parametrize("name", VIEWS)
def test_view_when_its_file_is_run_by_hand_then_gives_the_same_columns(sqlite_url: str, name: str) -> None:
    engine = db.open_database(sqlite_url, create=True)
    columns = [column["name"] for column in inspect(engine).get_columns(name)]
    file = engine.url.database
    engine.dispose()
    assert file
    with closing(sqlite3.connect(file)) as connection:
        by_hand = connection.execute(VIEWS[name])
        assert [column[0] for column in by_hand.description] == columns
        assert by_hand.fetchall() == []


@pytest.fixture
def twenty_runs(given: Any) -> Any:
    """Twenty runs, each with two gates, a hundred pairs and fifty sessions. The planner knows it."""
    given.run("r0")
    for number in range(50):
        given.session(f"s{number}", "r0", label_source="llm", transcript_json="[]")
    sides = {"session_a": "s1", "session_b": "s2", "agent_a": "ash", "agent_b": "elm"}
    for gate in ("g1", "g2"):
        given.pairs(25, "correct", "near", run_id="r0", gate=gate, **sides)
        given.pairs(25, "misselected", "far", run_id="r0", gate=gate, **sides)
    for _ in range(20):
        given.call("r0", prompt_hash="aa")
    copies = "(select row_number() over (order by session_id) as number from sessions limit 19) as copies"
    with given.writing() as connection:
        for table, key in {
            "audit_runs": "run_id",
            "sessions": "session_id",
            "audit_pairs": "pair_id",
            "judge_logs": None,
        }.items():
            names = [column["name"] for column in inspect(connection).get_columns(table)]
            names = [name for name in names if name != "log_id"]
            copied = [
                "'r' || copies.number" if name in ("run_id", "config_hash")
                else f"'r' || copies.number || {name}" if name == key
                else name
                for name in names
            ]  # fmt: skip
            select = f"select {', '.join(copied)} from {table}, {copies}"
            connection.execute(text(f"insert into {table} ({', '.join(names)}) {select}"))
        connection.execute(text("analyze"))
    return given


@pytest.mark.parametrize("name", VIEWS)
def test_view_when_asked_for_one_run_then_never_reads_the_pairs_of_the_others(
    twenty_runs: Any, name: str
) -> None:
    """SQLite hands a restriction down into a CTE that is used once and groups once, and into no other."""
    asked = f"select * from {name} where run_id = 'r7'"
    if twenty_runs.engine.dialect.name == "sqlite":
        plan = [row[-1] for row in twenty_runs.rows(f"explain query plan {asked}")]
        asked_of = words(name) & {"audit_pairs", "sessions", "judge_logs"}
        assert asked_of
        for table in asked_of:
            assert any(step.startswith(f"SEARCH {table}") for step in plan), plan
        assert [step for step in plan if re.match(r"SCAN (audit_pairs|sessions|judge_logs)\b", step)] == []
        return
    with db.reading(twenty_runs.engine) as connection:
        # A table this small is quicker read whole: the question is whether an index could be used.
        connection.execute(text("set local enable_seqscan = off"))
        plan = connection.execute(text(f"explain (analyze, timing off) {asked}")).scalars().all()
    reading = [step for step in plan if re.search(r"on (audit_pairs|sessions|judge_logs)\b", step)]
    counts = [int(n) * int(loops) for s in reading for n, loops in re.findall(r"rows=(\d+) loops=(\d+)", s)]
    # A run has 100 of the 2000 pairs, 50 of them correct. A sub-select may read them again for some buckets.
    assert max(counts) < 500, "\n".join(plan)
    assert "audit_pairs" not in words(name) or max(counts) >= 50, "\n".join(plan)
    assert not [step for step in plan if re.search(r"Removed by Filter: \d{4}", step)], "\n".join(plan)
