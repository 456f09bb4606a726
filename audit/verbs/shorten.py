"""A session cut to a budget of tokens, so that a judge can read it: the head, the end, and all that was done.

What is left out is said where it stood, and how much it was.
"""

from collections.abc import Sequence
from math import ceil
from typing import NamedTuple

from audit.verbs.messages import calls_of
from audit.words.calls import Message

LEFT_OUT = "left_out"
_LAST_UNITS = 2
_SHORTEST = 200
# How the name of a tool begins that only looks. Any other may change something, and is kept.
_READS = (
    "get", "list", "search", "find", "lookup", "look_up", "read", "query", "check", "calculate", "show",
    "view", "fetch", "describe", "count", "think",
)  # fmt: skip


class Shortened(NamedTuple):
    """`left_out` messages are gone, `clipped` ones lost the middle of their text."""

    messages: list[Message]
    left_out: int
    clipped: int


def shorten(messages: Sequence[Message], budget: int) -> Shortened:
    """The messages within about `budget` tokens.

    Kept first: the head (all up to the agent's first turn), the last turns, and every turn with a call of a
    tool that may change something, each with its results. Then turns from the end as they fit. Where what
    must be kept is too long, its longest texts lose their middle.
    """
    units = _units(messages)
    costs = [sum(_tokens(messages[index]) for index in unit) for unit in units]
    if sum(costs) <= budget:
        return Shortened(list(messages), 0, 0)
    kept = {number for number, unit in enumerate(units) if _changes(messages, unit)}
    kept |= set(range(_head(messages, units))) | set(range(max(len(units) - _LAST_UNITS, 0), len(units)))
    left = budget - sum(costs[number] for number in kept)
    for number in reversed(range(len(units))):
        if number in kept:
            continue
        left -= costs[number]
        if left < 0:
            break
        kept.add(number)
    found, left_out = _joined(messages, units, kept)
    clipped, count = _clipped(found, budget)
    return Shortened(clipped, left_out, count)


def _units(messages: Sequence[Message]) -> list[list[int]]:
    """Indexes that stay together: a message, and the results of its calls."""
    units: list[list[int]] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool" and units:
            units[-1].append(index)
        else:
            units.append([index])
    return units


def _head(messages: Sequence[Message], units: Sequence[Sequence[int]]) -> int:
    """How many units come up to and with the agent's first."""
    for number, unit in enumerate(units):
        if messages[unit[0]].get("role") == "assistant":
            return number + 1
    return 1


def _changes(messages: Sequence[Message], unit: Sequence[int]) -> bool:
    names = [str(function.get("name")).lower() for _, function in calls_of(messages[unit[0]])]
    return any(not name.startswith(_READS) for name in names)


def _joined(
    messages: Sequence[Message], units: Sequence[Sequence[int]], kept: set[int]
) -> tuple[list[Message], int]:
    found: list[Message] = []
    gone, gap = 0, 0
    for number, unit in enumerate(units):
        if number not in kept:
            gap += len(unit)
            continue
        if gap:
            found.append({"role": LEFT_OUT, "content": f"{gap} messages are left out here"})
        gone, gap = gone + gap, 0
        found += [messages[index] for index in unit]
    return found, gone


def _clipped(messages: list[Message], budget: int) -> tuple[list[Message], int]:
    """With texts clipped to the largest length, of halves of the longest, at which all fits."""
    texts = [_text(message) for message in messages]
    limit = max(map(len, texts), default=0)
    found, count = messages, 0
    while sum(map(_tokens, found)) > budget and limit > _SHORTEST:
        limit = max(limit // 2, _SHORTEST)
        found = [
            message if len(text) <= limit else message | {"content": _clip(text, limit)}
            for message, text in zip(messages, texts, strict=True)
        ]
        count = sum(len(text) > limit for text in texts)
    return found, count


def _clip(text: str, limit: int) -> str:
    head = 2 * limit // 3
    return f"{text[:head]} [{len(text) - limit} characters are left out here] {text[head - limit :]}"


def _tokens(message: Message) -> int:
    """About how many tokens: a quarter of the ASCII characters, and each other one."""
    text = _text(message) + "".join(str(function) for _, function in calls_of(message))
    others = sum(not char.isascii() for char in text) if not text.isascii() else 0
    return ceil((len(text) - others) / 4) + others + 4


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)
