"""`prune`: old runs out of the database."""

from pathlib import Path

import click

from audit.faces.cli import settings_of, shared_options


@click.command("prune")
@click.option("--keep-runs", required=True, type=click.IntRange(min=1), metavar="N",
              help="Keep the newest N complete runs of each name, and what is newer.")  # fmt: skip
@click.option("--name", metavar="NAME", help="Only runs of this name.")
@click.option(
    "-o", "--output", "folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False),
    default=Path("pruned"), show_default=True, help="Where each run's calls are written first.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say which runs would go.")
@shared_options
@click.pass_context
def prune_command(ctx: click.Context, keep_runs: int, name: str | None, folder: Path, dry_run: bool) -> None:
    """Delete old runs, each one's raw calls written to DIR/RUN.logs.jsonl first.

    Runs with labels by people stay: later judges are measured by them. SQLite uses the room again, but its
    file does not shrink.

    \b
    Example:
      reward-audit prune --keep-runs 30 -o archive
    """
    from audit.doors.db import opened
    from audit.faces.output import print_json, visible
    from audit.pipeline.pruning import Old, old_runs, prune

    settings = settings_of(ctx)

    def tell(run: Old) -> None:
        if not settings.as_json:
            done = "would go" if dry_run else f"is deleted; its {run.calls:,} calls are in {run.file}"
            click.echo(visible(f"run {run.run_id} ({run.name}) {done}"))

    with opened(settings.db) as engine:
        runs = old_runs(engine, keep_runs, folder, name)
        if dry_run:
            for run in runs:
                tell(run)
        else:
            prune(engine, runs, tell)
    if settings.as_json:
        told = [run._asdict() | {"file": str(run.file)} for run in runs]
        print_json({"runs": told, "is_dry_run": dry_run})
    elif not runs:
        click.echo("no run is older than that")
