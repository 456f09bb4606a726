"""Simulate: each agent serves each task's customer, each trial on a world of its own."""

import asyncio
import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from audit.doors import store, store_live, waiting
from audit.doors.db import reading, writing
from audit.doors.world import World
from audit.doors.world_sql import named
from audit.pipeline.budget import UsedUp
from audit.pipeline.calls import tokens_of
from audit.pipeline.conversation import TOOL_ERROR, Conversation, Parts
from audit.pipeline.live import Live
from audit.pipeline.sampled import PairPlan, Place, planned_sessions
from audit.words import clock
from audit.words.config import MOST_SESSIONS
from audit.words.errors import BadRequest
from audit.words.names import CUT
from audit.words.records import JudgeLog, Session
from audit.words.tasks import Task
from audit.words.text import as_json


class Planned(NamedTuple):
    """One session to be held."""

    task: Task
    agent: str
    trial: int

    def place(self) -> Place:
        """Where the session stands in the plan."""
        return Place(self.task.task_id, self.task.fingerprint, self.agent, self.trial)


class Held(NamedTuple):
    """One session that was held, with its calls."""

    session: Session
    logs: list[JudgeLog]


async def simulate(live: Live) -> None:
    """Hold every session that is not stored yet, and again those that the gateway broke.

    With `retry_errors` also those that the simulated user or a tool's function broke. Raises BadRequest for
    more sessions than MOST_SESSIONS.
    """
    wanted = PairPlan(live.config, live.tasks)
    count = planned_sessions(live.config, live.tasks)
    if count > MOST_SESSIONS:
        raise BadRequest(f"{count:,} sessions are planned, at most {MOST_SESSIONS:,} can be: lower trials")
    again = {"gateway", "simulator", TOOL_ERROR} if live.retry_errors else {"gateway"}
    with reading(live.engine) as connection:
        stored = waiting.session_faults(connection, live.run.run_id)
        cut = waiting.cut_sessions(connection, live.run.run_id)

    def due() -> Iterator[Planned]:
        """Made one by one: there may be millions."""
        needed = (item for item in plan(live) if wanted.needs(item.place()))
        found = (item for item in needed if stored.get(session_id_of(live, item), "gateway") in again)
        return islice(found, live.limit)

    count = sum(1 for _ in due()) if stored else min(count, live.limit or count)
    live.begin("simulate", count)

    def keep(held: list[Held]) -> None:
        with writing(live.engine) as connection:
            store_live.save_sessions(connection, [one.session for one in held])
            store.add_logs(connection, [log for one in held for log in one.logs])
        for one in held:
            live.meter.count(one.logs)

    async def hold(item: Planned) -> Held:
        return await _hold(live, item, cut.get(session_id_of(live, item)))

    await live.work(hold, keep).through(due())


def plan(live: Live) -> Iterator[Planned]:
    """Every session of the run, task by task."""
    for task in live.tasks:
        for trial in range(live.config.trials):
            for agent in live.config.agents:
                yield Planned(task, agent, trial)


def session_id_of(live: Live, item: Planned) -> str:
    """The same id whenever the same session is planned in the run."""
    digest = hashlib.blake2b(
        as_json([item.task.task_id, item.task.fingerprint, item.agent, item.trial]).encode(), digest_size=8
    )
    return f"{live.id_tail()}-s{digest.hexdigest()}"


async def _hold(live: Live, item: Planned, earlier: dict[str, Any] | None) -> Held:
    """Hold one session, or what is left of one that was cut. Raises UsedUp where not one call was left."""
    config = live.config
    session_id = session_id_of(live, item)
    parts = Parts(
        run_id=live.run.run_id,
        session_id=session_id,
        task=item.task,
        user=live.endpoint(config.user),
        agent=live.endpoint(item.agent),
        user_prompt=live.prompt("simulated_user"),
        agent_prompt=live.prompt("agent"),
        stop_tokens=tuple(config.stop_tokens),
        max_turns=config.max_turns,
        language=config.language,
        trial=item.trial,
    )
    world = await asyncio.to_thread(World, item.task)
    with world:
        conversation = Conversation(parts, live, world)
        if earlier is None or await conversation.go_on_from(
            json.loads(earlier["transcript_json"]), earlier["end_reason"]
        ):
            await conversation.hold()
        if conversation.end_reason.startswith(CUT) and not conversation.logs:
            raise UsedUp
        state_json = None if conversation.end_reason == TOOL_ERROR else _state_left(conversation, world)
    return Held(_session(live, item, session_id, conversation, state_json, earlier), conversation.logs)


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
    live: Live,
    item: Planned,
    session_id: str,
    held: Conversation,
    state_json: str | None,
    earlier: dict[str, Any] | None,
) -> Session:
    agent_logs = [log for log in held.logs if log.role == "agent"]
    tokens = _tokens(agent_logs, earlier)
    task = item.task
    now = clock.now()
    return Session(
        session_id=session_id,
        run_id=live.run.run_id,
        task_id=task.task_id,
        category=task.category,
        task_fingerprint=task.fingerprint,
        agent=item.agent,
        trial=item.trial,
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
