"""Every view of `sql/` gives the same rows on SQLite and on PostgreSQL; `db copy` there and back is equal.

The rows of `made_whole` are loaded into both through the store. Each view is read whole from both, timed by
itself, and then compared row by row: whole numbers and texts exactly, other numbers to 1e-9 of themselves (a
mean is added up in another order). Then `db copy` takes the SQLite database into an empty one of
PostgreSQL, and that one back into SQLite: every table must have the digest it had.

Prints a line a view as it goes, to stderr, and one JSON object. Exits 1 where anything differs.
"""

import json
import math
import sys
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise, zip_longest
from typing import Any

import made_whole
import measure
from sqlalchemy import Connection, Engine, text

from audit.doors import store
from audit.doors.db import open_database, reading, writing
from audit.doors.shipped import view_texts

# Read in the order of these columns and compared as they come; all others are small, and sorted here.
LARGE = {
    "clean_pairs": ("pair_id",),
    "flagged_pairs": ("pair_id", "flag"),
    "review_queue": ("pair_id",),
}
CLOSE = 1e-9
TINY = 1e-12  # where a difference of two means is 0 but for its last digits


def load(url: str, pairs: int) -> float:
    """Seconds to load, those to make the rows taken off."""
    engine = open_database(url, create=True)
    watch = measure.Stopwatch()
    with writing(engine) as connection:
        for table, columns, rows in watch.around(made_whole.tables(pairs)):
            store.insert(connection, table, columns, rows)
        store.analyze(connection)
    spent = watch.spent().wall
    engine.dispose()
    return spent


def main() -> None:
    parser = measure.arguments(__doc__)
    measure.with_postgres(parser)
    parser.add_argument("--views", nargs="+", choices=view_texts(), help="these alone, and no copies")
    options = parser.parse_args()
    if not options.postgres:
        parser.error("--postgres URL: the server to compare with")
    with ExitStack() as held:
        sqlite = held.enter_context(measure.database(Namespace(**vars(options) | {"postgres": None})))
        postgres = held.enter_context(measure.database(options))
        seconds = {"sqlite": load(sqlite, options.pairs), "postgres": load(postgres, options.pairs)}
        measure.vacuum(postgres)
        engines = [open_database(url, create=False) for url in (sqlite, postgres)]
        views = [compare(name, *engines) for name in options.views or view_texts()]
        for engine in engines:
            engine.dispose()
    copies = [] if options.views else copy_there_and_back(options)
    is_equal = all(one["is_equal"] for one in [*views, *copies])
    print(
        json.dumps(
            {
                "benchmark": "views_equal",
                "pairs": options.pairs,
                "is_equal": is_equal,
                "load_seconds": {name: round(one, 2) for name, one in seconds.items()},
                "views": views,
                "copies": copies,
            }
        )
    )
    sys.exit(not is_equal)


def compare(name: str, sqlite: Engine, postgres: Engine) -> dict[str, Any]:
    """One view on both: its rows, the seconds to read it whole, and the first difference."""
    with reading(sqlite) as here, reading(postgres) as there:
        found = {
            "view": name,
            "sqlite_seconds": _seconds(name, here),
            "postgres_seconds": _seconds(name, there),
        }
        rows, difference = 0, None
        for one, other in zip_longest(_rows(name, here), _rows(name, there)):
            if one is None or other is None or not _same(one, other):
                difference = {"sqlite": _shown(one), "postgres": _shown(other)}
                break
            rows += 1
    told = found | {"rows": rows, "is_equal": difference is None, "difference": difference}
    _tell(told)
    return told


def _tell(told: dict[str, Any]) -> None:
    print(", ".join(f"{name} {value}" for name, value in told.items() if value is not None), file=sys.stderr)


def _seconds(name: str, connection: Connection) -> float:
    began = time.perf_counter()
    for _ in connection.execute(text(f"select * from {name}"), execution_options={"yield_per": 5000}):
        pass
    return round(time.perf_counter() - began, 3)


def _rows(name: str, connection: Connection) -> Iterator[dict[str, Any]]:
    order = ", ".join(f'{key} collate "binary"' for key in LARGE.get(name, ()))
    found = connection.execute(
        text(f"select * from {name}" + (f" order by {order}" if order else "")),
        execution_options={"yield_per": 5000},
    ).mappings()
    rows = (dict(row) for row in found)
    yield from rows if order else sorted(rows, key=lambda row: [_sorted(value) for value in row.values()])


def _sorted(value: Any) -> tuple[str, Any]:
    # A mean that differs in its last digit must not change a row's place.
    is_number = value is not None and not isinstance(value, str)
    return ("number", round(float(value), 6)) if is_number else ("text", value or "")


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(_alike(value, other[name]) for name, value in one.items())


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=TINY)
    return type(one) is type(other) and one == other


def _shown(row: dict[str, Any] | None) -> dict[str, str] | None:
    return None if row is None else {name: repr(value)[:80] for name, value in row.items()}


def copy_there_and_back(options: Namespace) -> list[dict[str, Any]]:
    """`db copy` SQLite -> PostgreSQL -> SQLite, by the command; a child each, for the memory it takes."""
    on_sqlite = Namespace(**vars(options) | {"postgres": None})
    copies: list[dict[str, Any]] = []
    with ExitStack() as held:
        urls = [held.enter_context(measure.database(each)) for each in (on_sqlite, options, on_sqlite)]
        load(urls[0], options.pairs)
        for source, target in pairwise(urls):
            done = measure.child([sys.executable, "-m", "audit", "db", "copy", source, target, "--json"])
            tables = json.loads(done.output)["tables"]
            is_first = not copies
            told = {
                "from": "sqlite" if is_first else "postgres",
                "to": "postgres" if is_first else "sqlite",
                "seconds": round(done.spent.wall, 2),
                "peak_mb": round(done.peak_mb, 1),
                "rows": sum(table["rows"] for table in tables),
                "is_equal": is_first or tables == copies[0]["tables"],
                "tables": tables,
            }
            copies.append(told)
            _tell({name: value for name, value in told.items() if name != "tables"})
    return copies


if __name__ == "__main__":
    main()
