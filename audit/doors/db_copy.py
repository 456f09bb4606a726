"""The door from one database to another: every row, checked by counts and digests."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import orjson
from sqlalchemy import Connection, Table, select, text

from audit.doors import store
from audit.doors.db import open_database, reading, show_url, writing
from audit.words.errors import BadDatabase
from audit.words.schema import metadata

_BATCH = 2000
# What a database says of itself is made with it.
_TABLES = [table for table in metadata.sorted_tables if table.name != "view_digest"]


class Copied(NamedTuple):
    """One table: its rows, and a digest that is the same for the same rows in any order."""

    table: str
    rows: int
    digest: str


def copy_database(source: str, target: str, tell: Callable[[Copied], None]) -> list[Copied]:
    """All rows of `source` into `target`, made or empty: in one transaction, so whole or not at all.

    Both are read again at the end. Raises BadDatabase where the target holds rows, or is not equal then.
    """
    origin, copy = open_database(source, create=False), open_database(target, create=True)
    try:
        with reading(origin) as here, writing(copy) as there:
            full = [table.name for table in _TABLES if _has_rows(there, table)]
            if full:
                raise BadDatabase(
                    f"{show_url(target)} holds rows ({', '.join(full)}): copy into an empty one"
                )
            found = [_copy(here, there, table) for table in _TABLES]
            for table, copied in zip(_TABLES, found, strict=True):
                stored = _digest(table, _rows(there, table))
                if stored != copied:
                    raise BadDatabase(
                        f"{show_url(target)}: {table.name} is not what was copied, {stored.rows:,} rows of "
                        f"digest {stored.digest} for {copied.rows:,} of {copied.digest}: nothing is kept"
                    )
                tell(copied)
            store.analyze(there)
            return found
    finally:
        origin.dispose()
        copy.dispose()


def _copy(here: Connection, there: Connection, table: Table) -> Copied:
    columns = [column.name for column in table.columns]
    seen = _Digest()
    rows = _rows(here, table)
    while batch := list(islice(rows, _BATCH)):
        seen.add(batch)
        store.insert(there, table.name, columns, batch)
    numbered = [column.name for column in table.primary_key.columns if column.autoincrement is True]
    if numbered and seen.rows and there.dialect.name == "postgresql":
        # Rows with given numbers do not move the counter on by themselves.
        highest = f"(select max({numbered[0]}) from {table.name})"  # noqa: S608 - our own names
        there.execute(
            text(f"select setval(pg_get_serial_sequence(:table, :column), {highest})"),
            {"table": table.name, "column": numbered[0]},
        )
    return seen.of(table)


def _digest(table: Table, rows: Iterator[tuple[Any, ...]]) -> Copied:
    seen = _Digest()
    while batch := list(islice(rows, _BATCH)):
        seen.add(batch)
    return seen.of(table)


class _Digest:
    """Of a set of rows: the sum of their own digests, since databases sort text each in their own way."""

    def __init__(self) -> None:
        self.rows = self._sum = 0

    def add(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """More of them."""
        for row in rows:
            held = orjson.dumps(row)
            self._sum += int.from_bytes(hashlib.blake2b(held, digest_size=16).digest())
        self.rows += len(rows)

    def of(self, table: Table) -> Copied:
        """What it came to."""
        return Copied(table.name, self.rows, f"{self._sum % (1 << 128):032x}")


def _rows(connection: Connection, table: Table) -> Iterator[tuple[Any, ...]]:
    """Streamed, in the order of the primary key, so that indexes fill well."""
    query = select(*table.columns).order_by(*table.primary_key.columns)
    for row in connection.execute(query, execution_options={"yield_per": _BATCH}):
        yield tuple(row)


def _has_rows(connection: Connection, table: Table) -> bool:
    return connection.execute(select(*table.columns).limit(1)).first() is not None
