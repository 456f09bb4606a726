"""Compare: two runs on the pairs that both have, what changed between them, and a trend over many."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask, counts, matched
from audit.doors.db import reading
from audit.pipeline import changed, report_pairs
from audit.pipeline.advice import weight_advice
from audit.pipeline.report_pairs import Pairs
from audit.pipeline.standing import choose_gate, failed_gate
from audit.statistics.agreement import mcnemar_p
from audit.statistics.intervals import Interval, change_interval, paired_interval
from audit.statistics.power import smallest_seen
from audit.statistics.rates import clustered_rate
from audit.words.errors import BadRequest
from audit.words.records import Run

# So many earlier runs are looked through for one that passed.
_NIGHTS = 50
# Rate -> what is counted, of what, over the matched pairs.
_RATES = {
    "accuracy": ("correct", "decidable"),
    "misselected_of_decidable": ("misselected", "decidable"),
    "misselected_of_decided": ("misselected", "decided"),
    "near.misselected_of_decided": ("near_misselected", "near_decided"),
    "wide.misselected_of_decided": ("wide_misselected", "wide_decided"),
    "consistent": ("consistent", "both_read"),
}


def compare(engine: Engine, wanted: Sequence[str], gate: str | None = None) -> dict[str, Any]:
    """The mapping of `compare --json`. Raises BadRequest for a run or gate that is not there."""
    with reading(engine) as connection:
        before, after = (ask.run_named(connection, name) for name in wanted)
        if before.run_id == after.run_id:
            raise BadRequest(f"both are run {before.run_id}: name two different ones")
        return _compared(connection, before, after, _gates(connection, before, after, gate))


def _compared(connection: Connection, before: Run, after: Run, gates: tuple[str, str]) -> dict[str, Any]:
    rows = list(matched.matched(connection, (before, gates[0]), (after, gates[1])))
    found: dict[str, Any] = {
        "before": _run(before, gates[0]),
        "after": _run(after, gates[1]),
        "matched": _matched(connection, rows, (before, after), gates),
        "mcnemar": _mcnemar(rows),
        "rates": [
            *(_paired(name, rows, *of) for name, of in _RATES.items()),
            _error_calls(connection, (before, after), gates),
        ],
        "all_pairs": [
            Pairs(connection, run, gate).rates()["misselected_of_decided"]
            for run, gate in zip((before, after), gates, strict=True)
        ],
    }
    found["is_beyond_chance"] = _is_beyond_chance(found)
    found["changed"], found["moved"] = changed.changes(connection, before, after, gates)
    near = next(rate for rate in found["rates"] if rate["rate"] == "near.misselected_of_decided")
    return found | {
        "explanation": changed.explanation(found["moved"], found),
        "advice": weight_advice(gates[1], near),
    }


def drift(connection: Connection, run: Run, gate: str) -> dict[str, Any] | None:
    """The change of misselected_of_decided against an earlier complete run of the same name and gate: the
    newest that did not fail what it was held to (`standing.failed_gate`), else the newest of all.

    Over the pairs that both have; NULL where there is no such run.
    """
    before = _reference(connection, run, gate)
    if before is None:
        return None
    rows = list(matched.matched(connection, (before, gate), (run, gate)))
    found = _paired("misselected_of_decided", rows, "misselected", "decided")
    return found | {"against": before.run_id, "advice": _advice(gate, rows)}


def _reference(connection: Connection, run: Run, gate: str) -> Run | None:
    newest = None
    for run_id in reversed(matched.complete_runs(connection, run.name, _NIGHTS, before=run)):
        if gate in ask.gates(connection, run_id):
            earlier = ask.run_named(connection, run_id)
            if not failed_gate(earlier, gate):
                return earlier
            newest = newest or earlier
    return newest


def flipped(connection: Connection, run: Run, gate: str) -> dict[str, Any] | None:
    """Of the pairs decided in this run and the one before it of its name: in which the verdict is another.

    {"run_id", "misselected_of_decided", "near.misselected_of_decided"}, each (flipped, decided in both); NULL
    where there is no such run.
    """
    earlier = matched.complete_runs(connection, run.name, 1, before=run)
    if not earlier or gate not in ask.gates(connection, earlier[0]):
        return None
    before = ask.run_named(connection, earlier[0])
    rows = list(matched.matched(connection, (before, gate), (run, gate)))
    return {
        "run_id": before.run_id,
        "misselected_of_decided": (_sum(rows, "flipped"), _sum(rows, "decided_twice")),
        "near.misselected_of_decided": (_sum(rows, "near_flipped"), _sum(rows, "near_decided_twice")),
    }


def trend(engine: Engine, most: int, name: str | None = None, gate: str | None = None) -> dict[str, Any]:
    """The mapping of `compare --last N --json`: the complete runs of one name, the oldest first.

    Without a name, that of the newest run. Raises BadRequest where there are not two.
    """
    with reading(engine) as connection:
        of = ask.run_named(connection, "latest").name if name is None else name
        found = matched.complete_runs(connection, of, most)
        if len(found) < 2:
            raise BadRequest(
                f"{len(found)} complete run{'' if len(found) == 1 else 's'} named {of!r}: a trend needs two "
                "(`reward-audit runs` lists them)"
            )
        rows: list[dict[str, Any]] = []
        earlier: tuple[Run, str] | None = None
        for run in (ask.run_named(connection, run_id) for run_id in found):
            chosen = choose_gate(connection, run, gate)
            rows.append(_night(connection, run, chosen, earlier))
            earlier = (run, chosen)
        return {"name": of, "runs": rows}


def _night(connection: Connection, run: Run, gate: str, earlier: tuple[Run, str] | None) -> dict[str, Any]:
    pairs = Pairs(connection, run, gate)
    near = pairs.near_vs_wide()["near"]
    row = {
        "run_id": run.run_id,
        "created_at": run.created_at,
        "gate": gate,
        "pairs": pairs.outcomes()["total"],
        "misselected_of_decided": pairs.rates()["misselected_of_decided"],
        "near": near["misselected_of_decided"],
        "consistent": pairs.judge(gate)["consistent"],
        "error_calls": report_pairs.error_calls(connection, run, gate),
        "change": None,
        "changed": None,
        "advice": None,
    }
    if earlier is not None:
        rows = list(matched.matched(connection, earlier, (run, gate)))
        row["change"] = _paired("misselected_of_decided", rows, "misselected", "decided")
        found, moved = changed.changes(connection, earlier[0], run, (earlier[1], gate))
        row["changed"] = {"prompts": found["prompts"], "models": found["models"], "moved": moved}
        row["advice"] = _advice(gate, rows)
    return row


def _advice(gate: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    name = "near.misselected_of_decided"
    return weight_advice(gate, _paired(name, rows, *_RATES[name]))


def _gates(connection: Connection, before: Run, after: Run, wanted: str | None) -> tuple[str, str]:
    """The gate of each: the one asked for, one that both have, or each run's own."""
    held = [ask.gates(connection, run.run_id) for run in (before, after)]
    first = choose_gate(connection, before, wanted)
    if first in held[1]:
        return first, first
    second = choose_gate(connection, after, wanted)
    return (second, second) if second in held[0] else (first, second)


