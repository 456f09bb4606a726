"""The door to training files: rows of messages as JSON Lines or Parquet, streamed, in a form that loads.

`datasets.load_dataset("json")` takes the types of all rows from the first ten megabytes: a column of messages
without a tool call there, or a number that is NULL there, fails at the first row that has one. So the first
row of each kind is put at the front. Parquet says its types itself: a message is JSON text with Arrow's JSON
type, which `datasets` reads as `List(Json())` without adding a key.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import orjson

from audit.doors.tables import settle
from audit.words.errors import BadFile, MissingExtra
from audit.words.text import as_json

FORMATS = (".jsonl", ".parquet")
_HELD_BYTES = 1 << 20
_BATCH_ROWS = 5000
_BATCH_BYTES = 8 << 20


class Field(NamedTuple):
    """One column: a list of chat messages, text, a real number (may be NULL), or true/false."""

    name: str
    kind: Literal["messages", "text", "real", "flag"]


class Rows(Protocol):
    """A file that rows are added to one by one. `kinds` is a bit for each thing that not every row has."""

    count: int

    def add(self, row: dict[str, Any], kinds: int = 0) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...


def checked(path: Path) -> None:
    """Raises BadFile where the ending of a training file says no format."""
    if path.suffix not in FORMATS:
        raise BadFile(str(path), "", f"its ending says no format: use one of {', '.join(FORMATS)}")


def open_rows(path: Path, partial: Path, fields: Sequence[Field]) -> Rows:
    """A writer of `partial` in the format of the ending of `path`; MissingExtra where pyarrow is absent."""
    return ParquetRows(partial, fields) if path.suffix == ".parquet" else JsonlRows(partial)


class JsonlRows:
    """One JSON object a line, rows of a new kind first."""

    def __init__(self, path: Path) -> None:
        self.count = 0
        self._path = path
        self._file = path.open("wb", buffering=1 << 18)
        self._seen = 0
        self._size = 0
        # Copied: each line of orjson's keeps four kilobytes, however short it is.
        self._first = bytearray()
        self._held: bytearray | None = bytearray()
        self._late: list[tuple[int, int]] = []

    def add(self, row: dict[str, Any], kinds: int = 0) -> None:
        """Write one row."""
        try:
            line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        except TypeError:  # an integer over 64 bits, in some tool's arguments
            line = as_json(row).encode() + b"\n"
        self.count += 1
        is_new = kinds & ~self._seen
        if is_new:
            self._seen |= kinds
        if self._held is None:
            if is_new:
                self._late.append((self._size, len(line)))
            self._file.write(line)
        else:
            target = self._first if is_new else self._held
            target += line
        self._size += len(line)
        if self._held is not None and self._size > _HELD_BYTES:
            self._let_go()

    def finish(self) -> None:
        """All on the disk, the rows in their places."""
        self._let_go()
        settle(self._file)
        self._file.close()
        if self._late:
            self._bring_forward()

    def close(self) -> None:
        """Let the file go, finished or not."""
        self._file.close()

    def _let_go(self) -> None:
        if self._held is not None:
            self._file.write(self._first)
            self._file.write(self._held)
            self._first, self._held = bytearray(), None

    def _bring_forward(self) -> None:
        moved = self._path.with_name(f"{self._path.name}.moved")
        try:
            with self._path.open("rb") as source, moved.open("wb") as target:
                for start, size in self._late:
                    source.seek(start)
                    target.write(source.read(size))
                at = 0
                for start, size in [*self._late, (self._size, 0)]:
                    source.seek(at)
                    _copy(source, target, start - at)
                    at = start + size
                settle(target)
            moved.replace(self._path)
        finally:
            moved.unlink(missing_ok=True)


def _copy(source: Any, target: Any, size: int) -> None:
    while size > 0:
        piece = source.read(min(size, _HELD_BYTES))
        target.write(piece)
        size -= len(piece)


class ParquetRows:
    """Row groups of a few thousand rows."""

    def __init__(self, path: Path, fields: Sequence[Field]) -> None:
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ModuleNotFoundError as error:
            raise MissingExtra("pyarrow", "parquet", "a .parquet file") from error
        self.count = 0
        self._pa = pa
        self._json = pa.json_(pa.utf8())
        plain = {"text": pa.utf8(), "real": pa.float64(), "flag": pa.bool_()}
        self._fields = fields
        self._schema = pa.schema(
            [(one.name, plain[one.kind] if one.kind in plain else pa.list_(self._json)) for one in fields]
        )
        self._file = path.open("wb")
        self._writer = pq.ParquetWriter(self._file, self._schema)
        self._clear()

    def _clear(self) -> None:
        self._rows = 0
        self._bytes = 0
        self._columns: list[Any] = [_Texts() if field.kind == "messages" else [] for field in self._fields]

    def add(self, row: dict[str, Any], kinds: int = 0) -> None:
        """Write one row."""
        for field, column in zip(self._fields, self._columns, strict=True):
            if field.kind == "messages":
                self._bytes += column.add(row[field.name])
            else:
                column.append(row[field.name])
        self._rows += 1
        self.count += 1
        if self._rows >= _BATCH_ROWS or self._bytes >= _BATCH_BYTES:
            self._flush()

    def finish(self) -> None:
        """All on the disk."""
        if self._rows:
            self._flush()
        self._writer.close()
        settle(self._file)
        self._file.close()

    def close(self) -> None:
        """Let the file go, finished or not."""
        if not self._file.closed:
            self._writer.close()
            self._file.close()

    def _flush(self) -> None:
        pa = self._pa
        arrays = []
        for wanted, column in zip(self._schema, self._columns, strict=True):
            if isinstance(column, _Texts):
                arrays.append(column.as_array(pa, self._json))
            else:
                arrays.append(pa.array(column, type=wanted.type))
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self._clear()


class _Texts:
    """A column of lists of JSON texts, laid out as Arrow has them: all bytes, and where each begins."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._texts = array("i", [0])
        self._lists = array("i", [0])

    def add(self, messages: list[dict[str, Any]]) -> int:
        """One row; how many bytes it took."""
        before = len(self._bytes)
        for message in messages:
            try:
                self._bytes += orjson.dumps(message)
            except TypeError:
                self._bytes += as_json(message).encode()
            self._texts.append(len(self._bytes))
        self._lists.append(len(self._texts) - 1)
        return len(self._bytes) - before

    def as_array(self, pa: Any, kind: Any) -> Any:
        """The column so far."""
        starts, places = pa.py_buffer(self._texts), pa.py_buffer(self._lists)
        texts = pa.StringArray.from_buffers(len(self._texts) - 1, starts, pa.py_buffer(self._bytes))
        rows = pa.Array.from_buffers(pa.int32(), len(self._lists), [None, places])
        return pa.ListArray.from_arrays(rows, pa.ExtensionArray.from_storage(kind, texts))
