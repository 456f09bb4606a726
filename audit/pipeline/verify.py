"""Verify: the checks of each task on what its session left behind, read-only, session by session."""

import json
from typing import Any

from audit.doors import store_live, waiting
from audit.doors.db import reading, writing
from audit.doors.world import FinalWorld, WorldError
from audit.pipeline.live import Live
from audit.verbs.trajectory import tool_calls_of
from audit.verbs.verify import Verified
from audit.verbs.verify import verify as check
from audit.words import clock
from audit.words.tasks import Task
from audit.words.text import as_json

SIZE = 100


def verify(live: Live) -> None:
    """Check every session without a finding, and bring the findings to the pairs."""
    tasks = {(task.task_id, task.fingerprint): task for task in live.tasks}
    run_id = live.run.run_id
    with reading(live.engine) as connection:
        total = waiting.count_unverified(connection, run_id)
    live.meter.begin("verify", total)
    after = ""
    while True:
        with reading(live.engine) as connection:
            found = waiting.unverified(connection, run_id, after, SIZE)
        if not found:
            break
        after = found[-1]["session_id"]
        rows = [_finding(live, session, tasks) for session in found]
        with writing(live.engine) as connection:
            store_live.set_findings(connection, [row for row in rows if row is not None])
    with writing(live.engine) as connection:
        store_live.copy_findings(connection, run_id)


def _finding(
    live: Live, session: dict[str, Any], tasks: dict[tuple[str, str], Task]
) -> store_live.Finding | None:
    """What the checks found; NULL where the task is not among those of the run any more."""
    live.meter.count([])
    task = tasks.get((session["task_id"], session["task_fingerprint"]))
    if task is None:
        return None
    messages = json.loads(session["transcript_json"] or "[]")
    state = json.loads(session["final_state_json"] or "{}")
    try:
        with FinalWorld(task, state, messages, tool_calls_of(messages)) as evidence:
            verified = check(task.checks, evidence, llm_counts=live.config.llm_labels_count)
    except WorldError as error:
        verified = Verified(None, None, "verifier", ())
        live.meter.note(f"session {session['session_id']}: {error}")
    return store_live.Finding(
        reward=verified.reward,
        success=None if verified.success is None else int(verified.success),
        checks_json=as_json([result._asdict() for result in verified.checks]),
        label_source="rule",
        fault=verified.fault or session["fault"],
        verified_at=clock.now(),
        session_id=session["session_id"],
    )
