"""The door to the database: what it refuses, and that nothing is lost however many come in at once."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path

import pytest
from sqlalchemy import Engine, inspect, text
from sqlalchemy.exc import IntegrityError

from audit.doors import db
from audit.doors.shipped import view_texts
from audit.words.errors import BadDatabase
from audit.words.schema import metadata

INSERT_PROMPT = text("insert into prompts values (:hash, 'judge', 'mt_bench', '1', 'Which is better?')")


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = db.open_database(database_url, create=True)
    yield engine
    engine.dispose()


def add_prompt(engine: Engine, name: str) -> None:
    with db.writing(engine) as connection:
        connection.execute(INSERT_PROMPT, {"hash": name})


def prompts(engine: Engine) -> list[str]:
    with db.reading(engine) as connection:
        return list(
            connection.execute(text("select prompt_hash from prompts order by prompt_hash")).scalars()
        )


BAD_ADDRESSES = {
    "audit.db": "'audit.db' is no database address: write sqlite:///FILE or postgresql+psycopg://HOST/NAME",
    "": "'' is no database address: write sqlite:///FILE or postgresql+psycopg://HOST/NAME",
    "postgresql://me:se:cr/et@host:port/x": "'postgresql://me:***@host:port/x' is no database address: "
    "write sqlite:///FILE or postgresql+psycopg://HOST/NAME",
    "mysql://me:secret@host/x": "'mysql://me:***@host/x': only sqlite and postgresql are supported, "
    "write sqlite:///FILE or postgresql+psycopg://HOST/NAME",
    "sqlite://": "an in-memory database is gone when the command ends: write sqlite:///FILE",
    "sqlite:///:memory:": "an in-memory database is gone when the command ends: write sqlite:///FILE",
}


@pytest.mark.parametrize(("url", "message"), BAD_ADDRESSES.items(), ids=BAD_ADDRESSES.keys())
def test_address_when_it_cannot_be_used_then_the_error_says_so_without_the_password(
    url: str, message: str
) -> None:
    with pytest.raises(BadDatabase) as caught:
        db.open_database(url, create=True)
    assert str(caught.value) == message


def test_address_when_shown_then_has_no_password() -> None:
    assert db.show_url("postgresql://me:secret@host/x") == "postgresql://me:***@host/x"
    assert db.show_url("postgresql://host/x?user=me&password=secret") == "postgresql://host/x"


@pytest.mark.parametrize("driver", ["postgresql", "postgresql+psycopg2", "postgresql+psycopg"])
def test_address_when_it_names_any_postgresql_driver_then_psycopg_is_used(driver: str) -> None:
    engine = db.connect(f"{driver}://me@host/x")
    assert engine.url.drivername == "postgresql+psycopg"
    engine.dispose()


def test_address_when_it_sets_the_search_path_then_the_tables_go_there(postgres_url: str) -> None:
    engine = db.connect(postgres_url)
    with db.writing(engine) as connection:
        connection.execute(text("create schema evals"))
    db.open_database(f"{postgres_url}?options=-csearch_path%3Devals", create=True).dispose()
    assert inspect(engine).get_table_names("public") == []
    assert "audit_pairs" in inspect(engine).get_table_names("evals")
    engine.dispose()


def test_open_when_blank_then_has_all_tables_and_views(engine: Engine) -> None:
    inspector = inspect(engine)
    assert set(inspector.get_table_names()) == {*metadata.tables, "alembic_version"}
    assert set(inspector.get_view_names()) == set(view_texts())


def test_open_when_it_exists_then_keeps_its_rows(engine: Engine, database_url: str) -> None:
    add_prompt(engine, "p1")
    again = db.open_database(database_url, create=False)
    assert prompts(again) == ["p1"]
    again.dispose()


def test_open_when_the_file_is_missing_and_must_be_there_then_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadDatabase) as caught:
        db.open_database(f"sqlite:///{tmp_path}/typo.db", create=False)
    assert str(caught.value) == (
        f"there is no database {tmp_path}/typo.db: make one with `reward-audit import`, or name one with --db"
    )
    assert list(tmp_path.iterdir()) == []


def test_open_when_no_server_listens_then_says_so_in_one_line() -> None:
    with pytest.raises(BadDatabase) as caught:
        db.open_database("postgresql://me:secret@127.0.0.1:1/x", create=False)
    message = str(caught.value)
    assert message.startswith("postgresql://me:***@127.0.0.1:1/x cannot be opened: connection")
    assert "Connection refused" in message
    assert "\n" not in message


def _of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("create table zoo (x); create table ants (x); insert into zoo values (1)")


def _of_another_program_with_alembic(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "create table dag (x); create table alembic_version (version_num); "
            "insert into alembic_version values ('0001')"
        )


FOREIGN: dict[str, tuple[Callable[[Path], object], str]] = {
    "another program": (
        _of_another_program,
        "sqlite:///{path} holds tables of another program (ants, zoo): name another one",
    ),
    "another program that uses alembic": (
        _of_another_program_with_alembic,
        "sqlite:///{path} holds tables of another program (alembic_version, dag): name another one",
    ),
    "text": (
        lambda path: path.write_text("pair_id,gate\n1,judge\n" * 100),
        "sqlite:///{path} cannot be opened: file is not a database",
    ),
    "directory": (Path.mkdir, "sqlite:///{path} cannot be opened: unable to open database file"),
}


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize(("make", "message"), FOREIGN.values(), ids=FOREIGN.keys())
def test_open_when_it_is_not_ours_then_is_refused_untouched(
    tmp_path: Path, make: Callable[[Path], object], message: str, create: bool
) -> None:
    path = tmp_path / "foreign"
    make(path)
    before = path.read_bytes() if path.is_file() else None

    with pytest.raises(BadDatabase) as caught:
        db.open_database(f"sqlite:///{path}", create=create)

    assert str(caught.value) == message.format(path=path)
    assert (path.read_bytes() if path.is_file() else None) == before
    assert list(tmp_path.rglob("*")) == [path]


def test_open_when_a_postgresql_database_is_not_ours_then_is_refused_untouched(postgres_url: str) -> None:
    engine = db.connect(postgres_url)
    with db.writing(engine) as connection:
        connection.execute(text("create table zoo (x integer)"))
        connection.execute(text("create view zoo_view as select x from zoo"))
    with pytest.raises(BadDatabase) as caught:
        db.open_database(postgres_url, create=True)
    assert str(caught.value) == (
        f"{db.show_url(postgres_url)} holds tables of another program (zoo): name another one"
    )
    assert inspect(engine).get_table_names() == ["zoo"]
    assert inspect(engine).get_view_names() == ["zoo_view"]
    engine.dispose()


def test_open_when_the_folder_is_missing_then_says_so_and_makes_none(tmp_path: Path) -> None:
    with pytest.raises(BadDatabase) as caught:
        db.open_database(f"sqlite:///{tmp_path}/no/audit.db", create=True)
    assert str(caught.value) == (
        f"sqlite:///{tmp_path}/no/audit.db cannot be opened: unable to open database file"
    )
    assert list(tmp_path.iterdir()) == []


# Opens a database, adds a prompt, and prints what went wrong.
OPEN_AND_WRITE = """
import sys
from sqlalchemy import text
from audit.doors import db
from audit.words.errors import AuditError
try:
    engine = db.open_database(sys.argv[1], create=True)
    with db.writing(engine) as connection:
        connection.execute(
            text("insert into prompts values (:hash, 'judge', 'n', '1', 't')"), {"hash": sys.argv[2]}
        )
