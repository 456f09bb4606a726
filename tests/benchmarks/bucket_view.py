"""`select * from misselection_by_gap` against the same counts asked of the table in two other ways.

    view     the view, through this program's door to the database
    case     one hand-written `case` over reward_gap, with `group by`, by sqlite3 alone: a scan of the table
    pandas   the needed columns read by `pandas.read_sql`, cut and grouped there

All three give the same counts, which is checked. Each round starts a fresh process for each way, in turn;
what is timed is the question, from opening the database to the last row, without the start of the interpreter
and its imports. The database holds the run of `bulk_load`, in the page cache for all three.

Goals: the view takes at most 0.35 of the time of the case, pandas at least 5 times that of the view, by the
medians; the process that asks the view peaks under 60 MB.
"""

import json
import sqlite3
import statistics
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import measure

PEAK_MB = 60
COUNTS = ("pairs", "decidable", "correct", "misselected", "both_read", "consistent")
Rows = list[list[Any]]

# The edges of the preset `gauge`; a gap within 1e-9 of an edge is on it.
CASE = """
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
    count(*),
    count(*) filter (where outcome not in ('unverified', 'reward_tie')),
    count(*) filter (where outcome = 'correct'),
    count(*) filter (where outcome = 'misselected'),
    count(*) filter (where is_consistent is not null),
    count(*) filter (where is_consistent = 1)
from audit_pairs
group by run_id, gate, bucket
"""


def ask_view(database: Path) -> tuple[measure.Spent, Rows]:
    from audit.doors import ask
    from audit.doors.db import open_database, reading

    watch = measure.Stopwatch()
    engine = open_database(f"sqlite:///{database}", create=False)
    with reading(engine) as connection:
        found = ask.rows(connection, "select * from misselection_by_gap")
    spent = watch.spent()
    rows = [[row["run_id"], row["gate"], row["gap_bucket"], *(row[c] for c in COUNTS)] for row in found]
    return spent, [row for row in rows if row[3]]


def ask_case(database: Path) -> tuple[measure.Spent, Rows]:
    watch = measure.Stopwatch()
    with closing(sqlite3.connect(database)) as connection:
        found = [list(row) for row in connection.execute(CASE)]
    return watch.spent(), found


def ask_pandas(database: Path) -> tuple[measure.Spent, Rows]:
    import pandas

    edges = [-1, 0.05 - 1e-9, 0.10 - 1e-9, 0.15 - 1e-9, 0.30 - 1e-9, float("inf")]
    labels = ["[0,0.05)", "[0.05,0.1)", "[0.1,0.15)", "[0.15,0.3)", "[0.3,..)"]
    watch = measure.Stopwatch()
    with closing(sqlite3.connect(database)) as connection:
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


WAYS: dict[str, Callable[[Path], tuple[measure.Spent, Rows]]] = {
    "view": ask_view,
    "case": ask_case,
    "pandas": ask_pandas,
}


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="each way is asked so often (%(default)s)")
    parser.add_argument("--ask", choices=WAYS, help="ask one way, of the database --of, and print the answer")
    parser.add_argument("--of", type=Path, help="the database")
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
    spent: dict[str, list[measure.Spent]] = {way: [] for way in WAYS}
    peaks = []
    with measure.scratch(options) as folder:
        this: list[str | Path] = [sys.executable, __file__, "--of", Path(folder) / "loaded.db"]
        measure.child([*this, "--load", "--pairs", str(options.pairs)])
        for _ in range(options.rounds):
            answers = []
            for way in WAYS:
                asked = measure.child([*this, "--ask", way])
                answer = json.loads(asked.output)
                spent[way].append(measure.Spent(*answer["spent"]))
                answers.append(answer["rows"])
                if way == "view":
                    peaks.append(asked.peak_mb)
            if any(rows != answers[0] for rows in answers) or not answers[0]:
                raise SystemExit(f"the three ways do not count the same: {answers}")
    view, case, pandas = (statistics.median(one.wall for one in spent[way]) for way in WAYS)
    goals = [
        measure.Goal("of_case", view, case, "at_most", 0.35),
        measure.Goal("faster_than_pandas", pandas, view, "at_least", 5),
        measure.Goal("peak_mb", max(peaks), PEAK_MB, "at_most", 1),
    ]
    measure.finish(options, "bucket_view", goals, pairs=options.pairs, spent=spent)


if __name__ == "__main__":
    main()
