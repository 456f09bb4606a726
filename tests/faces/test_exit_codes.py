"""How a command ends: its exit code, and for an error one line that says what is wrong and what to do."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from audit.doors.db import open_database

PAIRS = "pair_id,agent_a,agent_b,reward_a,reward_b,pref_ab,pref_ba\np1,ash,elm,1,0,A,A\np2,ash,elm,0,1,A,A\n"


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run of two pairs: one right, one misselected. To be read only."""
    from audit.pipeline.importing import Wish, import_file

    folder = tmp_path_factory.mktemp("filled")
    file = folder / "judged.csv"
    file.write_text(PAIRS, encoding="utf-8")
    engine = open_database(f"sqlite:///{folder / 'audit.db'}", create=True)
    import_file(engine, Wish("csv", (file,)))
    engine.dispose()
    return folder / "audit.db"


def arguments(template: list[str], filled: Path, tmp_path: Path) -> list[str]:
    return [part.format(db=f"sqlite:///{filled}", tmp=tmp_path) for part in template]


ERRORS = {
    "file that is not there": (
        ["import", "csv", "{tmp}/none.csv"],
        "error: {tmp}/none.csv: no such file",
    ),
    "file that is not what it is called": (
        ["import", "jsonl", "{tmp}/bad.jsonl"],
        "error: {tmp}/bad.jsonl, line 2 column 2: not valid JSON: "
        "Expecting property name enclosed in double quotes",
    ),
    "database that is not there": (
        ["report", "--db", "sqlite:///{tmp}/none.db"],
        "error: there is no database {tmp}/none.db: "
        "make one with `reward-audit import`, or name one with --db",
    ),
    "database of an unknown kind": (
        ["report", "--db", "mysql://me:secret@host/x"],
        "error: 'mysql://me:***@host/x': only sqlite and postgresql are supported, "
        "write sqlite:///FILE or postgresql+psycopg://HOST/NAME",
    ),
    "run that is not there": (
        ["report", "nope", "--db", "{db}"],
        "error: there is no run 'nope': `reward-audit runs` lists them",
    ),
    "gate that is not there": (
        ["report", "--gate", "no\x1b[31mpe", "--db", "{db}"],
        "error: run {run} has no gate 'no\\x1b[31mpe', only judge",
    ),
    "id that nothing has": (
        ["show", "nope", "--db", "{db}"],
        "error: nothing has the id 'nope': `reward-audit runs` lists the runs",
    ),
    "statement that writes": (
        ["sql", "delete from audit_pairs", "--db", "{db}"],
        "error: 'delete' is not a question: only select, with, values and explain are read",
    ),
    "export to a folder that is not there": (
        ["export", "pairs", "-o", "{tmp}/none/x.csv", "--db", "{db}"],
        "error: {tmp}/none/x.csv: cannot be written: No such file or directory",
    ),
    "export in an unknown format": (
        ["export", "pairs", "-o", "{tmp}/x.xlsx", "--db", "{db}"],
        "error: {tmp}/x.xlsx: its ending says no format: use one of .jsonl, .csv, .parquet",
    ),
    "sessions of a run without any": (
        ["export", "gauge-csv", "-o", "{tmp}/x.csv", "--db", "{db}"],
        "error: run {run} holds no sessions",
    ),
    "file name that would drive the terminal": (
        ["import", "csv", "{tmp}/a\x1b[2J\n\u202eb.csv"],
        "error: {tmp}/a\\x1b[2J \\u202eb.csv: no such file",
    ),
}


@pytest.mark.parametrize(("args", "message"), ERRORS.values(), ids=ERRORS.keys())
def test_error_when_a_command_fails_then_it_is_one_whole_line_and_exit_code_1(
    cli: Callable[..., Any], filled: Path, tmp_path: Path, args: list[str], message: str
) -> None:
    (tmp_path / "bad.jsonl").write_text('{"pair_id": "p1", "pref_ab": "A"}\n{\n', encoding="utf-8")
    ran = cli(*arguments(args, filled, tmp_path))

    run = the_run(filled) if "{run}" in message else ""
    assert ran.stderr == message.format(tmp=tmp_path, run=run) + "\n"
    assert (ran.code, ran.stdout) == (1, "")


