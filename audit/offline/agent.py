"""The synthetic agent: works from the playbook, and skips steps the more often the lower its skill.

A step is taken where a number drawn from the seed, the customer's words and the step's name is below the
skill. The number does not depend on the skill, so what a weaker agent does, a stronger one does too. What the
errand hangs on has two draws, so that small things slip before large ones. An agent says that all is done
whether it is or not.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audit.offline.chance import uniform
from audit.offline.playbook import UNKNOWN, Call, Finding, Known, Row, Trade, Wish, today_in, wishes_in
from audit.offline.reading import arguments_in, rows_in, text_of
from audit.offline.shop import SHOP
from audit.offline.travel import TRAVEL

TRADES = (SHOP, TRAVEL)

# A plan asks the customer (text) or calls tools, is sent what came of it, and returns the last words.
Plan = Generator["str | list[Call]", Any, str]

_MAIN = ("remember", "look up", "act", "policy")

_AFRAID = "I am afraid that is not possible."
_GREETING = "Thank you very much for your patience, it is my pleasure to help you with this today."
# Two agents that do the same do not say it in the same words.
_ASKING = (
    "Could you please tell me your {}?",
    "May I have your {} first?",
    "What is your {}, please?",
    "To begin with, which {} do you have?",
)
_CLOSING = (
    "Is there anything else I can do for you?",
    "Can I help you with anything else?",
    "Do you need anything else?",
    "Would you like anything else?",
    "May I do anything else for you?",
    "Anything else?",
    "Is there anything else on your mind?",
    "Please tell me, is there anything else?",
)
_UNCLEAR = "I did not understand that. Could you say what you want, with the number of what it is about?"
_HELPLESS = "I am afraid I cannot help with that."
_GOODBYE = "You are welcome. Goodbye."


@dataclass(frozen=True, slots=True)
class Session:
    """What the agent can see: the customer's words, its own, and what its calls gave."""

    policy: str
    heard: tuple[str, ...]
    said: tuple[str, ...]
    answers: Mapping[str, str]
    results: Mapping[str, list[Row]]
    tools: frozenset[str]


def agent_turn(body: Mapping[str, Any], skill: int) -> str | list[Call]:
    """The agent's next words, or the calls it makes now."""
    session = _session(body)
    trade = next((trade for trade in TRADES if trade.signature in session.tools), None)
    plan = _plan(session, trade, _Steps(body.get("seed"), session, skill)) if trade else _give_up()
    try:
        wanted = next(plan)
        while True:
            if isinstance(wanted, str):
                if wanted not in session.answers:
                    return wanted
                wanted = plan.send(session.answers[wanted])
            else:
                missing = [call for call in wanted if call.key not in session.results]
                if missing:
                    return missing
                wanted = plan.send([session.results[call.key] for call in wanted])
    except StopIteration as end:
        words = str(end.value)
    return _GOODBYE if words in session.said else words


def _give_up() -> Plan:
    return _HELPLESS
    yield ""  # what makes this a plan


def _session(body: Mapping[str, Any]) -> Session:
    heard: list[str] = []
    said: list[str] = []
    answers: dict[str, str] = {}
    calls: dict[str, Call] = {}
    results: dict[str, list[Row]] = {}
    policy = ""
    for message in body.get("messages") or ():
        text, role = text_of(message), message.get("role")
        if role == "user":
            if said and len(answers) < len(said):
                answers.setdefault(said[-1], text)
            heard.append(text)
        elif role == "assistant":
            for call in message.get("tool_calls") or ():
                function = call.get("function") or {}
                arguments = arguments_in(function.get("arguments"))
                calls[str(call.get("id"))] = Call(str(function.get("name")), arguments)
            if text:
                said.append(text)
        elif role == "tool" and str(message.get("tool_call_id")) in calls:
            results.setdefault(calls[str(message["tool_call_id"])].key, rows_in(text) or [])
        elif role in ("system", "developer"):
            policy += text
    tools = frozenset(str((tool.get("function") or {}).get("name")) for tool in body.get("tools") or ())
    return Session(policy, tuple(heard), tuple(said), answers, results, tools)


