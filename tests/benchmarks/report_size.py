"""`report --json` of a large run against reading the same rows.

    read     `select *` of the run's pairs, sessions and calls by the driver alone, row after row, each let go
    report   every figure of `report --json` with its interval, printed

100,000 pairs in 2,000 tasks, 50 in each; 40 agents did every task, so 80,000 sessions; two calls a pair. Each
round starts a fresh process for each way, in turn; what is timed is from opening the database to the last
row, or to the last byte of JSON, numpy and scipy loaded in between. The database is in the page cache; on
PostgreSQL (`--postgres URL`) it was vacuumed, as autovacuum does some time after a load.

Goals: the report takes at most 3 times as long as reading, by the medians, and peaks under 400 MB.
"""

import io
import json
import sqlite3
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, redirect_stdout
from functools import lru_cache
from itertools import combinations
from typing import Any

import made
import measure

PEAK_MB = 400
PAIRS = 100_000
PAIRS_A_TASK = 50
AGENTS = tuple(f"agent-{number:02d}" for number in range(40))
AGENT_PAIRS = tuple(combinations(range(len(AGENTS)), 2))


def load(url: str, pairs: int) -> None:
    from audit.doors import store
    from audit.doors.db import open_database, writing

    engine = open_database(url, create=True)
    with writing(engine) as connection:
        store.add_run(connection, made.RUN)
        store.add_buckets(connection, made.SCALE.buckets.name, made.SCALE.buckets.with_unknown())
        for sessions, pair_rows, log_rows in rows(pairs):
            store.add_sessions(connection, sessions)
            store.add_pairs(connection, pair_rows)
            store.add_logs(connection, log_rows)
        store.finish_run(connection, made.RUN.run_id, "complete")
    engine.dispose()


