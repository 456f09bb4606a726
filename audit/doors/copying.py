"""The door to PostgreSQL's COPY: many rows at once, in a tenth of the time of single inserts."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, IntegrityError

WORTH_IT = 50  # fewer rows go by insert


def copy_rows(
    connection: Connection, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]
) -> None:
    """Rows into a table of PostgreSQL, inside the caller's transaction.

    Raises sqlalchemy's IntegrityError for a row that stands already, DBAPIError for all else.
    """
    import psycopg

    statement = f"copy {table} ({', '.join(columns)}) from stdin"  # our own names
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.IntegrityError as error:
        raise IntegrityError(statement, None, error) from error
    except psycopg.Error as error:
        raise DBAPIError(statement, None, error) from error