except AuditError as error:
    print(error)
else:
    print("written")
    engine.dispose()
"""


def run_as_owner_only(script: str, *args: str) -> str:
    """The output of a Python script run without root's power to write where the mode forbids it."""
    powerless = ["setpriv", "--bounding-set=-dac_override", "--inh-caps=-dac_override"]
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip("as root this needs setpriv, of util-linux")
    done = subprocess.run(
        [*(powerless if os.geteuid() == 0 else []), sys.executable, "-c", script, *args],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stderr == ""
    return done.stdout


def test_open_when_the_folder_is_read_only_then_says_so_in_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    assert run_as_owner_only(OPEN_AND_WRITE, f"sqlite:///{folder}/audit.db", "p1") == (
        f"sqlite:///{folder}/audit.db cannot be opened: unable to open database file\n"
    )
    assert list(folder.iterdir()) == []


def test_writing_when_the_file_is_read_only_then_says_so_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "audit.db"
    assert run_as_owner_only(OPEN_AND_WRITE, f"sqlite:///{path}", "p1") == "written\n"
    before = path.read_bytes()
    path.chmod(0o444)
    assert run_as_owner_only(OPEN_AND_WRITE, f"sqlite:///{path}", "p2") == (
        f"sqlite:///{path} cannot be written: attempt to write a readonly database\n"
    )
    assert path.read_bytes() == before


def test_sqlite_when_opened_then_keeps_a_write_ahead_log_and_enforces_foreign_keys(sqlite_url: str) -> None:
    engine = db.open_database(sqlite_url, create=True)
    with db.reading(engine) as connection:
        assert connection.execute(text("pragma journal_mode")).scalar() == "wal"
        assert connection.execute(text("pragma foreign_keys")).scalar() == 1
    engine.dispose()


def test_open_when_another_writes_before_the_log_is_on_then_succeeds_and_the_next_one_turns_it_on(
    sqlite_url: str, tmp_path: Path
) -> None:
    """SQLite does not wait for a lock to change its journal, it fails at once."""
    db.open_database(sqlite_url, create=True).dispose()
    with closing(sqlite3.connect(tmp_path / "audit.db", isolation_level=None)) as other:
        other.execute("pragma journal_mode = delete")
        other.execute("begin immediate")
        engine = db.open_database(sqlite_url, create=False)
        assert prompts(engine) == []
        assert other.execute("pragma journal_mode").fetchone() == ("delete",)
        other.execute("rollback")
    engine.dispose()
    db.open_database(sqlite_url, create=False).dispose()
    with closing(sqlite3.connect(tmp_path / "audit.db")) as other:
        assert other.execute("pragma journal_mode").fetchone() == ("wal",)


def test_row_when_its_parent_is_missing_then_is_refused(engine: Engine) -> None:
    with pytest.raises(IntegrityError), db.writing(engine) as connection:
        connection.execute(
            text("insert into judge_logs (run_id, role, attempt, parse_status, created_at) "
                 "values ('nobody', 'judge', 1, 'ok', '2026-03-05T17:15:00.000Z')")
        )  # fmt: skip


def test_writing_when_an_error_is_raised_then_nothing_of_it_is_stored(engine: Engine) -> None:
    add_prompt(engine, "before")
    with suppress(RuntimeError), db.writing(engine) as connection:
        connection.execute(INSERT_PROMPT, {"hash": "lost"})
        raise RuntimeError
    assert prompts(engine) == ["before"]


def test_writing_when_another_writes_for_too_long_then_gives_up_with_one_line(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db, "BUSY_SECONDS", 0.05)
    engine = db.open_database(sqlite_url, create=True)
    with db.writing(engine), pytest.raises(BadDatabase) as caught, db.writing(engine):
        pass
    assert str(caught.value) == f"{sqlite_url} cannot be written: database is locked"
    engine.dispose()


def test_reading_when_another_writes_meanwhile_then_sees_what_it_saw_before(engine: Engine) -> None:
    count = text("select count(*) from prompts")
    columns = "prompt_hash, role, name, version, text"
    with db.reading(engine) as connection:
        before = connection.execute(count).scalar_one()
        with db.writing(engine) as other:
            other.execute(text(f"insert into prompts ({columns}) values ('aa', 'judge', 'n', '1', 't')"))
        assert connection.execute(count).scalar_one() == before
    with db.reading(engine) as connection:
        assert connection.execute(count).scalar_one() == before + 1


def test_writing_when_another_reads_then_does_not_wait(engine: Engine) -> None:
    add_prompt(engine, "p1")
    with db.reading(engine) as connection:
        assert connection.execute(text("select count(*) from prompts")).scalar() == 1
        add_prompt(engine, "p2")
    assert prompts(engine) == ["p1", "p2"]


def test_writing_when_eight_do_it_at_once_then_every_row_is_stored(engine: Engine) -> None:
    """A transaction that reads before it writes is what a plain BEGIN loses: it cannot become a writer."""

    def write(worker: int) -> None:
        for row in range(25):
            with db.writing(engine) as connection:
                connection.execute(text("select count(*) from prompts")).scalar()
                connection.execute(INSERT_PROMPT, {"hash": f"{worker}-{row}"})

    with ThreadPoolExecutor(8) as workers:
        list(workers.map(write, range(8)))

    assert len(prompts(engine)) == 200


def test_open_when_several_make_the_same_database_at_once_then_all_succeed(database_url: str) -> None:
    # Imports come first, so that all of them open in the same moment, when their line arrives.
    script = (
        "import alembic.command\nfrom audit.doors import db\nprint(flush=True)\ninput()\n" + OPEN_AND_WRITE
    )
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", script, database_url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )
        for number in range(4)
    ]
    for worker in workers:
        assert worker.stdout
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=60)[0] for worker in workers]

    assert said == ["written\n"] * 4
    engine = db.open_database(database_url, create=False)
    assert prompts(engine) == ["0", "1", "2", "3"]
    engine.dispose()
    assert db.state(database_url)["is_current"]


