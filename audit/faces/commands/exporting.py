"""`export`: what is stored, as a file."""

from pathlib import Path

import click

from audit.faces.cli import settings_of, shared_options


@click.command("export")
@click.argument("what", metavar="WHAT", type=click.Choice(("pairs", "logs", "gauge-csv")))
@click.option(
    "-o", "--output", "path", metavar="FILE", required=True, type=click.Path(path_type=Path),
    help="The file to write; its ending says how: .csv, .jsonl or .parquet.",
)  # fmt: skip
@click.option("--run", metavar="RUN", default="latest", show_default=True, help="Which run.")
@shared_options
@click.pass_context
def export_command(ctx: click.Context, what: str, path: Path, run: str) -> None:
    """Write pairs, calls or sessions to a file.

    \b
    WHAT is
      pairs      audit_pairs, one row a pair
      logs       judge_logs, one row (or JSON object) a call, raw replies as they came
      gauge-csv  sessions, in the columns that `import gauge-csv` reads

    The file appears whole or not at all. In CSV, text that a spreadsheet would run as a formula begins
    with an apostrophe; only gauge-csv, which is read in again, has every text as it is.

    \b
    Examples:
      reward-audit export pairs -o pairs.csv
      reward-audit export logs -o calls.jsonl --run RUN
    """
    from audit.doors.db import open_database
    from audit.faces.output import print_json
    from audit.pipeline.exporting import export_gauge_csv, export_table

    settings = settings_of(ctx)
    engine = open_database(settings.db, create=False)
    try:
        if what == "gauge-csv":
            run_id, count = export_gauge_csv(engine, run, path)
        else:
            run_id, count = export_table(engine, what, run, path)
    finally:
        engine.dispose()
    if settings.as_json:
        print_json({"run_id": run_id, "file": str(path), "rows": count})
    else:
        click.echo(f"wrote {count:,} rows of run {run_id} to {path}")