def rows(pairs: int, tasks_at_once: int = 10) -> Iterator[tuple[list[Any], list[Any], list[Any]]]:
    """Sessions, pairs and calls, batch by batch."""
    count = max(pairs // PAIRS_A_TASK, 1)
    for start in range(0, count, tasks_at_once):
        tasks = range(start, min(start + tasks_at_once, count))
        found = [row for task in tasks for row in _pairs(task)]
        sessions = [session for task in tasks for session in _sessions(task)]
        yield sessions, [pair for pair, _ in found], [log for _, logs in found for log in logs]


@lru_cache(maxsize=4096)
def _reward(task: int, agent: int) -> float:
    """A share of five checks, each met as often as the agent is good."""
    met = sum(made.chance(task * 200 + agent * 5 + check, 17) < 0.4 + 0.012 * agent for check in range(5))
    return met / 5


def _sessions(task: int) -> Iterator[Any]:
    from audit.words.records import Session

    for agent, name in enumerate(AGENTS):
        reward = _reward(task, agent)
        blank: dict[str, Any] = dict.fromkeys(Session._fields)
        yield Session(
            **blank
            | {
                "session_id": f"s-{task:05d}-{agent:02d}",
                "run_id": made.RUN.run_id,
                "task_id": f"task-{task:06d}",
                "category": made.CATEGORIES[task % len(made.CATEGORIES)],
                "agent": name,
                "trial": 0,
                "transcript_json": '[{"role":"user","content":"Please change my booking."}]',
                "reward": reward,
                "success": int(reward == 1),
                "satisfaction": round((reward + made.chance(task * 40 + agent, 19)) / 2, 2),
                "total_tokens": 1000 + agent,
                "created_at": made.RUN.created_at,
            }
        )


def _pairs(task: int) -> Iterator[Any]:
    for which in range(PAIRS_A_TASK):
        agent_a, agent_b = AGENT_PAIRS[(task * PAIRS_A_TASK + which) % len(AGENT_PAIRS)]
        reward_a, reward_b = _reward(task, agent_a), _reward(task, agent_b)
        number = task * PAIRS_A_TASK + which
        better = 1 if reward_a > reward_b else -1
        if made.chance(number, 7) < 0.3 - 0.4 * abs(reward_a - reward_b):
            better = -better
        drawn = made.draw(number)._replace(
            success_a=int(reward_a == 1),
            success_b=int(reward_b == 1),
            choices=(made.choice(number, "AB", better), made.choice(number, "BA", better)),
        )
        pair, logs = made.rows_of(drawn)
        outcome = pair.outcome
        if reward_a != reward_b and pair.judge_pref in ("A", "B"):
            outcome = "correct" if (pair.judge_pref == "A") == (reward_a > reward_b) else "misselected"
        pair = pair._replace(
            task_id=f"task-{task:06d}",
            category=made.CATEGORIES[task % len(made.CATEGORIES)],
            agent_a=AGENTS[agent_a],
            agent_b=AGENTS[agent_b],
            session_a=f"s-{task:05d}-{agent_a:02d}",
            session_b=f"s-{task:05d}-{agent_b:02d}",
            reward_a=reward_a,
            reward_b=reward_b,
            outcome="reward_tie" if reward_a == reward_b else outcome,
        )
        yield pair, logs


def read(url: str) -> measure.Spent:
    opened = _opened(url)
    watch = measure.Stopwatch()
    count = 0
    with opened as ask:
        for table in ("audit_pairs", "sessions", "judge_logs"):
            for _ in ask(f"select * from {table} where run_id = '{made.RUN.run_id}'"):
                count += 1
    spent = watch.spent()
    assert count
    return spent


@contextmanager
def _opened(url: str) -> Iterator[Callable[[str], Iterable[Any]]]:
    """What gives a statement's rows, streamed; by the driver alone."""
    if not measure.is_postgres(url):
        with closing(sqlite3.connect(measure.sqlite_file(url))) as connection:
            yield connection.execute
        return
    import psycopg

    with psycopg.connect(measure.psycopg_url(url)) as server:

        def ask(statement: str) -> Iterator[Any]:
            with server.cursor(name="reading") as cursor:
                cursor.itersize = 2000
                cursor.execute(statement.encode())
                yield from cursor

        yield ask


def report(url: str) -> measure.Spent:
    from audit.doors.db import open_database
    from audit.faces.output import print_json
    from audit.pipeline.reporting import report as report_

    held = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    watch = measure.Stopwatch()
    engine = open_database(url, create=False)
    with redirect_stdout(held):
        print_json(report_(engine, made.RUN.run_id))
    spent = watch.spent()
    held.flush()
    found = json.loads(held.buffer.getvalue())  # type: ignore[attr-defined]
    assert found["pairs"]["total"]
    assert found["agent_pairs"]["rows"]
    return spent


WAYS = {"read": read, "report": report}


def main() -> None:
    parser = measure.arguments(__doc__, pairs=PAIRS)
    measure.with_postgres(parser)
    parser.add_argument("--rounds", type=int, default=5, help="each way is asked so often (%(default)s)")
    parser.add_argument("--ask", choices=WAYS, help="go one way, on the database --of, and print its seconds")
    parser.add_argument("--of", help="the address of the database")
    parser.add_argument("--load", action="store_true", help="load the database --of")
    options = parser.parse_args()
    if options.load:
        load(options.of, options.pairs)
    elif options.ask:
        print(json.dumps(WAYS[options.ask](options.of)))
    else:
        _compare(options)


def _compare(options: Any) -> None:
    spent: dict[str, list[measure.Spent]] = {way: [] for way in WAYS}
    peaks = []
    with measure.database(options) as url:
        this = [sys.executable, __file__, "--of", url]
        measure.child([*this, "--load", "--pairs", str(options.pairs)])
        if options.postgres:
            measure.vacuum(url)
        for _ in range(options.rounds):
            for way in WAYS:
                asked = measure.child([*this, "--ask", way])
                spent[way].append(measure.Spent(*json.loads(asked.output)))
                if way == "report":
                    peaks.append(asked.peak_mb)
    reading, reporting = (statistics.median(one.wall for one in spent[way]) for way in WAYS)
    goals = [
        measure.Goal("of_reading", reporting, reading, "at_most", 3),
        measure.Goal("peak_mb", max(peaks), PEAK_MB, "at_most", 1),
    ]
    measure.finish(options, "report_size", goals, pairs=options.pairs, spent=spent)


if __name__ == "__main__":
    main()
