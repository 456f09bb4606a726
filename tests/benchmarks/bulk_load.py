"""Bulk load of rows that are already parsed: the store against the database's own fastest way, bare.

    SQLite       a bare `sqlite3.executemany`
    PostgreSQL   a bare COPY by psycopg's own `copy` and `write_row` (`--postgres URL`)

Both get the same rows, batch by batch (1,000 pairs and the 2,000 calls of their judge, replies of 400 bytes),
and write them in one transaction into the same schema: made by this program's own migration, so with all its
indexes and constraints; SQLite in WAL mode, foreign keys on, `synchronous` as it comes. What is measured runs
from the transaction's begin to the end of the commit. Rows are made on the fly by the same code for both, and
the time to make them is taken off.

Goal: the store writes at least 0.6 of the rows a second that the bare loop writes on SQLite, 0.5 of those of
bare COPY on PostgreSQL.
"""

import sqlite3
import statistics
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import made
import measure

from audit.doors import store
from audit.doors.db import open_database, writing
from audit.words.records import JudgeLog, Pair, Run

AT_LEAST = {"sqlite": 0.6, "postgres": 0.5}


def load(url: str, pairs: int) -> measure.Spent:
    """Load through the store."""
    engine = open_database(url, create=True)
    watch = measure.Stopwatch()
    with writing(engine) as connection:
        store.add_run(connection, made.RUN)
        store.add_buckets(connection, made.SCALE.buckets.name, made.SCALE.buckets.with_unknown())
        for pair_rows, log_rows in watch.around(made.rows(pairs)):
            store.add_pairs(connection, pair_rows)
            store.add_logs(connection, log_rows)
    spent = watch.spent()
    engine.dispose()
    return spent


def load_bare(url: str, pairs: int) -> measure.Spent:
    """Load by the driver alone."""
    open_database(url, create=True).dispose()
    return (_by_copy if measure.is_postgres(url) else _by_executemany)(url, pairs)


def _by_executemany(url: str, pairs: int) -> measure.Spent:
    with closing(bare(measure.sqlite_file(url))) as connection:
        watch = measure.Stopwatch()
        connection.execute("begin immediate")
        connection.execute(insert("audit_runs", Run._fields), made.RUN)
        for pair_rows, log_rows in watch.around(made.rows(pairs)):
            connection.executemany(insert("audit_pairs", Pair._fields), pair_rows)
            connection.executemany(insert("judge_logs", JudgeLog._fields), log_rows)
        connection.execute("commit")
        return watch.spent()


def _by_copy(url: str, pairs: int) -> measure.Spent:
    import psycopg

    with psycopg.connect(measure.psycopg_url(url)) as connection, connection.cursor() as cursor:
        watch = measure.Stopwatch()
        copy(cursor, "audit_runs", Run._fields, [made.RUN])
        for pair_rows, log_rows in watch.around(made.rows(pairs)):
            copy(cursor, "audit_pairs", Pair._fields, pair_rows)
            copy(cursor, "judge_logs", JudgeLog._fields, log_rows)
        connection.commit()
        return watch.spent()


def copy(cursor: Any, table: str, columns: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    """Write the rows by psycopg's own COPY."""
    with cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin".encode()) as copying:
        for row in rows:
            copying.write_row(row)


def bare(path: Any) -> sqlite3.Connection:
    """A connection with the settings that the program uses, and nothing of the program."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma foreign_keys = on")
    connection.execute("pragma journal_mode = wal")
    return connection


def insert(table: str, columns: tuple[str, ...]) -> str:
    """The statement that writes one row."""
    return f"insert into {table} ({', '.join(columns)}) values ({', '.join('?' * len(columns))})"


def main() -> None:
    parser = measure.arguments(__doc__)
    measure.with_postgres(parser)
    parser.add_argument("--rounds", type=int, default=3, help="each way is loaded so often (%(default)s)")
    options = parser.parse_args()
    ours, bares = [], []
    for _ in range(options.rounds):
        with measure.database(options) as url:
            bares.append(load_bare(url, options.pairs))
        with measure.database(options) as url:
            ours.append(load(url, options.pairs))
    count = 3 * options.pairs
    speed, bare_speed = (count / statistics.median(spent.wall for spent in ways) for ways in (ours, bares))
    limit = AT_LEAST["postgres" if options.postgres else "sqlite"]
    goal = measure.Goal("rows_per_second", speed, bare_speed, "at_least", limit)
    facts = {"store_spent": ours, "bare_spent": bares}
    measure.finish(options, "bulk_load", [goal], pairs=options.pairs, rows=count, **facts)


if __name__ == "__main__":
    main()
