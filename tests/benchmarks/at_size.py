"""One large run on one database: the load, the report and the bucket view, each against a bare way.

The rows are those of `report_size`: for each task 50 pairs, the 40 sessions that they are of and their 100
calls; the first 400 tasks again and again under other names, which is made in less time. They are loaded
twice, each time into a database of its own, as `bulk_load` does it: bare, by
`executemany` or COPY, and through the store, the statistics that a planner needs counted at the end. On what
the store loaded, then vacuumed on PostgreSQL, `report_size` asks for the report once, and `bucket_view` for
the view and the `group by`, each in a process of its own, in turn.

    python tests/benchmarks/at_size.py --pairs 5000000
    python tests/benchmarks/at_size.py --pairs 5000000 --postgres URL

Goals: the store writes at least 0.6 of the rows a second of bare `executemany`, 0.5 of those of bare COPY;
the report peaks under 400 MB; the view takes at most 1.2 of the time of the group, by the medians. Seconds
are told. Five million pairs take up to 24 GB of disk and some 20 minutes.
"""

import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import bulk_load
import made
import measure
import report_size

HERE = Path(__file__).parent
BASE = 20_000  # pairs


def made_rows(pairs: int) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
    """Sessions, pairs and calls, batch by batch, in the order of their ids."""
    base = list(report_size.rows(min(pairs, BASE)))
    for round_ in range(max(pairs // BASE, 1)):
        name = f"{round_:04d}-"
        for sessions, pair_rows, log_rows in base:
            yield (
                [
                    row._replace(session_id=name + row.session_id, task_id=name + row.task_id)
                    for row in sessions
                ],
                [
                    row._replace(
                        pair_id=name + row.pair_id,
                        source_pair_id=name + row.source_pair_id,
                        task_id=name + row.task_id,
                        session_a=name + row.session_a,
                        session_b=name + row.session_b,
                    )
                    for row in pair_rows
                ],
                [row._replace(pair_id=name + row.pair_id) for row in log_rows],
            )


def load(url: str, pairs: int) -> measure.Spent:
    """Load through the store."""
    from audit.doors import store
    from audit.doors.db import open_database, writing

    engine = open_database(url, create=True)
    watch = measure.Stopwatch()
    with writing(engine) as connection:
        store.add_run(connection, made.RUN)
        store.add_buckets(connection, made.SCALE.buckets.name, made.SCALE.buckets.with_unknown())
        for sessions, pair_rows, log_rows in watch.around(made_rows(pairs)):
            store.add_sessions(connection, sessions)
            store.add_pairs(connection, pair_rows)
            store.add_logs(connection, log_rows)
        store.finish_run(connection, made.RUN.run_id, "complete")
    spent = watch.spent()
    engine.dispose()
    return spent


def load_bare(url: str, pairs: int) -> measure.Spent:
    """Load by the driver alone."""
    from audit.doors.db import open_database

    open_database(url, create=True).dispose()
    return (_by_copy if measure.is_postgres(url) else _by_executemany)(url, pairs)


def _by_executemany(url: str, pairs: int) -> measure.Spent:
    with closing(bulk_load.bare(measure.sqlite_file(url))) as connection:
        watch = measure.Stopwatch()
        connection.execute("begin immediate")
        connection.execute(bulk_load.insert("audit_runs", type(made.RUN)._fields), made.RUN)
        for batch in watch.around(made_rows(pairs)):
            for table, rows in _by_table(batch):
                connection.executemany(bulk_load.insert(table, rows[0]._fields), rows)
        connection.execute("commit")
        return watch.spent()


def _by_copy(url: str, pairs: int) -> measure.Spent:
    import psycopg

    with psycopg.connect(measure.psycopg_url(url)) as connection, connection.cursor() as cursor:
        watch = measure.Stopwatch()
        bulk_load.copy(cursor, "audit_runs", type(made.RUN)._fields, [made.RUN])
        for batch in watch.around(made_rows(pairs)):
            for table, rows in _by_table(batch):
                bulk_load.copy(cursor, table, rows[0]._fields, rows)
        connection.commit()
        return watch.spent()


def _by_table(batch: Sequence[list[Any]]) -> list[tuple[str, list[Any]]]:
    return list(zip(("sessions", "audit_pairs", "judge_logs"), batch, strict=True))


WAYS = {"bare": load_bare, "store": load}


def main() -> None:
    parser = measure.arguments(__doc__)
    measure.with_postgres(parser)
    parser.add_argument(
        "--rounds", type=int, default=3, help="view and group are asked so often (%(default)s)"
    )
    parser.add_argument(
        "--load", choices=WAYS, help="load the database --of in this way, and print its seconds"
    )
    parser.add_argument("--of", help="the address of the database")
    options = parser.parse_args()
    if options.load:
        print(json.dumps(WAYS[options.load](options.of, options.pairs)))
    else:
        _measure(options)


def _loaded(options: Any, url: str, way: str) -> measure.Spent:
    command = [sys.executable, __file__, "--of", url, "--pairs", str(options.pairs), "--load", way]
    return measure.Spent(*json.loads(measure.child(command).output))


def _measure(options: Any) -> None:
    kind = "postgres" if options.postgres else "sqlite"
    with measure.database(options) as url:
        bare = _loaded(options, url, "bare")
    with measure.database(options) as url:
        ours = _loaded(options, url, "store")
        if options.postgres:
            measure.vacuum(url)
        reported = measure.child([sys.executable, HERE / "report_size.py", "--of", url, "--ask", "report"])
        report = measure.Spent(*json.loads(reported.output))
        asked: dict[str, list[measure.Spent]] = {"view": [], "group": []}
        for _ in range(options.rounds):
            for way, spent in asked.items():
                answer = measure.child([sys.executable, HERE / "bucket_view.py", "--of", url, "--ask", way])
                spent.append(measure.Spent(*json.loads(answer.output)["spent"]))
    pairs = max(options.pairs // BASE, 1) * min(options.pairs, BASE)
    tasks = max(pairs // report_size.PAIRS_A_TASK, 1)
    count = tasks * (3 * report_size.PAIRS_A_TASK + len(report_size.AGENTS))
    view, group = (statistics.median(spent.wall for spent in asked[way]) for way in ("view", "group"))
    goals = [
        measure.Goal(
            "rows_per_second", count / ours.wall, count / bare.wall, "at_least", bulk_load.AT_LEAST[kind]
        ),
        measure.Goal("report_peak_mb", reported.peak_mb, report_size.PEAK_MB, "at_most", 1),
        measure.Goal("view_of_group", view, group, "at_most", 1.2),
    ]
    facts = {"store_spent": ours, "bare_spent": bare, "report_spent": report, "asked": asked}
    measure.finish(options, "at_size", goals, pairs=options.pairs, rows=count, **facts)


if __name__ == "__main__":
    main()
