"""`browse`: the database in a browser."""

from typing import TYPE_CHECKING

import click

from audit.faces.cli import settings_of, shared_options

if TYPE_CHECKING:
    from sqlalchemy import Engine


@click.command("browse")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8001,
    show_default=True,
    help="Where to listen, on this machine alone; 0 takes a free one.",
)
@click.option("--no-open", is_flag=True, help="Only print the address, open no browser.")
@shared_options
@click.pass_context
def browse_command(ctx: click.Context, port: int, no_open: bool) -> None:
    """Look at the database in a browser: Datasette, read-only, on this machine alone.

    Every column says what it means; there are facets, and questions to begin with: the worst pairs, all
    calls of a pair, flips by prompt version. A run may go on writing meanwhile. Ctrl-C ends it. Needs the
    extra `browse` and a SQLite database; --json prints the address as JSON.
    """
    from pathlib import Path

    from audit.doors.db import columns_of, opened, show_url
    from audit.faces.browse import browse_app
    from audit.faces.local_web import HOST, listen, serve
    from audit.faces.output import print_json, visible

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        _refuse_other_databases(engine)
        app = browse_app(Path(str(engine.url.database)), columns_of(engine))
    listening = listen(port)
    url = f"http://{HOST}:{listening.getsockname()[1]}/audit"

    def said() -> None:
        if settings.as_json:
            print_json({"url": url})
        else:
            click.echo(f"{url} shows {visible(show_url(settings.db))} (read-only; Ctrl-C ends it)")

    serve(app, listening, url, opens=not no_open, said=said)


def _refuse_other_databases(engine: "Engine") -> None:
    from audit.words.errors import BadRequest

    if engine.dialect.name != "sqlite":
        raise BadRequest(
            "browse shows SQLite files, this is a PostgreSQL database: ask it with `reward-audit sql` and "
            "`views`, or look at it with psql or pgAdmin"
        )
