"""`report`: what a run says of its judge."""

import click

from audit.faces.cli import settings_of, shared_options
from audit.faces.options import run_argument


@click.command("report")
@run_argument
@click.option("--gate", metavar="G", help="Which judge or panel, where the run has several.")
@shared_options
@click.pass_context
def report_command(ctx: click.Context, run: str, gate: str | None) -> None:
    """Show where a run's judge picks the side with the lower reward.

    Each rate names its denominator: all decidable pairs (both rewards known and different), or the decided
    ones among them (the judge's settled preference names a side). With -v every agent pair and every
    interval, with --json every figure, for scripts.
    """
    from audit.doors.db import open_database
    from audit.faces.output import print_json
    from audit.faces.report_text import print_report
    from audit.pipeline.reporting import report

    settings = settings_of(ctx)
    engine = open_database(settings.db, create=False)
    try:
        found = report(engine, run, gate)
    finally:
        engine.dispose()
    if settings.as_json:
        print_json(found)
    else:
        print_report(found, is_whole=settings.verbose)
