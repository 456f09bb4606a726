"""`select * from misselection_by_gap` against the same counts asked of the table in other ways.

    view     the view, through this program's door to the database
    group    a hand-written `group by run_id, gate, gap_bucket`, by the driver alone
    case     one hand-written `case` over reward_gap, with `group by`, by the driver alone: reads the table
    pandas   the needed columns read by `pandas.read_sql`, cut and grouped there (SQLite only)

All give the same counts, which is checked. Each round starts a fresh process for each way, in turn; what is
timed is the question, from opening the database to the last row, without the start of the interpreter and its
imports. The database holds the run of `bulk_load`, in the page cache for all; on PostgreSQL (`--postgres
URL`) it was vacuumed, as autovacuum does some time after a load.

Goals: the view takes at most 1.2 of the time of the group, by the medians, and on SQLite at most 0.35 of
the time of the case, pandas at least 5 times that of the view; the process that asks the view peaks under
60 MB, under 70 MB where it has to hold PostgreSQL's driver.
"""

import json
import sqlite3
import statistics
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import measure

PEAK_MB = {"sqlite": 60, "postgres": 70}
COUNTS = ("pairs", "decidable", "correct", "misselected", "both_read", "consistent")
Rows = list[list[Any]]

_COUNTED = """
    count(*),
    count(*) filter (where outcome not in ('unverified', 'reward_tie')),
    count(*) filter (where outcome = 'correct'),
    count(*) filter (where outcome = 'misselected'),
    count(*) filter (where is_consistent is not null),
    count(*) filter (where is_consistent = 1)
from audit_pairs
"""
GROUP = f"select run_id, gate, gap_bucket, {_COUNTED} group by run_id, gate, gap_bucket"

# The edges of the preset `gauge`; a gap within 1e-9 of an edge is on it.
CASE = f"""
select
    run_id,
    gate,
    case
        when reward_gap is null then 'unknown'
        when reward_gap < 0.05 - 1e-9 then '[0,0.05)'
        when reward_gap < 0.10 - 1e-9 then '[0.05,0.1)'
        when reward_gap < 0.15 - 1e-9 then '[0.1,0.15)'
        when reward_gap < 0.30 - 1e-9 then '[0.15,0.3)'
        else '[0.3,..)'
    end as bucket,
    {_COUNTED}
group by run_id, gate, bucket
"""


def ask_view(url: str) -> tuple[measure.Spent, Rows]:
    from audit.doors import ask
    from audit.doors.db import open_database, reading

    if measure.is_postgres(url):
        import psycopg  # noqa: F401 - loading it is not what is timed

    watch = measure.Stopwatch()
    engine = open_database(url, create=False)
    with reading(engine) as connection:
        found = ask.rows(connection, "select * from misselection_by_gap")
    spent = watch.spent()
    rows = [[row["run_id"], row["gate"], row["gap_bucket"], *(row[c] for c in COUNTS)] for row in found]
    return spent, [row for row in rows if row[3]]


def ask_group(url: str) -> tuple[measure.Spent, Rows]:
    return _bare(url, GROUP)


def ask_case(url: str) -> tuple[measure.Spent, Rows]:
    return _bare(url, CASE)


def _bare(url: str, query: str) -> tuple[measure.Spent, Rows]:
    if measure.is_postgres(url):
        import psycopg

        address = measure.psycopg_url(url)
        watch = measure.Stopwatch()
        with psycopg.connect(address) as server:
            found = [list(row) for row in server.execute(query.encode())]
        return watch.spent(), found
    watch = measure.Stopwatch()
    with closing(sqlite3.connect(measure.sqlite_file(url))) as connection:
        found = [list(row) for row in connection.execute(query)]
    return watch.spent(), found


def ask_pandas(url: str) -> tuple[measure.Spent, Rows]:
    import pandas

    edges = [-1, 0.05 - 1e-9, 0.10 - 1e-9, 0.15 - 1e-9, 0.30 - 1e-9, float("inf")]
    labels = ["[0,0.05)", "[0.05,0.1)", "[0.1,0.15)", "[0.15,0.3)", "[0.3,..)"]
    watch = measure.Stopwatch()
    with closing(sqlite3.connect(measure.sqlite_file(url))) as connection:
        frame = pandas.read_sql(
            "select run_id, gate, reward_gap, outcome, is_consistent from audit_pairs", connection
        )
    bucket = pandas.cut(frame["reward_gap"], edges, right=False, labels=labels)
    frame["bucket"] = bucket.cat.add_categories("unknown").fillna("unknown")
    frame["decidable"] = ~frame["outcome"].isin(["unverified", "reward_tie"])
    frame["correct"] = frame["outcome"] == "correct"
    frame["misselected"] = frame["outcome"] == "misselected"
    frame["both_read"] = frame["is_consistent"].notna()
    frame["consistent"] = frame["is_consistent"] == 1
    grouped = frame.groupby(["run_id", "gate", "bucket"], observed=True)
    counts = grouped[list(COUNTS[1:])].sum()
    counts.insert(0, "pairs", grouped.size())
    spent = watch.spent()
    return spent, [[*key, *map(int, row)] for key, *row in counts.itertuples()]


WAYS: dict[str, Callable[[str], tuple[measure.Spent, Rows]]] = {
    "view": ask_view,
    "group": ask_group,
    "case": ask_case,
    "pandas": ask_pandas,
}


def main() -> None:
    parser = measure.arguments(__doc__)
    measure.with_postgres(parser)
    parser.add_argument("--rounds", type=int, default=5, help="each way is asked so often (%(default)s)")
    parser.add_argument("--ask", choices=WAYS, help="ask one way, of the database --of, and print the answer")
    parser.add_argument("--of", help="the address of the database")
    parser.add_argument("--load", action="store_true", help="load the database --of")
    options = parser.parse_args()
    if options.load:
        import bulk_load

        bulk_load.load(options.of, options.pairs)
    elif options.ask:
        spent, rows = WAYS[options.ask](options.of)
        print(json.dumps({"spent": spent, "rows": sorted(rows)}))
    else:
        _compare(options)


def _compare(options: Any) -> None:
    kind = "postgres" if options.postgres else "sqlite"
    ways = [way for way in WAYS if way != "pandas" or kind == "sqlite"]
    spent: dict[str, list[measure.Spent]] = {way: [] for way in ways}
    peaks = []
    with measure.database(options) as url:
        this = [sys.executable, __file__, "--of", url]
        measure.child([*this, "--load", "--pairs", str(options.pairs)])
        if options.postgres:
            measure.vacuum(url)
        for _ in range(options.rounds):
            answers = []
            for way in ways:
                asked = measure.child([*this, "--ask", way])
                answer = json.loads(asked.output)
                spent[way].append(measure.Spent(*answer["spent"]))
                answers.append(answer["rows"])
                if way == "view":
                    peaks.append(asked.peak_mb)
            if any(rows != answers[0] for rows in answers) or not answers[0]:
                raise SystemExit(f"the ways do not count the same: {answers}")
    median = {way: statistics.median(one.wall for one in spent[way]) for way in ways}
    goals = [measure.Goal("of_group", median["view"], median["group"], "at_most", 1.2)]
    if kind == "sqlite":
        goals += [
            measure.Goal("of_case", median["view"], median["case"], "at_most", 0.35),
            measure.Goal("faster_than_pandas", median["pandas"], median["view"], "at_least", 5),
        ]
    goals += [measure.Goal("peak_mb", max(peaks), PEAK_MB[kind], "at_most", 1)]
    measure.finish(options, "bucket_view", goals, pairs=options.pairs, spent=spent)


if __name__ == "__main__":
    main()
