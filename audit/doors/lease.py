"""The door to the lease on a run: one process works on it at a time, and a dead one holds nothing."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Engine, text

from audit.words.errors import BadRequest


@contextmanager
def leased(engine: Engine, run_id: str) -> Iterator[None]:
    """Hold the run. Raises BadRequest where another process does.

    On PostgreSQL an advisory lock of a connection of its own; on SQLite the exclusive lock of a small file
    beside the database, which the system lets go with the process.
    """
    if engine.dialect.name == "postgresql":
        with _advisory(engine, run_id):
            yield
    elif engine.url.database and engine.url.database != ":memory:":
        with _file(Path(f"{engine.url.database}-run-{run_id[-8:]}"), run_id):
            yield
    else:
        yield


@contextmanager
def _advisory(engine: Engine, run_id: str) -> Iterator[None]:
    with engine.connect() as connection:
        taken = connection.execute(
            text("select pg_try_advisory_lock(hashtextextended(:run_id, 0))"), {"run_id": run_id}
        ).scalar()
        connection.commit()
        if not taken:
            raise _held(run_id)
        try:
            yield
        finally:
            connection.execute(
                text("select pg_advisory_unlock(hashtextextended(:run_id, 0))"), {"run_id": run_id}
            )
            connection.commit()


@contextmanager
def _file(path: Path, run_id: str) -> Iterator[None]:
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as lock:
        try:
            lock.execute("begin exclusive")
        except sqlite3.OperationalError as error:
            raise _held(run_id) from error
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def _held(run_id: str) -> BadRequest:
    return BadRequest(
        f"another process is at work on run {run_id}: wait until it is done, or begin another run with --new"
    )
