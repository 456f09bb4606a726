"""Messages of any recorder as chat messages in the form of OpenAI's API; and what tells a task from another.

Only roles, text, tool calls and their results are kept: what else a recorder writes down (costs, arguments of
its models, raw replies) may hold anything. Ids are numbered anew, `call_1`.., so that no vendor shows.
"""

import hashlib
import json
from collections import defaultdict, deque
from typing import Any

from audit.doors.formats.fields import Row

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_NO_ID = "function_call"


class Chat:
    """The messages of one session, gathered one by one."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []
        self._numbered = 0
        # A recorder may give several calls one id: their results then come in the order of the calls.
        self._open: dict[str, deque[str]] = defaultdict(deque)

    def say(self, role: str, content: str | None, calls: list[tuple[str, str, Any]] | None = None) -> None:
        """One message; `calls` are (the recorder's id, name, arguments) of the tool calls in it.

        A call of the user's own tools stands in the user's message, and so stays on the user's side.
        """
        message: dict[str, Any] = {"role": role, "content": content}
        if calls:
            message["tool_calls"] = [self._call(*call) for call in calls]
        self.messages.append(message)

    def result(self, raw_id: str, content: str | None, name: str | None = None) -> None:
        """A tool's result, joined to its call by the recorder's id; `name` is kept where there is no call."""
        waiting = self._open.get(raw_id)
        message: dict[str, Any] = {"role": "tool", "content": content or ""}
        if waiting:
            message["tool_call_id"] = waiting.popleft()
        else:
            message["tool_call_id"] = self._new_id()
            if name:
                message["name"] = name
        self.messages.append(message)

    def _call(self, raw_id: str, name: str, arguments: Any) -> dict[str, Any]:
        new_id = self._new_id()
        self._open[raw_id].append(new_id)
        function = {"name": name, "arguments": arguments_of(arguments)}
        return {"id": new_id, "type": "function", "function": function}

    def _new_id(self) -> str:
        self._numbered += 1
        return f"call_{self._numbered}"


def read_chat(row: Row, field: str) -> list[dict[str, Any]]:
    """The messages in `field`, which are in the form of OpenAI's API already, also its older one."""
    chat = Chat()
    for message in row.each(field):
        role = needed_role(message)
        if role == "tool":
            raw_id = message.text("tool_call_id") or _NO_ID
            chat.result(raw_id, text_of(message), message.text("name"))
            continue
        calls = [
            (call.text("id") or _NO_ID, *_function(call.inner("function")))
            for call in message.each("tool_calls", needed=False)
        ]
        if message.fields.get("function_call") is not None:
            calls.append((_NO_ID, *_function(message.inner("function_call"))))
        chat.say(role, text_of(message), calls)
    return chat.messages


def needed_role(message: Row) -> str:
    """The message's role, in our words."""
    role = message.one_of("role", _ROLES)
    if role is None:
        raise message.wrong("role", "is missing")
    return role


def text_of(message: Row, field: str = "content") -> str | None:
    """The text of a message; of a list of parts their texts, what is no text by its kind in brackets."""
    if not isinstance(message.fields.get(field), list):
        return message.string(field)
    parts = []
    for part in message.each(field):
        is_text = "text" in part.fields
        parts.append(part.string("text") or "" if is_text else f"[{part.needed_text('type')}]")
    return "\n".join(parts)


def arguments_of(found: Any) -> Any:
    """A call's arguments as an object, also where they are the JSON text of one; other text as it is."""
    if found is None:
        return {}
    if not isinstance(found, str):
        return found
    if not found.strip():
        return {}
    try:
        loaded = json.loads(found, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return found
    return loaded if isinstance(loaded, dict) else found


def fingerprint(*parts: Any) -> str | None:
    """16 hex digits that tell a task from others: of what is asked for, and of how it is checked.

    Null and empty parts count as not there: a newer recorder may name more of them. NULL where nothing is
    left.
    """
    told = [_told(part) for part in parts]
    if not any(part not in _NOTHING for part in told):
        return None
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]


_NOTHING: tuple[Any, ...] = (None, "", [], {})


def _told(value: Any) -> Any:
    if isinstance(value, dict):
        inner = {key: _told(item) for key, item in value.items()}
        return {key: item for key, item in inner.items() if item not in _NOTHING}
    return [_told(item) for item in value] if isinstance(value, list) else value


def _function(row: Row) -> tuple[str, Any]:
    return row.needed_text("name"), arguments_in(row)


def arguments_in(row: Row) -> Any:
    """The field `arguments` of a call: an object or text."""
    found = row.fields.get("arguments")
    if found is not None and not isinstance(found, dict | str):
        raise row.wrong("arguments", f"expected an object or its JSON text, found {found!r:.60}")
    return found


def _refuse(word: str) -> Any:
    # NaN and infinities are no JSON, and would be stored as null.
    raise ValueError(word)
