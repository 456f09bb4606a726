"""What all tests share: a database of each kind, the recorded data, the real command; a tally of what ran.

A test that was skipped looks like a test that passed. So the run ends with what ran where, and fails where a
database or the recorded data was there, or should have been, and was not used.
"""

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import settings
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

# How long one example takes is the machine's affair; a busy one must not fail a test of what is right.
settings.register_profile("audit", deadline=None)
settings.load_profile("audit")

CHECKOUT = Path(__file__).resolve().parent.parent
SHARED = CHECKOUT.parent / "shared"
POSTGRES = os.environ.get("REWARD_AUDIT_TEST_POSTGRES", "")
ON_CI = os.environ.get("CI", "").lower() in ("1", "true")
KINDS = {"sqlite": "on SQLite", "postgres": "on PostgreSQL", "shared_data": "on the recorded data"}


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The address of a SQLite file that is not there yet."""
    return f"sqlite:///{tmp_path / 'audit.db'}"


@pytest.fixture
def postgres_url() -> Iterator[str]:
    """The address of an empty PostgreSQL database that is dropped after the test."""
    if not POSTGRES:
        pytest.skip(
            "needs a PostgreSQL server: "
            "export REWARD_AUDIT_TEST_POSTGRES=$(.ci/postgres start /tmp/reward-audit-postgres)"
        )
    name = f"reward_audit_{uuid4().hex}"
    server = create_engine(POSTGRES, isolation_level="AUTOCOMMIT")
    try:
        with server.connect() as connection:
            # Copying files is what PostgreSQL did before 15, and still four times as fast as its new way.
            strategy = "strategy file_copy" if connection.dialect.server_version_info >= (15,) else ""
            connection.execute(text(f"create database {name} template template0 {strategy}"))
        yield make_url(POSTGRES).set(database=name).render_as_string(hide_password=False)
        with server.connect() as connection:
            connection.execute(text(f"drop database {name} with (force)"))
    finally:
        server.dispose()


@pytest.fixture(
    params=[
        pytest.param("sqlite_url", id="sqlite", marks=pytest.mark.sqlite),
        pytest.param("postgres_url", id="postgres", marks=pytest.mark.postgres),
    ]
)
def database_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database: each test runs once on SQLite and once on PostgreSQL."""
    url: str = request.getfixturevalue(request.param)
    return url


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded judgments beside the checkout. Read-only."""
    if not SHARED.is_dir():
        pytest.skip(f"needs the recorded judgments in {SHARED}")
    return SHARED


@dataclass(frozen=True)
class Ran:
    """What a command printed and how it ended."""

    stdout: str
    stderr: str
    code: int


@pytest.fixture
def cli(tmp_path: Path, command_in: Callable[[Path], Callable[..., Ran]]) -> Callable[..., Ran]:
    """The real command in the test's own folder."""
    return command_in(tmp_path)


@pytest.fixture(scope="session")
def command_in() -> Callable[[Path], Callable[..., Ran]]:
    """Folder -> the real command, run in an empty folder there, on a SQLite database there or on `db`.

    `cwd` runs it elsewhere, `env` adds to the environment, `stdin` is what is typed.
    """

    def of(folder: Path) -> Callable[..., Ran]:
        def run(
            *args: str | Path,
            db: str = f"sqlite:///{folder / 'audit.db'}",
            cwd: Path | None = None,
            env: Mapping[str, str] | None = None,
            stdin: str = "",
        ) -> Ran:
            # The environment of whoever runs the tests must not decide what they find.
            inherited = {
                k: v for k, v in os.environ.items() if not k.startswith("REWARD_AUDIT_") and k != "COLUMNS"
            }
            here = folder / "cwd"
            here.mkdir(exist_ok=True)
            done = subprocess.run(
                [sys.executable, "-m", "audit", *map(str, args)],
                cwd=cwd or here,
                env={**inherited, "PYTHONPATH": str(CHECKOUT), "REWARD_AUDIT_DB": db, **(env or {})},
                input=stdin,
                capture_output=True,
                encoding="utf-8",
                check=False,
            )
            return Ran(done.stdout, done.stderr, done.returncode)

        return run

    return of


ran: Counter[str] = Counter()
skipped: Counter[str] = Counter()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by what a test asks for, so that `-m postgres` and the tally see it."""
    marks = {"sqlite_url": "sqlite", "postgres_url": "postgres", "shared": "shared_data"}
    for item in items:
        for fixture in getattr(item, "fixturenames", ()):
            if fixture in marks:
                item.add_marker(marks[fixture])


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    kinds = KINDS.keys() & report.keywords.keys()
    if report.skipped and "postgres" in kinds and not POSTGRES:
        # Skipped for want of a server, not of the recorded data.
        kinds -= {"shared_data"}
    for kind in kinds:
        if report.skipped and not hasattr(report, "wasxfail"):
            skipped[kind] += 1
        elif report.when == "call":
            ran[kind] += 1


def wrongly_skipped() -> list[str]:
    """Why this run proves less than it seems to."""
    found = []
    if skipped["postgres"] and POSTGRES:
        found.append(
            f"{skipped['postgres']} tests skipped PostgreSQL though REWARD_AUDIT_TEST_POSTGRES is set"
        )
    elif skipped["postgres"] and ON_CI:
        found.append(f"{skipped['postgres']} tests skipped PostgreSQL: set REWARD_AUDIT_TEST_POSTGRES")
    if skipped["shared_data"] and SHARED.is_dir():
        found.append(f"{skipped['shared_data']} tests skipped the recorded data though {SHARED} is there")
    return found


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if exitstatus == pytest.ExitCode.OK and wrongly_skipped():
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for kind, where in KINDS.items():
        terminalreporter.write_line(f"{ran[kind]} tests ran {where}, {skipped[kind]} skipped")
    for line in wrongly_skipped():
        terminalreporter.write_line(f"FAILED: {line}", red=True)
