"""A user's own SQL reads, and can do nothing else, on either database."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from audit.doors import db, query
from audit.doors.query import Answer, ask_sql
from audit.words.errors import BadRequest

ENDLESS = (
    "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000000) "
    "select count(*) from n"
)


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = db.open_database(database_url, create=True)
    with db.writing(engine) as connection:
        connection.execute(text("insert into prompts values ('p1', 'judge', 'mt_bench', '1', 'Which?')"))
    yield engine
    engine.dispose()


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Engine]:
    engine = db.open_database(postgres_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def sqlite(sqlite_url: str) -> Iterator[Engine]:
    engine = db.open_database(sqlite_url, create=True)
    yield engine
    engine.dispose()


def prompts(engine: Engine) -> list[str]:
    with db.reading(engine) as connection:
        return list(connection.execute(text("select prompt_hash from prompts")).scalars())


def problem(engine: Engine, statement: str, *, seconds: float = 20) -> str:
    with pytest.raises(BadRequest) as caught:
        ask_sql(engine, statement, seconds=seconds)
    return str(caught.value)


# One database a table of cases: making one takes longer than all their questions.
QUESTIONS = (
    "select prompt_hash, null as empty, 1 as one from prompts",
    "  -- a comment\n/* another */ SELECT prompt_hash, null AS empty, 1 AS one FROM prompts ; -- done",
    "select(prompt_hash)as prompt_hash, null as empty, 1 as one from prompts",
    "with p as (select * from prompts) select prompt_hash, null as empty, 1 as one from p",
    "select prompt_hash, null as empty, 1 as one from prompts where text <> 'a;b'",
    "select prompt_hash, null as empty, 1 as one from prompts where name like 'mt%' or name = '%s?:x'",
)


def test_question_when_asked_then_columns_and_rows_come_back(engine: Engine) -> None:
    for statement in QUESTIONS:
        found = ask_sql(engine, statement)
        assert (statement, found) == (
            statement,
            Answer(("prompt_hash", "empty", "one"), [("p1", None, 1)]),
        )


def test_question_when_only_so_many_rows_are_wanted_then_no_more_come(engine: Engine) -> None:
    question = "select 1 as n union all select 2 union all select 3 order by 1"

    assert ask_sql(engine, question, most=2).rows == [(1,), (2,)]
    assert ask_sql(engine, question, most=0) == Answer(("n",), [])
    assert ask_sql(engine, question, most=None).rows == [(1,), (2,), (3,)]


def test_answer_when_the_database_has_types_of_its_own_then_they_become_numbers_and_text(
    engine: Engine,
) -> None:
    found = ask_sql(engine, "select sum(n), avg(n) from (select 1 as n union all select 2) as t").rows[0]

    assert found == (3, 1.5)
    assert [type(value) for value in found] == [int, float]
    byte = {"sqlite": "x'00ff'", "postgresql": "'\\x00ff'::bytea"}[engine.dialect.name]
    assert ask_sql(engine, f"select {byte}").rows == [("00ff",)]


NO_QUESTIONS = {
    "delete from prompts": "delete",
    "insert into prompts values ('p2', 'judge', 'x', '1', 'y')": "insert",
    "/* select */ delete from prompts": "delete",
    "-- select\ndelete from prompts": "delete",
    "drop table prompts": "drop",
    "attach database 'other.db' as other": "attach",
    "pragma writable_schema = 1": "pragma",
    "vacuum into 'copy.db'": "vacuum",
    "begin": "begin",
    "commit; drop table prompts": "commit",
    "set transaction read write": "set",
    "copy (select 1) to program 'touch pwned'": "copy",
    "do $$ begin delete from prompts; end $$": "do",
    # A carriage return ends a comment for PostgreSQL.
    "--\rcopy (\nselect 1) to program 'touch pwned'": "copy",
    "selecting": "selecting",
    ";": ";",
}


def test_statement_when_it_is_no_question_then_it_is_refused_by_its_first_word(engine: Engine) -> None:
    assert {statement: problem(engine, statement) for statement in NO_QUESTIONS} == {
        statement: f"{word!r} is not a question: only select, with, values and explain are read"
        for statement, word in NO_QUESTIONS.items()
    }
    assert prompts(engine) == ["p1"]


def test_statement_when_there_is_none_then_the_error_shows_how_one_is_written(engine: Engine) -> None:
    found = {problem(engine, nothing) for nothing in ("", "  \n", "-- a comment", "/* a comment */", "(")}

    assert found == {'there is no statement: write `reward-audit sql "select ..."`'}


def test_statement_when_comments_nest_then_it_is_refused_since_databases_read_them_differently(
    engine: Engine,
) -> None:
    for statement in ("/* /* */ select */ copy (select 1) to program 'touch pwned'", "/*/**/*/select 1"):
        assert problem(engine, statement) == "sql: a comment begins within a comment: leave it out"


WRITES = (
    "with gone as (delete from prompts returning *) select * from gone",
    "with p as (select 1) delete from prompts",
    "select 1; delete from prompts",
    "select 1; commit; drop table prompts",
    "select 1 as one\n;\ndelete from prompts -- ;",
    "explain analyze delete from prompts",
    "select * into other from prompts",
)


def test_statement_when_it_begins_like_a_question_but_writes_then_nothing_is_written(
    engine: Engine,
) -> None:
    for statement in WRITES:
        assert problem(engine, statement).startswith("sql: ")
        assert (statement, prompts(engine)) == (statement, ["p1"])


def test_statement_when_it_names_what_is_not_there_then_the_error_says_what(engine: Engine) -> None:
    column, table = {
        "sqlite": ("no such column: nope (did you mean role or name?)", "no such table: nope"),
        "postgresql": ('column "nope" does not exist', 'relation "nope" does not exist'),
    }[engine.dialect.name]

    assert problem(engine, "select nope from prompts") == f"sql: {column}"
    assert problem(engine, "select * from nope") == f"sql: {table}"


def test_statement_when_it_misspells_a_table_or_a_view_then_the_near_one_is_named(engine: Engine) -> None:
    said = {"sqlite": "no such table: {}", "postgresql": 'relation "{}" does not exist'}[engine.dialect.name]
    for wrong, meant in {
        "audit_pair": "audit_pairs",
        "misselction_by_gap": "misselection_by_gap",
        "main.judge_log" if engine.dialect.name == "sqlite" else "public.judge_log": "judge_logs",
    }.items():
        told = f"sql: {said.format(wrong)} (did you mean {meant}?)"
        assert problem(engine, f"select * from {wrong}") == told


def test_statement_when_it_is_not_utf8_then_it_is_refused(engine: Engine) -> None:
    assert problem(engine, "select '\udcff'") == "sql: the statement is not UTF-8"


def test_statement_when_it_takes_too_long_then_it_is_stopped(engine: Engine) -> None:
    start = time.monotonic()

    assert problem(engine, ENDLESS, seconds=0.3) == (
        "sql: no answer after 0.3 seconds: ask for less, or raise --seconds"
    )
    assert time.monotonic() - start < 5


def test_time_limit_when_it_is_none_then_it_is_refused(engine: Engine) -> None:
    for seconds in (0, -1, float("nan"), float("inf"), 1e9):
        assert problem(engine, "select 1", seconds=seconds) == (
            f"sql: {seconds:g} seconds are no time limit: give more than 0, at most 86400"
        )


BEYOND_SQLITE = (
    "select load_extension('x')",
    "select * from pragma_database_list",
    "select * from pragma_user_version",
    "explain delete from prompts",
    "select writefile('pwned', 'x')",
    "select zeroblob(500000000)",
)


def test_sqlite_when_a_question_reaches_beyond_the_tables_then_it_is_refused(
    sqlite: Engine, tmp_path: Path
) -> None:
    for statement in BEYOND_SQLITE:
        assert problem(sqlite, statement).startswith("sql: ")
    assert not Path("pwned").exists()
    assert {path.name for path in tmp_path.iterdir()} <= {"audit.db", "audit.db-wal", "audit.db-shm"}


def test_sqlite_when_one_lock_is_off_then_the_other_still_holds(
    sqlite: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "_authorize", lambda *_: sqlite3.SQLITE_OK)

    assert problem(sqlite, "with p as (select 1) insert into prompts values (1, 1, 1, 1, 1)") == (
        "sql: attempt to write a readonly database"
    )


def test_sqlite_when_another_process_writes_then_a_question_neither_waits_nor_sees_it(sqlite: Engine) -> None:
    with closing(sqlite3.connect(str(sqlite.url.database), isolation_level=None)) as writer:
        writer.execute("begin immediate")
        writer.execute("insert into prompts values ('p2', 'judge', 'x', '1', 'y')")
        assert ask_sql(sqlite, "select count(*) from prompts", seconds=2).rows == [(0,)]
        writer.execute("commit")
    assert ask_sql(sqlite, "select count(*) from prompts").rows == [(1,)]


def test_sqlite_when_the_file_has_marks_of_an_address_in_its_name_then_that_file_is_asked(
    tmp_path: Path,
) -> None:
    engine = db.open_database(f"sqlite:///{tmp_path / 'a b#c%20.db'}", create=True)
    try:
        assert ask_sql(engine, "select count(*) from prompts").rows == [(0,)]
    finally:
        engine.dispose()


BEYOND_POSTGRES = (
    "select set_config('transaction_read_only', 'off', true)",
    "select nextval('judge_logs_log_id_seq')",
    "select query_to_xml('delete from prompts', true, false, '')",
    "select pg_read_file('/etc/hostname')",
    "select lo_export(1, '/tmp/pwned')",
    "select pg_terminate_backend(pg_backend_pid())",
    "select * from prompts for update",
    "select $1",
)


def test_postgres_when_a_question_reaches_beyond_the_tables_then_it_is_refused(
    postgres: Engine,
) -> None:
    for statement in BEYOND_POSTGRES:
        assert problem(postgres, statement).startswith("sql: ")
    assert ask_sql(postgres, "select count(*) from prompts").rows == [(0,)]


def test_postgres_when_a_question_lifts_its_own_limits_then_they_hold_and_do_not_leak(
    postgres: Engine,
) -> None:
    lifted = "select set_config('statement_timeout', '0', false), pg_sleep(2)"

    assert problem(postgres, lifted, seconds=0.3).startswith("sql: no answer after 0.3 seconds")
    ask_sql(postgres, "select set_config('search_path', 'nowhere', false), pg_advisory_lock(7)")
    assert ask_sql(postgres, "select count(*) from prompts").rows == [(0,)]
    # Of this database alone: other tests are at work on the same server.
    of_this = "(select oid from pg_database where datname = current_database())"
    held = f"select count(*) from pg_locks where locktype = 'advisory' and database = {of_this}"
    assert ask_sql(postgres, held).rows == [(0,)]
