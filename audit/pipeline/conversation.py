"""One session: a simulated user talks to an agent, who acts on the session's own copy of the task's world."""

import asyncio
import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Protocol

from audit.doors.limited import Overrun, give_up
from audit.doors.prompts import Prompt
from audit.doors.world_sql import named
from audit.pipeline.budget import UsedUp
from audit.pipeline.calls import Read, log_of
from audit.verbs.user_turn import UserTurn, read_user_turn
from audit.verbs.verdict_text import without_thinking
from audit.words.calls import Message, Reply
from audit.words.names import CUT
from audit.words.profiles import Endpoint
from audit.words.records import JudgeLog
from audit.words.tasks import Task

GREETING = {"en": "Hello, how can I help you?", "zh": "您好，请问您需要什么？"}
TOOL_ROUNDS = 12
TOOL_ERROR = "tool_error"


class Chat(Protocol):
    """The door to models, as far as a conversation needs it."""

    async def chat(
        self,
        endpoint: Endpoint,
        messages: list[Message],
        *,
        tools: list[dict[str, Any]] | None = None,
        response_schema: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> Reply: ...


class Acts(Protocol):
    """A world, as far as a conversation needs it."""

    def call(self, name: str, arguments: str | dict[str, Any]) -> str: ...


@dataclass(frozen=True, slots=True)
class Parts:
    """Who takes part, and by which rules."""

    run_id: str
    session_id: str
    task: Task
    user: Endpoint
    agent: Endpoint
    user_prompt: Prompt
    agent_prompt: Prompt
    stop_tokens: tuple[str, ...]
    max_turns: int
    language: str
    trial: int


@dataclass(slots=True)
class Conversation:
    """What was said and done. `end_reason` and `fault` are set when it is over."""

    parts: Parts
    models: Chat
    world: Acts
    messages: list[Message] = field(default_factory=list)
    logs: list[JudgeLog] = field(default_factory=list)
    end_reason: str = "max_turns"
    fault: str | None = None
    error: str | None = None
    call_ids: set[str] = field(default_factory=set)
    pending: str | None = None  # the user has ended it, and the agent has its turn to act

    async def go_on_from(self, messages: list[Message], end_reason: str) -> bool:
        """Take up a session that was cut: what was said is said, what was done is done again in the world.

        False where that broke the world, and so the session is over.
        """
        self.messages = messages
        self.pending = end_reason.removeprefix(CUT) or None
        for message in messages:
            for call in message.get("tool_calls") or ():
                self.call_ids.add(call["id"])
                if await self._done_in_world(call) is None:
                    return False
        return True

    async def hold(self) -> None:
        """Turn by turn, until the user ends it, someone breaks, or the turns are used up."""
        if self.messages and self.messages[-1]["role"] != "assistant":
            if not await self._agent_acts():
                return
            if self.pending is not None:
                self.end_reason = self.pending
                return
        turns = sum(message["role"] == "user" for message in self.messages)
        for _ in range(turns, self.parts.task.max_turns or self.parts.max_turns):
            turn = await self._user_speaks()
            if turn is None:
                return
            if turn.ended:
                _, blocked = self._endings()
                self.pending = "user_blocked" if turn.ended == blocked else "user_stop"
            if turn.text:
                self.messages.append({"role": "user", "content": turn.text})
                # Words before a stop token still reach the agent, and it may act on them.
                if not await self._agent_acts():
                    return
            if self.pending is not None:
                self.end_reason = self.pending
                return

    async def _user_speaks(self) -> UserTurn | None:
        """The user's turn, asked for again once where it must not be delivered; NULL ends the session."""
        told = (self.parts.task.goal, *self.parts.task.facts)
        rules = self.parts.user_prompt.fill(goal="", facts=(), finished="", blocked="")[0]["content"]
        for attempt in (1, 2):
            reply = await self._ask(self.parts.user, self.parts.user_prompt, self._as_user(), attempt)
            if reply is None:
                return None
            turn = read_user_turn(reply.content or "", self.parts.stop_tokens, told, rules)
            if turn.problem is None:
                return turn
        self.end("simulator_fault", "simulator", f"the simulated user's turn was not usable: {turn.problem}")
        return None

    async def _agent_acts(self) -> bool:
        """The agent's turn with all its tool calls; false where the session is over."""
        tools = [tool.schema() for tool in self.parts.task.domain.tools]
        system = self.parts.agent_prompt.fill(policy=self.parts.task.domain.policy)
        for _ in range(TOOL_ROUNDS):
            reply = await self._ask(
                self.parts.agent, self.parts.agent_prompt, system + self.messages, 1, tools
            )
            if reply is None:
                return False
            said: Message = {"role": "assistant", "content": reply.content}
            if not reply.tool_calls:
                self.messages.append(said)
                return True
            calls = [self._tidy(call) for call in reply.tool_calls]
            self.messages.append(said | {"tool_calls": calls})
            for call in calls:
                if not await self._does(call):
                    return False
        self.end("tool_rounds", None, None)
        return False

    async def _does(self, call: dict[str, Any]) -> bool:
        """One call of a tool; false where it broke the world, and so the session is over."""
        result = await self._done_in_world(call)
        if result is not None:
            self.messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
        return result is not None

    async def _done_in_world(self, call: dict[str, Any]) -> str | None:
        """What a tool answers; NULL where it broke the world, which ends the session."""
        function = call["function"]
        try:
            # In a thread: other sessions go on while a tool is at work.
            return await asyncio.to_thread(self.world.call, function["name"], function["arguments"])
        except asyncio.CancelledError:
            # The world cannot be closed while the tool is at work.
            give_up()
            raise
        except Overrun as error:
            self.end("tool_timeout", "gateway", str(error))
        except Exception as error:  # a user's own function may have done anything
            self.end(TOOL_ERROR, "verifier", f"the tool {function['name']} broke the world: {named(error)}")
        return None

    def _tidy(self, call: dict[str, Any]) -> dict[str, Any]:
        """A tool call as it is done and goes back to the gateway: id, type, name, arguments as text.

        A call whose id is missing, or taken by an earlier one, gets one of its own.
        """
        found, call_id = call.get("function"), call.get("id")
        function = found if isinstance(found, dict) else {}
        if not isinstance(call_id, str) or not call_id or call_id in self.call_ids:
            # Nine letters and digits: some gateways take no other.
            numbered = (f"call{number:05}" for number in count(len(self.call_ids) + 1))
            call_id = next(name for name in numbered if name not in self.call_ids)
        self.call_ids.add(call_id)
        arguments = _as_text(function.get("arguments"))
        return {
            "id": call_id,
            "type": "function",
            "function": {"name": str(function.get("name")), "arguments": arguments},
        }

    async def _ask(
        self,
        endpoint: Endpoint,
        prompt: Prompt,
        messages: list[Message],
        attempt: int,
        tools: list[dict[str, Any]] | None = None,
    ) -> Reply | None:
        """One call, logged; NULL where it failed, which is the gateway's fault and ends the session."""
        seed = None if endpoint.seed is None else endpoint.seed + self.parts.trial
        try:
            reply = await self.models.chat(endpoint, messages, tools=tools, seed=seed)
        except UsedUp:
            self.end(CUT + (self.pending or ""), "gateway", "the budget was used up before it was over")
            return None
        self.logs.append(
            log_of(
                reply,
                Read(reply.status),
                run_id=self.parts.run_id,
                endpoint=endpoint,
                prompt=prompt,
                session_id=self.parts.session_id,
                attempt=attempt,
            )
        )
        # A user that says nothing is asked again like one that says what it must not.
        if reply.status == "error" and not (reply.is_empty and prompt is self.parts.user_prompt):
            self.end("gateway_error", "gateway", reply.error)
            return None
        return reply

    def _as_user(self) -> list[Message]:
        """The session as the user sees it: the agent's words are the other side's, tools are not seen."""
        task = self.parts.task
        finished, blocked = self._endings()
        messages = self.parts.user_prompt.fill(
            goal=task.goal, facts=task.facts, finished=finished, blocked=blocked or finished
        )
        messages.append({"role": "user", "content": GREETING[self.parts.language]})
        for message in self.messages:
            if message["role"] == "user":
                messages.append({"role": "assistant", "content": message["content"]})
            elif message["role"] == "assistant":
                said = without_thinking(message["content"] or "").strip()
                if said:
                    messages.append({"role": "user", "content": said})
        return messages

    def _endings(self) -> tuple[str, str | None]:
        """The tokens for done and for given up: the first two, or one for both."""
        finished, *others = self.parts.stop_tokens
        return finished, others[0] if others else None

    def end(self, reason: str, fault: str | None, error: str | None) -> None:
        """It is over: why, by whose fault, and what went wrong."""
        self.end_reason, self.fault, self.error = reason, fault, error


def _as_text(arguments: Any) -> str:
    """Arguments as JSON text, as most gateways give them; nothing at all is no argument."""
    if isinstance(arguments, str):
        return arguments
    try:
        return "{}" if arguments is None else json.dumps(arguments, ensure_ascii=False)
    except RecursionError:
        return "nested too deep"
