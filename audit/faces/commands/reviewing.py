"""`review`: what people should look at goes out as a file, and what they say comes back."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.cli import command_line, settings_of, shared_options
from audit.faces.commands.labelling import serve

if TYPE_CHECKING:
    from audit.doors.review_files import Form


@click.group("review")
@shared_options
def review_command() -> None:
    """Let people look at a sample of a run, and hold judge and verifier to what they say.

    \b
      reward-audit review export -o look.csv --n 40
      (people fill in preference, first_done, second_done, note, annotator)
      reward-audit review import look.csv
      reward-audit report

    What people say is only ever added to; of each annotator the newest word on a pair or session counts.
    """


def export_options(command: Any) -> Any:
    """The options of `review export`."""
    for decorator in (
        click.option(
            "--again", is_flag=True,
            help="Also what went out before: for one more annotator, or a lost file.",
        ),
        click.option(
            "--format", "form", type=click.Choice(("label-studio", "csv", "jsonl")),
            help="The form, where the ending does not say it.",
        ),
        click.option(
            "--seed", metavar="S", type=int, default=0, show_default=True,
            help="Of the pick and of the order of sides.",
        ),
        click.option(
            "--gate", metavar="GATE", help="Whose verdicts are checked, where the run has several judges.",
        ),
        click.option("--run", metavar="RUN", default="latest", show_default=True, help="Which run."),
        click.option(
            "--n", "n", metavar="N", type=click.IntRange(min=1), default=100, show_default=True,
            help="How many items.",
        ),
        click.option(
            "-o", "--output", "path", metavar="FILE", required=True, type=click.Path(path_type=Path),
            help="The file to write; its ending says how: .json (Label Studio), .csv or .jsonl.",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


@review_command.command("export")
@export_options
@shared_options
@click.pass_context
def export(
    ctx: click.Context,
    path: Path,
    n: int,
    run: str,
    gate: str | None,
    seed: int,
    form: "Form | None",
    again: bool,
) -> None:
    """Write a sample of pairs for people to look at.

    Without names and verdicts, the sides in random order. Half of the sample is spread over all pairs,
    half goes to those that need a look: satisfied but failed, inconsistent, members of a panel that
    disagree, near ties, labelled by a model. How likely each was to be picked is stored, so that rates
    can be told of the whole run. Only pairs with both transcripts count; of a run without pairs single
    sessions go out.

    A preference is first, second, tie or cannot tell, by the place where a session is shown (A and B are read
    as first and second); first_done and second_done are done, not done or cannot tell. For Label Studio the
    labeling config is written beside the tasks, as FILE.config.xml. No file is overwritten.

    \b
    Examples:
      reward-audit review export -o tasks.json --n 40
      reward-audit review export -o look.csv --run RUN --gate GATE
    """
    from audit.doors.db import opened
    from audit.faces.review_text import tell_export
    from audit.pipeline.review_export import export_review

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = export_review(engine, run, path, n, gate=gate, seed=seed, form=form, again=again)
    tell_export(found, n, as_json=settings.as_json)


@review_command.command("import")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--annotator", metavar="NAME", help="Whose words those are that name nobody.")
@shared_options
@click.pass_context
def import_(ctx: click.Context, path: Path, annotator: str | None) -> None:
    """Take back what people said, in a file.

    Label Studio's JSON export (not JSON-MIN), CSV with commas or JSON Lines, columns in any order. The whole
    file or nothing: an item that never went out, or a word that is not one of those that may be said, is
    refused with its line. Rows that nobody filled in are passed over. The same label of the same annotator
    twice adds nothing; a correction is a new row, and the newest counts. A column labelled_at (ISO 8601,
    with an offset) says when; without it, now.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.review_text import tell_import, tell_status
    from audit.pipeline.review_import import import_review, review_status

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        stored, runs = import_review(engine, path, annotator)
        found = [review_status(engine, run_id) for run_id in runs]
    if settings.as_json:
        print_json({"file": str(path), "stored": stored.stored, "known": stored.known, "runs": found})
        return
    tell_import(path, stored)
    for status in found:
        tell_status(status, verbose=settings.verbose)


@review_command.command("status")
@click.argument("run", metavar="[RUN]", default="latest")
@shared_options
@click.pass_context
def status(ctx: click.Context, run: str) -> None:
    """Show what went out, what is labelled and by whom.

    And where people contradict each other; -v shows all such places.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.review_text import tell_status
    from audit.pipeline.review_import import review_status

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = review_status(engine, run)
    if settings.as_json:
        print_json(found)
    else:
        tell_status(found, verbose=settings.verbose)


@review_command.command("calibrate")
@click.argument("runs", metavar="[RUN...]", nargs=-1)
@shared_options
@click.pass_context
def calibrate(ctx: click.Context, runs: tuple[str, ...]) -> None:
    """Measure every judge on the pairs that people compared.

    Those pairs are anchors, in whichever run people saw them. A pair is the same in another run by its
    task, trial and agents, where both sessions went the same way to the letter, as in runs of the same
    recorded sessions, or a run whose sessions were judged again. So a changed judge is measured on what
    people said before. Without a RUN: all of them. lost and won: anchors that only the first judge, and
    only this one, has as people have them, of those that all judges have.

    \b
    Example:
      reward-audit review calibrate RUN latest
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.review_text import tell_judges
    from audit.pipeline.calibrating import calibrate as measured

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = measured(engine, runs)
    if settings.as_json:
        print_json(found)
    else:
        tell_judges(found, named=bool(runs))


@review_command.command("anchors")
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--name", help="What the run of anchors is called (default: the run's name and `anchors`).")
@shared_options
@click.pass_context
def anchors(ctx: click.Context, run: str | None, name: str | None) -> None:
    """Make a run for other judges of the pairs that people compared.

    A live run has the judges of its config, and its sessions never come again. The new run holds those
    sessions to the letter, with their rewards and gaps, and no verdict. Done twice it finds the same run.
    Without a RUN: the newest in which people compared pairs.

    \b
    Example:
      reward-audit review anchors
      reward-audit judge --run latest -c new-judge.yaml
      reward-audit review calibrate
    """
    from audit.doors.db import opened
    from audit.faces.output import counted, print_json
    from audit.pipeline.anchoring import anchor

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = anchor(engine, run, name)
    if settings.as_json:
        print_json(found._asdict())
        return
    click.echo(
        f"run {found.run_id}{'' if found.is_new else ' (there already)'}: "
        f"{counted(found.pairs, 'pair')} of {counted(found.sessions, 'session')} of run {found.of_run_id}"
    )
    click.echo(f"next: {command_line(f'judge --run {found.run_id} -c FILE')}", err=True)


review_command.add_command(serve)
