"""The whole `import jsonl` of a file, against a bare `sqlite3.executemany` of the rows that it makes.

The file holds one pair a line: both replies of the judge (400 bytes each, grammar arena_hard_5way), category,
task and successes. With `--agents` also the two agents, 20 in all, so that after the file is in, every gap
between two agents is worked out and every pair is scored again with it.

The import runs as the command in a process of its own, from start to exit: the file is hashed, read, parsed,
its 2 replies a pair are read for their verdict, settled, scored, stored and committed. The bare loop writes
the same rows, read back from the imported database in batches (1,000 pairs and the calls of their judge), in
one transaction into the same schema: the program's own, with all indexes and constraints, in WAL mode,
foreign keys on. The time to read them back is taken off; BEGIN to the end of the commit is measured.

Goals: the import stores at least 0.3 of the rows a second of the bare loop; its peak memory is under 150 MB,
with 5,000,000 pairs as with 1,000,000 (`--memory-only` leaves out the bare loop).
"""

import argparse
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from itertools import zip_longest
from pathlib import Path
from typing import Any

import bulk_load
import made
import measure

from audit.doors.db import open_database
from audit.words.records import JudgeLog, Pair

PEAK_MB = 150


def load_same_bare(source: Path, target: Path) -> measure.Spent:
    """Write the rows of `source` into a new database by `executemany` alone."""
    open_database(f"sqlite:///{target}", create=True).dispose()
    with closing(sqlite3.connect(source)) as filled, closing(bulk_load.bare(target)) as connection:
        runs = filled.execute("select * from audit_runs").fetchall()
        watch = measure.Stopwatch()
        connection.execute("begin immediate")
        connection.executemany(f"insert into audit_runs values ({', '.join('?' * len(runs[0]))})", runs)
        for pair_rows, log_rows in watch.around(_batches(filled)):
            connection.executemany(bulk_load.insert("audit_pairs", Pair._fields), pair_rows)
            connection.executemany(bulk_load.insert("judge_logs", JudgeLog._fields), log_rows)
        connection.execute("commit")
        return watch.spent()


def _batches(filled: sqlite3.Connection) -> Iterator[tuple[list[Any], list[Any]]]:
    pairs = filled.execute(f"select {', '.join(Pair._fields)} from audit_pairs order by rowid")
    logs = filled.execute(f"select {', '.join(JudgeLog._fields)} from judge_logs order by log_id")
    return zip_longest(iter(lambda: pairs.fetchmany(1000), []), iter(lambda: logs.fetchmany(2000), []))


def main() -> None:
    parser = measure.arguments(__doc__)
    parser.add_argument("--agents", action="store_true", help="name the agents, so that gaps are worked out")
    parser.add_argument("--memory-only", action="store_true", help="leave out the bare loop")
    options = parser.parse_args()
    with measure.scratch(options) as folder:
        goals, facts = _measured(Path(folder), options)
    name = "import_jsonl --agents" if options.agents else "import_jsonl"
    measure.finish(options, name, goals, pairs=options.pairs, rows=3 * options.pairs, **facts)


def _measured(folder: Path, options: argparse.Namespace) -> tuple[list[measure.Goal], dict[str, Any]]:
    file, database = folder / "judged.jsonl", folder / "imported.db"
    made.write_jsonl(file, options.pairs, with_agents=options.agents)
    facts: dict[str, Any] = {"file_mb": file.stat().st_size / 1e6}
    command = [
        sys.executable,
        "-m",
        "audit",
        "--db",
        f"sqlite:///{database}",
        "--json",
        "import",
        "jsonl",
        file,
    ]
    imported = measure.child(command)
    file.unlink()
    facts["import_spent"] = imported.spent
    goals = [measure.Goal("peak_mb", imported.peak_mb, PEAK_MB, "at_most", 1)]
    if not options.memory_only:
        bare = facts["bare_spent"] = load_same_bare(database, folder / "bare.db")
        speed, bare_speed = (3 * options.pairs / spent.wall for spent in (imported.spent, bare))
        goals.append(measure.Goal("rows_per_second", speed, bare_speed, "at_least", 0.3))
    return goals, facts


if __name__ == "__main__":
    main()
