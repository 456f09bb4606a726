"""`runs`, `prompts` and `show`: what is there, and one thing whole."""

import click

from audit.faces.cli import settings_of, shared_options


@click.command("runs")
@shared_options
@click.pass_context
def runs_command(ctx: click.Context) -> None:
    """List the runs, newest first."""
    from audit.doors import ask
    from audit.doors.db import opened, reading
    from audit.faces.output import print_json, print_rows

    settings = settings_of(ctx)
    with opened(settings.db) as engine, reading(engine) as connection:
        found = ask.runs(connection)
    if settings.as_json:
        print_json(found)
        return
    columns = ("run_id", "name", "kind", "status", "sessions", "pairs")
    print_rows(columns, [[row[column] for column in columns] for row in found], folded="name")


@click.command("prompts")
@click.argument("hash_", metavar="[HASH]", required=False)
@shared_options
@click.pass_context
def prompts_command(ctx: click.Context, hash_: str | None) -> None:
    """List the prompts that were sent, or show the one whose hash begins with HASH."""
    from audit.doors import ask
    from audit.doors.db import opened, reading
    from audit.faces.output import print_json, print_rows, visible

    settings = settings_of(ctx)
    with opened(settings.db) as engine, reading(engine) as connection:
        found = ask.prompts(connection) if hash_ is None else ask.prompt_text(connection, hash_)
    if settings.as_json:
        print_json(found)
    elif isinstance(found, dict):
        click.echo(visible(found["text"] or ""))
    else:
        columns = ("prompt_hash", "role", "name", "calls", "runs", "last_at")
        told = [row | {"last_at": row["last_at"][:16].replace("T", " ")} for row in found]
        print_rows(columns, [[row[column] for column in columns] for row in told], folded="name")


@click.command("show")
@click.argument("id_", metavar="ID")
@shared_options
@click.pass_context
def show_command(ctx: click.Context, id_: str) -> None:
    """Show one run, pair, session or call by its id.

    A pair comes with both sessions and every call of the judge, raw replies included. ID is a run_id or
    `latest`, a pair_id, a session_id, a number (the log_id of a call), or a pair's id in its own file.
    """
    from audit.doors import ask
    from audit.doors.db import opened, reading
    from audit.faces.output import print_json
    from audit.faces.show_text import print_found

    settings = settings_of(ctx)
    with opened(settings.db) as engine, reading(engine) as connection:
        found = ask.by_id(connection, id_)
    if settings.as_json:
        print_json(found)
    else:
        print_found(found)
