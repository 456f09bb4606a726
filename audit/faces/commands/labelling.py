"""`review serve`: the page on which people label."""

import getpass

import click

from audit.faces.cli import settings_of, shared_options


@click.command("serve")
@click.option("--run", metavar="RUN", default="latest", show_default=True, help="Which run's items.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8002,
    show_default=True,
    help="Where to listen, on this machine alone; 0 takes a free one.",
)
@click.option("--annotator", metavar="NAME", help="Who answers (default: the user of this machine).")
@click.option("--no-open", is_flag=True, help="Only print the address, open no browser.")
@shared_options
@click.pass_context
def serve(ctx: click.Context, run: str, port: int, annotator: str | None, no_open: bool) -> None:
    """Label by keyboard, on a page of this machine.

    It shows what `review export` picked: both sessions side by side, without names and verdicts, in the order
    that was drawn for them. The keys a, b, t, c and 1 to 6 answer, n begins a note and Esc keeps it, Enter
    goes on to what is not done. Each answer is stored at once; u takes the last one of this sitting back by
    a further row, none is deleted. The address holds a token: whoever has it may answer as NAME. Ctrl-C ends
    it, the next time goes on where this one ended. Needs the extra `review`.
    """
    from audit.doors.db import opened
    from audit.faces.local_web import HOST, listen, require
    from audit.faces.local_web import serve as serve_page
    from audit.faces.output import print_json, visible
    from audit.pipeline.labelling import labelling

    for library in ("uvicorn", "starlette"):
        require(library, "review", "review serve")
    from audit.faces.local_token import new_token
    from audit.faces.review_page import review_app

    settings = settings_of(ctx)
    name = _named(annotator)
    with opened(settings.db) as engine:
        sitting = labelling(engine, run, name)
        listening = listen(port)
        token, taken = new_token(), listening.getsockname()[1]
        url = f"http://{HOST}:{taken}/?token={token}"

        def said() -> None:
            if settings.as_json:
                print_json({"url": url})
            else:
                click.echo(f"{url}\n{len(sitting.items):,} items for {visible(name)}; Ctrl-C ends it")

        serve_page(review_app(sitting, token, taken), listening, url, opens=not no_open, said=said)
        if not settings.as_json:
            standing = sitting.standing(1)
            click.echo(f"{standing.done:,} of {standing.total:,} items are done; every answer is stored")


def _named(annotator: str | None) -> str:
    """Raises a usage error for a name of blanks."""
    if annotator is None:
        try:
            return getpass.getuser()
        except (KeyError, OSError):
            annotator = ""  # a user without a name, as in some containers
    if not annotator.strip():
        raise click.BadParameter("it is empty: say who answers", param_hint="--annotator")
    return annotator.strip()