def test_state_when_sound_then_tells_revision_and_row_counts(engine: Engine, database_url: str) -> None:
    add_prompt(engine, "p1")
    assert db.state(database_url) == {
        "url": db.show_url(database_url),
        "revision": db.HEAD,
        "head": db.HEAD,
        "is_current": True,
        "faults": [],
        "rows": {**{name: 0 for name in metadata.tables if name != "view_digest"}, "prompts": 1},
    }


def test_state_when_the_views_are_older_then_is_not_current(engine: Engine, database_url: str) -> None:
    with db.writing(engine) as connection:
        connection.execute(text("update view_digest set digest = 'older'"))
    assert db.state(database_url)["is_current"] is False


def test_state_when_a_table_and_a_view_are_gone_then_names_them(engine: Engine, database_url: str) -> None:
    with db.writing(engine) as connection:
        connection.execute(text("drop view position_bias"))
        for reading in ("clean_pairs", "flagged_pairs", "review_queue", "satisfied_but_failed"):
            connection.execute(text(f"drop view {reading}"))
        connection.execute(text("drop table human_labels"))
    views = ("clean_pairs", "flagged_pairs", "position_bias", "review_queue", "satisfied_but_failed")
    gone = ("human_labels", *views)
    assert db.state(database_url)["faults"] == [f"{name} is missing" for name in gone]


