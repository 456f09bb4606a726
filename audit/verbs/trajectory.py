"""What was done in a session, from its messages."""

import json
from collections.abc import Mapping, Sequence
from typing import Any


def tool_calls_of(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """{name, arguments, result, index} of each tool call of the agent, in order.

    `arguments` is the object, or the text where it is none; `result` the tool's JSON text, NULL where there
    is no answer. A result belongs to the call of the same id that it follows.
    """
    calls: list[dict[str, Any]] = []
    waiting: dict[Any, dict[str, Any]] = {}
    for message in messages:
        if message.get("role") == "assistant":
            for raw in message.get("tool_calls") or ():
                function = raw.get("function") or {}
                call = {
                    "name": str(function.get("name")),
                    "arguments": _loaded(function.get("arguments")),
                    "result": None,
                    "index": len(calls),
                }
                calls.append(call)
                waiting[raw.get("id")] = call
        elif message.get("role") == "tool":
            answered = waiting.pop(message.get("tool_call_id"), None)
            if answered is not None:
                answered["result"] = message.get("content")
    return calls


def _loaded(arguments: Any) -> Any:
    if not isinstance(arguments, str):
        return arguments if arguments is not None else {}
    try:
        return json.loads(arguments) if arguments.strip() else {}
    except ValueError:
        return arguments
