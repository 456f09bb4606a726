"""The web shop: which wishes there are, and what has to be looked up for each."""

from __future__ import annotations

import re
from collections.abc import Iterable

from audit.offline import shop_rules as rules
from audit.offline.playbook import Call, Intent, Known, Slots, Trade

_ORDER = r"order (?P<order>W\d+)"
_PRODUCT = r"product (?P<product>P\d+)"


def _looks_order(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("get_order", {"order_id": slots["order"]}),)


def _looks_product(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("get_product", {"product_id": slots["product"]}),)


def _looks_item(slots: Slots, known: Known) -> Iterable[Call]:
    items = Call("get_order_items", {"order_id": slots["order"]})
    return (*_looks_order(slots, known), items, *_looks_product(slots, known))


def _looks_swap(slots: Slots, known: Known) -> Iterable[Call]:
    return (*_looks_item(slots, known), Call("get_product", {"product_id": slots["new"]}))


def _looks_vouchers(slots: Slots, known: Known) -> Iterable[Call]:
    return (Call("list_vouchers", {"customer_id": slots["number"]}),)


def _goodwill(slots: Slots) -> Call:
    return rules.voucher(slots, 15, "goodwill")


_IN_ORDER = {"order_id": "order"}
_IN_ITEM = {"order_id": "order", "product_id": "product"}

_QUESTIONS = (
    Intent(
        re.compile(rf"the status of {_ORDER}"),
        _looks_order,
        rules.status,
        "Your order {order} is on its way as planned.",
    ),
    Intent(
        re.compile(rf"the total of {_ORDER}"),
        _looks_order,
        rules.total,
        "You were charged the usual price for order {order}.",
    ),
    Intent(
        re.compile(rf"until when {_ORDER} can be returned"),
        _looks_order,
        rules.return_until,
        "There is plenty of time left to return order {order}.",
    ),
    Intent(
        re.compile(r"how much voucher money"),
        _looks_vouchers,
        rules.held,
        "All your vouchers are on your account.",
        needs_number=True,
    ),
    Intent(
        re.compile(rf"how many of {_PRODUCT} are in stock"),
        _looks_product,
        rules.stock,
        "Product {product} is there in good numbers.",
        is_personal=False,
    ),
)
_ORDERS = (
    Intent(
        re.compile(rf"order (?P<count>\d+) of {_PRODUCT}"),
        _looks_product,
        rules.new_order,
        "Your order of {count} of product {product} is placed.",
        ("place_order",),
        {"product_id": "product"},
        lambda slots: (rules.placing(slots),),
        needs_number=True,
    ),
    Intent(
        re.compile(rf'send {_ORDER} to "(?P<address>[^"]+)"'),
        _looks_order,
        rules.new_address,
        "Order {order} goes to the new address.",
        ("change_address",),
        _IN_ORDER,
        rules.blind_address,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"have (?P<count>\d+) of {_PRODUCT} in {_ORDER}"),
        _looks_item,
        rules.quantity,
        "Order {order} is changed as you wished.",
        ("change_quantity",),
        _IN_ITEM,
        rules.blind_quantity,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"swap {_PRODUCT} for product (?P<new>P\d+) in {_ORDER}"),
        _looks_swap,
        rules.swap,
        "The products in order {order} are swapped.",
        ("swap_item",),
        _IN_ITEM,
        rules.blind_swap,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"take {_PRODUCT} out of {_ORDER}"),
        _looks_item,
        rules.take_out,
        "Product {product} is taken out of order {order}.",
        ("remove_item",),
        _IN_ITEM,
        rules.blind_take_out,
        goodwill=_goodwill,
    ),
    Intent(
        re.compile(rf"cancel {_ORDER}"),
        _looks_order,
        rules.cancel,
        "Order {order} is cancelled.",
        ("cancel_order", "give_voucher"),
        _IN_ORDER,
        rules.blind_cancel,
    ),
    Intent(
        re.compile(rf"return {_PRODUCT} from {_ORDER}"),
        _looks_item,
        rules.take_back,
        "The return of product {product} is set up.",
        ("create_return",),
        _IN_ITEM,
        rules.blind_take_back,
        goodwill=_goodwill,
    ),
)
_COMPLAINTS = (
    Intent(
        re.compile(rf"complain that {_ORDER} came late"),
        _looks_order,
        rules.late,
        "I am sorry that order {order} was late; I have taken care of it.",
        ("give_voucher",),
        _IN_ORDER,
        rules.blind_late,
    ),
    Intent(
        re.compile(rf"complain that {_PRODUCT} from {_ORDER} arrived damaged"),
        _looks_item,
        rules.damaged,
        "I am sorry about the damage; I have taken care of it.",
        ("create_return",),
        _IN_ITEM,
        lambda slots: rules.blind_take_back(slots),
    ),
    Intent(
        re.compile(rf"complain that {_PRODUCT} from {_ORDER} is cheaper now"),
        _looks_item,
        rules.cheaper,
        "I have taken care of the difference in price.",
        ("give_voucher",),
        _IN_ORDER,
    ),
)
SHOP = Trade(
    signature="get_order",
    number=re.compile(r"\bC\d{3}\b"),
    number_name="customer number",
    identify="get_customer",
    intents=(*_QUESTIONS, *_ORDERS, *_COMPLAINTS),
    touches={
        "place_order": frozenset({"orders", "order_items"}),
        "cancel_order": frozenset({"orders"}),
        "change_address": frozenset({"orders"}),
        "change_quantity": frozenset({"order_items"}),
        "swap_item": frozenset({"order_items"}),
        "remove_item": frozenset({"order_items"}),
        "create_return": frozenset({"returns"}),
        "give_voucher": frozenset({"vouchers"}),
    },
)
