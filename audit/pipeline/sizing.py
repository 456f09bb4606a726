"""Plan: how many pairs it takes to know a rate well enough, or to see it change, in tasks like a run's."""

import math
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine

from audit.doors import ask
from audit.doors.db import reading
from audit.pipeline import report_pairs
from audit.pipeline.comparing import flipped
from audit.pipeline.report_pairs import Pairs
from audit.pipeline.standing import choose_gate
from audit.statistics.intervals import design_effect
from audit.statistics.power import change_variance, pairs_for_precision, pairs_to_see_change

POWER = 0.8


def plan(
    engine: Engine, wanted: str, within: float = 0.05, change: float = 0.05, gate: str | None = None
) -> dict[str, Any]:
    """The mapping of `plan --json`: for near ties and for all pairs, what it takes to know their
    misselected_of_decided within -+ `within`, and to see it change by `change` in a run of the same pairs.

    Everything is in pairs of a run like this one: as many of them decided, as alike within a task, as many
    calls and tokens each. A part that cannot be told is null with a `why`.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        chosen = choose_gate(connection, run, gate)
        pairs = Pairs(connection, run, chosen)
        calls = report_pairs.answers(connection, run, chosen)["total"]
        tokens = ask.cost(connection, run.run_id, chosen, calls=calls)["total_tokens"]
        earlier = flipped(connection, run, chosen)
    total = pairs.outcomes()["total"]
    each = {
        "pairs": total,
        "tasks": len(pairs.groups.values("task_id")),
        "calls_a_pair": calls / total if total else None,
        "tokens_a_pair": tokens / total if total and tokens is not None else None,
    }
    return {
        "run_id": run.run_id,
        "name": run.name,
        "gate": chosen,
        "within": within,
        "change": change,
        "power": POWER,
        "each": each,
        "earlier": earlier and earlier["run_id"],
        "rates": [
            _rate(name, pairs.groups.by_cluster(**where), each, within, change, earlier)
            for name, where in (
                ("near.misselected_of_decided", {"gap_bucket": pairs.labels(1)}),
                ("misselected_of_decided", {}),
            )
        ],
    }


def _rate(
    name: str,
    by_task: Mapping[str, Any],
    each: Mapping[str, Any],
    within: float,
    change: float,
    earlier: Mapping[str, Any] | None,
) -> dict[str, Any]:
    wrong = by_task["misselected"]
    decided = wrong + by_task["correct"]
    k, n = int(wrong.sum()), int(decided.sum())
    found: dict[str, Any] = {"rate": name, "k": k, "n": n, "value": k / n if n else None}
    if not n:
        why = "no pair of it is decided: nothing tells how many of a run's pairs would be"
        return found | {"design_effect": None, "to_know": None, "to_see_change": None, "why": why}
    share, effect = k / n, design_effect(wrong, decided)
    if k in (0, n):
        # Nothing or everything: the rate is not known to be that. Half an error more, as a cautious guess.
        share = (k + 0.5) / (n + 1)
        found["taken_as"] = share
    alike = 1.0 if effect is None else effect
    turned, twice = earlier[name] if earlier else (0, 0)
    # Without any to go by: as if two runs' verdicts on a pair had nothing to do with each other.
    differ = turned / twice if turned else 2 * share * (1 - share)
    variance = change_variance(max(differ, abs(change)), change)
    to_see = math.ceil(pairs_to_see_change(change, variance, power=POWER) * alike)
    return found | {
        "design_effect": effect,
        "discordant": differ,
        "is_discordant_measured": bool(turned),
        "to_know": _cost(pairs_for_precision(share, within, alike), n, each),
        "to_see_change": _cost(to_see, n, each),
    }


def _cost(decided: int, of_this_run: int, each: Mapping[str, Any]) -> dict[str, Any]:
    """So many decided pairs, as pairs of any kind, tasks, calls and tokens of a run like this one."""
    times = decided / of_this_run
    pairs = math.ceil(times * each["pairs"])
    calls, tokens = each["calls_a_pair"], each["tokens_a_pair"]
    return {
        "decided": decided,
        "times_this_run": times,
        "pairs": pairs,
        "tasks": math.ceil(times * each["tasks"]),
        "calls": None if calls is None else math.ceil(pairs * calls),
        "tokens": None if tokens is None else math.ceil(pairs * tokens),
    }
