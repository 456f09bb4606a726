"""`rewards`: outside rewards for the pairs of an imported run, as CSV or JSON Lines.

Columns: source_pair_id, reward_a, reward_b (finite numbers), optional gap (from 0 up).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, csv_rows, json_lines
from audit.doors.formats.fields import Row, strange_columns
from audit.words.records import OutsideReward

COLUMNS = ("source_pair_id", "reward_a", "reward_b", "gap")


def unguarded(text: str) -> str:
    """An id as `sql --csv` and `export` write it: an apostrophe keeps a spreadsheet from running it."""
    return text[1:] if text[:1] == "'" and text[1:2] in ("=", "+", "-", "@") else text


def read(path: Path, progress: Progress | None) -> Iterator[OutsideReward]:
    """The rewards of one file; JSON Lines unless its name says csv."""
    rows: Iterator[tuple[int, dict[str, Any]]]
    is_csv = path.name.removesuffix(".gz").endswith(".csv")
    rows = csv_rows(path, progress) if is_csv else json_lines(path, progress)
    seen = set(COLUMNS)
    for number, fields in rows:
        row = Row(str(path), f"line {number}", fields)
        if not fields.keys() <= seen:
            seen |= strange_columns(row, COLUMNS)
        yield OutsideReward(
            place=row.place,
            source_pair_id=unguarded(row.needed_text("source_pair_id"))
            if is_csv
            else row.needed_text("source_pair_id"),
            reward_a=row.needed_number("reward_a"),
            reward_b=row.needed_number("reward_b"),
            gap=row.number("gap", low=0),
        )
