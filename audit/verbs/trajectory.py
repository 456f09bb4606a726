"""What was done in a session, from its messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from audit.verbs.messages import calls_of


class _Waiting(NamedTuple):
    """A call without a result yet: of which turn, and by which id, NULL where it has none."""

    turn: int
    call_id: str | None
    call: dict[str, Any]


def tool_calls_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """{name, arguments, result, index} of each tool call of the agent, in order, whatever was stored.

    `arguments` is the object, or the text where it is none; `result` the tool's JSON text, NULL where there
    is no answer. A result belongs to the call of the same id that it follows; calls of one turn that share
    an id, or have none, are answered in their order.
    """
    calls: list[dict[str, Any]] = []
    waiting: list[_Waiting] = []
    turn, before = 0, None
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        if role == "assistant":
            turn += before != "assistant"
            for call_id, function in calls_of(message):
                call = {
                    "name": str(function.get("name")),
                    "arguments": _loaded(function.get("arguments")),
                    "result": None,
                    "index": len(calls),
                }
                calls.append(call)
                waiting.append(_Waiting(turn, _id(call_id), call))
        elif role == "tool":
            answered = _answered(waiting, _id(message.get("tool_call_id")), turn)
            if answered is not None:
                waiting = [one for one in waiting if one is not answered]
                content = message.get("content")
                answered.call["result"] = "null" if content is None else content
        before = role
    return calls


def _answered(waiting: list[_Waiting], call_id: str | None, turn: int) -> _Waiting | None:
    """The call that a result of this id answers."""
    if call_id is not None:
        same = [one for one in waiting if one.call_id == call_id]
        if same:
            return next(one for one in same if one.turn == same[-1].turn)
    here = [one for one in waiting if one.turn == turn]
    nameless = [one for one in here if one.call_id is None]
    # Without an id it may answer any call; with a strange one, only a call that has none.
    return next(iter(nameless or (here if call_id is None else ())), None)


def _id(found: Any) -> str | None:
    return str(found) if isinstance(found, str | int) and found != "" else None


def _loaded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments if arguments is not None else {}
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except (ValueError, RecursionError):
        return arguments
