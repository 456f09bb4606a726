"""Standing: how far a run under live judges has come, and what its stages still have to do."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from audit.doors import ask, failed, store, store_live, waiting
from audit.pipeline.sampled import in_sample
from audit.words.errors import BadRequest
from audit.words.names import gate_of
from audit.words.records import Run
from audit.words.text import as_json


def config_of(run: Run) -> dict[str, Any]:
    """The config that a live run was begun with, or an imported one judged with; else nothing."""
    found: dict[str, Any] = json.loads(run.config_json).get("config", {})
    return found


def models_of(run: Run, gate: str) -> list[dict[str, Any]]:
    """Who is asked as this gate: profile, model, base_url, and whether it is one of the synthetic judges.

    By the config; empty for judgments that were imported, of which the file tells only the gate's name.
    """
    config = config_of(run)
    profiles = {profile["name"]: profile for profile in config.get("profiles", ())}
    members = next(
        (
            judge["members"]
            for judge in config.get("judges", ())
            if gate_of(judge["name"], judge["members"]) == gate
        ),
        (),
    )
    return [
        {
            "profile": name,
            "model": profiles[name]["model"],
            "base_url": profiles[name]["base_url"],
            "is_synthetic": profiles[name]["base_url"].startswith("offline://"),
        }
        for name in members
    ]


def gates_in_hand(run: Run) -> list[str] | None:
    """The gates that an imported run was last judged for, of its others nothing is left to do; NULL: all."""
    found: list[str] | None = json.loads(run.config_json).get("in_hand")
    return found


def failed_gate(run: Run, gate: str) -> bool:
    """Did the run fail what it was held to as soon as it was done, with this judge?"""
    return gate in json.loads(run.config_json).get("gate_failed", ())


def keep_failed_gates(connection: Connection, run: Run, passed: Mapping[str, bool]) -> None:
    """Keep with which judges the run failed what it was held to; one that passes now has not failed."""
    stored = json.loads(run.config_json)
    before = set(stored.get("gate_failed", ()))
    failed = (before - passed.keys()) | {gate for gate, is_passed in passed.items() if not is_passed}
    if failed != before:
        store.set_config(connection, run.run_id, as_json(stored | {"gate_failed": sorted(failed)}))


def judged_since(run: Run, gates: Sequence[str]) -> dict[str, int]:
    """Gate -> the last log_id before its judge was asked: its own calls came later."""
    since = json.loads(run.config_json).get("judged_since", {})
    return {gate: since.get(gate, 0) for gate in gates}


def failed_share(connection: Connection, run: Run, gates: Sequence[str] | None = None) -> tuple[int, int]:
    """Calls made, and those that failed for good; of an imported run those of the gates in hand."""
    named = gates or gates_in_hand(run)
    if run.kind == "live" or named is None:
        return failed.failed_calls(connection, run.run_id)
    return failed.failed_calls_of(connection, run.run_id, judged_since(run, named))


def choose_gate(connection: Connection, run: Run, wanted: str | None) -> str:
    """The gate that is meant: where none is asked for the first of the run's config, else the first by name.

    One that answered goes before one that never did. Raises BadRequest where there is none, or not that one.
    """
    gates = ask.gates(connection, run.run_id)
    if not gates:
        raise BadRequest(
            f"run {run.run_id} holds no pairs: `reward-audit show {run.run_id}` says what it holds"
        )
    if wanted is None and len(gates) > 1:
        configured = [gate_of(one["name"], one["members"]) for one in config_of(run).get("judges", ())]
        answered = ask.answered_gates(connection, run.run_id)
        in_order = [gate for gate in configured if gate in gates] or sorted(gates)
        return next((gate for gate in [*in_order, *sorted(gates)] if gate in answered), in_order[0])
    if wanted is not None and wanted not in gates:
        raise BadRequest(f"run {run.run_id} has no gate {wanted!r}, only {', '.join(sorted(gates))}")
    return wanted or gates[0]


def left(connection: Connection, run: Run) -> dict[str, int]:
    """Stage -> the units it still has to do. What failed for good counts as done, a call or a session."""
    gates = gates_in_hand(run) or ask.gates(connection, run.run_id)
    since = next(iter(judged_since(run, gates).values()), 0)
    unjudged = waiting.unjudged(connection, run.run_id, False, gates)
    config = config_of(run)
    judging = {
        "judge": len(in_sample(connection, run, unjudged, config.get("sample"), config.get("seed", 0)))
        + len(waiting.unasked_satisfaction(connection, run.run_id, False, since))
    }
    if run.kind != "live":
        return judging
    planned = json.loads(run.config_json)["planned"]
    return judging | {
        "simulate": planned["sessions"] - waiting.count_ended(connection, run.run_id),
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
    too_many_broken  so many sessions are of no use: the gateway, the simulated user, or a check, broke them
    """
    most = config_of(run)["max_error_rate"] if max_error_rate is None else max_error_rate
    calls, lost = failed_share(connection, run)
    sessions, broken = failed.broken_sessions(connection, run.run_id)
    todo = left(connection, run)
    if lost > most * calls:
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
