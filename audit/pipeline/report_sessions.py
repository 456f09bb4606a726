"""The report's part about satisfaction: what the judge's pointwise question says of the verified success."""

import json
from typing import Any

from sqlalchemy import Connection

from audit.doors import counts
from audit.pipeline.standing import config_of
from audit.statistics.arrays import columns
from audit.statistics.power import smallest_seen
from audit.statistics.satisfaction import satisfied_but_failed
from audit.words.records import Run

CUT = 0.8
NO_SATISFACTION = "no session holds a satisfaction"
NOT_VERIFIED = "no session with a satisfaction has a verified success"


def satisfaction(connection: Connection, run: Run) -> tuple[dict[str, Any] | None, str | None]:
    """The part `satisfaction`, or NULL and why.

    Sessions cluster on tasks; where they name none, on agents. `clusters_are` says which.
    """
    found, (tasks, _) = columns(counts.satisfaction_groups(connection, run.run_id), "ccfii")
    by_task, by_agent, satisfactions, failed, n = found
    if not len(n):
        return None, NOT_VERIFIED if counts.satisfactions(connection, run.run_id) else NO_SATISFACTION
    has_tasks = None not in tasks
    part = satisfied_but_failed(by_task if has_tasks else by_agent, satisfactions, failed, n, cut_of(run))
    ends = part["auc_interval"]
    return part | {
        "clusters_are": "tasks" if has_tasks else "agents",
        "smallest_seen": smallest_seen(ends["low"], ends["high"]),
    }, None


def cut_of(run: Run) -> float:
    """From which satisfaction on a session of the run counts as satisfied."""
    asked = config_of(run) | json.loads(run.config_json)
    return float(asked.get("satisfied_at", CUT))
