"""Advice: what to do about a judge that errs more often in near ties than it did."""

from collections.abc import Mapping
from typing import Any


def weight_advice(gate: str, change: Mapping[str, Any]) -> dict[str, Any] | None:
    """The advice to lower the weight of the gate's near-tie verdicts, with its evidence; NULL without cause.

    `change`: of `near.misselected_of_decided`, as `compare` gives it. There is cause where its whole interval
    is above 0. Of a preference that is flipped with probability e, 1 - 2e is what is left of its signal
    (rDPO, arXiv:2403.00409, section 3), so the weight is the ratio of both runs' 1 - 2e, at least 0.
    """
    if change["low"] is None or change["low"] <= 0:
        return None
    before, after = change["before"], change["after"]
    told = [1 - 2 * rate["value"] for rate in (before, after)]
    weight = max(0.0, told[1] / told[0]) if told[0] > 0 else 0.0
    return {
        "gate": gate,
        "weight": round(weight, 2),
        "before": before,
        "after": after,
        "change": change["change"],
        "low": change["low"],
        "high": change["high"],
        "text": (
            f"Judge {gate!r} errs more often in near ties: {_share(before)} before, {_share(after)} now, "
            f"{100 * change['change']:+.1f} points on the same pairs (95%: {100 * change['low']:+.1f} to "
            f"{100 * change['high']:+.1f}). Give its verdicts on near ties {weight:.2f} of their weight, "
            "or leave them out (`export dpo --drop near_tie`), until the cause is found."
        ),
    }


def _share(rate: Mapping[str, Any]) -> str:
    return f"{rate['k']:,}/{rate['n']:,} ({rate['value']:.0%})"
