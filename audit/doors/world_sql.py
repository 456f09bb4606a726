"""The SQLite database under a world: built from SQL, guarded, in limited time, and as bytes."""

import sqlite3
import time
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from audit.words.errors import AuditError

SECONDS = 5.0
Row = tuple[Any, ...]

_LONGEST = 16 << 20
_SHOWN = 500
_OUTSIDE = frozenset({sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})
_TRANSACTIONS = frozenset({sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT})
_READS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_TABLES = "select name from sqlite_schema where type = 'table' and name not glob 'sqlite_*' order by name"
_PRAGMAS = ("foreign_keys = on", "journal_mode = memory", "synchronous = off", "temp_store = memory")


class WorldError(AuditError):
    """SQL that cannot be run on a world. `line` counts from 1 in the script `part` (`world` or `setup`)."""

    def __init__(self, problem: str, part: str = "", line: int = 0) -> None:
        super().__init__(f"{part} SQL, line {line}: {problem}" if part else problem)
        self.problem = problem
        self.part = part
        self.line = line


class Database:
    """One guarded connection: never ATTACH or PRAGMA, no statement longer than `seconds`.

    `reads_only` refuses everything but reading; `image` fills an in-memory database.
    """

    def __init__(
        self, address: str, *, seconds: float = SECONDS, reads_only: bool = False, image: bytes | None = None
    ) -> None:
        self.seconds = seconds
        self.reads_only = reads_only
        self.may_transact = False
        self._deadline = time.monotonic() + seconds
        # No statement cache: what is cached is not authorized again, so a tool could reuse our COMMIT.
        self.connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, cached_statements=0
        )
        try:
            if image is not None:
                self.connection.deserialize(image)
            for pragma in _PRAGMAS:
                self.connection.execute(f"pragma {pragma}")
        except sqlite3.Error as error:
            self.connection.close()
            raise WorldError(f"the world cannot be opened: {error}") from error
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        self.connection.set_authorizer(self._authorize)
        self.connection.set_progress_handler(self._is_late, 1000)

    def query(
        self, sql: str, bound: Mapping[str, Any] | None = None, *, most: int | None = None
    ) -> tuple[list[str] | None, list[Row]]:
        """Column names (None for a statement that gives no rows) and rows. Raises WorldError.

        So it does, too, for rows that take more than `most` characters as JSON, without reading them all.
        """
        self.start_clock()
        try:
            cursor = self.connection.execute(sql, bound or {})
            rows = cursor.fetchall() if most is None else _some(cursor, most)
        except (sqlite3.Error, ValueError, OverflowError) as error:
            raise WorldError(self.reason(error)) from error
        return [column[0] for column in cursor.description] if cursor.description else None, rows

    def control(self, statement: str) -> None:
        """BEGIN, COMMIT or ROLLBACK, which no tool may run."""
        self.start_clock()
        self.may_transact = True
        try:
            self.connection.execute(statement)
        finally:
            self.may_transact = False

    def tables(self) -> dict[str, list[str]]:
        """Table name -> its columns, without SQLite's own tables."""
        names = [str(row[0]) for row in self.query(_TABLES)[1]]
        return {name: self.query(f"select * from {_quoted(name)} limit 0")[0] or [] for name in names}  # noqa: S608 - quoted

    def image(self) -> bytes:
        """The database as a file's bytes."""
        self.connection.set_authorizer(None)  # `serialize` itself asks by PRAGMA
        try:
            if self.connection.execute("pragma page_count").fetchone() == (0,):
                # There is no image of a database in which nothing was ever written.
                self.connection.execute("pragma user_version = 1")
            return self.connection.serialize()
        finally:
            self.connection.set_authorizer(self._authorize)

    def start_clock(self) -> None:
        """From here on the time limit counts."""
        self._deadline = time.monotonic() + self.seconds

    def reason(self, error: Exception) -> str:
        """What is wrong, in words for the one who wrote the statement."""
        name = getattr(error, "sqlite_errorname", "")
        if name == "SQLITE_INTERRUPT":
            return f"took longer than {self.seconds:g} s"
        if name == "SQLITE_READONLY" or (name == "SQLITE_AUTH" and self.reads_only):
            return "only reading is allowed here"
        if name == "SQLITE_AUTH":
            return "ATTACH, PRAGMA, BEGIN and COMMIT are refused here"
        return cut(str(error) if isinstance(error, AuditError | sqlite3.Error) else named(error))

    def close(self) -> None:
        self.connection.close()

    def _authorize(self, action: int, *_: str | None) -> int:
        is_refused = (
            action in _OUTSIDE
            or (action in _TRANSACTIONS and not self.may_transact)
            or (self.reads_only and action not in _READS)
        )
        return sqlite3.SQLITE_DENY if is_refused else sqlite3.SQLITE_OK

    def _is_late(self) -> bool:
        return time.monotonic() > self._deadline


def _some(cursor: sqlite3.Cursor, most: int) -> list[Row]:
    rows, size = [], 0
    names = sum(len(column[0]) + 4 for column in cursor.description or ())
    for row in cursor:
        # Never more than what its JSON text takes: that is measured again when it is written.
        size += names + sum(len(value) if isinstance(value, str | bytes) else 1 for value in row)
        if size > most:
            cursor.close()
            raise WorldError(f"the result is too long: over {most:,} characters, ask for less")
        rows.append(row)
    return rows


@lru_cache(maxsize=128)
def build_image(world_sql: str, setup_sql: str = "") -> bytes:
    """The world as SQLite's file image. Raises WorldError with part and line."""
    database = Database(":memory:", image=build_image(world_sql) if setup_sql else None)
    try:
        _run_script(database, setup_sql or world_sql, "setup" if setup_sql else "world")
        return database.image()
    finally:
        database.close()


def _run_script(database: Database, script: str, part: str) -> None:
    if "\0" in script:
        raise WorldError("holds a NUL character", part, script[: script.index("\0")].count("\n") + 1)
    database.may_transact = True
    line = 1
    for statement in _statements(script):
        first = line + statement[: len(statement) - len(statement.lstrip())].count("\n")
        line += statement.count("\n")
        try:
            database.query(statement)
        except WorldError as error:
            raise WorldError(error.problem, part, first) from error
    if database.connection.in_transaction:
        raise WorldError("BEGIN without COMMIT", part, line)


def _statements(script: str) -> Iterator[str]:
    # executescript would say no line, and commits whatever the script itself has begun.
    waiting = ""
    *pieces, last = script.split(";")
    for piece in pieces:
        waiting += piece + ";"
        if sqlite3.complete_statement(waiting):
            yield waiting
            waiting = ""
    yield waiting + last


def named(error: BaseException) -> str:
    """The error with its kind."""
    said = str(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def cut(text: str, longest: int = _SHOWN) -> str:
    """At most `longest` characters of the text."""
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
