"""YAML and JSON as users write them: whatever cannot be meant is refused in one line with its place."""

import json
from collections.abc import Iterator
from typing import Any

import yaml

_DEEPEST = 100
_BIGGEST = 1 << 64
_KINDS = {"int": "whole number", "float": "number", "timestamp": "date", "binary": "base64"}


class SoundLoader(yaml.SafeLoader):
    """A SafeLoader that gives each value it cannot read a place."""

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, OverflowError, TypeError, LookupError) as error:
            kind = _KINDS.get(node.tag.rpartition(":")[2], "value")
            # The value itself may be a key that stands in a wrong place.
            problem = f"what stands here is no {kind} that can be read; as text it needs quotes"
            raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark) from error


def json_loads(text: str) -> Any:
    """What JSON text holds. Raises ValueError, for a key that stands twice too, and RecursionError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                raise ValueError(f"the key {key!r} stands twice")
            found[key] = value
        return found

    return json.loads(text, object_pairs_hook=once)


def unsound(found: object, length: int) -> tuple[str, str] | None:
    """(key path, what is wrong) of the first value that nothing here could store or send on, else NULL.

    `length`: of the text it was read from. Aliases that make more of it than twenty times as many values are
    meant to exhaust whoever reads it.
    """
    left = 20 * length + 1000
    waiting: list[tuple[object, str, int]] = [(found, "", 0)]
    while waiting:
        value, path, depth = waiting.pop()
        left -= 1
        if left < 0:
            return "", "its aliases make millions of values of it"
        if depth > _DEEPEST:
            return path[:60], f"is nested over {_DEEPEST} deep, or holds itself"
        if isinstance(value, str) and not _is_text(value):
            return path, "holds half a character (a lone surrogate)"
        if isinstance(value, int) and abs(value) >= _BIGGEST:
            return path, "is a whole number of over 64 bits"
        # The last one in is looked at first.
        waiting += reversed([(inner, at, depth + 1) for inner, at in _inside(value, path)])
    return None


def _inside(value: object, path: str) -> Iterator[tuple[object, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            name = str(key).encode("utf-8", "backslashreplace").decode()
            at = f"{path}.{name}" if path else name
            yield key, at
            yield inner, at
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield inner, f"{path}[{index}]"


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
