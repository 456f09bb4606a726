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
        "error: {tmp}/none/x.csv: there is no folder {tmp}/none: make it first",
    ),
    # Before anything is read: there is not even a database.
    "page into a folder that is not there": (
        ["report", "--html", "{tmp}/none/x.html", "--db", "sqlite:///{tmp}/none.db"],
        "error: {tmp}/none/x.html: there is no folder {tmp}/none: make it first",
    ),
    "picture into a folder that is not there": (
        ["compare", "--last", "3", "--plot", "{tmp}/none/x.svg", "--db", "sqlite:///{tmp}/none.db"],
        "error: {tmp}/none/x.svg: there is no folder {tmp}/none: make it first",
    ),
    "questions into a folder that is not there": (
        ["batch", "export", "{tmp}/none/x.jsonl", "--db", "sqlite:///{tmp}/none.db"],
        "error: {tmp}/none/x.jsonl: there is no folder {tmp}/none: make it first",
    ),
    "set for DPO into a folder that is not there": (
        ["export", "dpo", "-o", "{tmp}/none/x.jsonl", "--db", "sqlite:///{tmp}/none.db"],
        "error: {tmp}/none/x.jsonl: there is no folder {tmp}/none: make it first",
    ),
    "config that is not there": (
        ["run", "-c", "{tmp}/none.yaml"],
        "error: {tmp}/none.yaml: no such file: `reward-audit init` writes one to begin with, "
        "the README shows all",
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


VIEWS = (
    "agent_pairs, clean_pairs, flagged_pairs, misselection_by_category, misselection_by_gap, "
    "misselection_by_judge, near_tie_vs_wide_gap, position_bias, prompt_versions, review_queue, "
    "run_progress, satisfied_but_failed, token_cost"
)
FORMATS = "judgebench, llmbar, pandalm, tau, tau2, inspect, sessions, jsonl, csv, gauge-csv, rewards"
BUCKETS = "expected gauge or scores, edges such as 0,.1,.3, or intervals such as '[0,1] (1,3] (3,..)'"
USAGE = {
    "unknown command": (["nope"], "No such command 'nope'", ""),
    "misspelt command": (["reprot"], "No such command 'reprot' (did you mean report?)", ""),
    "misspelt subcommand": (["db", "chek"], "No such command 'chek'. Did you mean 'check'?", "db"),
    "misspelt option": (
        ["report", "--gats", "x"],
        "No such option '--gats'. Did you mean '--gate'?",
        "report",
    ),
    "option of another command": (
        ["report", "--last", "3"],
        "No such option '--last': it is of `compare`",
        "report",
    ),
    "option of a command of a group": (
        ["runs", "--annotator", "x"],
        "No such option '--annotator': it is of `review import`, `review serve`",
        "runs",
    ),
    "option of many": (
        ["report", "--dry-run"],
        "No such option '--dry-run': it is of `run`, `simulate`, `judge` and others",
        "report",
    ),
    "unknown format": (
        ["import", "nope", "x"],
        f"Invalid value for 'FORMAT': 'nope' is none of {FORMATS}",
        "import",
    ),
    "misspelt format": (
        ["import", "judgebenhc", "x"],
        f"Invalid value for 'FORMAT': 'judgebenhc' is none of {FORMATS} (did you mean judgebench?)",
        "import",
    ),
    "misspelt choice": (
        ["score", "--gap-source", "agnt"],
        "Invalid value for '--gap-source': 'agnt' is none of agent, session, judge, external "
        "(did you mean agent?)",
        "score",
    ),
    "nothing to import": (["import"], f"Missing argument 'FORMAT'. Choose from: {FORMATS}", "import"),
    "rewards without a run": (
        ["import", "rewards", "x"],
        "rewards needs --run RUN: the run whose pairs get them",
        "import",
    ),
    "pandalm with one file": (
        ["import", "pandalm", "x"],
        "pandalm needs two files: the test set and the judge's results",
        "import",
    ),
    "grammar where the format says it": (
        ["import", "llmbar", "x", "--grammar", "json"],
        "llmbar says itself how its replies are read: no --grammar",
        "import",
    ),
    "near without buckets": (
        ["score", "--near", "1"],
        "--near needs --buckets: a preset says itself what is near",
        "score",
    ),
    "buckets that overlap": (
        ["score", "--buckets", "[0,2] (1,3]"],
        "Invalid value for --buckets: the last bucket must be open at the top: write (1,..)",
        "score",
    ),
    "misspelt bucket set": (
        ["score", "--buckets", "gage"],
        f"Invalid value for --buckets: 'gage' is no bucket set (did you mean gauge?): {BUCKETS}",
        "score",
    ),
    "an edge that is a word": (
        ["import", "csv", "x", "--buckets", "0,.1,wide"],
        f"Invalid value for --buckets: 'wide' is not a number: {BUCKETS}",
        "import",
    ),
    "two ways to print": (["sql", "select 1", "--csv", "--json"], "--csv or --json, not both", "sql"),
    "unknown view": (["views", "nope"], f"Invalid value for VIEW: 'nope' is none of {VIEWS}", "views"),
    "misspelt view": (
        ["views", "misselction_by_gap"],
        f"Invalid value for VIEW: 'misselction_by_gap' is none of {VIEWS} "
        "(did you mean misselection_by_gap?)",
        "views",
    ),
    "export of a view": (
        ["export", "agent_pair", "-o", "x.csv"],
        "Invalid value for 'WHAT': 'agent_pair' is none of dpo, pairs, logs, gauge-csv, parquet; "
        "`reward-audit views agent_pairs --csv` prints the view",
        "export",
    ),
    "export without a file": (["export", "pairs"], "Missing option '-o' / '--output'", "export"),
    "line that would drive the terminal": (["a\x1b[2J\nb"], "No such command 'a\\x1b[2J\\nb'", ""),
}  # fmt: skip


@pytest.mark.parametrize(("args", "message", "command"), USAGE.values(), ids=USAGE.keys())
def test_command_line_when_it_is_wrong_then_one_line_says_so_with_exit_code_2_and_makes_no_database(
    cli: Callable[..., Any], tmp_path: Path, args: list[str], message: str, command: str
) -> None:
    ran = cli(*args)

    helped = f"python -m audit {command}".strip()
    assert ran.stderr == f"error: {message} (help: {helped} --help)\n"
    assert (ran.code, ran.stdout) == (2, "")
    assert not (tmp_path / "audit.db").exists()


def test_command_line_when_it_names_no_command_then_the_help_is_shown_with_exit_code_2(
    cli: Callable[..., Any],
) -> None:
    for args in ((), ("db",)):
        ran = cli(*args)
        assert (ran.code, ran.stdout, ran.stderr[:7]) == (2, "", "Usage: "), args
        assert "\nCommands:\n" in ran.stderr


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


def test_db_check_when_it_counts_rows_then_all_counts_end_in_one_column(cli: Any) -> None:
    assert cli("db", "upgrade").code == 0
    rows = [line for line in cli("db", "check").stdout.splitlines() if line.endswith(" rows")]
    assert "  provider_batches            0 rows" in rows
    assert {len(line) for line in rows} == {len(rows[0])}


def test_db_check_when_the_database_is_newer_then_it_is_not_called_older(cli: Any, tmp_path: Path) -> None:
    assert cli("db", "upgrade").code == 0
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection, connection:
        connection.execute("update alembic_version set version_num = '9999'")
    done = cli("db", "check")
    assert "revision 9999 (newer than this program: upgrade the program)" in done.stdout