def the_run(filled: Path) -> str:
    from audit.doors.query import ask_sql

    engine = open_database(f"sqlite:///{filled}", create=False)
    try:
        return str(ask_sql(engine, "select run_id from audit_runs").rows[0][0])
    finally:
        engine.dispose()


def test_error_when_verbose_then_the_traceback_is_shown_and_the_exit_code_stays(
    cli: Callable[..., Any], filled: Path
) -> None:
    for args in (["-v", "report", "nope"], ["report", "nope", "-v"]):
        ran = cli(*args, db=f"sqlite:///{filled}")
        lines = ran.stderr.splitlines()
        assert lines[0] == "Traceback (most recent call last):"
        assert lines[-1] == (
            "audit.words.errors.BadRequest: there is no run 'nope': `reward-audit runs` lists them"
        )
        assert (ran.code, ran.stdout) == (1, "")


def test_error_when_nobody_foresaw_it_then_it_is_one_line_too_and_verbose_shows_where(
    cli: Callable[..., Any], filled: Path, tmp_path: Path
) -> None:
    damaged = tmp_path / "damaged.db"
    content = bytearray(filled.read_bytes())
    # Page 1 with the table definitions stays, so that the damage is met in the middle of a question.
    content[8192:] = b"\xff" * (len(content) - 8192)
    damaged.write_bytes(content)
    ran = cli("runs", db=f"sqlite:///{damaged}")

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith("error: ")
    assert ran.stderr.count("\n") == 1
    assert "Traceback" not in ran.stderr
    assert "malformed" in ran.stderr


USAGE = {
    "no command": ([], "Usage: "),
    "unknown command": (["nope"], "Error: No such command 'nope'.\n"),
    "unknown format": (["import", "nope", "x"], "Error: Invalid value for 'FORMAT': 'nope' is not one of"),
    "rewards without a run": (
        ["import", "rewards", "x"],
        "Error: rewards needs --run RUN: the run whose pairs get them\n",
    ),
    "pandalm with one file": (
        ["import", "pandalm", "x"],
        "Error: pandalm needs two files: the test set and the judge's results\n",
    ),
    "grammar where the format says it": (
        ["import", "llmbar", "x", "--grammar", "json"],
        "Error: llmbar says itself how its replies are read: no --grammar\n",
    ),
    "near without buckets": (
        ["score", "--near", "1"],
        "Error: --near needs --buckets: a preset says itself what is near\n",
    ),
    "buckets that overlap": (["score", "--buckets", "[0,2] (1,3]"], "Error: Invalid value for --buckets: "),
    "two ways to print": (["sql", "select 1", "--csv", "--json"], "Error: --csv or --json, not both\n"),
    "unknown view": (["views", "nope"], "Error: Invalid value for VIEW: 'nope' is none of agent_pairs, "),
    "export without a file": (["export", "pairs"], "Error: Missing option '-o' / '--output'.\n"),
}  # fmt: skip


@pytest.mark.parametrize(("args", "message"), USAGE.values(), ids=USAGE.keys())
def test_command_line_when_it_is_wrong_then_it_says_so_with_exit_code_2_and_makes_no_database(
    cli: Callable[..., Any], tmp_path: Path, args: list[str], message: str
) -> None:
    ran = cli(*args)

    assert (ran.code, ran.stdout) == (2, "")
    assert message in ran.stderr
    assert "Traceback" not in ran.stderr
    assert not (tmp_path / "audit.db").exists()


