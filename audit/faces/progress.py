"""Progress of a live run: a bar on a terminal, plain lines elsewhere, both on stderr."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from audit.pipeline.live import Meter

LINE_SECONDS = 10.0


@contextmanager
def live_progress() -> "Iterator[Callable[[Meter], None]]":
    """What the meter is to be told to."""
    if sys.stderr.isatty():
        with _bar() as tell:
            yield tell
    else:
        yield _Lines()


class _Lines:
    """A line when a stage begins and ends, and every ten seconds between."""

    def __init__(self) -> None:
        self.said = 0.0
        self.began = time.monotonic()

    def __call__(self, meter: "Meter") -> None:
        now = time.monotonic()
        if meter.done == 0:
            self.began = now
        is_edge = meter.total > 0 and meter.done in (0, meter.total)
        if is_edge or now - self.said >= LINE_SECONDS:
            self.said = now
            rate = meter.done / (now - self.began) if now > self.began else 0.0
            click.echo(
                f"{meter.stage}: {meter.done}/{meter.total}, {rate:.1f}/s, "
                f"{meter.calls} calls, {meter.tokens} tokens, {meter.errors} errors",
                err=True,
            )


@contextmanager
def _bar() -> "Iterator[Callable[[Meter], None]]":
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[counts]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), refresh_per_second=4) as bar:
        task = bar.add_task("", total=None, counts="")

        def tell(meter: "Meter") -> None:
            counts = f"{meter.calls} calls, {meter.tokens:,} tokens, {meter.errors} errors"
            total = meter.total or None
            bar.update(task, description=meter.stage, completed=meter.done, total=total, counts=counts)

        yield tell