class _Steps:
    """Which steps this agent takes on this task."""

    def __init__(self, seed: object, session: Session, skill: int) -> None:
        self._key = (seed, session.heard[0] if session.heard else "")
        self._skill = skill / 100

    def wording(self, options: Sequence[str]) -> str:
        """One way to say it; which one hangs on the skill too, but says nothing about it."""
        return options[int(uniform(*self._key, self._skill, options[0]) * len(options))]

    def takes(self, step: str) -> bool:
        draws = 2 if step.startswith(_MAIN) else 1
        return any(uniform(*self._key, step, draw) < self._skill for draw in range(draws))


def _plan(session: Session, trade: Trade, steps: _Steps) -> Plan:
    words = "\n".join(session.heard)
    wishes = wishes_in(words, trade, today_in(session.policy))
    if not wishes:
        yield _UNCLEAR
        return _HELPLESS
    # The first wish is never forgotten, the others may be.
    kept = [(n, wish) for n, wish in enumerate(wishes) if n == 0 or steps.takes(f"remember {n}")]
    known = Known()
    number = yield from _identify(words, trade, [wish for _, wish in kept], steps, known)
    for _, wish in kept:
        wish.slots["number"] = number
    yield from _look_up([wish for n, wish in kept if steps.takes(f"look up {n}")], known)
    said = []
    for n, wish in kept:
        said.append((yield from _serve(n, wish, known, steps)))
        if wish.intent.goodwill and not steps.takes(f"restraint {n}"):
            yield [wish.intent.goodwill(wish.slots)]
    opening = [] if steps.takes("brevity") else [_GREETING]
    return " ".join([*said, *opening, steps.wording(_CLOSING)])


def _identify(words: str, trade: Trade, wishes: Sequence[Wish], steps: _Steps, known: Known) -> Plan:
    """The customer's number, asked for where it was not said; empty for an agent that does not care."""
    identifies = any(wish.intent.is_personal for wish in wishes) and steps.takes("identify")
    if not identifies and not any(wish.intent.needs_number for wish in wishes):
        return ""
    match = trade.number.search(words)
    if match is None:
        match = trade.number.search((yield steps.wording(_ASKING).format(trade.number_name)))
    if match is None:
        return ""
    if identifies:
        call = trade.identification(match[0])
        known.learn(call, (yield [call])[0])
    return match[0]


def _look_up(wishes: Sequence[Wish], known: Known) -> Generator[list[Call], Any, None]:
    """All look-ups that can be made now, at once; then those that hang on what they gave."""
    made: set[str] = set()
    while True:
        calls: dict[str, Call] = {}
        for wish in wishes:
            try:
                for call in wish.intent.looks(wish.slots, known):
                    calls[call.key] = call
            except UNKNOWN:
                continue  # hangs on a row that is not there
        wanted = [call for key, call in calls.items() if key not in made]
        if not wanted:
            return
        for call, rows in zip(wanted, (yield wanted), strict=True):
            known.learn(call, rows)
            made.add(call.key)


def _serve(n: int, wish: Wish, known: Known, steps: _Steps) -> Plan:
    """One wish; what the customer is told of it."""
    intent, slots = wish
    brief = intent.brief.format(**slots)
    try:
        finding = intent.find(slots, known, steps.takes(f"reckon {n}"))
    except UNKNOWN:  # did not look, so acts on the customer's word
        if steps.takes(f"act {n}"):
            for call in intent.blind(slots):
                yield [call]
        return brief
    if finding.refusal and steps.takes(f"policy {n}"):
        return f"{_AFRAID} {finding.refusal[0]}" if steps.takes(f"tell {n}") else _AFRAID
    yield from _acts(finding, is_eager=finding.refusal is not None or steps.takes(f"act {n}"))
    return finding.told if steps.takes(f"tell {n}") else brief


def _acts(finding: Finding, is_eager: bool) -> Generator[list[Call], Any, None]:
    """Who passes over the policy does so to please, and acts."""
    for call in finding.acts if is_eager else ():
        yield [call]


def tool_calls(calls: Sequence[Call], made: int) -> list[dict[str, Any]]:
    """Calls as a reply carries them; `made` counts those before."""
    return [
        {
            "id": f"call_{made + place}",
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
        }
        for place, call in enumerate(calls, 1)
    ]
