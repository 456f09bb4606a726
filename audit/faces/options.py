"""Options and argument types that several commands share."""

from typing import TYPE_CHECKING, Any

import click

from audit.faces.usage import Named
from audit.words.names import GAP_SCOPES, GAP_SOURCES, SWAP_RULES

if TYPE_CHECKING:
    from audit.verbs.gaps import BucketSet

run_argument = click.argument("run", metavar="[RUN]", default="latest")


def scale_options(command: Any) -> Any:
    """How pairs are scored: swap rule, gap source and scope, buckets."""
    for decorator in (
        click.option(
            "--near", type=float, metavar="GAP",
            help="With own --buckets: those that end at GAP or below are near ties (default: the first).",
        ),
        click.option(
            "--buckets", metavar="SET",
            help="Gap buckets: gauge, scores, edges as 0,.1,.3, or intervals as '[0,1] (1,3] (3,..)'.",
        ),
        click.option(
            "--gap-scope", type=Named(GAP_SCOPES),
            help="Over what an agent's mean reward is taken: the whole run, or each category.",
        ),
        click.option(
            "--gap-source", type=Named(GAP_SOURCES),
            help="What the reward gap of a pair is: between agents' means, the two sessions, the judge's "
            "own scores, or given in the file.",
        ),
        click.option(
            "--swap-rule", type=Named(SWAP_RULES),
            help="How the two orders are settled: both must agree, a net vote, or the first order alone.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def chosen_buckets(text: str | None, near: float | None) -> "BucketSet | None":
    """The bucket set that --buckets and --near name; NULL where none is named. Raises a usage error."""
    from audit.pipeline.named_buckets import named_buckets

    if text is None:
        if near is not None:
            raise click.UsageError("--near needs --buckets: a preset says itself what is near")
        return None
    try:
        return named_buckets(text, near)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--buckets") from error
