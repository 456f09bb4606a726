"""Simulating: one session, held by an agent and a simulated user on a world of its own."""

import asyncio
import hashlib
import json
from typing import Any, NamedTuple

from audit.doors.world import World
from audit.doors.world_sql import named
from audit.pipeline.budget import UsedUp
from audit.pipeline.calls import tokens_of
from audit.pipeline.conversation import TOOL_ERROR, Conversation, Parts
from audit.pipeline.sampled import Place
from audit.pipeline.workplace import Workplace
from audit.words import clock
from audit.words.names import CUT
from audit.words.records import JudgeLog, Session
from audit.words.tasks import Task
from audit.words.text import as_json


class ToHold(NamedTuple):
    """A session to be held; `earlier`: what is stored of it where the budget cut it."""

    place: Place
    earlier: dict[str, Any] | None


class Held(NamedTuple):
    """One session that was held, with its calls."""

    session: Session
    logs: list[JudgeLog]


class Simulating:
    """How the sessions of a run are held."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace
        self.tasks = {(task.task_id, task.fingerprint): task for task in workplace.tasks}

    async def session(self, wanted: ToHold) -> Held:
        """Hold one session, or what is left of one that was cut. UsedUp where no call was left."""
        task = self.tasks[wanted.place.task_id, wanted.place.task_fingerprint]
        return await _hold(self.workplace, task, wanted)


def session_id_of(workplace: Workplace, place: Place) -> str:
    """The same id whenever the same session is planned in the run."""
    digest = hashlib.blake2b(as_json(list(place)).encode(), digest_size=8)
    return f"{workplace.id_tail()}-s{digest.hexdigest()}"


async def _hold(workplace: Workplace, task: Task, wanted: ToHold) -> Held:
    config, place, earlier = workplace.config, wanted.place, wanted.earlier
    session_id = session_id_of(workplace, place)
    parts = Parts(
        run_id=workplace.run.run_id,
        session_id=session_id,
        task=task,
        user=workplace.endpoint(config.user),
        agent=workplace.endpoint(place.agent),
        user_prompt=workplace.prompt("simulated_user"),
        agent_prompt=workplace.prompt("agent"),
        stop_tokens=tuple(config.stop_tokens),
        max_turns=config.max_turns,
        language=config.language,
        trial=place.trial,
    )
    world = await asyncio.to_thread(World, task)
    with world:
        conversation = Conversation(parts, workplace, world)
        if earlier is None or await conversation.go_on_from(
            json.loads(earlier["transcript_json"]), earlier["end_reason"]
        ):
            await conversation.hold()
        if conversation.end_reason.startswith(CUT) and not conversation.logs:
            raise UsedUp
        state_json = None if conversation.end_reason == TOOL_ERROR else _state_left(conversation, world)
    return Held(
        _session(workplace, task, place, session_id, conversation, state_json, earlier), conversation.logs
    )


def _tokens(logs: list[JudgeLog], earlier: dict[str, Any] | None) -> list[int | None]:
    """What the agent's calls took, those of the session's first part included; NULL where it is not known."""
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    parts = [tokens_of(logs)] if logs else []
    if earlier is not None and '"role":"assistant"' in earlier["transcript_json"]:
        parts.append((earlier[names[0]], earlier[names[1]], earlier[names[2]]))
    sums = ([part[place] for part in parts] for place in range(len(names)))
    return [sum(known) if (known := [n for n in told if n is not None]) and len(known) == len(told) else None
            for told in sums]  # fmt: skip


def _state_left(held: Conversation, world: World) -> str | None:
    """The final state, NULL where a tool's function made it one that cannot be kept."""
    try:
        return as_json(world.snapshot())
    except Exception as error:  # a user's own function may have left anything
        held.end(TOOL_ERROR, "verifier", f"the final state cannot be kept: {named(error)}")
        return None


def _session(
    workplace: Workplace,
    task: Task,
    place: Place,
    session_id: str,
    held: Conversation,
    state_json: str | None,
    earlier: dict[str, Any] | None,
) -> Session:
    agent_logs = [log for log in held.logs if log.role == "agent"]
    tokens = _tokens(agent_logs, earlier)
    now = clock.now()
    return Session(
        session_id=session_id,
        run_id=workplace.run.run_id,
        task_id=task.task_id,
        category=task.category,
        task_fingerprint=task.fingerprint,
        agent=place.agent,
        trial=place.trial,
        transcript_json=as_json(held.messages),
        end_reason=held.end_reason,
        final_state_json=state_json,
        reward=None,
        success=None,
        checks_json=None,
        label_source=None,
        satisfaction=None,
        judge_flip=None,
        fault=held.fault,
        error=held.error,
        source_json=as_json({"goal": task.goal, "policy": task.domain.policy}),
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        total_tokens=tokens[2],
        simulated_at=now,
        verified_at=None,
        created_at=now,
    )
