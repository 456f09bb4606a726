"""`sql` and `views`: read-only questions to the database."""

from typing import TYPE_CHECKING

import click

from audit.faces.cli import settings_of, shared_options
from audit.words.nearest import did_you_mean

if TYPE_CHECKING:
    from audit.doors.query import Answer


@click.command("sql")
@click.argument("statement")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@click.option(
    "--seconds", type=click.FloatRange(min=0.001), default=60, show_default=True, help="Time limit."
)
@click.option(
    "--limit", type=click.IntRange(min=0), help="At most so many rows (default: 1000 in a table, else all)."
)
@shared_options
@click.pass_context
def sql_command(ctx: click.Context, statement: str, as_csv: bool, seconds: float, limit: int | None) -> None:
    """Ask the database one read-only question in SQL.

    Nothing can be written, attached or changed. `reward-audit views` lists what can be asked;
    audit_pairs, judge_logs, sessions and audit_runs are the tables.

    \b
    Example:
      reward-audit sql "select gap_bucket, misselected, decidable from misselection_by_gap"
    """
    from audit.doors.db import opened
    from audit.doors.query import ask_sql

    settings = settings_of(ctx)
    if as_csv and settings.as_json:
        raise click.UsageError("--csv or --json, not both")
    is_table = not as_csv and not settings.as_json
    with opened(settings.db) as engine:
        most = limit if limit is not None or not is_table else 1001
        found = ask_sql(engine, statement, seconds=seconds, most=most)
    if is_table and limit is None and len(found.rows) > 1000:
        click.echo("only the first 1,000 rows are shown: --limit, --csv or --json give more", err=True)
        found = found._replace(rows=found.rows[:1000])
    _print(found, as_csv, settings.as_json)


@click.command("views")
@click.argument("view", required=False)
@click.option("--run", metavar="RUN", help="Only this run's rows (a run id or latest).")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@shared_options
@click.pass_context
def views_command(ctx: click.Context, view: str | None, run: str | None, as_csv: bool) -> None:
    """List the views to ask, or show the rows of one."""
    from audit.doors.shipped import view_texts
    from audit.faces.output import print_json, say

    settings = settings_of(ctx)
    texts = view_texts()
    if view is None:
        grains = {name: _grain(text) for name, text in sorted(texts.items())}
        if settings.as_json:
            print_json(grains)
            return
        for name, grain in grains.items():
            click.echo(name)
            say(grain)
            click.echo()
        return
    if view not in texts:
        known = f"{', '.join(sorted(texts))}{did_you_mean(view, texts)}"
        raise click.BadParameter(f"{view!r} is none of {known}", param_hint="VIEW")
    _print(_rows_of(settings.db, view, run), as_csv, settings.as_json)


def _rows_of(db: str, view: str, run: str | None) -> "Answer":
    from audit.doors import ask
    from audit.doors.db import opened, reading
    from audit.doors.query import ask_sql

    with opened(db) as engine:
        where = ""
        if run is not None:
            with reading(engine) as connection:
                # A run id is one that the database gave, never the user's own text.
                where = f" where run_id = '{ask.run_named(connection, run).run_id}'"
        return ask_sql(engine, f"select * from {view}{where}")  # noqa: S608 - names of our own


def _grain(text: str) -> str:
    return text.splitlines()[0].removeprefix("-- ")


def _print(found: "Answer", as_csv: bool, as_json: bool) -> None:
    from audit.faces.output import print_csv, print_json, print_rows
    from audit.words.errors import BadRequest

    if as_json:
        twice = [column for column in found.columns if found.columns.count(column) > 1]
        if twice:
            raise BadRequest(f"sql: two columns are named {twice[0]!r}, JSON holds one: rename one with `as`")
        print_json([dict(zip(found.columns, row, strict=True)) for row in found.rows])
    elif as_csv:
        print_csv(found.columns, found.rows)
    else:
        print_rows(found.columns, found.rows)
