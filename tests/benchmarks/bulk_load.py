"""Bulk load of rows that are already parsed: the store against a bare `sqlite3.executemany`.

Both get the same rows, batch by batch (1,000 pairs and the 2,000 calls of their judge, replies of 400 bytes),
and write them in one transaction into the same schema: made by this program's own migration, so with all its
indexes and constraints, in WAL mode, foreign keys on, `synchronous` as SQLite comes. What is measured runs
from BEGIN IMMEDIATE to the end of the commit. Rows are made on the fly by the same code for both, and the
time to make them is taken off.

Goal: the store writes at least 0.6 of the rows a second that the bare loop writes.
"""

import sqlite3
import statistics
from contextlib import closing
from pathlib import Path

import made
import measure

from audit.doors import store
from audit.doors.db import open_database, writing
from audit.words.records import JudgeLog, Pair, Run


def load(path: Path, pairs: int) -> measure.Spent:
    """Load through the store."""
    engine = open_database(f"sqlite:///{path}", create=True)
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


def load_bare(path: Path, pairs: int) -> measure.Spent:
    """Load by `executemany` alone."""
    open_database(f"sqlite:///{path}", create=True).dispose()
    with closing(bare(path)) as connection:
        watch = measure.Stopwatch()
        connection.execute("begin immediate")
        connection.execute(insert("audit_runs", Run._fields), made.RUN)
        for pair_rows, log_rows in watch.around(made.rows(pairs)):
            connection.executemany(insert("audit_pairs", Pair._fields), pair_rows)
            connection.executemany(insert("judge_logs", JudgeLog._fields), log_rows)
        connection.execute("commit")
        return watch.spent()


def bare(path: Path) -> sqlite3.Connection:
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
    parser.add_argument("--rounds", type=int, default=3, help="each way is loaded so often (%(default)s)")
    options = parser.parse_args()
    ours, bares = [], []
    for _ in range(options.rounds):
        with measure.scratch(options) as folder:
            bares.append(load_bare(Path(folder) / "bare.db", options.pairs))
        with measure.scratch(options) as folder:
            ours.append(load(Path(folder) / "store.db", options.pairs))
    count = 3 * options.pairs
    speed, bare_speed = (count / statistics.median(spent.wall for spent in ways) for ways in (ours, bares))
    goal = measure.Goal("rows_per_second", speed, bare_speed, "at_least", 0.6)
    facts = {"store_spent": ours, "bare_spent": bares}
    measure.finish(options, "bulk_load", [goal], pairs=options.pairs, rows=count, **facts)


if __name__ == "__main__":
    main()