def test_shared_options_when_given_before_or_after_the_command_then_they_mean_the_same(
    cli: Callable[..., Any], filled: Path, tmp_path: Path
) -> None:
    url = f"sqlite:///{filled}"
    nowhere = f"sqlite:///{tmp_path / 'none.db'}"
    before = cli("--db", url, "--json", "runs", db=nowhere)
    after = cli("runs", "--json", "--db", url, db=nowhere)
    environment = cli("runs", "--json", db=url)
    both = cli("--db", nowhere, "runs", "--json", "--db", url, db=nowhere)
    of_a_group = cli("db", "--db", url, "--json", "check", db=nowhere)

    assert before.code == 0
    assert '"name": "judged"' in before.stdout
    assert before == after == environment == both
    assert (of_a_group.code, of_a_group.stdout[0]) == (0, "{")


def test_database_when_none_is_named_then_it_is_a_file_in_the_working_folder(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "judged.csv"
    file.write_text(PAIRS, encoding="utf-8")
    ran = cli("import", "csv", file, db="")

    assert ran.code == 0
    assert (tmp_path / "cwd" / "reward_audit.db").exists()


def test_output_when_its_reader_goes_away_then_the_command_ends_quietly(filled: Path) -> None:
    # Far more than a pipe holds, so that writing goes on after the reader has gone.
    long = (
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 3000) "
        f"select i, '{'a text that fills the pipe ' * 2}' as t from n"
    )
    for args in (["sql", long, "--csv"], ["sql", long, "--limit", "3000"], ["sql", long, "--json"]):
        with subprocess.Popen(
            [sys.executable, "-m", "audit", *args, "--db", f"sqlite:///{filled}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            errors = process.stderr.read()
        assert (errors, process.returncode) == (b"", 0), args


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_output_when_its_disk_is_full_then_that_is_an_error_of_one_line(filled: Path) -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "audit", "report", "--db", f"sqlite:///{filled}"],
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
            check=False,
        )

    assert (ran.returncode, ran.stderr) == (1, b"error: No space left on device\n")


def test_import_when_interrupted_then_exit_code_130_and_nothing_is_stored_or_left_behind(
    tmp_path: Path,
) -> None:
    file = tmp_path / "large.csv"
    with file.open("w", encoding="utf-8") as out:
        out.write("pair_id,agent_a,agent_b,reward_a,reward_b,pref_ab,pref_ba,prompt,response_a,response_b\n")
        for number in range(300_000):
            out.write(f"p{number},ash,elm,1,0,A,A,question {number},answer a {number},answer b {number}\n")
    folder = tmp_path / "here"
    folder.mkdir()
    engine = open_database(f"sqlite:///{folder / 'audit.db'}", create=True)
    engine.dispose()
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "audit",
            "import",
            "csv",
            str(file),
            "--db",
            f"sqlite:///{folder / 'audit.db'}",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "TMPDIR": str(folder)},
    ) as process:
        wait_until_it_writes(process, folder / "audit.db-wal")
        process.send_signal(signal.SIGINT)
        out_bytes, errors = process.communicate(timeout=60)

    # The first line end closes the terminal's ^C.
    assert errors == b"\ninterrupted: what was not finished was not stored\n"
    assert (process.returncode, out_bytes) == (130, b"")
    assert sorted(path.name for path in folder.iterdir()) == ["audit.db"]
    engine = open_database(f"sqlite:///{folder / 'audit.db'}", create=False)
    try:
        from audit.doors.query import ask_sql

        for table in ("audit_runs", "audit_pairs", "sessions", "judge_logs"):
            assert ask_sql(engine, f"select count(*) from {table}").rows == [(0,)]
    finally:
        engine.dispose()


def wait_until_it_writes(process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the import is in the middle of its one transaction: its write-ahead log has grown."""
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        if log.exists() and log.stat().st_size > 1_000_000:
            return
        time.sleep(0.02)
    raise AssertionError("the import ended, or never began, before it could be interrupted")


def test_db_check_when_the_database_is_newer_then_it_is_not_called_older(cli: Any, tmp_path: Path) -> None:
    assert cli("db", "upgrade").code == 0
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        connection.execute("update alembic_version set version_num = '9999'")
    done = cli("db", "check")
    assert "revision 9999 (newer than this program: upgrade the program)" in done.stdout
