"""The door to files: read whole or line by line, plain or gzip, and name the place where one is broken."""

import csv
import gzip
import hashlib
import json
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import orjson

from audit.doors.sound import json_loads
from audit.words.errors import BadFile
from audit.words.text import to_stored

Progress = Callable[[int], None]
_CHUNK = 1 << 20
_TWICE = "\0twice"
_BOM = b"\xef\xbb\xbf"


def sha256(path: Path) -> str:
    """The file's SHA-256 in hex, as it lies on disk. Raises BadFile where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise BadFile(str(path), "", _reason(error)) from error


def stem(path: Path) -> str:
    """The file's name without the endings that say its format."""
    name = path.name.removesuffix(".gz")
    for ending in (".jsonl", ".json", ".csv", ".eval"):
        name = name.removesuffix(ending)
    return to_stored(name)


def lines(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, bytes]]:
    """(line number from 1, the line's bytes) of a plain or `.gz` file, without a byte order mark.

    `progress` is told, now and then, how many bytes of the file on disk have been read.
    """
    number = 0
    try:
        with path.open("rb") as file:
            readable = cast(BinaryIO, gzip.GzipFile(fileobj=file)) if path.suffix == ".gz" else file
            for number, line in enumerate(readable, 1):
                if number == 1 and line.startswith(_BOM):
                    line = line[len(_BOM) :]
                if progress and number % 512 == 0:
                    progress(file.tell())
                yield number, line
    except (OSError, EOFError, zlib.error) as error:
        raise BadFile(str(path), f"line {number + 1}" if number else "", _reason(error)) from error


def json_lines(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, object) of a JSON Lines file; blank lines are passed over.

    Raises BadFile for a line that is not one JSON object in UTF-8.
    """
    for number, line in lines(path, progress):
        if not line or line.isspace():
            continue
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            found = _json(path, number, line.rstrip(b"\r\n"))
        if not isinstance(found, dict):
            raise BadFile(str(path), f"line {number}", f"expected a JSON object, found {_kind(found)}")
        if any(line.count(b'"%b"' % key.encode("utf-8", "replace")) > 1 for key in found):
            _refuse_twice(path, number, line)
        yield number, found


def json_array(path: Path) -> list[dict[str, Any]]:
    """The objects of a file that is one JSON array. Raises BadFile naming line and column, or the index."""
    found = json_document(path)
    if not isinstance(found, list):
        raise BadFile(str(path), "", f"expected a JSON array, found {_kind(found)}")
    for index, item in enumerate(found):
        if not isinstance(item, dict):
            raise BadFile(str(path), f"[{index}]", f"expected a JSON object, found {_kind(item)}")
    return found


def json_records(path: Path, within: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(JSON path, object) of the records of a file that is one JSON document.

    The records are the items of the top-level array, or of the array under one of the names `within` in the
    top-level object, or that object itself. Raises BadFile naming line and column, or the path.
    """
    found = json_document(path)
    name = next((key for key in within if isinstance(found, dict) and isinstance(found.get(key), list)), "")
    items = found[name] if name else found
    if isinstance(items, dict):
        yield "the object", items
        return
    if not isinstance(items, list):
        raise BadFile(str(path), "", f"expected a JSON array or object, found {_kind(items)}")
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            raise BadFile(str(path), f"{name}[{index}]", f"expected a JSON object, found {_kind(item)}")
        yield f"{name}[{index}]", item


def json_document(path: Path) -> Any:
    """What a file that is one JSON document holds. Raises BadFile naming line and column."""
    return _json(path, 1, b"".join(line for _, line in lines(path)))


def csv_rows(path: Path, progress: Progress | None = None) -> Iterator[tuple[int, dict[str, str]]]:
    """(line number where the row begins, column -> text) of a CSV file in UTF-8; nothing is guessed.

    Raises BadFile for a header without names or with a repeated one, a row of another length, an open quote.
    """
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(_decoded(path, progress), strict=True)
    header: list[str] | None = None
    start = 1
    try:
        for row in reader:
            begins, start = start, reader.line_num + 1
            if header is None:
                header = _header(path, row)
            elif row:
                if len(row) != len(header):
                    raise BadFile(
                        str(path), f"line {begins}", f"{len(row)} fields, but the header names {len(header)}"
                    )
                yield begins, dict(zip(header, row, strict=True))
    except csv.Error as error:
        raise BadFile(str(path), f"line {start}", f"not valid CSV: {_csv_problem(error)}") from error
    if header is None:
        raise BadFile(str(path), "", "is empty: expected a header line with column names")


def _header(path: Path, row: list[str]) -> list[str]:
    names = [name.strip() for name in row]
    if not any(names):
        raise BadFile(str(path), "line 1", "expected a header line with column names")
    for mark in ";\t":
        if len(names) == 1 and mark in names[0]:
            problem = f"the columns are separated by {mark!r}: save it as CSV with commas"
            raise BadFile(str(path), "line 1", problem)
    for name, count in Counter(names).items():
        if count > 1:
            raise BadFile(str(path), "line 1", f"column {name!r} stands twice in the header")
    return names


def _csv_problem(error: csv.Error) -> str:
    # The library's own words advise a programmer on how to open the file.
    if "new-line character" in str(error):
        return "a carriage return outside quotes: write line ends as LF or CRLF"
    return str(error)


def _json(path: Path, first_line: int, data: bytes) -> Any:
    """What the standard library reads in `data`, which begins at `first_line` of the file.

    It takes what other programs write though it is no JSON: NaN, which the check of its field then names,
    and lone surrogates.
    """
    try:
        return json_loads(data.decode())
    except UnicodeDecodeError as error:
        line = first_line + data.count(b"\n", 0, error.start)
        raise BadFile(str(path), f"line {line}", f"not UTF-8: byte {data[error.start]:#04x}") from error
    except json.JSONDecodeError as error:
        place = f"line {first_line + error.lineno - 1} column {error.colno}"
        raise BadFile(str(path), place, f"not valid JSON: {error.msg}") from error
    except RecursionError as error:
        raise BadFile(str(path), f"line {first_line}", "JSON that is nested too deep to be read") from error
    except ValueError as error:
        why = str(error) if "stands twice" in str(error) else "JSON with a number too long to be read"
        raise BadFile(str(path), f"line {first_line}", why) from error


def _refuse_twice(path: Path, number: int, line: bytes) -> None:
    """Raises BadFile where the object itself has a key twice: which of the two is meant, nobody can tell.

    A name that stands twice in the line may be a value, or a key further in: those are let pass.
    """

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        found[_TWICE] = next(
            (key for key, count in Counter(key for key, _ in pairs).items() if count > 1), None
        )
        return found

    with suppress(ValueError):
        twice = json.loads(line.decode(), object_pairs_hook=once)[_TWICE]
        if twice is not None:
            raise BadFile(str(path), f"line {number}", f"the key {twice!r} stands twice")


def _decoded(path: Path, progress: Progress | None) -> Iterator[str]:
    for number, line in lines(path, progress):
        try:
            yield line.decode()
        except UnicodeDecodeError as error:
            raise BadFile(str(path), f"line {number}", f"not UTF-8: byte {line[error.start]:#04x}") from error


def _kind(found: object) -> str:
    names = {list: "an array", dict: "an object", str: "a string", type(None): "null", bool: "a boolean"}
    return names.get(type(found), "a number")


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"cannot be read: {error}"
