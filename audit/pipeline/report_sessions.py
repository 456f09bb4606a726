"""The report's part about satisfaction: what the judge's pointwise question says of the verified success."""

import json
from typing import Any

from sqlalchemy import Connection

from audit.doors import counts
from audit.pipeline.standing import config_of
from audit.statistics.power import smallest_seen
from audit.statistics.rates import clustered_rate_of_groups
from audit.statistics.satisfaction import satisfied_but_failed
from audit.words.names import TOLERANCE
from audit.words.records import Run

CUT = 0.8
NO_SATISFACTION = "no session holds a satisfaction"
NOT_VERIFIED = "no session with a satisfaction has a verified success"


def satisfaction(connection: Connection, run: Run) -> tuple[dict[str, Any] | None, str | None]:
    """The part `satisfaction`, or NULL and why.

    Sessions cluster on tasks; where they name none, on agents. `clusters_are` says which.
    """
    groups = list(counts.satisfaction_groups(connection, run.run_id))
    if not groups:
        return None, NOT_VERIFIED if counts.satisfactions(connection, run.run_id) else NO_SATISFACTION
    has_tasks = all(row[0] is not None for row in groups)
    cut = cut_of(run)
    clusters = [row[0] if has_tasks else row[1] for row in groups]
    failed, n = [row[3] for row in groups], [row[4] for row in groups]
    found = satisfied_but_failed(clusters, [row[2] for row in groups], failed, n, cut)
    ends = found["auc_interval"]
    others = [row[2] < cut - TOLERANCE for row in groups]
    return found | {
        "not_satisfied_failed": clustered_rate_of_groups(clusters, failed, n, others),
        "clusters_are": "tasks" if has_tasks else "agents",
        "smallest_seen": smallest_seen(ends["low"], ends["high"]),
    }, None


def cut_of(run: Run) -> float:
    """From which satisfaction on a session of the run counts as satisfied."""
    asked = config_of(run) | json.loads(run.config_json)
    return float(asked.get("satisfied_at", CUT))
