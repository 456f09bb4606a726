"""`reproduce`: a published finding, computed again from its published figures."""

from pathlib import Path

import click

from audit.faces.cli import settings_of, shared_options


@click.command("reproduce")
@click.argument("what", metavar="WHAT", type=click.Choice(("gauge",)))
@click.option(
    "--file", "path", metavar="CSV", type=click.Path(path_type=Path),
    help="A table of agents of your own: agent, reward, and rank_... or score_... columns of judges.",
)  # fmt: skip
@shared_options
@click.pass_context
def reproduce_command(ctx: click.Context, what: str, path: Path | None) -> None:
    """Compute a published finding again, from its published figures.

    `gauge` is arXiv:2609.12191: of two agents, does a judge pick the one with the lower verified reward, and
    how much oftener where their rewards are close? Needs no database and calls no model.

    \b
    Examples:
      reward-audit reproduce gauge
      reward-audit reproduce gauge --file agents.csv --json
    """
    from audit.faces.output import print_json
    from audit.faces.reproduced_text import print_gauge
    from audit.pipeline.reproducing import reproduce_gauge

    found = reproduce_gauge(path)
    if settings_of(ctx).as_json:
        print_json(found)
    else:
        print_gauge(found)
