"""How results are printed: JSON, CSV, tables that fit the terminal, progress on stderr."""

import io
import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 80
_HUGE = 1e15  # from here on no float has four places


def print_table(table: "RenderableType") -> None:
    """A table or a paragraph, no wider than the terminal, or than 80 columns where there is none."""
    screen = _screen()
    with screen.capture() as held:
        screen.print(table)
    for line in held.get().splitlines():
        click.echo(line.rstrip())


def titled(title: str) -> Table:
    """An empty table under its title."""
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)


def print_part(table: Table, note: str | None = None) -> None:
    """A table, what is to be said under it, and an empty line."""
    print_table(table)
    if note:
        say(f"({note})")
    click.echo()


def say(text: str) -> None:
    """A paragraph as wide as a table may be; names in it from files cannot drive the terminal."""
    print_table(Text(visible(text)))


def tell(text: str, *, err: bool = False, hanging: int = 0) -> None:
    """One line for a log or a program; on a terminal it is broken between words, further lines set in."""
    stream = sys.stderr if err else sys.stdout
    line = visible(text).replace("\n", "⏎")
    if not stream.isatty():
        click.echo(line, err=err)
        return
    screen = Console(file=stream, highlight=False, markup=False, emoji=False)
    for number, part in enumerate(Text(line).wrap(screen, max(screen.width - hanging, 20))):
        click.echo(" " * (hanging if number else 0) + part.plain.rstrip(), err=err)


def print_json(value: object) -> None:
    """One JSON document on stdout; NaN and infinities, which JSON has no word for, as null."""
    click.echo(json.dumps(_plain(value), ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace"))


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """CSV on stdout, safe to open in a spreadsheet."""
    from audit.doors.tables import cell, csv_writer

    buffer = io.StringIO()
    writer = csv_writer(buffer)
    writer.writerow([cell(name) for name in columns])
    writer.writerows([cell(value) for value in row] for row in rows)
    click.echo(buffer.getvalue().encode("utf-8", "backslashreplace"), nl=False)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, folded: str | None = None) -> None:
    """A table on stdout, or one line a field where it would be too wide: nothing is cut off.

    The column `folded`, where there is one, is broken over several lines instead.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(
            Text(visible(column)),
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=column != folded,
        )
    for row in rows:
        table.add_row(*(Text(shown(value)) for value in row))
    if folded is None and not _fits(table):
        print_records(columns, rows)
    else:
        print_table(table)
    click.echo(f"({len(rows):,} row{'' if len(rows) == 1 else 's'})")


def print_records(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """One line a field, for rows too wide for a table."""
    names = [visible(column) for column in columns]
    width = max((len(name) for name in names), default=0)
    for row in rows:
        for name, value in zip(names, row, strict=True):
            click.echo(f"{name:<{width}}  {shown(value)}")
        click.echo()


def shown(value: Any) -> str:
    """A value for a person: NULL as a dash, a real number to four places, but no small one as 0."""
    if value is None:
        return "-"
    if isinstance(value, float):
        if not math.isfinite(value) or 0 < abs(value) < 0.0001:
            return f"{value:.2g}"
        if abs(value) >= _HUGE:
            return f"{value:.6g}"
        return f"{value:.4f}".rstrip("0").rstrip(".")
    return visible(str(value).replace("\n", "⏎"))


def visible(text: str) -> str:
    """Text without characters that would drive the terminal or turn its writing round."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)


def counted(count: int, noun: str) -> str:
    """`1 label`, `2 labels`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def share(rate: Mapping[str, Any]) -> str:
    """`k/n` and its percentage, `-` where n is 0."""
    if not rate["n"]:
        return "-"
    # Large numbers get a place where a narrow table may break the line.
    slash = "/" if rate["n"] < 100_000 else "/ "
    # In whole numbers: half a tenth goes up, where as a float 23/80 would be 28.749...%.
    tenths = (2000 * rate["k"] + rate["n"]) // (2 * rate["n"])
    return f"{rate['k']:,}{slash}{rate['n']:,} {tenths // 10}.{tenths % 10}%"


def interval(rate: Mapping[str, Any]) -> str:
    """The interval in percent, empty where there is none."""
    if rate["low"] is None:
        return ""
    return f"{100 * rate['low']:.1f}-{100 * rate['high']:.1f}"


def real(value: float, sign: str = "-", places: int = 3) -> str:
    """A number to so many places; a huge one, or one that would be 0, to three digits. `+`: always signed."""
    is_plain = value == 0 or 0.5 * 10**-places <= abs(value) < 1e6
    return f"{value:{sign}{f'.{places}f' if is_plain else '.3g'}}"


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


def _screen() -> Console:
    width = None if sys.stdout.isatty() else WIDTH
    return Console(width=width, highlight=False, markup=False, emoji=False, soft_wrap=False)


def _fits(table: Table) -> bool:
    screen = _screen()
    endless = screen.options.update(max_width=100_000)
    return screen.measure(table, options=endless).maximum <= screen.width


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
