"""What the synthetic agents and judges know of a trade: which wishes there are, what is right for each.

A domain is a tuple of `Intent`s. The agent uses them to work, the judge to tell what right work looks like;
both know the world only through the rows that tools returned.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

Slots = Mapping[str, str]
Row = dict[str, Any]

TODAY = "2026-06-15"
# What reading a row raises that is not there, or that does not hold what the playbook knows of it.
UNKNOWN = (KeyError, TypeError, ValueError)
_TODAY = re.compile(r"\b(20\d\d-\d\d-\d\d)\b")
# What identifies a thing in a row; more than one column: the two together.
_IDS = (
    ("order_id",), ("product_id",), ("customer_id",), ("order_id", "product_id"),
    ("booking_id",), ("traveller_id",), ("flight_id",), ("hotel_id",), ("flight_id", "fare"),
)  # fmt: skip


class Call(NamedTuple):
    """One call of a tool."""

    name: str
    arguments: dict[str, Any]

    @property
    def key(self) -> str:
        """The same for the same call, however its numbers are written."""
        return f"{self.name} {sorted((name, plain(value)) for name, value in self.arguments.items())}"


@dataclass(frozen=True, slots=True)
class Finding:
    """What is right for one wish, now that the rows are known.

    `acts` are the calls that grant it, `told` says so to the customer and holds `tell`, what the customer
    must hear. `refusal` is (sentence, what must be heard in it) where the policy forbids the wish: then
    `acts` and `told` are what somebody does who ignores that.
    """

    told: str
    tell: str
    acts: tuple[Call, ...] = ()
    refusal: tuple[str, str] | None = None


class Known:
    """The rows seen so far, by what they are about: `W3001`, `W3001/P204`, `F301/flex`.

    The first value seen stays: a row that a change returns shows what was before it (`..._before`), and what
    was before is what the policy asks about.
    """

    def __init__(self) -> None:
        self._things: dict[str, Row] = {}
        self._lists: dict[str, Sequence[Row]] = {}

    def learn(self, call: Call, rows: Sequence[Row]) -> None:
        self._lists.setdefault(call.key, rows)
        for row in rows:
            before = {name.removesuffix("_before"): row[name] for name in row if name.endswith("_before")}
            self._merge({**row, **before}, "")
            self._merge(row, "new_")

    def __getitem__(self, thing: str) -> Row:
        """Raises KeyError for what was not looked up."""
        return self._things[thing]

    def rows(self, call: Call) -> Sequence[Row]:
        """What this very look-up gave. Raises KeyError where it was not made."""
        return self._lists[call.key]

    def _merge(self, row: Row, prefix: str) -> None:
        values = {name[len(prefix) :]: value for name, value in row.items() if name.startswith(prefix)}
        if not values:
            return
        for columns in _IDS:
            if prefix and not any(column in values for column in columns):
                continue
            parts = [values.get(column) or row.get(column) for column in columns]
            if all(parts):
                thing = self._things.setdefault("/".join(map(str, parts)), {})
                for name, value in values.items():
                    thing.setdefault(name, value)


@dataclass(frozen=True, slots=True)
class Intent:
    """One kind of wish.

    `looks` gives the look-ups that can be made with what is known; the first one is the one that proves that
    the agent looked. `find` raises one of UNKNOWN while rows are missing. `brief` is what somebody says who
    did not look; `blind` what they do all the same. `writes` are the tools that can act on such a wish, `key`
    which arguments of theirs name its subject (argument -> slot).
    """

    pattern: re.Pattern[str]
    looks: Callable[[Slots, Known], Iterable[Call]]
    find: Callable[[Slots, Known, bool], Finding]
    brief: str
    writes: tuple[str, ...] = ()
    key: Mapping[str, str] = field(default_factory=dict)
    blind: Callable[[Slots], Sequence[Call]] = lambda slots: ()
    is_personal: bool = True
    needs_number: bool = False
    goodwill: Callable[[Slots], Call] | None = None


@dataclass(frozen=True, slots=True)
class Trade:
    """A domain. `number` finds the customer's number in a text; `identify` is the look-up of it."""

    signature: str
    number: re.Pattern[str]
    number_name: str
    identify: str
    intents: tuple[Intent, ...]
    # Tool -> the tables it writes to.
    touches: Mapping[str, frozenset[str]]

    def identification(self, number: str) -> Call:
        return Call(self.identify, {f"{self.number_name.split()[0]}_id": number})


class Wish(NamedTuple):
    """One thing that is wanted, with what the text says of it."""

    intent: Intent
    slots: dict[str, str]


def wishes_in(text: str, trade: Trade, today: str) -> list[Wish]:
    """The wishes in the order in which the text names them."""
    found = []
    for intent in trade.intents:
        for match in intent.pattern.finditer(text):
            slots = {name: value for name, value in match.groupdict().items() if value is not None}
            found.append((match.start(), Wish(intent, {**slots, "today": today, "number": ""})))
    return [wish for _, wish in sorted(found, key=lambda one: one[0])]


def today_in(policy: str) -> str:
    """The day that the policy calls today."""
    match = _TODAY.search(policy)
    return match[1] if match else TODAY


def days(earlier: str, later: str) -> int:
    return (date.fromisoformat(later) - date.fromisoformat(earlier)).days


def money(amount: float) -> str:
    return f"{amount:.2f}"


def plain(value: object) -> object:
    """A value as it compares: 10 is 10.0."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def says(text: str, tell: str) -> bool:
    """Does the text hold these words or this number, not as a part of longer ones?"""
    return re.search(rf"(?<![\w.:-]){re.escape(tell)}(?!\w|[.,:-]\w)", text, re.IGNORECASE) is not None
