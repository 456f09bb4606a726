"""What a transcript shows of a task, item by item: the perfect reader, whose eyes the judges borrow and blur.

The items and weights are those of the shipped tasks: what is done to the world 2 a wish; and 1 for each else:
customer identified, looked up, the right amount, told what must be heard, nothing else touched. What is right
follows from the task's words, the policy, and the rows shown in any of the transcripts: they began in the
same world.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from audit.offline.playbook import (
    UNKNOWN,
    Call,
    Finding,
    Intent,
    Known,
    Slots,
    Trade,
    Wish,
    plain,
    says,
    today_in,
    wishes_in,
)
from audit.offline.reading import Event, Work, read_transcript, work_in
from audit.offline.shop import SHOP
from audit.offline.travel import TRAVEL

TRADES = (SHOP, TRAVEL)

_AMOUNTS = frozenset({"amount", "refund", "price", "price_difference", "fee", "discount_percent", "shipping"})
# What an agent gives as a reason is its own affair.
_FREE = frozenset({"reason"})


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that is asked of a session, and whether the transcript shows it."""

    name: str
    weight: float
    is_met: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """One transcript, read."""

    events: tuple[Event, ...]
    work: tuple[Work, ...]

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(event.text for event in self.events if event.kind == "agent")

    @property
    def done(self) -> list[Call]:
        """The calls that did not fail."""
        return [one.call for one in self.work if one.rows is not None]


@dataclass(frozen=True, slots=True)
class _Right:
    """One wish and what is right for it; `finding` is None where no transcript shows enough to say."""

    wish: Wish
    finding: Finding | None

    @property
    def acts(self) -> tuple[Call, ...]:
        return () if self.finding is None or self.finding.refusal else self.finding.acts


def shown(transcript: str) -> Shown:
    events = read_transcript(transcript)
    return Shown(tuple(events), tuple(work_in(events)))


def assess(goal: str, policy: str, transcripts: Sequence[Shown]) -> list[list[Item]]:
    """The items of each transcript, the same ones in the same order for all."""
    for trade in TRADES:
        wishes = wishes_in(goal, trade, today_in(policy))
        if wishes:
            rights = _rights(wishes, goal, trade, transcripts)
            return [_items(one, rights, trade) for one in transcripts]
    return [_general(one) for one in transcripts]


def completion(items: Sequence[Item]) -> float:
    """Share of the weight that is met, 0..1."""
    return sum(item.weight for item in items if item.is_met) / sum(item.weight for item in items)


def _general(one: Shown) -> list[Item]:
    """A task that the playbook does not know: was anything done, did anything fail, was anything said?"""
    return [
        Item("something was done", 3, bool(one.done)),
        Item("no call failed", 1, len(one.done) == len(one.work)),
        Item("the customer was told", 1, bool(one.words)),
    ]


def _rights(wishes: Sequence[Wish], goal: str, trade: Trade, transcripts: Sequence[Shown]) -> list[_Right]:
    known = Known()
    for one in transcripts:
        for work in one.work:
            known.learn(work.call, work.rows or [])
    said = [event.text for one in transcripts for event in one.events if event.kind == "customer"]
    number = trade.number.search("\n".join([goal, *said]))
    rights = []
    for wish in wishes:
        wish.slots["number"] = number[0] if number else ""
        try:
            rights.append(_Right(wish, wish.intent.find(wish.slots, known, True)))
        except UNKNOWN:
            rights.append(_Right(wish, None))
    return rights


def _items(one: Shown, rights: Sequence[_Right], trade: Trade) -> list[Item]:
    done = one.done
    keys = {call.key for call in done}
    items = []
    if any(right.wish.intent.is_personal for right in rights):
        items.append(Item("customer identified", 1, any(call.name == trade.identify for call in done)))
    for place, right in enumerate(rights, 1):
        intent, slots = right.wish
        look = next(iter(intent.looks(slots, Known())))
        items.append(Item(f"looked up for wish {place}", 1, look.key in keys))
        if intent.writes:
            items.append(Item(f"wish {place} settled", 2, _is_settled(right, done)))
        if any(name in _AMOUNTS for act in right.acts for name in act.arguments):
            items.append(Item(f"amount of wish {place}", 1, _is_exact(right, done)))
        items.append(Item(f"told about wish {place}", 1, _is_told(right.finding, one.words)))
    touched = {table for call in done for table in trade.touches.get(call.name, ())}
    expected = {table for right in rights for act in right.acts for table in trade.touches[act.name]}
    items.append(Item("nothing else touched", 1, touched <= expected))
    return items


def _is_settled(right: _Right, done: Sequence[Call]) -> bool:
    """Was the thing itself done, once, whatever the amount; or nothing, where the policy forbids it?"""
    if right.finding is None:
        return False
    own = _own(right, done)
    if not right.acts:
        return not own
    own = [call for call in own if call.name == right.acts[0].name]
    return len(own) == 1 and _meets(own[0], right.acts[0], _AMOUNTS | _FREE)


def _is_exact(right: _Right, done: Sequence[Call]) -> bool:
    own = _own(right, done)
    return len(own) == len(right.acts) and all(
        any(_meets(call, act, _FREE) for call in own) for act in right.acts
    )


def _own(right: _Right, done: Sequence[Call]) -> list[Call]:
    return [call for call in done if _concerns(call, right.wish.intent, right.wish.slots)]


def _concerns(call: Call, intent: Intent, slots: Slots) -> bool:
    return call.name in intent.writes and all(
        call.arguments.get(argument) == slots.get(slot) for argument, slot in intent.key.items()
    )


def _meets(call: Call, wanted: Call, free: frozenset[str]) -> bool:
    """The same call, but for the arguments that are free."""
    return call.name == wanted.name and all(
        name in free or plain(call.arguments.get(name)) == plain(value)
        for name, value in wanted.arguments.items()
    )


def _is_told(finding: Finding | None, words: Sequence[str]) -> bool:
    if finding is None:
        return False
    tell = finding.refusal[1] if finding.refusal else finding.tell
    return any(says(text, tell) for text in words)
