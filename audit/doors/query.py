"""The door for a user's own SQL: one statement that can only read, and not for ever."""

import difflib
import re
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Engine

from audit.doors.db import reading_uri
from audit.words.errors import BadRequest
from audit.words.nearest import did_you_mean

if TYPE_CHECKING:
    import psycopg

_TABLES = "select name from sqlite_master where type in ('table', 'view')"
_POSTGRES_TABLES = """
    select relname
    from pg_catalog.pg_class
    where relkind in ('r', 'v')
        and relnamespace <> 'pg_catalog'::regnamespace
        and pg_catalog.pg_table_is_visible(oid)
"""
_READS = ("select", "with", "values", "explain")
_DAY = 24 * 60 * 60
# Longer than every reply that is stored, and short enough that no statement fills the memory with one value.
_LONGEST_VALUE = 100_000_000
# What may stand before the first word.
_BEFORE = re.compile(r"--[^\r\n]*|/\*.*?\*/|[\s(]+", re.DOTALL)
# What a reading statement may do; attaching a file, changing a setting and writing are none of it.
_ALLOWED = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


class Answer(NamedTuple):
    """Column names and rows."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def ask_sql(engine: Engine, statement: str, *, seconds: float = 60, most: int | None = None) -> Answer:
    """The rows of one reading statement, at most `most` of them.

    Raises BadRequest for another kind of statement, for several, for a wrong one, and when time is up.
    """
    if not 0 < seconds <= _DAY:
        raise BadRequest(f"sql: {seconds:g} seconds are no time limit: give more than 0, at most {_DAY}")
    _refuse_other_statements(statement)
    if engine.dialect.name == "sqlite":
        return _ask_sqlite(str(engine.url.database), statement, seconds, most)
    return _ask_postgres(engine, statement, seconds, most)


def limit_values(connection: sqlite3.Connection) -> None:
    """No value of this connection's statements fills the memory."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)


def _ask_sqlite(file: str, statement: str, seconds: float, most: int | None) -> Answer:
    deadline = time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(reading_uri(file), uri=True)) as connection:
            limit_values(connection)
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
            cursor = connection.execute(statement)
            return _answer([column[0] for column in cursor.description or ()], cursor, most)
    except sqlite3.Error as error:
        raise BadRequest(_sqlite_reason(error, seconds) + _nearest_name(file, statement, error)) from error
    except sqlite3.Warning as error:
        raise BadRequest(f"sql: {error}") from error


def _authorize(action: int, *_details: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _sqlite_reason(error: sqlite3.Error, seconds: float) -> str:
    if "interrupted" in str(error):
        return _too_late(seconds)
    return f"sql: {error}"


def _nearest_name(file: str, statement: str, error: sqlite3.Error) -> str:
    """Which table, view or column was meant, where the statement names one that is not there."""
    wrong = re.match(r"no such (table|column): (?:\w+\.)?(\w+)", str(error))
    if wrong is None:
        return ""
    words = set(re.findall(r"\w+", statement.lower()))
    with suppress(sqlite3.Error), closing(sqlite3.connect(reading_uri(file), uri=True)) as connection:
        tables = [row[0] for row in connection.execute(_TABLES)]
        if wrong[1] == "table":
            return did_you_mean(wrong[2].lower(), tables)
        query = "select name from pragma_table_info(?)"
        columns = {row[0] for name in tables if name in words for row in connection.execute(query, (name,))}
        near = difflib.get_close_matches(wrong[2].lower(), sorted(columns), n=3, cutoff=0.5)
        return f" (did you mean {' or '.join(near)}?)" if near else ""
    return ""


def _ask_postgres(engine: Engine, statement: str, seconds: float, most: int | None) -> Answer:
    """A read-only transaction stops what writes; a superuser's functions reach the server's files even so."""
    import psycopg

    connection: Any = engine.raw_connection()
    try:
        driver: psycopg.Connection[Any] = connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute("set transaction read only")
            if driver.info.parameter_status("is_superuser") == "on" and driver.info.server_version >= 140000:
                cursor.execute("set local role pg_read_all_data")
            cursor.execute(f"set local statement_timeout = {max(1, int(seconds * 1000))}".encode())
            # Prepared, so that the server takes one statement only.
            cursor.execute(statement.encode(), prepare=True)
            return _answer([column.name for column in cursor.description or ()], cursor, most)
    except psycopg.errors.QueryCanceled as error:
        raise BadRequest(_too_late(seconds)) from error
    except psycopg.Error as error:
        raise BadRequest(f"sql: {str(error).splitlines()[0]}{_nearest_table(driver, error)}") from error
    finally:
        # Closed, not given back: what the statement set or locked in its session ends with it.
        connection.invalidate()


def _nearest_table(driver: "psycopg.Connection[Any]", error: "psycopg.Error") -> str:
    import psycopg

    wrong = re.match(r'relation "(?:\w+\.)?(\w+)" does not exist', str(error))
    if wrong is None or not isinstance(error, psycopg.errors.UndefinedTable):
        return ""
    with suppress(psycopg.Error):
        driver.rollback()
        return did_you_mean(wrong[1], [row[0] for row in driver.execute(_POSTGRES_TABLES)])
    return ""


def _too_late(seconds: float) -> str:
    return f"sql: no answer after {seconds:g} seconds: ask for less, or raise --seconds"


def _answer(columns: Sequence[str], rows: Iterable[Sequence[Any]], most: int | None) -> Answer:
    return Answer(tuple(columns), [tuple(_plain(value) for value in row) for row in islice(rows, most)])


def _plain(value: Any) -> Any:
    """A number, a text or NULL, whatever types the database has."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Decimal):
        is_whole = value.is_finite() and value == value.to_integral_value()
        return int(value) if is_whole else float(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def _refuse_other_statements(statement: str) -> None:
    """The databases themselves refuse to write; here is refused what is no question at all."""
    try:
        statement.encode()
    except UnicodeEncodeError as error:
        raise BadRequest("sql: the statement is not UTF-8") from error
    start = 0
    while skipped := _BEFORE.match(statement, start):
        if skipped[0].startswith("/*") and "/*" in skipped[0][2:]:
            # PostgreSQL counts comments within comments, SQLite does not: the two would read on elsewhere.
            raise BadRequest("sql: a comment begins within a comment: leave it out")
        start = skipped.end()
    word = re.match(r"\w+|.", statement[start:])
    if word is None:
        raise BadRequest('there is no statement: write `reward-audit sql "select ..."`')
    if word[0].lower() not in _READS:
        raise BadRequest(f"{word[0]!r} is not a question: only select, with, values and explain are read")
