"""From two sessions to one row of preference data: cleaning, and the cut between prompt and completions.

The cleaning, in this order; what it does not name stays as it is stored:

- stop tokens and thinking blocks go, and so do turns in which nothing is then left
- the customer's own tool calls go with their results: the agent never saw them
- system messages are kept at the beginning, later ones go
- turns of one role in a row become one, with an empty line between (only tools' results follow each other)
- tool calls are numbered anew, `call_1`.., their arguments are objects: text that is none becomes
  `{"arguments": text}`; a call without words has the content ""
- words of the agent before the customer's first go (a canned greeting), and all after the agent's last turn

Form: TRL's conversational preference rows; every token of a completion is trained on.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from audit.verbs.stops import without_stops
from audit.verbs.verdict_text import without_thinking
from audit.words.calls import Message
from audit.words.flags import Cut


class Parted(NamedTuple):
    """The shared prompt, and what followed it in session A and in session B."""

    prompt: list[Message]
    rest_a: list[Message]
    rest_b: list[Message]


def cleaned(
    messages: Iterable[Message], stop_tokens: Sequence[str], *, may_think: bool = True
) -> list[Message]:
    """The messages as a chat template takes them; see the top of this file.

    Whoever knows that none of the tokens, or no thinking block, is in the messages may say so: this is called
    for every session of a run.
    """
    kept: list[Message] = []
    open_ids: dict[Any, list[str | None]] = {}
    numbered = 0
    last = None
    for message in messages:
        role = message["role"]
        if role == "tool":
            waiting = open_ids.get(message.get("tool_call_id"))
            new_id = waiting.pop(0) if waiting else ""
            if new_id is None:
                continue
            if not new_id:
                numbered += 1
                new_id = f"call_{numbered}"
            kept.append(_result(message, new_id))
            last = role
            continue
        text = message.get("content")
        if text.__class__ is not str:
            text = _as_text(text)
        if stop_tokens or (may_think and role == "assistant"):
            text = _said(text, role, stop_tokens)
        calls = []
        for call in message.get("tool_calls") or ():
            given: str | None = None
            if role == "assistant":
                numbered += 1
                given = f"call_{numbered}"
                calls.append(_call(call, given))
            open_ids.setdefault(call.get("id"), []).append(given)
        if (not calls and (not text or text.isspace())) or (role == "system" and last not in (None, role)):
            continue
        if last == role:
            kept[-1] = _joined(kept[-1], text, calls)
        elif calls:
            kept.append({"role": role, "content": text, "tool_calls": calls})
        else:
            kept.append({"role": role, "content": text})
        last = role
    return _ends_cut(kept)


def shared(a: Sequence[Message], b: Sequence[Message]) -> int:
    """How many messages both begin with."""
    at = 0
    for one, other in zip(a, b, strict=False):
        if one is not other and one != other:
            break
        at += 1
    return at


def cut_at(a: list[Message], b: list[Message], cut: Cut, task: str | None) -> tuple[int, int] | str:
    """Where the completions begin in two cleaned sessions, or the flag that says why nowhere.

    first-divergence  the prompt is all that both share; they must part at a turn of the agent
    last-turn         the prompt ends with the customer's last turn, and must be the same in both
    whole             the prompt is the task (of sessions without one, the shared opening), the completions
                      are whole sessions from the agent's first turn on, customer and tools included

    A prompt needs a turn of the customer; both completions begin and end with the agent.
    """
    if cut == "first-divergence":
        at_a = at_b = shared(a, b)
        if at_a == len(a) == len(b):
            return "identical"
    elif cut == "last-turn":
        at_a, at_b = _after_last_user(a), _after_last_user(b)
    else:
        at_a, at_b = _first_turn(a), _first_turn(b)
    if at_a == len(a) or at_b == len(b) or a[at_a]["role"] != "assistant" or b[at_b]["role"] != "assistant":
        return "no_shared_prompt"
    if cut != "first-divergence" and _prompt(a[:at_a], cut, task) != _prompt(b[:at_b], cut, task):
        return "no_shared_prompt"
    if not (at_a and a[0]["role"] == "user") and not _asks(_prompt(a[:at_a], cut, task)):
        return "no_shared_prompt"
    if len(a) - at_a == len(b) - at_b and same_when_trimmed(islice(a, at_a, None), islice(b, at_b, None)):
        return "identical"
    return at_a, at_b


def parted(a: list[Message], b: list[Message], places: tuple[int, int], cut: Cut, task: str | None) -> Parted:
    """Two sessions cut where `cut_at` says."""
    return Parted(_prompt(a[: places[0]], cut, task), a[places[0] :], b[places[1] :])


def same_when_trimmed(a: Iterable[Message], b: Iterable[Message]) -> bool:
    """Do both, of one length, say and do the same, but for white space around their texts?"""
    for one, other in zip(a, b, strict=True):
        if one != other and (
            one["content"].strip() != other["content"].strip()
            or one["role"] != other["role"]
            or one.get("tool_calls") != other.get("tool_calls")
        ):
            return False
    return True


def _prompt(opening: list[Message], cut: Cut, task: str | None) -> list[Message]:
    if cut == "whole" and task and task.strip():
        return [*_system(opening), {"role": "user", "content": task}]
    return opening


def _asks(prompt: list[Message]) -> bool:
    return any(message["role"] == "user" for message in prompt)


def length(messages: Sequence[Message]) -> int:
    """Characters of all texts and tool calls, these as compact JSON."""
    total = 0
    for message in messages:
        total += len(message["content"])
        calls = message.get("tool_calls")
        if calls:
            total += len(json.dumps(calls, ensure_ascii=False, separators=(",", ":")))
    return total


def _as_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return "" if content is None else str(content)


def _said(text: str, role: str, stop_tokens: Sequence[str]) -> str:
    """Without thinking and stop tokens; where nothing was taken out, every byte as it is."""
    spoken = without_thinking(text) if role == "assistant" else text
    if any(token in spoken for token in stop_tokens):
        spoken = without_stops(spoken, stop_tokens)[0]
    return text if spoken == text else spoken.strip()


def _call(call: Message, new_id: str) -> Message:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    if arguments.__class__ is not dict:
        arguments = _object(arguments)
    named = {"name": str(function.get("name")), "arguments": arguments}
    return {"id": new_id, "type": "function", "function": named}


def _object(arguments: Any) -> dict[str, Any]:
    if isinstance(arguments, str):
        if not arguments.strip():
            return {}
        try:
            found = json.loads(arguments, parse_constant=_refuse)
        except (ValueError, RecursionError):
            found = arguments
    else:
        found = {} if arguments is None else arguments
    return found if isinstance(found, dict) else {"arguments": found}


def _refuse(word: str) -> Any:
    raise ValueError(word)  # NaN and infinities are no JSON


def _result(message: Message, new_id: str) -> Message:
    content = message.get("content")
    if content.__class__ is not str:
        content = "" if content is None else json.dumps(content)
    result: Message = {"role": "tool", "tool_call_id": new_id, "content": content}
    if "name" in message:
        result["name"] = message["name"]
    return result


def _joined(before: Message, text: str, calls: list[Message]) -> Message:
    texts = [part for part in (before["content"], text) if part and not part.isspace()]
    joined: Message = {"role": before["role"], "content": "\n\n".join(texts)}
    if calls or "tool_calls" in before:
        joined["tool_calls"] = [*before.get("tool_calls", ()), *calls]
    return joined


def _ends_cut(kept: list[Message]) -> list[Message]:
    """Without a greeting before the customer's first words, and without what follows the agent's last."""
    while kept and kept[-1]["role"] != "assistant":
        kept.pop()
    start = len(_system(kept))
    greets = start
    while greets < len(kept) and kept[greets]["role"] == "assistant" and "tool_calls" not in kept[greets]:
        greets += 1
    if greets > start and any(message["role"] == "user" for message in kept[greets:]):
        return kept[:start] + kept[greets:]
    return kept


def _system(messages: Sequence[Message]) -> list[Message]:
    return list(messages[:1]) if messages and messages[0]["role"] == "system" else []


def _after_last_user(messages: Sequence[Message]) -> int:
    return max((at for at, one in enumerate(messages, 1) if one["role"] == "user"), default=0)


def _first_turn(messages: Sequence[Message]) -> int:
    return next((at for at, one in enumerate(messages) if one["role"] == "assistant"), len(messages))
