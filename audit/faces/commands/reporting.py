"""`report`: what a run says of its judge."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.cli import check_output, settings_of, shared_options
from audit.faces.options import run_argument

if TYPE_CHECKING:
    from sqlalchemy import Engine


@click.command("report")
@run_argument
@click.option("--gate", metavar="G", help="Which judge or panel, where the run has several.")
@click.option(
    "--html", metavar="FILE", type=click.Path(path_type=Path),
    help="Write it as one HTML page (.html, .htm) instead, with pictures and the worst rows.",
)  # fmt: skip
@shared_options
@click.pass_context
def report_command(ctx: click.Context, run: str, gate: str | None, html: Path | None) -> None:
    """Show where a run's judge picks the side with the lower reward.

    Each rate names its denominator: all decidable pairs (both rewards known and different), or the decided
    ones among them (the judge's settled preference names a side). With -v every agent pair and every
    interval, with --json every figure, for scripts.

    The page of --html needs no other file and no network, and appears whole or not at all. It holds what
    was said in the 20 worst pairs.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.report_text import print_report
    from audit.pipeline.reporting import report

    settings = settings_of(ctx)
    if html is not None:
        from audit.faces.page_plots import require_matplotlib

        check_output(ctx, html, (".html", ".htm"))
        require_matplotlib()
    with opened(settings.db) as engine:
        found = report(engine, run, gate) if html is None else write_page(engine, run, gate, html)
    if settings.as_json:
        print_json(found)
    elif html is not None:
        click.echo(f"wrote the report of run {found['run']['run_id']} to {html}")
    else:
        print_report(found, is_whole=settings.verbose)


def write_page(engine: "Engine", run: str, gate: str | None, path: Path) -> dict[str, Any]:
    """Write the report as a page; what it says. Raises BadFile."""
    from audit.doors.tables import write_text
    from audit.faces.page import html_page
    from audit.pipeline.outputs import refuse_imported
    from audit.pipeline.worst import report_with_worst

    refuse_imported(engine, path)
    found, worst = report_with_worst(engine, run, gate)
    write_text(path, html_page(found, worst))
    return found
