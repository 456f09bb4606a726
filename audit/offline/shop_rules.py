"""What the web shop's policy makes of a wish once the rows are known, and what is done without looking."""

from __future__ import annotations

from datetime import date, timedelta

from audit.offline.playbook import Call, Finding, Known, Row, Slots, days, money

_MOST = 5
Refusal = tuple[str, str] | None


def voucher(slots: Slots, amount: float, reason: str) -> Call:
    return Call("give_voucher", {"order_id": slots["order"], "amount": round(amount, 2), "reason": reason})


def _foreign(slots: Slots, row: Row) -> Refusal:
    if slots["number"] and row["customer_id"] != slots["number"]:
        return f"Order {slots['order']} belongs to another customer, so I may not talk about it.", "another"
    return None


def _not_pending(slots: Slots, row: Row) -> Refusal:
    if row["status"] != "pending":
        return f"Order {slots['order']} is {row['status']}; only pending orders may be changed.", row[
            "status"
        ]
    return None


def status(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    return Finding(f"Order {slots['order']} is {row['status']}.", row["status"], refusal=_foreign(slots, row))


def total(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    total = money(row["goods"] + (row["shipping"] if exact else 0))
    return Finding(f"Order {slots['order']} costs {total} altogether.", total, refusal=_foreign(slots, row))


def return_until(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    begins = row["delivered_on"] if exact else row["ordered_on"]
    last = (date.fromisoformat(begins) + timedelta(days=30)).isoformat()
    return Finding(f"You can return order {slots['order']} until {last}.", last, refusal=_foreign(slots, row))


def held(slots: Slots, known: Known, exact: bool) -> Finding:
    rows = known.rows(Call("list_vouchers", {"customer_id": slots["number"]}))
    held = money(sum(row["amount"] for row in (rows if exact else rows[:1])))
    return Finding(f"Your account holds vouchers over {held}.", held)


def stock(slots: Slots, known: Known, exact: bool) -> Finding:
    count = str(known[slots["product"]]["stock"])
    return Finding(f"Of product {slots['product']} we have {count}.", count)


def new_order(slots: Slots, known: Known, exact: bool) -> Finding:
    count, product = int(slots["count"]), known[slots["product"]]
    refusal = _too_many(count) or _too_few(count, slots["product"], product["stock"])
    # Whoever does not know the level cannot know the price, but may well know that it is forbidden.
    level = "standard" if refusal else known[slots["number"]]["level"]
    discount = 10 if exact and level == "gold" else 0
    goods = round(round(product["price"] * (100 - discount) / 100, 2) * count, 2)
    shipping = 4.90 if goods < 50 and exact else 0
    total = money(goods + shipping)
    told = f"Your order of {count} of product {slots['product']} is placed; the total is {total}."
    return Finding(told, total, (placing(slots, discount, shipping),), refusal)


def placing(slots: Slots, discount: float = 0, shipping: float = 0) -> Call:
    given = {"customer_id": slots["number"], "product_id": slots["product"], "quantity": int(slots["count"])}
    return Call("place_order", {**given, "discount_percent": discount, "shipping": shipping})


def _too_many(count: int) -> Refusal:
    return (f"An order may hold at most {_MOST} of one product.", str(_MOST)) if count > _MOST else None


def _too_few(count: int, product: str, stock: int) -> Refusal:
    return (f"Of product {product} only {stock} are in stock.", str(stock)) if count > stock else None


def new_address(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    told = f"Order {slots['order']} now goes to {slots['address']}."
    refusal = _foreign(slots, row) or _not_pending(slots, row)
    return Finding(told, slots["address"], blind_address(slots), refusal)


def blind_address(slots: Slots) -> tuple[Call, ...]:
    return (Call("change_address", {"order_id": slots["order"], "ship_to": slots["address"]}),)


def _item(slots: Slots, known: Known) -> Row:
    return known[f"{slots['order']}/{slots['product']}"]


def quantity(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item, count = known[slots["order"]], _item(slots, known), int(slots["count"])
    total = row["goods"] + (count - item["quantity"]) * item["unit_price"] + (row["shipping"] if exact else 0)
    stock = known[slots["product"]]["stock"]
    refusal = (
        _foreign(slots, row)
        or _not_pending(slots, row)
        or _too_many(count)
        or _too_few(count, slots["product"], stock)
    )
    told = f"Order {slots['order']} now holds {count} of product {slots['product']}; it costs {money(total)}."
    return Finding(told, money(total), blind_quantity(slots), refusal)


def blind_quantity(slots: Slots) -> tuple[Call, ...]:
    given = {"order_id": slots["order"], "product_id": slots["product"], "quantity": int(slots["count"])}
    return (Call("change_quantity", given),)


def swap(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item, old, new = (
        known[slots["order"]], _item(slots, known), known[slots["product"]], known[slots["new"]]
    )  # fmt: skip
    refusal = _foreign(slots, row) or _not_pending(slots, row)
    if refusal is None and old["category"] != new["category"]:
        refusal = (f"Product {slots['new']} is of another category than {slots['product']}.", "category")
    refusal = refusal or _too_few(item["quantity"], slots["new"], new["stock"])
    paid = item["unit_price"] if exact else 0
    difference = money(abs(new["price"] - paid) * item["quantity"])
    told = f"Product {slots['product']} is swapped for {slots['new']}; the difference is {difference}."
    return Finding(told, difference, blind_swap(slots), refusal)


def blind_swap(slots: Slots) -> tuple[Call, ...]:
    given = {"order_id": slots["order"], "product_id": slots["product"], "new_product_id": slots["new"]}
    return (Call("swap_item", given),)


def take_out(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item = known[slots["order"]], _item(slots, known)
    total = row["goods"] - item["quantity"] * item["unit_price"] + (row["shipping"] if exact else 0)
    told = f"Product {slots['product']} is taken out of order {slots['order']}; it now costs {money(total)}."
    return Finding(
        told, money(total), blind_take_out(slots), _foreign(slots, row) or _not_pending(slots, row)
    )


def blind_take_out(slots: Slots) -> tuple[Call, ...]:
    return (Call("remove_item", {"order_id": slots["order"], "product_id": slots["product"]}),)


def cancel(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    amount = row["goods"] + (row["shipping"] if exact else 0)
    acts = blind_cancel(slots)
    if row["payment"] == "gift card" and exact:
        acts += (voucher(slots, amount, "cancelled order"),)
    told = f"Order {slots['order']} is cancelled and you get back {money(amount)}."
    return Finding(told, money(amount), acts, _foreign(slots, row) or _not_pending(slots, row))


def blind_cancel(slots: Slots) -> tuple[Call, ...]:
    return (Call("cancel_order", {"order_id": slots["order"]}),)


def _taking_back(slots: Slots, kind: str, amount: float) -> tuple[Call, ...]:
    given = {"order_id": slots["order"], "product_id": slots["product"], "kind": kind}
    return (Call("create_return", {**given, "amount": round(amount, 2)}),)


def take_back(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item, product = known[slots["order"]], _item(slots, known), known[slots["product"]]
    fee = 5 if row["level"] == "standard" and exact else 0
    amount = item["unit_price"] * item["quantity"] - fee
    refusal = _foreign(slots, row)
    if refusal is None and row["status"] != "delivered":
        refusal = (f"Order {slots['order']} is {row['status']}, not delivered.", row["status"])
    if refusal is None and days(row["delivered_on"], slots["today"]) > 30:
        refusal = (f"Order {slots['order']} was delivered more than 30 days ago.", "30 days")
    if refusal is None and not product["returnable"]:
        refusal = (f"Product {slots['product']} is excluded from returns.", "excluded")
    told = f"The return of product {slots['product']} is set up and you get back {money(amount)}."
    return Finding(told, money(amount), _taking_back(slots, "refund", amount), refusal)


def blind_take_back(slots: Slots) -> tuple[Call, ...]:
    return _taking_back(slots, "refund", 30)


def late(slots: Slots, known: Known, exact: bool) -> Finding:
    row = known[slots["order"]]
    amount = 15 if row["level"] == "gold" and exact else 10
    refusal = _foreign(slots, row)
    if refusal is None and days(row["promised_on"], row["delivered_on"] or slots["today"]) <= 3:
        refusal = (f"Order {slots['order']} was not more than 3 days late, which earns nothing.", "3 days")
    told = f"I am sorry that order {slots['order']} was late; you get a voucher of {money(amount)}."
    return Finding(told, money(amount), (voucher(slots, amount, "late delivery"),), refusal)


def blind_late(slots: Slots) -> tuple[Call, ...]:
    return (voucher(slots, 20, "late delivery"),)


def damaged(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item, product = known[slots["order"]], _item(slots, known), known[slots["product"]]
    price = item["unit_price"] * item["quantity"]
    refusal = _foreign(slots, row)
    if refusal is None and days(row["delivered_on"] or slots["today"], slots["today"]) > 14:
        refusal = ("Damage can be reported within 14 days of delivery, not later.", "14 days")
    if product["stock"] >= item["quantity"]:
        told = f"A replacement for product {slots['product']} is on its way to you."
        return Finding(told, "replacement", _taking_back(slots, "replacement", 0), refusal)
    amount = price - (0 if exact else 5)
    told = f"Product {slots['product']} is sold out, so you get back {money(amount)}."
    return Finding(told, money(amount), _taking_back(slots, "refund", amount), refusal)


def cheaper(slots: Slots, known: Known, exact: bool) -> Finding:
    row, item, product = known[slots["order"]], _item(slots, known), known[slots["product"]]
    amount = (item["unit_price"] - product["price"]) * (item["quantity"] if exact else 1)
    refusal = _foreign(slots, row)
    if refusal is None and days(row["ordered_on"], slots["today"]) > 14:
        refusal = ("The price guarantee ends 14 days after ordering.", "14 days")
    told = f"You get a voucher of {money(amount)} for the lower price of product {slots['product']}."
    return Finding(told, money(amount), (voucher(slots, amount, "price guarantee"),), refusal)
