"""A SQLite database where nothing can be written: read by a process that has no right to write it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from audit.doors.db import is_frozen, open_database
from audit.pipeline.importing import Wish, import_file

CHECKOUT = Path(__file__).parents[2]
PAIRS = "pair_id,agent_a,agent_b,reward_a,reward_b,pref_ab,pref_ba\np1,ash,elm,1,0,A,A\np2,ash,elm,0,1,A,A\n"
# Root may write everywhere, unless it leaves that right behind.
LIKE_OTHERS = ["setpriv", "--bounding-set", "-dac_override"] if os.geteuid() == 0 else []


def ask(*args: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*LIKE_OTHERS, sys.executable, "-m", "audit", *args],
        cwd="/",
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a database of two pairs."""
    if LIKE_OTHERS and (not shutil.which("setpriv") or ask("--version").returncode):
        pytest.skip("needs setpriv, because root may write everywhere")
    made = tmp_path / "frozen"
    made.mkdir()
    (made / "judged.csv").write_text(PAIRS, encoding="utf-8")
    engine = open_database(f"sqlite:///{made / 'a.db'}", create=True)
    import_file(engine, Wish("csv", (made / "judged.csv",)))
    engine.dispose()
    yield made
    made.chmod(0o755)


def freeze(folder: Path) -> str:
    for path in folder.iterdir():
        path.chmod(0o444)
    folder.chmod(0o555)
    return f"sqlite:///{folder / 'a.db'}"


def test_database_when_neither_file_nor_folder_can_be_written_then_every_reading_command_reads_it(
    folder: Path,
) -> None:
    assert not list(folder.glob("a.db-*"))
    url = freeze(folder)

    for args, said in (
        (("report",), "2 verdicts for a side, 1 (50%)"),
        (("sql", "--csv", "select count(*) as n from audit_pairs"), "n\n2\n"),
        (("views", "misselection_by_judge", "--csv"), "judge"),
        (("runs",), "judged"),
        (("db", "check"), "sound"),
    ):
        ran = ask("--db", url, *args)
        assert (ran.returncode, ran.stderr) == (0, ""), args
        assert said in " ".join(ran.stdout.split(" ")), args
    assert not list(folder.glob("a.db-*"))


def test_database_when_it_cannot_be_written_then_a_writing_command_says_so(folder: Path) -> None:
    ran = ask("--db", freeze(folder), "score", "--swap-rule", "net_vote")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"error: sqlite:///{folder / 'a.db'} cannot be written: attempt to write a readonly database\n"
    )


def test_database_when_rows_are_still_in_its_log_then_it_is_read_with_them_or_says_what_to_do(
    folder: Path,
) -> None:
    with closing(sqlite3.connect(folder / "a.db")) as writer:
        writer.execute("pragma wal_autocheckpoint = 0")
        writer.execute("update audit_runs set name = 'newer'")
        writer.commit()
        url = freeze(folder)
        with_index = ask("--db", url, "sql", "--csv", "select name from audit_runs")
        folder.chmod(0o755)
        (folder / "a.db-shm").rename(folder / "gone")
        folder.chmod(0o555)
        without = ask("--db", url, "sql", "--csv", "select name from audit_runs")

    assert with_index.stdout == "name\nnewer\n"
    assert (without.returncode, without.stdout) == (1, "")
    assert without.stderr == (
        f"error: {url} cannot be opened: unable to open database file: its place is read-only for you: copy "
        "a.db, with a.db-wal where there is one, to a folder of yours and name the copy with --db\n"
    )


def test_database_when_others_may_still_write_it_then_it_is_not_taken_as_fixed(folder: Path) -> None:
    url = freeze(folder)
    (folder / "a.db").chmod(0o464)

    ran = ask("--db", url, "report")

    assert (ran.returncode, ran.stdout) == (1, "")
    assert "copy a.db, with a.db-wal where there is one, to a folder of yours" in ran.stderr


def test_database_when_we_can_write_it_then_it_is_not_taken_as_fixed(folder: Path) -> None:
    assert not is_frozen(str(folder / "a.db"))
    assert not is_frozen(str(folder / "none.db"))
