"""A whole session without the pipeline: customer, agent and world in a loop, then the checks."""

import json
from dataclasses import dataclass
from functools import cache
from typing import Any

from audit.doors.prompts import prompt
from audit.doors.shipped import shipped
from audit.doors.tasks import load_tasks
from audit.doors.world import FinalWorld, World
from audit.offline.serve import serve
from audit.verbs.render import Hidden, nonce, render_session
from audit.verbs.verify import Verified, verify
from audit.words.calls import Message
from audit.words.tasks import Task

SKILLS = (20, 35, 50, 60, 70, 80, 90, 95)
SEEDS = (0, 1, 2, 3, 4)
_HIDDEN = Hidden([], ["<finished>", "<blocked>"])
_TURNS = 10


@dataclass(frozen=True)
class Held:
    """One session that was held and verified."""

    task: Task
    skill: int
    messages: list[Message]
    verified: Verified
    is_ended: bool

    @property
    def reward(self) -> float:
        assert self.verified.reward is not None, self.verified
        return self.verified.reward

    @property
    def rendered(self) -> str:
        return render_session(self.messages, _HIDDEN)


@cache
def shipped_tasks() -> tuple[Task, ...]:
    return tuple(load_tasks([shipped("data") / "tasks"]))


def said_by(model: str, messages: list[Message], seed: int, **more: Any) -> Message:
    reply = serve({"model": model, "messages": messages, "seed": seed, **more})
    message: Message = reply["choices"][0]["message"]
    return message


def customer_says(task: Task, messages: list[Message], seed: int = 0) -> str:
    view = prompt("simulated_user", "en").fill(
        goal=task.goal, facts=task.facts, finished="<finished>", blocked="<blocked>"
    )
    view.append({"role": "user", "content": "Hello, how can I help you?"})
    for message in messages:
        if message["role"] == "user":
            view.append({"role": "assistant", "content": message["content"]})
        elif message["role"] == "assistant" and message["content"]:
            view.append({"role": "user", "content": message["content"]})
    return str(said_by("customer", view, seed)["content"])


def hold(task: Task, agent: str, seed: int = 0) -> Held:
    """The session of a shipped task with an agent, held to its end and verified; the same is held once."""
    return held_once(task.task_id, agent, seed)


@cache
def held_once(task_id: str, agent: str, seed: int) -> Held:
    task = next(task for task in shipped_tasks() if task.task_id == task_id)
    messages: list[Message] = []
    is_ended = False
    with World(task) as world:
        for _ in range(_TURNS):
            text = customer_says(task, messages, seed)
            is_ended = "<finished>" in text or "<blocked>" in text
            words = text.replace("<finished>", "").replace("<blocked>", "").strip()
            if words:
                messages.append({"role": "user", "content": words})
                _agent_acts(task, world, messages, agent, seed)
            if is_ended:
                break
        skill = int(agent.removeprefix("agent-"))
        return Held(task, skill, messages, verified(task, world, messages), is_ended)


def verified(task: Task, world: World, messages: list[Message]) -> Verified:
    results = {m["tool_call_id"]: m["content"] for m in messages if m["role"] == "tool"}
    calls = [call for message in messages for call in message.get("tool_calls", ())]
    done = [
        {
            "name": call["function"]["name"],
            "arguments": json.loads(call["function"]["arguments"]),
            "result": results[call["id"]],
            "index": place,
        }
        for place, call in enumerate(calls)
    ]
    with FinalWorld(task, world.snapshot(), messages, done) as final:
        return verify(task.checks, final)


def judge_prompt(task: Task, first: str, second: str) -> list[Message]:
    return prompt("judge_pair", "en").fill(
        goal=task.goal, policy=task.domain.policy, nonce=nonce(first, second), first=first, second=second
    )


def judgment(model: str, task: Task, first: str, second: str, seed: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said_by(model, judge_prompt(task, first, second), seed)["content"])
    return found


def satisfaction(model: str, task: Task, session: str, seed: int = 0) -> dict[str, Any]:
    messages = prompt("satisfaction", "en").fill(
        goal=task.goal, policy=task.domain.policy, nonce=nonce(session), session=session
    )
    found: dict[str, Any] = json.loads(said_by(model, messages, seed)["content"])
    return found


def _agent_acts(task: Task, world: World, messages: list[Message], agent: str, seed: int) -> None:
    system = prompt("agent", "en").fill(policy=task.domain.policy)
    for _ in range(_TURNS):
        said = said_by(agent, system + messages, seed, tools=world.tools)
        messages.append(said)
        if not said.get("tool_calls"):
            return
        for call in said["tool_calls"]:
            result = world.call(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