def test_state_when_a_reference_is_broken_then_tells_which(sqlite_url: str, tmp_path: Path) -> None:
    db.open_database(sqlite_url, create=True).dispose()
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        connection.execute(  # the driver's default: foreign keys off
            "insert into judge_logs (log_id, run_id, role, attempt, parse_status, created_at) "
            "values (7, 'gone', 'judge', 1, 'ok', '2026-03-05T17:15:00.000Z')"
        )
    assert db.state(sqlite_url)["faults"] == ["judge_logs row 7 refers to a missing row of audit_runs"]


def test_state_when_the_file_is_missing_or_foreign_then_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    with pytest.raises(BadDatabase) as caught:
        db.state(f"sqlite:///{path}")
    assert str(caught.value) == (
        f"there is no database {path}: make one with `reward-audit import`, or name one with --db"
    )
    path.write_text("not a database " * 100)
    with pytest.raises(BadDatabase) as caught:
        db.state(f"sqlite:///{path}")
    assert str(caught.value) == f"sqlite:///{path} cannot be read: file is not a database"


def test_backup_when_rows_are_still_in_the_log_then_holds_them_without_side_files(
    sqlite_url: str, tmp_path: Path
) -> None:
    """Case ST-01: a copy of the main file alone is old, or has no tables at all."""
    engine = db.open_database(sqlite_url, create=True)
    with engine.connect() as still_open:
        for number in range(5):
            add_prompt(engine, str(number))
        # What a copy of the main file alone would lose.
        assert (tmp_path / "audit.db-wal").stat().st_size > 0
        (tmp_path / "nightly").mkdir()
        db.backup(sqlite_url, tmp_path / "nightly" / "copy.db")
        still_open.execute(text("select 1"))
    engine.dispose()

    assert [path.name for path in (tmp_path / "nightly").iterdir()] == ["copy.db"]
    # The header says "no write-ahead log": with one, even a reader would have to make side files.
    assert (tmp_path / "nightly" / "copy.db").read_bytes()[18:20] == b"\x01\x01"
    with closing(sqlite3.connect(f"file:{tmp_path}/nightly/copy.db?immutable=1", uri=True)) as copy:
        assert copy.execute("select count(*) from prompts").fetchone() == (5,)
        assert copy.execute("pragma integrity_check").fetchone() == ("ok",)
    db.open_database(f"sqlite:///{tmp_path}/nightly/copy.db", create=False).dispose()


