"""What an output may be: never the database, what belongs to it, or a file that was read."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAIRS = "pair_id,agent_a,agent_b,reward_a,reward_b,pref_ab,pref_ba\np1,ash,elm,1,0,A,A\np2,ash,elm,0,1,A,A\n"
OUTPUTS = {
    "report": (["report", "--html"], "html", ".html, .htm"),
    "pairs": (["export", "pairs", "-o"], "csv", ".jsonl, .csv, .parquet"),
    "logs": (["export", "logs", "-o"], "jsonl", ".jsonl, .csv, .parquet"),
    "gauge-csv": (["export", "gauge-csv", "-o"], "csv", ".csv"),
    "dpo": (["export", "dpo", "-o"], "jsonl", ".jsonl, .parquet"),
    "plot": (["compare", "--last", "2", "--plot"], "svg", ".svg, .png, .pdf"),
}


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory, command_in: Callable[[Path], Callable[..., Any]]
) -> Path:
    """A folder with a file of judgments and a database of two runs of it."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "judged.csv").write_text(PAIRS, encoding="utf-8")
    for name in ("n1", "n2"):
        done = command_in(folder)("import", "csv", folder / "judged.csv", "--name", name)
        assert done.code == 0, done.stderr
    return folder


@pytest.fixture
def run(filled: Path, tmp_path: Path, here: Callable[..., Any]) -> Callable[..., Any]:
    """The command beside a copy of that folder; `audit.db` is its database."""
    for name in ("judged.csv", "audit.db"):
        shutil.copy(filled / name, tmp_path / name)
    return here


def contents(folder: Path) -> dict[str, bytes]:
    # What SQLite keeps beside a database comes and goes with its readers.
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))
    }


@pytest.mark.parametrize("what", OUTPUTS)
@pytest.mark.parametrize("name", ["audit.db", "audit.db-wal", "-", "judged", ".env"])
def test_output_when_its_ending_says_no_format_then_nothing_is_written(
    run: Callable[..., Any], tmp_path: Path, what: str, name: str
) -> None:
    args, _, endings = OUTPUTS[what]
    before = contents(tmp_path)

    ran = run(*args, name)

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == f"error: {name}: its ending says no format: use one of {endings}\n"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("what", OUTPUTS)
@pytest.mark.parametrize("way", ["itself", "link", "linked folder"])
def test_output_when_it_is_the_database_then_it_is_refused(
    run: Callable[..., Any], tmp_path: Path, what: str, way: str
) -> None:
    args, ending, _ = OUTPUTS[what]
    real = tmp_path / f"base.{ending}"
    (tmp_path / "audit.db").rename(real)
    (tmp_path / "there").symlink_to(tmp_path)
    (tmp_path / f"link.{ending}").symlink_to(real)
    named = {"itself": real.name, "link": f"link.{ending}", "linked folder": f"there/{real.name}"}[way]

    ran = run(*args, named, db=f"sqlite:///{real}")

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"error: {named}: is a database, or a part of one, and would be replaced: name another\n"
    )
    assert real.read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("what", ["pairs", "gauge-csv"])
def test_output_when_a_run_was_imported_from_it_then_it_is_refused(
    run: Callable[..., Any], tmp_path: Path, what: str
) -> None:
    ran = run(*OUTPUTS[what][0], "judged.csv")

    assert (ran.code, ran.stdout) == (1, "")
    assert "was imported from it, and it would be replaced: name another" in ran.stderr
    assert (tmp_path / "judged.csv").read_text(encoding="utf-8") == PAIRS


def test_output_when_it_is_the_config_then_it_is_refused(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text("{}", encoding="utf-8")

    ran = run("-c", "c.jsonl", "export", "pairs", "-o", "./c.jsonl")

    assert ran.stderr == "error: c.jsonl: is read by this command and would be replaced: name another\n"
    assert (tmp_path / "c.jsonl").read_text(encoding="utf-8") == "{}"


def test_page_when_a_page_is_there_then_it_is_replaced(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "page.HTM").write_text("the old one", encoding="utf-8")

    assert run("report", "--html", "page.HTM").code == 0
    assert (tmp_path / "page.HTM").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_log_when_it_is_the_database_then_no_line_is_added_to_it(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    before = (tmp_path / "audit.db").read_bytes()

    ran = run("run", "--log-file", "audit.db")

    assert (ran.code, "audit.db: is a database, or a part of one" in ran.stderr) == (1, True)
    assert (tmp_path / "audit.db").read_bytes() == before
