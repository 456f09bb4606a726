"""Standing: how far a run under live judges has come, and what its stages still have to do."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from audit.doors import store, store_live, waiting
from audit.pipeline.sampled import in_sample
from audit.words.errors import BadRequest
from audit.words.records import Run


def config_of(run: Run) -> dict[str, Any]:
    """The config that a live run was begun with, or an imported one judged with; else nothing."""
    found: dict[str, Any] = json.loads(run.config_json).get("config", {})
    return found


def choose_gate(run: Run, wanted: str | None, gates: Sequence[str]) -> str:
    """The gate that is meant: where none is asked for the first of the run's config, else the first by name.

    Raises BadRequest where there is none, or not that one.
    """
    if not gates:
        raise BadRequest(
            f"run {run.run_id} holds no pairs: `reward-audit show {run.run_id}` says what it holds"
        )
    if wanted is None and len(gates) > 1:
        from audit.words.config import Panel  # as heavy as the whole database library

        configured = [Panel.model_validate(judge).gate for judge in config_of(run).get("judges", ())]
        return next((gate for gate in configured if gate in gates), sorted(gates)[0])
    if wanted is not None and wanted not in gates:
        raise BadRequest(f"run {run.run_id} has no gate {wanted!r}, only {', '.join(sorted(gates))}")
    return wanted or gates[0]


def left(connection: Connection, run: Run) -> dict[str, int]:
    """Stage -> the units it still has to do. A call that failed for good counts as done."""
    unjudged = waiting.unjudged(connection, run.run_id, False)
    config = config_of(run)
    judging = {
        "judge": len(in_sample(connection, run, unjudged, config.get("sample"), config.get("seed", 0)))
        + len(waiting.unasked_satisfaction(connection, run.run_id, False))
    }
    if run.kind != "live":
        return judging
    planned = json.loads(run.config_json)["planned"]
    return judging | {
        "simulate": planned["sessions"] - waiting.count_held(connection, run.run_id),
        "verify": waiting.count_unverified(connection, run.run_id, False),
    }


def settle_status(
    connection: Connection, run: Run, stages: Sequence[str], max_error_rate: float | None = None
) -> str:
    """Store where the run stands after `stages`, and say it.

    complete         everything was done, and scored at last
    done             these stages have nothing left to do, others have
    stopped          there is something left for these stages
    too_many_errors  more calls failed for good than `max_error_rate` (the run's own where none is given)
    too_many_broken  so many sessions are of no use: the simulated user, or a check, broke them
    """
    most = config_of(run)["max_error_rate"] if max_error_rate is None else max_error_rate
    calls, failed = waiting.failed_calls(connection, run.run_id)
    sessions, broken = waiting.broken_sessions(connection, run.run_id)
    todo = left(connection, run)
    if failed > most * calls:
        status = "too_many_errors"
    elif run.kind == "live" and broken > most * sessions:
        status = "too_many_broken"
    elif "score" in stages and not any(todo.values()):
        status = "complete"
    else:
        status = "stopped" if any(todo.get(stage) for stage in stages) else "done"
    if status == "complete":
        store.finish_run(connection, run.run_id, "complete")
    else:
        store_live.set_status(connection, run.run_id, "stopped")
    return status
