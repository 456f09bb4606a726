"""The door to whether the database is ready for a run, without changing anything in it."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine, inspect, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError

from audit.doors.db import HEAD, connect, existing, first_line, reading, show_url, standing
from audit.doors.shipped import views_digest
from audit.words.errors import BadDatabase

# The last call: the table is only ever added to, and a maximum of its times would read every long reply.
_NEWEST = (
    "select created_at from judge_logs order by log_id desc limit 1",
    "select max(created_at) from audit_runs",
)


class Ready(NamedTuple):
    """`revision` is NULL where there are no tables yet. `cannot_write` says why. `newest`: a row's time.

    `free_bytes` is NULL for a server, whose disk is not here.
    """

    url: str
    exists: bool
    revision: str | None
    head: str
    is_current: bool
    cannot_write: str | None
    newest: str | None
    free_bytes: int | None


def readiness(url: str) -> Ready:
    """How the database stands. Raises BadDatabase where it cannot be opened or belongs to somebody else."""
    file = _file_of(url)
    free = None if file is None else _free_bytes(file)
    if file is not None and not file.exists():
        return Ready(show_url(url), False, None, HEAD, False, _cannot_make(file), None, free)
    engine = connect(existing(url))
    try:
        with reading(engine) as connection:
            revision, digest = standing(connection, url)
            newest = _newest(connection) if revision is not None else None
            cannot_write = _refused(connection) if engine.dialect.name != "sqlite" else None
        if engine.dialect.name == "sqlite":
            cannot_write = _cannot_begin(engine)
    except DBAPIError as error:
        raise BadDatabase(f"{show_url(url)} cannot be opened: {first_line(error)}") from error
    finally:
        engine.dispose()
    is_current = (revision, digest) == (HEAD, views_digest())
    return Ready(show_url(url), True, revision, HEAD, is_current, cannot_write, newest, free)


def _file_of(url: str) -> Path | None:
    """The file of a SQLite database. Raises BadDatabase for an address that is none."""
    engine = connect(url)
    engine.dispose()
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite" or not parsed.database:
        return None
    return Path(parsed.database)


def _free_bytes(file: Path) -> int | None:
    folder = file.absolute().parent
    return shutil.disk_usage(folder).free if folder.is_dir() else None


def _cannot_make(file: Path) -> str | None:
    folder = file.absolute().parent
    if not folder.is_dir():
        return f"there is no folder {folder}"
    return None if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} cannot be written"


def _cannot_begin(engine: Engine) -> str | None:
    """Begins to write in a SQLite file, and writes nothing. Another process at work is no fault."""
    with closing(engine.raw_connection()) as connection:
        driver: sqlite3.Connection = connection.driver_connection  # type: ignore[assignment]
        driver.execute("pragma busy_timeout = 200")
        try:
            driver.execute("begin immediate")
        except sqlite3.OperationalError as error:
            return None if "locked" in str(error) else str(error)
        driver.execute("rollback")
    return None


def _refused(connection: Connection) -> str | None:
    """Why a server would take no rows."""
    if connection.execute(text("select current_setting('transaction_read_only')")).scalar() == "on":
        return "the server takes no writes (a standby, or read-only)"
    if not inspect(connection).has_table("judge_logs"):
        may = "select has_schema_privilege(current_schema(), 'create')"
        return None if connection.execute(text(may)).scalar() else "the user may make no tables there"
    may = "select has_table_privilege('judge_logs', 'insert')"
    return None if connection.execute(text(may)).scalar() else "the user may not insert rows"


def _newest(connection: Connection) -> str | None:
    times = [connection.execute(text(question)).scalar() for question in _NEWEST]
    return max((str(time) for time in times if time is not None), default=None)
