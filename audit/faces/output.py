"""How results are printed: JSON, CSV, tables that fit the terminal, progress on stderr."""

import csv
import io
import json
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

WIDTH = 100


def console() -> Console:
    """The terminal, or 80 columns where there is none; text from files is never read as markup."""
    width = None if sys.stdout.isatty() else 80
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def print_json(value: object) -> None:
    """One JSON document on stdout; NaN and infinities, which JSON has no word for, as null."""
    click.echo(json.dumps(_plain(value), ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace"))


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """CSV on stdout, safe to open in a spreadsheet."""
    from audit.doors.tables import cell

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([cell(value) for value in row] for row in rows)
    click.echo(buffer.getvalue().encode("utf-8", "backslashreplace"), nl=False)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table on stdout, cut to the terminal's width; long text in one line a cell."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", overflow="ellipsis", no_wrap=True)
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    console().print(table)
    click.echo(f"({len(rows)} row{'' if len(rows) == 1 else 's'})")


def print_records(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """One line a field, for rows too wide for a table."""
    width = max((len(column) for column in columns), default=0)
    for number, row in enumerate(rows):
        if number:
            click.echo()
        for column, value in zip(columns, row, strict=True):
            click.echo(f"{column:<{width}}  {visible(shown(value))}")


def shown(value: Any) -> str:
    """A value for a person: NULL as a dash, a real number to four places."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4f}".rstrip("0").rstrip(".") if math.isfinite(value) else str(value)
    return visible(str(value).replace("\n", "⏎"))


def visible(text: str) -> str:
    """Text from models without control characters that would drive the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\x{ord(c):02x}" for c in text)


def wrapped(text: str) -> str:
    """Prose at 80 columns."""
    return textwrap.fill(text, 80)


def share(rate: Mapping[str, Any]) -> str:
    """`k/n` and its percentage, `-` where n is 0."""
    if not rate["n"]:
        return "-"
    return f"{rate['k']}/{rate['n']} {rate['value']:.1%}"


def interval(rate: Mapping[str, Any]) -> str:
    """The interval in percent, empty where there is none."""
    if rate["low"] is None:
        return ""
    return f"{100 * rate['low']:.1f}-{100 * rate['high']:.1f}"


@contextmanager
def file_progress(path: Path) -> Iterator[Callable[[int], None] | None]:
    """Bytes read of a large file, on a terminal's stderr; elsewhere nothing."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    if not sys.stderr.isatty() or not path.is_file():
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path.name[:40], total=path.stat().st_size)
        yield lambda done: bar.update(task, completed=done)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
