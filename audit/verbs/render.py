"""A transcript as a judge may see it: what was said and done, and nothing that tells who did it."""

import hashlib
import json
import re
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from audit.verbs.messages import calls_of
from audit.verbs.shorten import LEFT_OUT
from audit.verbs.stops import without_stops
from audit.verbs.verdict_text import without_thinking
from audit.words.calls import Message

# A line of a message never begins like a line of ours.
_CONTINUED = "\n    "
_WHOLE = r"(?<![A-Za-z0-9_-]){}(?:-?\d[A-Za-z0-9]*(?:[.-][A-Za-z0-9]+)*)?(?![A-Za-z0-9_-])"
_OF_NAMES = frozenset(string.ascii_letters + string.digits + "_.:/-")


def render_session(messages: Sequence[Message], hidden: "Hidden") -> str:
    """The lines of a session; one for each thing said, each call of a tool, and each result.

    System messages are left out: they hold what only one side was told.
    """
    lines: list[str] = []
    names: dict[str, str] = {}
    for message in messages:
        role = message.get("role")
        if role == "user":
            _say(lines, "customer", message, hidden)
            _calls(lines, "customer", message, hidden, names)
        elif role == "assistant":
            _say(lines, "agent", message, hidden)
            _calls(lines, "agent", message, hidden, names)
        elif role == "tool":
            name = names.get(str(message.get("tool_call_id"))) or _one_line(
                hidden.cover(str(message.get("name") or "tool"))
            )
            lines.append(f"result of {name}: {_inside(hidden.cover(_text(message)))}")
        elif role == LEFT_OUT:
            lines.append(f"[{message['content']}]")
    return "\n".join(lines)


class Hidden:
    """Words that would tell a judge who is before it: agents' and models' names, stop tokens."""

    def __init__(self, names: Iterable[str], stop_tokens: Iterable[str]) -> None:
        """A name counts in any case; one of one or two characters is no name to look for.

        A name of letters alone counts as a whole word, with a version: `gpt`, `GPT-5`. One like `heron-7` is
        found inside a longer one too, `marsh/heron-7b:free`, and all of that is covered.
        """
        words = sorted({name for name in names if len(name) > 2}, key=len, reverse=True)
        mixed = [re.escape(word) for word in words if _is_mixed(word)]
        whole = [_WHOLE.format(re.escape(word)) for word in words if not _is_mixed(word)]
        self._names = re.compile("|".join([*mixed, *whole]), re.IGNORECASE) if words else None
        self._words = tuple(word.lower() for word in words)
        self._tokens = tuple(stop_tokens)

    def cover(self, text: str) -> str:
        """The text without stop tokens, names put as `[name]`."""
        text, _ = without_stops(text, self._tokens)
        return text if self._names is None or self._is_free(text) else self._without_names(text, self._names)

    def _is_free(self, text: str) -> bool:
        """No name is in it, for sure and quickly told. Beyond ASCII, letters have more than two cases."""
        lower = text.lower()
        return text.isascii() and not any(word in lower for word in self._words)

    def _without_names(self, text: str, names: re.Pattern[str]) -> str:
        pieces, at = [], 0
        for found in names.finditer(text):
            start, end = found.span()
            if start < at:
                continue
            if _is_mixed(found[0]):
                while start > at and text[start - 1] in _OF_NAMES:
                    start -= 1
                while end < len(text) and text[end] in _OF_NAMES:
                    end += 1
                while text[end - 1] in ".:/-" and end > found.end():
                    end -= 1
            pieces += [text[at:start], "[name]"]
            at = end
        return "".join([*pieces, text[at:]])


def _is_mixed(name: str) -> bool:
    return not name.isalpha() and any(map(str.isalpha, name))


def nonce(*parts: str) -> str:
    """A mark for one call, 16 hex digits, that no text inside can carry: it is made from that very text."""
    digest = hashlib.blake2b(b"".join(map(_digest, parts)), digest_size=24).hexdigest()
    for start in range(0, 48, 16):
        mark = digest[start : start + 16]
        if not any(mark in part for part in parts):
            return mark
    return hashlib.sha256(digest.encode()).hexdigest()[:16]


@lru_cache(256)
def _digest(part: str) -> bytes:
    """A session stands in many prompts, which are filled one after the other."""
    return hashlib.blake2b(part.encode("utf-8", "surrogatepass")).digest()


def _say(lines: list[str], who: str, message: Message, hidden: Hidden) -> None:
    said = hidden.cover(without_thinking(_text(message))).strip()
    if said:
        lines.append(f"{who}: {_inside(said)}")


def _calls(lines: list[str], who: str, message: Message, hidden: Hidden, names: dict[str, str]) -> None:
    """A line for each tool call of whoever makes it; `names` learns what each id calls."""
    for call_id, function in calls_of(message):
        name = _one_line(hidden.cover(str(function.get("name"))))
        names[str(call_id)] = name
        lines.append(f"{who} calls {name}({_one_line(hidden.cover(_arguments(function)))})")


def _text(message: Message) -> str:
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _arguments(function: Mapping[str, Any]) -> str:
    found = function.get("arguments")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _inside(text: str) -> str:
    return _CONTINUED.join(text.splitlines())


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())
