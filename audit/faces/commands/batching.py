"""`batch`: a run's open questions as files for a batch API, and the results from files."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from audit.faces.cli import Settings, check_output, settings_of, shared_options
from audit.words.errors import EXIT_INCOMPLETE

if TYPE_CHECKING:
    from audit.words.config import Config

run_option = click.option("--run", metavar="RUN", default="latest", show_default=True, help="Which run.")


@click.group("batch")
@shared_options
def batch_command() -> None:
    """Carry a judge's questions to a batch API, and its answers back, by hand.

    The lines are those of OpenAI's batch API, which `vllm run-batch` reads and writes as well.
    `reward-audit judge --batch` does all of it by itself, where the provider has such an API.

    \b
    Example:
      reward-audit batch export questions.jsonl -c judges.yaml
      vllm run-batch -i questions.jsonl -o answers.jsonl --model MODEL
      reward-audit batch ingest answers.jsonl
    """


@batch_command.command("export")
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
@run_option
@click.option("--retry-errors", is_flag=True, help="Ask again what failed for good.")
@shared_options
@click.pass_context
def export(ctx: click.Context, path: Path, run: str, retry_errors: bool) -> None:
    """Write a line for everything not answered yet.

    Also for what was written before and has no answer; not for what `judge --batch` has under way. There is
    one file a profile, of 50,000 lines or 200 MB at most: of several, each has a number and its profile in
    its name. -c names the judges of a run that was imported; a live run has its own. What depends on an
    answer comes in a next export: a reply that could not be read, the later judges of a panel that asks them
    where it is contested.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.pipeline.batch_by_hand import export_requests

    settings = settings_of(ctx)
    check_output(ctx, path, (".jsonl",))
    config = _config(settings)
    with opened(settings.db) as engine:
        found = export_requests(engine, run, path, config, settings.environ, retry_errors=retry_errors)
    if settings.as_json:
        files = [
            {"file": str(file), "profile": profile, "lines": count} for file, profile, count in found.files
        ]
        told = {"run_id": found.run.run_id, "files": files, "under_way": found.under_way}
        print_json(told | {"over_budget": found.over_budget})
        return
    for file, profile, count in found.files:
        click.echo(f"wrote {count:,} lines of run {found.run.run_id} for {profile} to {file}")
    if not found.files:
        click.echo(f"run {found.run.run_id} has nothing to ask by hand")
    if found.under_way:
        click.echo(f"{found.under_way:,} lines more are at a provider: `judge --batch` brings them")
    if found.over_budget:
        click.echo(found.over_budget)


@batch_command.command("ingest")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--run", metavar="RUN", help="Only lines of this run; others are refused.")
@shared_options
@click.pass_context
def ingest(ctx: click.Context, paths: tuple[Path, ...], run: str | None) -> None:
    """Take result lines, in any order.

    Their ids say where they belong. A line whose custom_id nobody was given is refused with its number, and
    then nothing is taken. A line that has its answer already is passed over, so the same file twice changes
    nothing. Ends with 4 where more calls failed for good than max_error_rate allows.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.pipeline.batch_by_hand import ingest_results

    settings = settings_of(ctx)
    config = _config(settings)
    with opened(settings.db) as engine:
        found = ingest_results(engine, list(paths), run, config, settings.environ)
    told = [
        {
            "run_id": one.run.run_id,
            "stored": one.taken.stored,
            "failed": one.taken.failed,
            "passed_over": one.taken.passed_over,
            "left": one.left,
            "status": one.status,
        }
        for one in found
    ]
    if settings.as_json:
        print_json(told)
    for one in () if settings.as_json else told:
        click.echo(
            f"run {one['run_id']}: {one['stored']:,} answers stored, {one['failed']:,} lines failed and may "
            f"be asked again, {one['passed_over']:,} passed over; {one['status']}"
        )
        if one["left"]:
            click.echo(
                f"{one['left']:,} pairs and sessions wait: `reward-audit batch export` writes the rest"
            )
    if any(one.status.startswith("too_many") for one in found):
        click.echo("incomplete: more calls failed than max_error_rate allows", err=True)
        ctx.exit(EXIT_INCOMPLETE)


@batch_command.command("status")
@run_option
@shared_options
@click.pass_context
def status(ctx: click.Context, run: str) -> None:
    """List the batches of a run, with where each stands."""
    from audit.doors.db import opened
    from audit.faces.output import print_json, print_rows
    from audit.pipeline.batch_by_hand import batches_of

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found, batches = batches_of(engine, run)
    if settings.as_json:
        print_json([batch._asdict() for batch in batches])
        return
    if not batches:
        click.echo(f"run {found.run_id} has no batches")
        return
    shown = ("batch_id", "profile", "status", "provider_batch_id", "provider_status", "count_lines",
             "count_stored", "count_failed", "error")  # fmt: skip
    print_rows(shown, [[getattr(batch, name) for name in shown] for batch in batches])


@batch_command.command("drop")
@run_option
@shared_options
@click.pass_context
def drop(ctx: click.Context, run: str) -> None:
    """Give up every line of a run that waits for its answer.

    They may then be asked again, live or in a batch, and answers that still come are passed over. It does not
    cancel anything at the provider, who may be paid for it.
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.pipeline.batch_by_hand import drop_lines

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found, count = drop_lines(engine, run)
    if settings.as_json:
        print_json({"run_id": found.run_id, "dropped": count})
    else:
        click.echo(f"gave up {count:,} lines of run {found.run_id}")


def _config(settings: Settings) -> "Config | None":
    """The config that is named, if one is: a run has its own."""
    from audit.doors.config import load_config

    if settings.config is None:
        return None
    return load_config(settings.config, settings.environ, judges_only=True)[0]
