"""The figures that a gate can hold to a limit, and what a limit of each can be."""

from typing import Any

from audit.words.names import METRICS
from audit.words.nearest import did_you_mean

# Everything else is a share, from 0 to 1; a gap is in units of the reward.
_SIGNED = ("drift", "position.preference_fairness")
_GAPS = ("gap_at_25", "gap_at_10", "gap_at_5")


def metric_faults(gate: object) -> list[str]:
    """What is wrong with the names and limits under `gate`, as they were written."""
    faults = []
    for name, limit in gate.items() if isinstance(gate, dict) else ():
        if isinstance(name, str) and name not in METRICS:
            faults.append(f"gate: there is no figure {name!r}{did_you_mean(name, METRICS)}")
        elif name not in _GAPS and isinstance(limit, dict):
            faults += _share_faults(name, limit)
    return faults


def _share_faults(name: str, limit: dict[Any, Any]) -> list[str]:
    low = -1 if name in _SIGNED else 0
    return [
        f"gate.{name}.{end}: expected a share from {low} to 1, found {limit[end]}"
        for end in ("max", "min")
        if isinstance(limit.get(end), int | float) and not low <= limit[end] <= 1
    ]
