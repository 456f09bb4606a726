"""What a chat message holds, whoever wrote it: files of others have odd things where tool calls should be."""

from collections.abc import Iterator, Mapping
from typing import Any


def calls_of(message: Mapping[str, Any]) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """(id, function) of each tool call; what is no call is one all the same, named as it is written."""
    found = message.get("tool_calls") or ()
    for call in found if isinstance(found, list | tuple) else (found,):
        held = call if isinstance(call, Mapping) else {"function": call}
        function = held.get("function") or {}
        yield held.get("id"), function if isinstance(function, Mapping) else {"name": function}
