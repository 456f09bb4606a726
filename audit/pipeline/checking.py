"""Checking: the checks of one session's task on what the session left behind, read-only.

A check of kind `llm` is put to the first judge; its answer is a candidate label (verbs.verify).
"""

import asyncio
import json
from typing import Any, NamedTuple

from audit.doors import store_live
from audit.doors.world import FinalWorld, WorldError
from audit.doors.world_sql import named
from audit.pipeline.budget import UsedUp
from audit.pipeline.pointwise import ask_pointwise
from audit.pipeline.workplace import Workplace
from audit.verbs.pointwise import read_criterion
from audit.verbs.render import render_session
from audit.verbs.trajectory import tool_calls_of
from audit.verbs.verify import PENDING, Answered, Verified
from audit.verbs.verify import verify as check
from audit.words import clock
from audit.words.errors import AuditError, Lost
from audit.words.records import JudgeLog
from audit.words.tasks import Task
from audit.words.text import as_json

CRITERION_SCHEMA = {
    "type": "object",
    "properties": {"evidence": {"type": "string"}, "met": {"type": "boolean"}},
    "required": ["evidence", "met"],
    "additionalProperties": False,
}


class Checked(NamedTuple):
    """One session's finding, with its calls; none where its task is not among the run's any more."""

    finding: store_live.Finding | None
    logs: list[JudgeLog]


class Checking:
    """How the sessions of a run are checked."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.tasks = {(task.task_id, task.fingerprint): task for task in workplace.tasks}
        self.prompt = workplace.prompt("check")
        self.hidden = workplace.hidden()

    async def session(self, session: dict[str, Any]) -> Checked:
        """What the checks of its task find of a session."""
        task = self.tasks.get((session["task_id"], session["task_fingerprint"]))
        if task is None:
            return Checked(None, [])
        logs: list[JudgeLog] = []
        try:
            answers = await self._ask(session, task, logs)
            # In a thread: a check may be a function that takes its time.
            verified = await asyncio.to_thread(self._check, session, task, answers)
        except UsedUp:
            if not logs:
                raise
            return Checked(None, logs)
        except Lost:
            raise
        except Exception as error:  # whatever one session holds, the others are checked all the same
            why = str(error) if isinstance(error, AuditError) else named(error)
            self.workplace.note(f"session {session['session_id']} cannot be checked: {why}")
            verified = Verified(None, None, "verifier", ())
        finding = store_live.Finding(
            reward=verified.reward,
            success=None if verified.success is None else int(verified.success),
            checks_json=as_json([result._asdict() for result in verified.checks]),
            label_source=self._source(task),
            fault=verified.fault or (None if session["fault"] == "verifier" else session["fault"]),
            verified_at=clock.now(),
            session_id=session["session_id"],
        )
        return Checked(finding, logs)

    async def _ask(self, session: dict[str, Any], task: Task, logs: list[JudgeLog]) -> dict[str, Answered]:
        """What a model says of the criteria of kind `llm`; what it said before is not asked again.

        The calls are added to `logs`, so that none is lost where a later one goes wrong.
        """
        answers = _answers_before(session)
        for item in task.checks:
            if item.kind != "llm" or item.name in answers:
                continue
            found, calls = await ask_pointwise(
                self.workplace,
                self.prompt,
                CRITERION_SCHEMA,
                session,
                render_session(self.workplace.shown(session["transcript_json"]).messages, self.hidden),
                read_criterion,
                criterion=item.spec["llm"],
            )
            logs += calls
            if calls[-1].parse_status != "error":
                answers[item.name] = Answered(found.met, found.evidence or "no answer that can be read")
        return answers

    def _check(self, session: dict[str, Any], task: Task, answers: dict[str, Answered]) -> Verified:
        if session["final_state_json"] is None:
            raise WorldError("it left no final state")
        messages = json.loads(session["transcript_json"] or "[]")
        state = json.loads(session["final_state_json"])
        counts = self.workplace.config.llm_labels_count
        with FinalWorld(task, state, messages, tool_calls_of(messages)) as evidence:
            return check(task.checks, evidence, llm_counts=counts, llm_answers=answers)

    def _source(self, task: Task) -> str:
        """`llm` where a model's answer is the label, or part of it."""
        kinds = {item.kind for item in task.checks}
        is_llm = "llm" in kinds and (self.workplace.config.llm_labels_count or kinds == {"llm"})
        return "llm" if is_llm else "rule"


def _answers_before(session: dict[str, Any]) -> dict[str, Answered]:
    """What models answered when the session was checked before."""
    return {
        item["name"]: Answered(item["passed"], item["evidence"])
        for item in json.loads(session["checks_json"] or "[]")
        if item["kind"] == "llm" and item["evidence"] != PENDING
    }
