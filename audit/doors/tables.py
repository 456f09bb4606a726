"""The door to files that are written: CSV, JSON Lines, Parquet; a file appears whole or not at all."""

import csv
import math
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any

from audit.words.errors import BadFile, MissingExtra
from audit.words.text import as_json

FORMATS = (".jsonl", ".csv", ".parquet")
_BATCH = 5000
_SQLITE = b"SQLite format 3\0"
_SIDE_FILE = re.compile(r"-(wal|shm|journal)$")
# A spreadsheet reads the full-width ones as well.
_FORMULA = frozenset("=+-@＝＋－＠")


def check_output(path: Path, endings: Sequence[str], inputs: Iterable[Path] = ()) -> None:
    """Before anything is computed: may this file be written? Raises BadFile where its ending says no format.

    And where its folder is not there, where it is one of the `inputs`, also by another name, or holds a
    SQLite database.
    """
    if path.suffix.lower() not in endings:
        raise BadFile(str(path), "", f"its ending says no format: use one of {', '.join(endings)}")
    for given in inputs:
        if path.exists() and given.exists() and path.samefile(given):
            raise BadFile(str(path), "", "is read by this command and would be replaced: name another")
    if not path.parent.is_dir():
        raise BadFile(str(path), "", f"there is no folder {path.parent}: make it first")
    refuse_database(path)


def write_table(
    path: Path,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    kinds: Sequence[str],
) -> int:
    """Write rows to `path` in the format of its ending; how many there were. CSV is safe for a spreadsheet.

    `kinds` are `text`, `integer` or `real`, one a column: Parquet needs them beforehand. Raises BadFile for
    another ending or a place that cannot be written, MissingExtra where pyarrow is absent.
    """
    check_output(path, FORMATS)
    write = {".jsonl": _jsonl, ".csv": _safe_csv, ".parquet": _parquet}[path.suffix.lower()]
    with _whole(path) as partial:
        return write(partial, columns, rows, kinds)


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    """Write rows as CSV for a program, every text as it is. Raises BadFile as `write_table` does."""
    if path.suffix != ".csv":
        raise BadFile(str(path), "", "it is written as CSV: name a file that ends in .csv")
    with _whole(path) as partial:
        return _csv(partial, columns, rows)


def write_text(path: Path, text: str) -> None:
    """Write one text as UTF-8, a lone surrogate escaped. Raises BadFile where that cannot be done."""
    with _whole(path) as partial, partial.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        settle(file)


def cell(value: Any) -> Any:
    """A CSV cell: text that a spreadsheet would run as a formula begins with an apostrophe.

    Also where blanks and controls, which a spreadsheet may drop, stand before the sign.
    """
    if isinstance(value, str) and not value[:1].isalnum():
        first = next((c for c in value if c.isprintable() and not c.isspace()), "")
        return "'" + value if first in _FORMULA or value.startswith(("\t", "\r")) else value
    if isinstance(value, float) and not math.isfinite(value):
        return ""
    return value


class _OneLineFeed:
    """Takes rows that end in CRLF, and ends them in LF.

    Python before 3.13 quotes only those line ends that the writer's own has: with LF alone, a field with a
    carriage return would break its row in two.
    """

    def __init__(self, file: IO[str]) -> None:
        self.file = file

    def write(self, row: str) -> int:
        return self.file.write(row[:-2] + "\n")


def csv_writer(file: IO[str]) -> Any:
    """A writer of CSV rows that end in LF; every field with a line end, of whatever kind, is quoted."""
    return csv.writer(_OneLineFeed(file), lineterminator="\r\n")


@contextmanager
def whole_files() -> Iterator[Callable[[Path], Path]]:
    """Path -> a file beside it to write to: all take their places when everything is in them, or none does.

    They do so in the order in which they were asked for. Raises BadFile where one cannot be written.
    """
    partials: dict[Path, Path] = {}

    def beside(path: Path) -> Path:
        refuse_database(path)
        partials[path] = path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
        return partials[path]

    try:
        yield beside
        for path, partial in partials.items():
            partial.replace(path)
    except OSError as error:
        failed = next((str(path) for path, partial in partials.items() if str(partial) == error.filename), "")
        told = failed or str(error.filename or next(iter(partials), ""))
        raise BadFile(told, "", f"cannot be written: {error.strerror or error}") from error
    finally:
        for partial in partials.values():
            with suppress(OSError):
                partial.unlink(missing_ok=True)


def refuse_database(path: Path) -> None:
    """Raises BadFile for what no output may replace, or be added to: a database, a folder, a pipe."""
    if path.is_dir() or not path.name:
        raise BadFile(str(path), "", "cannot be written: Is a directory")
    if path.exists() and not path.is_file():
        raise BadFile(str(path), "", "is no regular file, and would be replaced by one: name another")
    # By what it holds and not by its name: it may be this very database, also behind a link.
    if _is_database(path) or _is_database(path.with_name(_SIDE_FILE.sub("", path.name))):
        raise BadFile(str(path), "", "is a database, or a part of one, and would be replaced: name another")


def _is_database(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE
    return False


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    with whole_files() as beside:
        yield beside(path)


def _safe_csv(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], _kinds: Sequence[str]
) -> int:
    return _csv(path, [cell(name) for name in columns], ([cell(value) for value in row] for row in rows))


def _csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        writer = csv_writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow(row)
            count += 1
        settle(file)
    return count


def _jsonl(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], _kinds: Sequence[str]) -> int:
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        for row in rows:
            file.write(as_json(dict(zip(columns, row, strict=True))) + "\n")
            count += 1
        settle(file)
    return count


def _parquet(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]], kinds: Sequence[str]) -> int:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise MissingExtra("pyarrow", "parquet", "a .parquet file") from error
    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64()}
    schema = pa.schema([(name, types[kind]) for name, kind in zip(columns, kinds, strict=True)])
    count = 0
    found = iter(rows)
    with path.open("wb") as file:
        with pq.ParquetWriter(file, schema) as writer:
            while batch := list(islice(found, _BATCH)):
                by_column = list(zip(*batch, strict=True))
                arrays = [
                    pa.array([_utf8(value) for value in values], type=field.type)
                    for values, field in zip(by_column, schema, strict=True)
                ]
                writer.write_batch(pa.record_batch(arrays, schema=schema))
                count += len(batch)
        settle(file)
    return count


def _utf8(value: Any) -> Any:
    # Arrow takes no lone surrogate; JSON and CSV escape it in the same way.
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def settle(file: IO[Any]) -> None:
    """On the disk before it takes its place: a full disk is noticed now."""
    file.flush()
    os.fsync(file.fileno())
