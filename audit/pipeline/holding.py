"""Gate: does a run keep within the limits of its config? What cannot be told is no pass unless so wished."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask
from audit.doors.config import read_config_file
from audit.doors.db import reading, writing
from audit.pipeline.comparing import drift
from audit.pipeline.reporting import report_of
from audit.pipeline.standing import config_of, failed_share, keep_failed_gates
from audit.statistics.intervals import FEW_CLUSTERS
from audit.words.config import Threshold, check_thresholds
from audit.words.errors import BadRequest
from audit.words.records import Run

MAX_ERROR_RATE = 0.05
DEFAULT_FILE = Path("audit.yaml")


def hold(engine: Engine, wanted: str, file: Path | None = None, gate: str | None = None) -> dict[str, Any]:
    """The mapping of `gate --json`: each limit with what it found, and whether all of it passes.

    The limits are those of `file`; without one, of the config that the run was begun with; where that has
    none, of `audit.yaml`. `passed` is false where one is crossed, where one cannot be told and `on_unknown`
    is fail, and always where the run is not complete, more of its calls failed than its max_error_rate, or
    its judge decides nothing. Raises BadRequest where there are no limits.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        if file is None and not config_of(run).get("gate") and DEFAULT_FILE.is_file():
            file = DEFAULT_FILE
        limits = _limits(run, file)
        found = report_of(connection, run, gate)
        changed = _drift(connection, run, found) if "drift" in limits else None
        checks = [_held(name, limit, _figure(found, changed, name)) for name, limit in limits.items()]
        faults = [*_faults(connection, run, found["run"]["gate"], file), *_dead(found)]
    return {
        "run_id": run.run_id,
        "name": run.name,
        "gate": found["run"]["gate"],
        "limits_of": "the run's config" if file is None else str(file),
        "passed": not faults and all(check["passed"] for check in checks),
        "faults": faults,
        "checks": checks,
        "advice": changed["advice"] if changed else None,
    }


def keep_outcome(engine: Engine, run_id: str, held: Sequence[Mapping[str, Any]]) -> None:
    """Keep what came of `hold`, by judge: `drift` measures no later run against one that failed."""
    passed = {one["gate"]: one["passed"] for one in held if one["gate"] is not None}
    with writing(engine) as connection:
        keep_failed_gates(connection, ask.run_named(connection, run_id), passed)


def _limits(run: Run, file: Path | None) -> dict[str, Threshold]:
    if file is not None:
        return check_thresholds(read_config_file(file), str(file))
    stored = config_of(run).get("gate")
    if not stored:
        raise BadRequest(
            f"run {run.run_id} was begun without thresholds: name a file that has some under `gate:` with -c"
        )
    return check_thresholds({"gate": stored}, f"the config of run {run.run_id}")


def _faults(connection: Connection, run: Run, gate: str | None, file: Path | None) -> list[str]:
    """Why the run itself is no ground to pass on."""
    config = config_of(run)
    if file is not None:
        given = read_config_file(file)
        config = config | (given if isinstance(given, dict) else {})
    most = config.get("max_error_rate", MAX_ERROR_RATE)
    calls, failed = failed_share(connection, run, None if gate is None else [gate])
    faults = []
    if run.status != "complete":
        faults.append(f"the run is {run.status}, not complete")
    if failed > most * calls:
        faults.append(f"{failed:,} of {calls:,} calls failed, more than max_error_rate {most:g}")
    return faults


def _dead(found: Mapping[str, Any]) -> Iterator[str]:
    """A judge that was asked and decides nothing is under no limit of what it decides."""
    pairs = found["pairs"]
    if found["answers"]["total"] and pairs["decidable"] and not pairs["correct"] + pairs["misselected"]:
        told = ", ".join(
            f"{pairs[outcome]:,} {outcome}"
            for outcome in ("judge_tie", "inconsistent", "unreadable", "incomplete")
            if pairs[outcome]
        )
        yield f"the judge decides none of {pairs['decidable']:,} decidable pairs: {told}"


def _drift(connection: Connection, run: Run, found: Mapping[str, Any]) -> dict[str, Any] | None:
    return None if found["run"]["gate"] is None else drift(connection, run, found["run"]["gate"])


def _figure(found: Mapping[str, Any], changed: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """{"value", "low", "high"} and, of a rate, its counts; value NULL with a `why`."""
    if name == "drift":
        if changed is None:
            return _nothing("there is no earlier complete run of this name with this judge")
        ends = {"value": changed["change"], "low": changed["low"], "high": changed["high"]}
        return ends | {"against": changed["against"], "clusters": changed["after"]["clusters"]}
    first, _, rest = name.partition(".")
    if first in ("near", "wide"):
        return dict(found["near_vs_wide"][first][rest])
    if name in ("satisfied_failed", "base_failure"):
        part = found["satisfaction"]
        return dict(part[name]) if part else _nothing(found["why"]["satisfaction"])
    if first in ("agent_pairs", "position"):
        part = found[first]
        if part is None:
            return _nothing(found["why"][first])
        if rest == "preference_fairness":
            ends = part["preference_fairness_interval"]
            return {"value": part[rest], "low": ends["low"], "high": ends["high"],
                    "clusters": part["consistent"]["clusters"]}  # fmt: skip
        return dict(part[rest])
    if first.startswith("gap_at_"):
        curve = found["error_curve"]
        if curve is None:
            return _nothing(found["why"]["error_curve"])
        return (
            dict(curve[first]) | {"clusters": curve["clusters"]} if curve[first] else _nothing(curve["why"])
        )
    return dict(found["rates"][name])


def _nothing(why: str) -> dict[str, Any]:
    return {"value": None, "low": None, "high": None, "why": why}


def _held(name: str, limit: Threshold, figure: dict[str, Any]) -> dict[str, Any]:
    """One limit against its figure: `held`, `crossed`, or `unknown`.

    Unknown: there is no such figure or no such bound of it; or fewer than 20 clusters tell of it, and its
    interval holds the limit, so that a few pairs more could turn the answer.
    """
    by = {"value": "value", "lower": "low", "upper": "high"}[limit.by]
    value, ends = figure[by], (figure["low"], figure["high"])
    sides = [(kind, edge) for kind, edge in (("max", limit.max), ("min", limit.min)) if edge is not None]
    crossed = [
        (kind, edge)
        for kind, edge in sides
        if value is not None and (value > edge if kind == "max" else value < edge)
    ]
    few = figure.get("clusters") is not None and figure["clusters"] < FEW_CLUSTERS
    straddles = None not in ends and any(ends[0] <= edge <= ends[1] for _, edge in sides)
    status = "unknown" if value is None or (few and straddles) else "crossed" if crossed else "held"
    return {
        "name": name,
        "status": status,
        "passed": status == "held" or (status == "unknown" and limit.on_unknown == "pass"),
        "by": limit.by,
        "compared": value,
        "max": limit.max,
        "min": limit.min,
        "crossed": crossed[0][0] if crossed and status == "crossed" else None,
        "on_unknown": limit.on_unknown,
        "figure": figure,
    }
