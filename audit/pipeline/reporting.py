"""Report: what a run says of its judge, as the mapping of `report --json`; counting is left to SQL."""

import json
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask, counts
from audit.doors.db import reading
from audit.pipeline import report_agents, report_pairs
from audit.pipeline.report_pairs import Pairs
from audit.pipeline.report_review import review
from audit.pipeline.report_sessions import satisfaction
from audit.pipeline.report_words import headline, notes
from audit.pipeline.standing import choose_gate, models_of
from audit.words.records import Run

__all__ = ["headline", "report", "report_of"]
_NO_PAIRS = "the run holds no pairs"


def report(engine: Engine, wanted: str, gate: str | None = None) -> dict[str, Any]:
    """Everything the report shows of one run and gate: where none is asked for the first of a live run's
    config, of other runs the first by name.

    Of a run with sessions alone everything about pairs is 0 or null, its gate null. A part that is null has
    its reason under `why`. Raises BadRequest for a run or a gate that is not there, and for a run without
    pairs and sessions.
    """
    with reading(engine) as connection:
        return report_of(connection, ask.run_named(connection, wanted), gate)


def report_of(connection: Connection, run: Run, gate: str | None = None) -> dict[str, Any]:
    """`report` of a run that is known already."""
    gates = ask.gates(connection, run.run_id)
    agents = report_agents.agents(connection, run)
    chosen = None if not gates and agents and gate is None else choose_gate(connection, run, gate)
    pairs = Pairs(connection, run, chosen)
    met = report_agents.met(connection, run, chosen)
    no_passes = report_agents.no_pass_hat_k(run)
    satisfied, not_satisfied = satisfaction(connection, run)
    answers = report_pairs.answers(connection, run, chosen)
    gap_buckets = pairs.gap_buckets()
    parts: dict[str, tuple[Any, str | None]] = {
        "agent_pairs": (
            report_agents.agent_pairs(connection, run, met),
            report_agents.NO_AGENT_PAIRS if gates else _NO_PAIRS,
        ),
        "error_curve": (
            report_agents.curve(connection, run, chosen, met),
            "no pair has both a reward gap and a verdict for a side" if gates else _NO_PAIRS,
        ),
        "position": (pairs.position(), report_pairs.ONE_ORDER if gates else _NO_PAIRS),
        "satisfaction": (satisfied, not_satisfied),
        "review": review(connection, run, chosen, gap_buckets),
    }
    found = {
        "run": _run(run, chosen),
        "pairs": pairs.outcomes(),
        "answers": answers,
        "rates": pairs.rates() | {"error_calls": report_pairs.error_calls(connection, run, chosen)},
        "near_vs_wide": pairs.near_vs_wide(),
        "near_minus_wide": pairs.near_minus_wide(),
        "gap_buckets": gap_buckets,
        "has_binary_rewards": chosen is not None and ask.has_binary_rewards(connection, run.run_id, chosen),
        "agents": agents,
        **{name: part for name, (part, _) in parts.items()},
        "categories": pairs.categories(),
        "judges": [
            (pairs if name == chosen else Pairs(connection, run, name)).judge(name)
            | {"models": models_of(run, name)}
            for name in gates
        ],
        "cost": _cost(connection, run, chosen, answers["total"]),
        "imported": _imported(run),
        "why": {name: why for name, (part, why) in parts.items() if part is None}
        | ({"pass_hat_k": no_passes} if agents and no_passes else {}),
    }
    return found | {"notes": notes(found)}


def _run(run: Run, gate: str | None) -> dict[str, Any]:
    names = (
        "swap_rule", "gap_source", "gap_scope", "bucket_set", "config_hash", "task_set_hash",
        "prompt_set_hash",
    )  # fmt: skip
    return {
        "run_id": run.run_id,
        "name": run.name,
        "kind": run.kind,
        "gate": gate,
        **{name: getattr(run, name) for name in names},
        "status": run.status,
        "created_at": run.created_at,
        "models": [] if gate is None else models_of(run, gate),
    }


def _imported(run: Run) -> dict[str, int] | None:
    """What the import of sessions found odd; of other runs nothing."""
    config = json.loads(run.config_json)
    names = ("clashing_ids", "odd_rewards")
    return {name: config[name] for name in names} if set(names) <= config.keys() else None


def _cost(connection: Connection, run: Run, gate: str | None, calls: int) -> dict[str, Any]:
    """Of the gate's pairs; beside it the calls of every role in the whole run, and the agents' tokens."""
    unknown = dict.fromkeys(("prompt_tokens", "completion_tokens", "total_tokens", "usd"))
    none = {"calls": 0, "unknown_calls": 0} | unknown
    found = none if gate is None else ask.cost(connection, run.run_id, gate, calls=calls)
    return found | {
        "run_calls": counts.calls_by_role(connection, run.run_id),
        "agents_tokens": counts.session_tokens(connection, run.run_id),
    }
