"""Reading what a prompt shows, a briefing or transcripts: the one place that knows their form.

Headings are `## Goal` and the like, transcripts stand between `<<<FIRST nonce>>>` and `<<<END FIRST
nonce>>>`, and their lines begin with `customer:`, `agent:`, `agent calls NAME(...)` or `result of NAME:`.
What begins with none of these goes on with what was before.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from audit.offline.playbook import Call, Row

Kind = Literal["customer", "agent", "call", "result"]

_HEADING = re.compile(r"^[ \t]*#{1,4}[ \t]*(\w+)[ \t:]*$", re.MULTILINE)
_BETWEEN = re.compile(
    r"<<<\s*(FIRST|SECOND|SESSION)\s+([^\s>]+)\s*>>>[ \t]*\n?(.*?)\n?[ \t]*<<<\s*END \1 \2\s*>>>", re.DOTALL
)
_LINE = re.compile(
    r"^(?:(?P<who>customer|agent):[ ]?"
    r"|agent calls (?P<called>[\w-]+)\((?=.*\)\s*$)"
    r"|result of (?P<of>[\w-]+):[ ]?)",
    re.IGNORECASE,
)
_STOP_TOKEN = re.compile(r"(?:write|写)\s+([^\s。，.,]+)")


class Event(NamedTuple):
    """One thing of a transcript. `name` is the tool's, `text` the words, the arguments or the result."""

    kind: Kind
    name: str
    text: str


class Work(NamedTuple):
    """A call that is shown, and what came of it; `rows` is None where it failed or no result is shown."""

    call: Call
    rows: list[Row] | None
    shown: str


class Briefing(NamedTuple):
    """What the customer was told, and the two words with which to end."""

    goal: str
    facts: tuple[str, ...]
    finished: str
    blocked: str


class Judged(NamedTuple):
    """What a judge was shown: the task, the policy, and the transcripts in the order in which they stand."""

    goal: str
    policy: str
    transcripts: tuple[str, ...]


def text_of(message: Mapping[str, Any]) -> str:
    """A message's words, given as text or in parts."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
    return content if isinstance(content, str) else ""


def read_briefing(prompt: str) -> Briefing:
    """The customer's prompt. A part that is missing is empty."""
    parts = _sections(prompt)
    facts = []
    for line in parts.get("facts", "").splitlines():
        if line.strip().startswith("- "):
            facts.append(line.strip()[2:].strip())
        elif line.strip():
            break
    # The instructions stand last; a goal may speak of writing too.
    tokens = _STOP_TOKEN.findall(prompt)[-2:]
    finished, blocked = tokens if len(tokens) == 2 else ("<finished>", "<blocked>")
    return Briefing(" ".join(parts.get("goal", "").split()), tuple(facts), finished, blocked)


def read_judged(prompt: str) -> Judged:
    """A judge's prompt; two transcripts where a pair is shown, one for the pointwise question, else none."""
    found = {match[1]: match[3] for match in _BETWEEN.finditer(prompt)}
    transcripts = tuple(found[name] for name in ("FIRST", "SECOND", "SESSION") if name in found)
    first = _BETWEEN.search(prompt)
    parts = _sections(prompt[: first.start()] if first else prompt)
    return Judged(" ".join(parts.get("task", "").split()), parts.get("policy", ""), transcripts)


def read_transcript(transcript: str) -> list[Event]:
    """The events in their order."""
    events: list[Event] = []
    for line in transcript.splitlines():
        match = _LINE.match(line)
        if match is None:
            if events:
                last = events[-1]
                events[-1] = last._replace(text=f"{last.text}\n{line.strip()}")
        elif match["called"]:
            events.append(Event("call", match["called"], line[match.end() :].rstrip()[:-1]))
        elif match["of"]:
            events.append(Event("result", match["of"], line[match.end() :]))
        else:
            who: Kind = "agent" if match["who"].lower() == "agent" else "customer"
            events.append(Event(who, "", line[match.end() :]))
    return events


def work_in(events: Sequence[Event]) -> list[Work]:
    """The calls with their results: the first result of a tool belongs to its first call."""
    results: dict[str, deque[str]] = defaultdict(deque)
    for event in events:
        if event.kind == "result":
            results[event.name].append(event.text)
    work = []
    for event in events:
        if event.kind == "call":
            waiting = results[event.name]
            result = waiting.popleft() if waiting else ""
            call = Call(event.name, arguments_in(event.text))
            work.append(Work(call, rows_in(result), f"result of {event.name}: {result}"))
    return work


def arguments_in(text: object) -> dict[str, Any]:
    """A call's arguments; none where the text holds no object."""
    try:
        found = json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def rows_in(result: str) -> list[Row] | None:
    """The rows of a tool's result; None for an error and for what cannot be read."""
    try:
        found = json.loads(result)
    except ValueError:
        return None
    if isinstance(found, dict):
        if "error" in found:
            return None
        found = found.get("rows", [found])
    return [row for row in found if isinstance(row, dict)] if isinstance(found, list) else None


def _sections(text: str) -> dict[str, str]:
    """Heading in lower case -> what stands under it. The first of several such headings counts."""
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    parts: dict[str, str] = {}
    for heading, end in zip(headings, ends, strict=False):
        parts.setdefault(heading[1].lower(), text[heading.end() : end].strip())
    return parts
