"""`compare`, `gate` and `plan`: is it worse than before, is it good enough, how many pairs would tell?"""

from pathlib import Path
from typing import Any

import click

from audit.faces.cli import Settings, check_output, settings_of, shared_options
from audit.faces.options import run_argument
from audit.words.errors import EXIT_GATE


@click.command("compare")
@click.argument("runs", metavar="[BEFORE AFTER]", nargs=-1)
@click.option("--last", type=click.IntRange(min=2), metavar="N", help="Instead: the last N complete runs.")
@click.option("--name", metavar="NAME", help="With --last: of this name (default: the newest run's).")
@click.option("--gate", metavar="G", help="Which judge or panel (default: one that both runs have).")
@click.option(
    "--plot", type=click.Path(path_type=Path), metavar="FILE",
    help="With --last: also draw it, as .svg, .png or .pdf (the extra `html`).",
)  # fmt: skip
@shared_options
@click.pass_context
def compare_command(
    ctx: click.Context,
    runs: tuple[str, ...],
    last: int | None,
    name: str | None,
    gate: str | None,
    plot: Path | None,
) -> None:
    """Compare two runs pair by pair: did the judge get worse, and what changed?

    Pairs are the same by task, trial and agents. With --last the nightly trend: one line a run, with the
    change against the one before.

    \b
    Examples:
      reward-audit compare RUN latest
      reward-audit compare --last 14 --plot trend.svg
    """
    if last is None and len(runs) != 2:
        raise click.UsageError("name two runs (`reward-audit runs` lists them), or give --last N")
    if last is None and (name is not None or plot is not None):
        raise click.UsageError("--name and --plot go with --last N")
    if last is not None and runs:
        raise click.UsageError("name two runs or give --last N, not both")
    if plot is not None:
        _check_plot(ctx, plot)
    from audit.doors.db import opened
    from audit.faces.compare_text import print_compared, print_trend
    from audit.faces.output import print_json
    from audit.pipeline.comparing import compare, trend
    from audit.pipeline.outputs import refuse_imported

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        if plot is not None:
            refuse_imported(engine, plot)
        found = compare(engine, runs, gate) if last is None else trend(engine, last, name, gate)
    if settings.as_json:
        print_json(found)
    elif last is None:
        print_compared(found, is_whole=settings.verbose)
    else:
        print_trend(found)
    if plot is not None:
        _draw(found, plot, settings)


def _check_plot(ctx: click.Context, plot: Path) -> None:
    from audit.faces.page_plots import require_matplotlib
    from audit.faces.trend_plot import ENDINGS

    check_output(ctx, plot, ENDINGS)
    require_matplotlib("a plot")


def _draw(found: dict[str, Any], plot: Path, settings: Settings) -> None:
    from audit.faces.trend_plot import draw_trend

    draw_trend(found, plot)
    click.echo(f"wrote the trend of {len(found['runs'])} runs to {plot}", err=settings.as_json)


@click.command("gate")
@run_argument
@click.option("--gate", metavar="G", help="Which judge or panel, where the run has several.")
@shared_options
@click.pass_context
def gate_command(ctx: click.Context, run: str, gate: str | None) -> None:
    """Hold a run to the thresholds of its config; exit 3 where one is crossed.

    They stand under `gate:` of the file named by --config; without one, those that the run was begun with
    count, then those of `audit.yaml`.

    One line a threshold. One that too few pairs can tell of fails too, unless it says `on_unknown: pass`; a
    run that is not complete, or whose calls failed too often, always fails.

    \b
    In the config:
      gate:
        near.misselected_of_decided: {max: 0.25, by: upper}
        position.consistent: {min: 0.7}
        drift: {max: 0.03, by: lower, on_unknown: pass}
    """
    from audit.doors.db import opened
    from audit.faces.gate_text import print_held
    from audit.faces.output import print_json
    from audit.pipeline.holding import hold

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = hold(engine, run, settings.config, gate)
    if settings.as_json:
        print_json(found)
    else:
        print_held(found)
    if not found["passed"]:
        ctx.exit(EXIT_GATE)


class _Share(click.FloatRange):
    """A number between 0 and 1; click lets NaN pass, which is below and above nothing."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value!r} is no number between 0 and 1.", param, ctx)
        return number


_SHARE = _Share(0, 1, min_open=True, max_open=True)


@click.command("plan")
@run_argument
@click.option(
    "--within", type=_SHARE, default=0.05, metavar="X", show_default=True,
    help="How well a rate is to be known: to +-X.",
)  # fmt: skip
@click.option(
    "--change", type=_SHARE, default=0.05, metavar="Y", show_default=True,
    help="The change of a rate that is to be seen, with 80% power.",
)  # fmt: skip
@click.option("--gate", metavar="G", help="Which judge or panel, where the run has several.")
@shared_options
@click.pass_context
def plan_command(ctx: click.Context, run: str, within: float, change: float, gate: str | None) -> None:
    """Say how many pairs, calls and tokens it takes to know a rate, or to see it change.

    Reckoned from a run that is there: its rates, how many of its pairs are near and decided, how alike pairs
    of one task are, what a pair costs.

    \b
    Examples:
      reward-audit plan --within .05
      reward-audit plan RUN --change .03 --json
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.plan_text import print_plan
    from audit.pipeline.sizing import plan

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = plan(engine, run, within, change, gate)
    if settings.as_json:
        print_json(found)
    else:
        print_plan(found)
