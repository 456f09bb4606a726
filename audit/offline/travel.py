"""The travel desk: which wishes there are, and what has to be looked up for each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from audit.offline import travel_rules as rules
from audit.offline.playbook import Call, Intent, Known, Slots, Trade

_BOOKING = r"booking (?P<booking>B\d+)"
_FLIGHT = r"flight (?P<flight>F\d+)"
_FARE = r"(?P<fare>basic|flex|business)"
_ROUTE = r"from (?P<origin>\w+) to (?P<destination>\w+) on (?P<day>\d{4}-\d\d-\d\d)"


def _looks_booking(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("get_booking", {"booking_id": slots["booking"]}),)


def _looks_flight(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("get_flight", {"flight_id": slots["flight"]}),)


def _looks_move(slots: Slots, known: Known) -> Iterable[Call]:
    return (*_looks_booking(slots, known), *_looks_flight(slots, known))


def _looks_upgrade(slots: Slots, known: Known) -> Iterable[Call]:
    yield from _looks_booking(slots, known)
    yield Call("get_flight", {"flight_id": known[slots["booking"]]["flight_id"]})


def _looks_search(slots: Slots, known: Known) -> Iterable[Call]:
    return (rules.search(slots),)


def _looks_hotels(slots: Slots, known: Known) -> Iterable[Call]:
    return (rules.search_hotels(slots),)


def _looks_hotel(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("get_hotel", {"hotel_id": slots["hotel"]}),)


def _goodwill(slots: Slots) -> Call:
    return rules.credit(slots, 50, "goodwill")


_IN_BOOKING = {"booking_id": "booking"}

_QUESTIONS = (
    Intent(
        re.compile(rf"when the flight of {_BOOKING} leaves"),
        _looks_booking,
        rules.leaving,
        "The flight of booking {booking} leaves as planned.",
    ),
    Intent(
        re.compile(rf"get back for {_BOOKING}"),
        _looks_booking,
        rules.get_back,
        "For booking {booking} you would get your money back.",
    ),
    Intent(
        re.compile(rf"how many bags {_BOOKING} includes"),
        _looks_booking,
        rules.included_bags,
        "Booking {booking} includes the usual luggage.",
    ),
    Intent(
        re.compile(rf"the price of the cheapest {_FARE} seat {_ROUTE}"),
        _looks_search,
        rules.cheapest_fare,
        "There are cheap {fare} seats on that day.",
        is_personal=False,
    ),
    Intent(
        re.compile(r"the price of the cheapest hotel in (?P<city>\w+)"),
        _looks_hotels,
        rules.cheapest_hotel,
        "There are good hotels in {city}.",
        is_personal=False,
    ),
)
_BOOKINGS = (
    Intent(
        re.compile(rf"book the cheapest {_FARE} seat {_ROUTE}"),
        _looks_search,
        rules.book_cheapest,
        "Your {fare} seat from {origin} to {destination} is booked.",
        ("book_flight",),
        {"fare": "fare"},
        needs_number=True,
    ),
    Intent(
        re.compile(rf"book a {_FARE} seat on {_FLIGHT}"),
        _looks_flight,
        rules.book_flight,
        "Your {fare} seat on flight {flight} is booked.",
        ("book_flight",),
        {"flight_id": "flight"},
        lambda slots: (rules.seat(slots, slots["flight"], 150.0),),
        needs_number=True,
    ),
    Intent(
        re.compile(r"book hotel (?P<hotel>H\d+) from (?P<day>\d{4}-\d\d-\d\d) for (?P<nights>\d+) nights"),
        _looks_hotel,
        rules.book_hotel,
        "Hotel {hotel} is booked for you.",
        ("book_hotel",),
        {"hotel_id": "hotel"},
        lambda slots: rules.room(slots, 90.0 * int(slots["nights"])),
        needs_number=True,
    ),
    Intent(
        re.compile(rf"add (?P<count>\d+) bags? to {_BOOKING}"),
        _looks_booking,
        rules.bags,
        "The luggage of booking {booking} is added.",
        ("add_bags",),
        _IN_BOOKING,
        rules.blind_bags,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"move {_BOOKING} to {_FLIGHT}"),
        _looks_move,
        rules.move,
        "Booking {booking} is moved to flight {flight}.",
        ("change_flight",),
        _IN_BOOKING,
        rules.moved,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"upgrade {_BOOKING} to {_FARE}"),
        _looks_upgrade,
        rules.upgrade,
        "Booking {booking} is now in {fare}.",
        ("upgrade_fare",),
        _IN_BOOKING,
        rules.upgraded,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"change {_BOOKING} to (?P<nights>\d+) nights"),
        _looks_booking,
        rules.nights,
        "The stay of booking {booking} is changed.",
        ("change_nights",),
        _IN_BOOKING,
        rules.stayed,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"cancel {_BOOKING}"),
        _looks_booking,
        rules.cancel,
        "Booking {booking} is cancelled.",
        ("cancel_booking",),
        _IN_BOOKING,
        rules.cancelled,
        goodwill=_goodwill,
    ),
)
_COMPLAINTS = (
    Intent(
        re.compile(rf"complain that the flight of {_BOOKING} was late"),
        _looks_booking,
        rules.late,
        "I am sorry about the delay; I have taken care of it.",
        ("give_credit",),
        _IN_BOOKING,
        lambda slots: (rules.credit(slots, 100, "delay"),),
    ),
    Intent(
        re.compile(rf"complain that the airline cancelled the flight of {_BOOKING}"),
        _looks_booking,
        rules.called_off,
        "I am sorry; booking {booking} is settled.",
        ("cancel_booking",),
        _IN_BOOKING,
        rules.cancelled,
    ),
    Intent(
        re.compile(rf"complain that a bag of {_BOOKING} was lost"),
        _looks_booking,
        rules.lost_bag,
        "I am sorry about the bag; it will turn up.",
        ("file_claim",),
        _IN_BOOKING,
        rules.claimed,
    ),
)
TRAVEL = Trade(
    signature="get_booking",
    number=re.compile(r"\bT\d{3}\b"),
    number_name="traveller number",
    identify="get_traveller",
    intents=(*_QUESTIONS, *_BOOKINGS, *_COMPLAINTS),
    touches={
        "book_flight": frozenset({"bookings", "fares"}),
        "book_hotel": frozenset({"bookings", "hotels"}),
        "change_flight": frozenset({"bookings"}),
        "upgrade_fare": frozenset({"bookings"}),
        "add_bags": frozenset({"bookings"}),
        "change_nights": frozenset({"bookings"}),
        "cancel_booking": frozenset({"bookings", "refunds"}),
        "give_credit": frozenset({"credits"}),
        "file_claim": frozenset({"claims"}),
    },
)
