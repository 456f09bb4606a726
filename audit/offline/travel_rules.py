"""What the travel desk's policy makes of a wish once the rows are known, and what is done without looking."""

from __future__ import annotations

from collections.abc import Sequence

from audit.offline.playbook import Call, Finding, Known, Row, Slots, days, money

Refusal = tuple[str, str] | None

_INCLUDED = {"basic": 0, "flex": 1, "business": 2}
_HOTEL_DISCOUNT = {"standard": 0, "silver": 5, "gold": 10}
_GUESS = 100.0


def search(slots: Slots) -> Call:
    given = {"origin": slots["origin"], "destination": slots["destination"], "departs_on": slots["day"]}
    return Call("search_flights", given)


def search_hotels(slots: Slots) -> Call:
    return Call("search_hotels", {"city": slots["city"]})


def credit(slots: Slots, amount: float, reason: str) -> Call:
    return Call("give_credit", {"booking_id": slots["booking"], "amount": round(amount, 2), "reason": reason})


def _foreign(slots: Slots, row: Row) -> Refusal:
    if slots["number"] and row["traveller_id"] != slots["number"]:
        booking = slots["booking"]
        return f"Booking {booking} belongs to another traveller, so I may not talk about it.", "another"
    return None


def _used(slots: Slots, row: Row) -> Refusal:
    if row["status"] != "confirmed":
        return f"Booking {slots['booking']} is {row['status']}, so it stays as it is.", row["status"]
    return None


