"""The door for a user's own SQL: one statement that can only read, and not for ever."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import quote

from sqlalchemy import Engine

from audit.words.errors import BadRequest

_READS = ("select", "with", "values", "explain")
_ROWS_AT_ONCE = 1000
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
    words = _without_comments(statement).split(None, 1)
    if not words:
        raise BadRequest('there is no statement: write `reward-audit sql "select ..."`')
    if words[0].lower().rstrip("(") not in _READS:
        raise BadRequest(f"{words[0]!r} is not a question: only select, with, values and explain are read")
    if engine.dialect.name == "sqlite":
        return _ask_sqlite(str(engine.url.database), statement, seconds, most)
    return _ask_postgres(engine, statement, seconds, most)


def _ask_sqlite(file: str, statement: str, seconds: float, most: int | None) -> Answer:
    deadline = time.monotonic() + seconds
    try:
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro", uri=True)) as connection:
            connection.set_authorizer(_authorize)
            connection.set_progress_handler(lambda: int(time.monotonic() > deadline), 10_000)
            cursor = connection.execute(statement)
            return _answer([column[0] for column in cursor.description or ()], cursor, most)
    except sqlite3.Error as error:
        raise BadRequest(_sqlite_reason(error, seconds)) from error
    except sqlite3.Warning as error:
        raise BadRequest(f"sql: {error}") from error


def _authorize(action: int, *_details: object) -> int:
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


def _sqlite_reason(error: sqlite3.Error, seconds: float) -> str:
    if "interrupted" in str(error):
        return f"sql: no answer after {seconds:g} seconds: ask for less, or raise --seconds"
    return f"sql: {error}"


def _ask_postgres(engine: Engine, statement: str, seconds: float, most: int | None) -> Answer:
    import psycopg

    connection: Any = engine.raw_connection()
    try:
        driver: psycopg.Connection[Any] = connection.driver_connection
        with driver.cursor() as cursor:
            cursor.execute("set transaction read only")
            cursor.execute(f"set local statement_timeout = {int(seconds * 1000)}".encode())
            # Prepared, so that the server takes one statement only.
            cursor.execute(statement.encode(), prepare=True)
            return _answer([column.name for column in cursor.description or ()], cursor, most)
    except psycopg.errors.QueryCanceled as error:
        raise BadRequest(
            f"sql: no answer after {seconds:g} seconds: ask for less, or raise --seconds"
        ) from error
    except psycopg.Error as error:
        raise BadRequest(f"sql: {str(error).splitlines()[0]}") from error
    finally:
        connection.rollback()
        connection.close()


def _answer(columns: Sequence[str], cursor: Any, most: int | None) -> Answer:
    rows = cursor.fetchall() if most is None else cursor.fetchmany(most)
    return Answer(tuple(columns), [tuple(row) for row in rows])


def _without_comments(statement: str) -> str:
    text = statement.strip()
    while text.startswith(("--", "/*")):
        end = text.find("\n") if text.startswith("--") else text.find("*/")
        if end < 0:
            return ""
        text = text[end + (1 if text.startswith("--") else 2) :].strip()
    return text
