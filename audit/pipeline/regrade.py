"""Regrade: recorded sessions under checks of one's own, beside the verdicts that they came with.

How far the oracle itself moves the gaps: what flips, agent by agent, and what that does to each two agents.
"""

import json
from collections.abc import Iterator
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from audit.doors import ask, store, store_live, waiting
from audit.doors.db import reading, writing
from audit.doors.files import sha256
from audit.doors.recorded import RecordedEvidence, load_checks
from audit.pipeline.scoring import score_run
from audit.verbs.trajectory import tool_calls_of
from audit.verbs.verify import verify
from audit.words import clock
from audit.words.errors import BadRequest
from audit.words.records import Run
from audit.words.tasks import Check
from audit.words.text import as_json

SIZE = 100


class Verdict(NamedTuple):
    """A session's reward and success; NULL = unknown."""

    reward: float | None
    success: int | None


class Moved(NamedTuple):
    """One session with the verdict it had before and the one it has now."""

    agent: str
    before: Verdict
    after: Verdict


class Regraded(NamedTuple):
    """The run, how many sessions had checks for their task, and how many of them are new under these."""

    run: Run
    sessions: int
    changed: int


def regrade(engine: Engine, wanted: str, path: Path) -> Regraded:
    """Check the sessions of an imported run; the verdicts before are kept in `source_json`.

    A session whose task has no checks in the file keeps its verdict. The same file again changes nothing.
    Raises BadFile for the file, BadRequest for a run of another kind or none of whose tasks is in it.
    """
    checks = load_checks(path)
    if any(check.kind == "llm" for held in checks.values() for check in held):
        raise BadRequest("a check of kind llm asks a model: recorded sessions are regraded without any")
    digest = sha256(path)
    with writing(engine) as connection:
        run = ask.run_named(connection, wanted)
        if run.kind != "import":
            raise BadRequest(f"run {run.run_id} is no import: `verify` checks it by its own tasks")
        count = changed = 0
        for session in waiting.recorded_sessions(connection, run.run_id, list(checks), SIZE):
            count += 1
            source = json.loads(session["source_json"] or "{}")
            if source.get("checks_sha256") == digest:
                continue
            changed += 1
            finding, kept = _finding(session, checks[session["task_id"]], source | {"checks_sha256": digest})
            store_live.set_findings(connection, [finding])
            store_live.set_source(connection, [(as_json(kept), session["session_id"])])
        if not count:
            raise BadRequest(f"{path} has checks for none of the tasks in run {run.run_id}")
        if changed:
            store_live.copy_findings(connection, run.run_id)
            stored = json.loads(run.config_json)
            run = run._replace(
                config_json=as_json(stored | {"checks": {"name": path.name, "sha256": digest}})
            )
            store.set_config(connection, run.run_id, run.config_json)
    if changed:
        run, _ = score_run(engine, run.run_id)
    return Regraded(run, count, changed)


def _finding(
    session: dict[str, Any], checks: tuple[Check, ...], source: dict[str, Any]
) -> tuple[store_live.Finding, dict[str, Any]]:
    messages = json.loads(session["transcript_json"] or "[]")
    found = verify(checks, RecordedEvidence(messages, tool_calls_of(messages)))
    names = ("reward", "success", "label_source", "verified_at")
    before = {name: session[name] for name in names} | {"checks": json.loads(session["checks_json"] or "[]")}
    # A gateway that broke a session, or a customer that did, is no less to blame for checks that ran.
    fault = found.fault or (None if session["fault"] == "verifier" else session["fault"])
    finding = store_live.Finding(
        reward=found.reward,
        success=None if found.success is None else int(found.success),
        checks_json=as_json([result._asdict() for result in found.checks]),
        label_source="rule",
        fault=fault,
        verified_at=clock.now(),
        session_id=session["session_id"],
    )
    return finding, source | {"verdicts": [*source.get("verdicts", ()), before]}


def flips(engine: Engine, run_id: str) -> dict[str, Any]:
    """What the checks moved against the verdicts that the sessions came with: by agent, and by two agents.

    agents: {agent, sessions, to_success, to_failure, to_unknown, mean_before, mean_after};
    gaps: {agent_a, agent_b, before, after}, differences of means, mean of a - mean of b.
    """
    by_agent: dict[str, list[Moved]] = {}
    with reading(engine) as connection:
        for moved in _moved(waiting.verdicts(connection, run_id)):
            by_agent.setdefault(moved.agent, []).append(moved)
    agents = [_row(agent, by_agent[agent]) for agent in sorted(by_agent)]
    gaps = [
        {
            "agent_a": a["agent"],
            "agent_b": b["agent"],
            "before": _difference(a["mean_before"], b["mean_before"]),
            "after": _difference(a["mean_after"], b["mean_after"]),
        }
        for a, b in combinations(agents, 2)
    ]
    return {"agents": agents, "gaps": gaps}


def _moved(rows: Iterator[dict[str, Any]]) -> Iterator[Moved]:
    for row in rows:
        earlier = json.loads(row["source_json"] or "{}").get("verdicts")
        now = Verdict(row["reward"], row["success"])
        before = Verdict(earlier[0]["reward"], earlier[0]["success"]) if earlier else now
        yield Moved(row["agent"], before, now)


def _row(agent: str, moved: list[Moved]) -> dict[str, Any]:
    def count(success: int | None) -> int:
        return sum(one.after.success == success != one.before.success for one in moved)

    return {
        "agent": agent,
        "sessions": len(moved),
        "to_success": count(1),
        "to_failure": count(0),
        "to_unknown": sum(one.after.success is None is not one.before.success for one in moved),
        "mean_before": _mean([one.before.reward for one in moved]),
        "mean_after": _mean([one.after.reward for one in moved]),
    }


def _mean(rewards: list[float | None]) -> float | None:
    known = [reward for reward in rewards if reward is not None]
    return fsum(known) / len(known) if known else None


def _difference(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a - b
