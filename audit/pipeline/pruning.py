"""Prune: old runs out of the database, their raw calls in files first."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from audit.doors import ask, store_pruned
from audit.doors.db import reading, writing
from audit.doors.lease import leased
from audit.pipeline.exporting import export_table
from audit.words.errors import BadRequest


class Old(NamedTuple):
    """A run that is to go, and where its calls are kept."""

    run_id: str
    name: str
    calls: int
    file: Path


def old_runs(engine: Engine, keep: int, folder: Path, name: str | None = None) -> list[Old]:
    """All that are older than the newest `keep` complete runs of each name, or of one.

    Without those that people have labelled: their labels are what later judges are measured by. A run that is
    not complete counts as nothing, and goes where it is older than all that are kept.
    """
    with reading(engine) as connection:
        held = store_pruned.runs_to_prune(connection)
    if name is not None and name not in {run["name"] for run in held}:
        raise BadRequest(f"there is no run named {name!r} (`reward-audit runs` lists them)")
    newest: dict[str, int] = {}
    found = []
    for run in held:
        kept = newest.get(run["name"], 0)
        is_old = kept >= keep and not run["labels"]
        newest[run["name"]] = kept + (run["status"] == "complete")
        if is_old and name in (None, run["name"]):
            file = folder / f"{run['run_id']}.logs.jsonl"
            found.append(Old(run["run_id"], run["name"], run["calls"], file))
    return found


def prune(engine: Engine, runs: list[Old], tell: Callable[[Old], None]) -> None:
    """Write each run's calls to its file, then delete the run. Raises BadRequest for one that is at work.

    A run is deleted whole or not at all, and only when its file is whole.
    """
    for run in runs:
        with leased(engine, run.run_id):
            run.file.parent.mkdir(parents=True, exist_ok=True)
            _, written = export_table(engine, "logs", run.run_id, run.file)
            with writing(engine) as connection:
                if ask.count_calls(connection, run.run_id) != written:
                    raise BadRequest(f"run {run.run_id} got more calls while it was written: it is kept")
                store_pruned.delete_run(connection, run.run_id)
        tell(run)