def leaving(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    told = f"The flight of booking {slots['booking']} leaves at {row['departs_at']}."
    return Finding(told, row["departs_at"], refusal=_foreign(slots, row))


def get_back(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    amount = money(_refund(row, slots["today"], exact))
    told = f"For booking {slots['booking']} you would get back {amount}."
    return Finding(told, amount, refusal=_foreign(slots, row))


def included_bags(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    count = str(_INCLUDED[row["fare"]] + (row["level"] == "gold" and exact))
    told = f"Pieces of luggage that booking {slots['booking']} includes: {count}."
    return Finding(told, count, refusal=_foreign(slots, row))


def cheapest_fare(slots: Slots, known: Known, exact: bool) -> Finding:
    price = money(_cheapest(slots, known.rows(search(slots)), exact)["price"])
    return Finding(f"The cheapest {slots['fare']} seat costs {price}.", price)


def cheapest_hotel(slots: Slots, known: Known, exact: bool) -> Finding:
    rows = known.rows(search_hotels(slots))
    price = money(min(row["price_per_night"] for row in rows if row["rooms_left"] > 0 or not exact))
    return Finding(f"The cheapest room in {slots['city']} costs {price} a night.", price)


def book_cheapest(slots: Slots, known: Known, exact: bool) -> Finding:
    row = _cheapest(slots, known.rows(search(slots)), exact)
    return _booked(slots, row["flight_id"], row["price"])


def _cheapest(slots: Slots, rows: Sequence[Row], exact: bool) -> Row:
    """A careless eye does not see that a flight is sold out."""
    seats = [row for row in rows if row["fare"] == slots["fare"] and (row["seats_left"] > 0 or not exact)]
    if not seats:
        raise KeyError(slots["fare"])
    return min(seats, key=lambda row: float(row["price"]))


def _booked(slots: Slots, flight: str, price: float, refusal: Refusal = None) -> Finding:
    told = f"You have a {slots['fare']} seat on flight {flight} for {money(price)}."
    return Finding(told, money(price), (seat(slots, flight, price),), refusal)


def seat(slots: Slots, flight: str, price: float) -> Call:
    given = {"traveller_id": slots["number"], "flight_id": flight, "fare": slots["fare"], "price": price}
    return Call("book_flight", given)


def book_flight(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[f"{slots['flight']}/{slots['fare']}"]
    return _booked(slots, slots["flight"], row["price"], _no_seat(slots["flight"], slots["fare"], row))


def _no_seat(flight: str, fare: str, row: Row) -> Refusal:
    if row["seats_left"] < 1 or row["flight_status"] != "scheduled":
        return f"Flight {flight} has no seat left in {fare}.", "no seat"
    return None


def book_hotel(slots: Slots, known: Known, exact: bool) -> Finding:
    row, nights = known[slots["hotel"]], int(slots["nights"])
    refusal = _too_long(nights)
    if row["rooms_left"] < 1:
        refusal = (f"Hotel {slots['hotel']} has no room left.", "no room")
    level = "standard" if refusal else known[slots["number"]]["level"]
    price = _stay(row["price_per_night"], nights, level if exact else "standard")
    told = f"Hotel {slots['hotel']} is booked for {nights} nights at {money(price)}."
    return Finding(told, money(price), room(slots, price), refusal)


def room(slots: Slots, price: float) -> tuple[Call, ...]:
    given = {"traveller_id": slots["number"], "hotel_id": slots["hotel"], "check_in": slots["day"]}
    return (Call("book_hotel", {**given, "nights": int(slots["nights"]), "price": price}),)


def _too_long(nights: int) -> Refusal:
    return ("A stay is at most 14 nights.", "14 nights") if nights > 14 else None


def _stay(per_night: float, nights: int, level: str) -> float:
    return round(per_night * nights * (100 - _HOTEL_DISCOUNT[level]) / 100, 2)


def bags(slots: Slots, known: Known, exact: bool) -> Finding:
    row, count = known[slots["booking"]], int(slots["count"])
    refusal = _foreign(slots, row) or _used(slots, row)
    if refusal is None and row["bags"] + count > 3:
        refusal = ("A booking takes at most 3 bags.", "3 bags")
    price = count * (20.0 if row["level"] != "standard" and exact else 30.0)
    told = f"The luggage of booking {slots['booking']} is added for {money(price)}."
    return Finding(told, money(price), added(slots, price), refusal)


def added(slots: Slots, price: float) -> tuple[Call, ...]:
    given = {"booking_id": slots["booking"], "bags": int(slots["count"]), "price": price}
    return (Call("add_bags", given),)


def blind_bags(slots: Slots) -> tuple[Call, ...]:
    return added(slots, 30.0 * int(slots["count"]))


def move(slots: Slots, known: Known, exact: bool) -> Finding:
    row, flight = known[slots["booking"]], known[slots["flight"]]
    refusal = _foreign(slots, row) or _used(slots, row)
    if refusal is None and row["fare"] == "basic":
        refusal = (f"Booking {slots['booking']} is a basic fare, which cannot be changed.", "basic")
    if refusal is None and (row["origin"], row["destination"]) != (flight["origin"], flight["destination"]):
        refusal = (f"Flight {slots['flight']} is another route.", "route")
    new = known[f"{slots['flight']}/{row['fare']}"]
    refusal = refusal or _no_seat(slots["flight"], row["fare"], {**flight, **new})
    fee = 35.0 if row["fare"] == "flex" and row["changes_made"] > 0 and exact else 0.0
    told = f"Booking {slots['booking']} is moved to flight {slots['flight']}; the fee is {money(fee)}."
    return Finding(told, money(fee), moved(slots, fee), refusal)


def moved(slots: Slots, fee: float = 0.0) -> tuple[Call, ...]:
    return (
        Call("change_flight", {"booking_id": slots["booking"], "flight_id": slots["flight"], "fee": fee}),
    )


def upgrade(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    old, new = (known[f"{row['flight_id']}/{fare}"] for fare in (row["fare"], slots["fare"]))
    refusal = _foreign(slots, row) or _used(slots, row)
    refusal = refusal or _no_seat(row["flight_id"], slots["fare"], {**row, "seats_left": new["seats_left"]})
    difference = new["price"] - (old["price"] if exact else row["paid"])
    told = f"Booking {slots['booking']} is now in {slots['fare']}, which costs {money(difference)}."
    return Finding(told, money(difference), upgraded(slots, round(difference, 2)), refusal)


def upgraded(slots: Slots, difference: float = 50.0) -> tuple[Call, ...]:
    given = {"booking_id": slots["booking"], "fare": slots["fare"], "price_difference": difference}
    return (Call("upgrade_fare", given),)


def nights(slots: Slots, known: Known, exact: bool) -> Finding:
    row, count = known[slots["booking"]], int(slots["nights"])
    refusal = _foreign(slots, row) or _used(slots, row) or _too_long(count)
    if refusal is None and days(slots["today"], row["check_in"]) < 1:
        refusal = ("The stay has begun, so it stays as it is.", "begun")
    price = _stay(row["price_per_night"], count, row["level"] if exact else "standard")
    told = f"Booking {slots['booking']} is now for {count} nights and costs {money(price)}."
    return Finding(told, money(price), stayed(slots, price), refusal)


def stayed(slots: Slots, price: float = _GUESS) -> tuple[Call, ...]:
    given = {"booking_id": slots["booking"], "nights": int(slots["nights"]), "price": price}
    return (Call("change_nights", given),)


def cancel(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    refusal = _foreign(slots, row) or _used(slots, row) or _not_cancellable(slots, row)
    amount = _refund(row, slots["today"], exact)
    told = f"Booking {slots['booking']} is cancelled and you get back {money(amount)}."
    return Finding(told, money(amount), cancelled(slots, amount), refusal)


def cancelled(slots: Slots, amount: float = _GUESS) -> tuple[Call, ...]:
    return (Call("cancel_booking", {"booking_id": slots["booking"], "refund": round(amount, 2)}),)


def _not_cancellable(slots: Slots, row: Row) -> Refusal:
    if row["flight_status"] == "cancelled":
        return None
    if row["kind"] == "flight" and row["fare"] == "basic" and row["booked_on"] != slots["today"]:
        return f"Booking {slots['booking']} is a basic fare, which cannot be cancelled any more.", "basic"
    if row["kind"] == "hotel" and days(slots["today"], row["check_in"]) < 1:
        return "The stay has begun, so it cannot be cancelled.", "begun"
    return None


def _refund(row: Row, today: str, exact: bool) -> float:
    fee = 0.0
    if row["kind"] == "flight" and row["flight_status"] != "cancelled":
        fee = {"basic": 0.0 if row["booked_on"] == today else row["paid"], "flex": 40.0, "business": 0.0}[
            row["fare"]
        ]
    elif row["kind"] == "hotel" and days(today, row["check_in"]) < 3:
        fee = row["price_per_night"]
    return float(row["paid"] - (fee if exact else 0.0))


def late(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    amount = 120.0 if row["fare"] == "business" and exact else 80.0
    refusal = _foreign(slots, row)
    if refusal is None and row["delay_minutes"] < 180:
        refusal = ("A delay of less than 180 minutes earns nothing.", "180 minutes")
    told = f"I am sorry about the delay; you get a credit of {money(amount)}."
    return Finding(told, money(amount), (credit(slots, amount, "delay"),), refusal)


def called_off(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    refusal = _foreign(slots, row)
    if refusal is None and row["flight_status"] != "cancelled":
        refusal = (
            f"The flight of booking {slots['booking']} is {row['flight_status']}.",
            row["flight_status"],
        )
    amount = row["paid"] - (0.0 if exact else 40.0)
    told = f"I am sorry; booking {slots['booking']} is cancelled and you get back {money(amount)}."
    return Finding(told, money(amount), cancelled(slots, amount), refusal)


def lost_bag(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["booking"]]
    refusal = _foreign(slots, row)
    if refusal is None and days(row["departs_on"], slots["today"]) > 7:
        refusal = ("A lost bag can be claimed within 7 days of the flight.", "7 days")
    if refusal is None and row["bags"] < 1:
        refusal = ("This booking has no bag.", "no bag")
    told = f"I have filed a claim for the bag of booking {slots['booking']}."
    return Finding(told, "claim", claimed(slots), refusal)


def claimed(slots: Slots) -> tuple[Call, ...]:
    return (Call("file_claim", {"booking_id": slots["booking"], "kind": "lost bag"}),)