def _run(run: Run, gate: str) -> dict[str, Any]:
    names = ("run_id", "name", "kind", "status", "created_at", "config_hash", "task_set_hash",
             "prompt_set_hash")  # fmt: skip
    return {name: getattr(run, name) for name in names} | {"gate": gate}


def _matched(
    connection: Connection,
    rows: Sequence[Mapping[str, Any]],
    runs: tuple[Run, Run],
    gates: tuple[str, str],
) -> dict[str, Any]:
    of = [matched.count_pairs(connection, run.run_id, gate) for run, gate in zip(runs, gates, strict=True)]
    both = _sum(rows, "matched")
    return {
        "pairs": both,
        "tasks": len(rows),
        "only_before": of[0] - both,
        "only_after": of[1] - both,
        "same_rewards": _sum(rows, "same_rewards"),
    }


def _mcnemar(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Of pairs misselected or not in both runs: those that are in one alone, and their exact test."""
    names = ("counted", "both_misselected", "misselected_before", "misselected_after")
    found: dict[str, Any] = {name: _sum(rows, name) for name in names}
    return found | {"p": mcnemar_p(found["misselected_before"], found["misselected_after"])}


def _paired(name: str, rows: Sequence[Mapping[str, Any]], part: str, whole: str) -> dict[str, Any]:
    sums = [[row[f"{run}_{of}"] for row in rows] for run in ("before", "after") for of in (part, whole)]
    return {"rate": name} | _change(paired_interval, *sums)


def _error_calls(connection: Connection, runs: tuple[Run, Run], gates: tuple[str, str]) -> dict[str, Any]:
    """All calls of both, not of matched pairs alone: a run fails as a whole."""
    by_task = [
        {task: (failed, calls) for task, calls, failed in counts.calls_by_task(connection, run.run_id, gate)}
        for run, gate in zip(runs, gates, strict=True)
    ]
    tasks = sorted(by_task[0].keys() | by_task[1].keys())
    sums = [[of.get(task, (0, 0))[which] for task in tasks] for of in by_task for which in (0, 1)]
    return {"rate": "error_calls"} | _change(change_interval, *sums)


def _change(
    interval_of: Callable[..., tuple[float | None, Interval]],
    k_before: Sequence[int],
    n_before: Sequence[int],
    k_after: Sequence[int],
    n_after: Sequence[int],
) -> dict[str, Any]:
    value, interval = interval_of(k_before, n_before, k_after, n_after)
    return {
        "before": clustered_rate(k_before, n_before),
        "after": clustered_rate(k_after, n_after),
        "change": value,
        **interval._asdict(),
        "smallest_seen": smallest_seen(interval.low, interval.high),
    }


def _is_beyond_chance(found: Mapping[str, Any]) -> bool:
    """Did misselected_of_decided change, by its interval over tasks?

    McNemar's test takes pairs as independent, and would see a change too often.
    """
    change = next(rate for rate in found["rates"] if rate["rate"] == "misselected_of_decided")
    return change["low"] is not None and not change["low"] <= 0 <= change["high"]


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> int:
    return sum(row[name] for row in rows)
