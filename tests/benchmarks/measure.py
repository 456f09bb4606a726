"""What all benchmarks share: the command line, the clock, a child's peak memory, goals, the JSON at the end.

Seconds mean little from one machine to the next, so every goal is a ratio of figure to base, both of the same
run; for memory the base is the size that is not to be passed.
"""

import argparse
import json
import os
import platform
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar
from uuid import uuid4

Item = TypeVar("Item")
ROOT = Path(__file__).resolve().parents[2]
MILLION = 1_000_000


class Goal(NamedTuple):
    """`ratio` must be `at_least` or `at_most` the limit; it is figure / base, both of this run."""

    name: str
    figure: float
    base: float
    side: Literal["at_least", "at_most"]
    limit: float

    @property
    def ratio(self) -> float:
        return self.figure / self.base

    @property
    def is_met(self) -> bool:
        return self.ratio >= self.limit if self.side == "at_least" else self.ratio <= self.limit


class Spent(NamedTuple):
    """Seconds on the wall and seconds of processor time: the second says how busy the machine was besides."""

    wall: float
    cpu: float

    @classmethod
    def by_now(cls) -> "Spent":
        return cls(time.perf_counter(), time.process_time())

    def since(self, earlier: "Spent") -> "Spent":
        return Spent(self.wall - earlier.wall, self.cpu - earlier.cpu)


class Finished(NamedTuple):
    """A child process that ended well."""

    spent: Spent
    peak_mb: float
    output: str


class Stopwatch:
    """What is measured, from its making on, without what was spent `around` making the rows."""

    def __init__(self) -> None:
        self._began = Spent.by_now()

    def around(self, items: Iterable[Item]) -> Iterator[Item]:
        """The items; the time to make each of them does not count."""
        found = iter(items)
        while True:
            before = Spent.by_now()
            item = next(found, None)
            away = Spent.by_now().since(before)
            self._began = Spent(self._began.wall + away.wall, self._began.cpu + away.cpu)
            if item is None:
                return
            yield item

    def spent(self) -> Spent:
        return Spent.by_now().since(self._began)


def arguments(description: str | None, *, pairs: int = MILLION) -> argparse.ArgumentParser:
    """A parser with the options that every benchmark has."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=pairs, metavar="N", help="how many pairs (%(default)s)")
    parser.add_argument("--no-limits", action="store_true", help="exit 0 also past a goal")
    parser.add_argument("--dir", type=Path, help="where the files, some GB, may lie for a while")
    return parser


def with_postgres(parser: argparse.ArgumentParser) -> None:
    """The option to measure on a server of PostgreSQL instead of on SQLite."""
    parser.add_argument(
        "--postgres",
        metavar="URL",
        help="measure on this server, in a database of its own that is dropped after (default: SQLite)",
    )


@contextmanager
def database(options: argparse.Namespace) -> Iterator[str]:
    """The address of an empty database, SQLite's or the server's, that is gone after."""
    if not options.postgres:
        with scratch(options) as folder:
            yield f"sqlite:///{Path(folder) / 'loaded.db'}"
        return
    import psycopg
    from sqlalchemy.engine import make_url

    name = f"reward_audit_benchmark_{uuid4().hex[:12]}"
    with psycopg.connect(psycopg_url(options.postgres), autocommit=True) as server:
        server.execute(f"create database {name} template template0".encode())
    try:
        yield make_url(options.postgres).set(database=name).render_as_string(hide_password=False)
    finally:
        with psycopg.connect(psycopg_url(options.postgres), autocommit=True) as server:
            server.execute(f"drop database {name} with (force)".encode())


def psycopg_url(url: str) -> str:
    """The address as psycopg alone takes it."""
    from sqlalchemy.engine import make_url

    return make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)


def is_postgres(url: str) -> bool:
    """Does the address name a server of PostgreSQL?"""
    return url.startswith("postgresql")


def sqlite_file(url: str) -> str:
    """The file of a SQLite address."""
    return url.removeprefix("sqlite:///")


def vacuum(url: str) -> None:
    """What autovacuum does some time after a load, done now, so that each run measures the same."""
    import psycopg

    with psycopg.connect(psycopg_url(url), autocommit=True) as server:
        server.execute("vacuum (analyze)")


def scratch(options: argparse.Namespace) -> "tempfile.TemporaryDirectory[str]":
    """A folder that is gone after the run."""
    return tempfile.TemporaryDirectory(prefix="reward-audit-benchmark-", dir=options.dir)


def child(command: Sequence[str | Path]) -> Finished:
    """Run a command to its end. Raises SystemExit with its words where it fails.

    Linux counts a child as at least as large as its parent was when it began it: so a benchmark that limits
    memory loads nothing large itself, but in another child.
    """
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} ended with {process.returncode}: {output}")
    spent = Spent(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)
    # Linux tells kibibytes, macOS bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Finished(spent, usage.ru_maxrss * unit / 1e6, output)


def finish(options: argparse.Namespace, name: str, goals: Sequence[Goal], **facts: Any) -> None:
    """Print the one JSON object and leave: 1 where a goal is not met, else 0."""
    told = {
        goal.name: {
            "figure": _short(goal.figure),
            "base": _short(goal.base),
            "ratio": _short(goal.ratio),
            goal.side: goal.limit,
            "is_met": goal.is_met,
        }
        for goal in goals
    }
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    if getattr(options, "postgres", None):
        machine["postgres"] = _server_version(options.postgres)
    print(json.dumps({"benchmark": name, "goals": told, "machine": machine, **_told(facts)}))
    sys.exit(0 if options.no_limits or all(goal.is_met for goal in goals) else 1)


def _server_version(url: str) -> str:
    import psycopg

    with psycopg.connect(psycopg_url(url)) as server:
        return str(server.info.parameter_status("server_version"))


def _told(fact: Any) -> Any:
    if isinstance(fact, Spent):
        return {"wall": _short(fact.wall), "cpu": _short(fact.cpu)}
    if isinstance(fact, dict):
        return {key: _told(value) for key, value in fact.items()}
    if isinstance(fact, list):
        return [_told(value) for value in fact]
    return _short(fact) if isinstance(fact, float) else fact


def _short(number: float) -> float:
    return float(f"{number:.4g}")