def test_backup_when_the_target_exists_then_is_refused_and_the_target_kept(
    sqlite_url: str, tmp_path: Path
) -> None:
    db.open_database(sqlite_url, create=True).dispose()
    target = tmp_path / "copy.db"
    target.write_text("precious")
    with pytest.raises(BadDatabase) as caught:
        db.backup(sqlite_url, target)
    assert str(caught.value) == f"{target} exists already: name a new file for the backup"
    assert target.read_text() == "precious"


BAD_BACKUPS = {
    "source is no database": ("notes.txt", "copy.db", "file is not a database"),
    "folder is missing": ("audit.db", "no/copy.db", "unable to open database file"),
}


@pytest.mark.parametrize(("source", "target", "problem"), BAD_BACKUPS.values(), ids=BAD_BACKUPS.keys())
def test_backup_when_it_fails_then_leaves_nothing_half_written(
    sqlite_url: str, tmp_path: Path, source: str, target: str, problem: str
) -> None:
    db.open_database(sqlite_url, create=True).dispose()
    (tmp_path / "notes.txt").write_text("not a database " * 100)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadDatabase) as caught:
        db.backup(f"sqlite:///{tmp_path / source}", tmp_path / target)
    assert str(caught.value) == f"backup to {tmp_path / target} failed: {problem}"
    assert sorted(tmp_path.rglob("*")) == before


def test_backup_when_made_then_no_other_file_is_touched(sqlite_url: str, tmp_path: Path) -> None:
    db.open_database(sqlite_url, create=True).dispose()
    (tmp_path / "copy.db.partial").write_text("somebody's own")
    db.backup(sqlite_url, tmp_path / "copy.db")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.db", "copy.db", "copy.db.partial"]
    assert (tmp_path / "copy.db.partial").read_text() == "somebody's own"
    assert db.state(f"sqlite:///{tmp_path}/copy.db")["is_current"]


def test_backup_when_on_postgresql_then_names_its_own_tool(postgres_url: str, tmp_path: Path) -> None:
    with pytest.raises(BadDatabase) as caught:
        db.backup(postgres_url, tmp_path / "copy.db")
    assert str(caught.value) == (
        f"{db.show_url(postgres_url)} is a PostgreSQL database: back it up with pg_dump"
    )
    assert list(tmp_path.iterdir()) == []
