"""Two orders become one preference: every pair of answers under every rule, and what holds for all."""

from itertools import product
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.verbs.settle import Settled, choice_of, is_consistent, preference_of, settle
from audit.words.names import SWAP_RULES, Answer, Choice, Order, Preference, SwapRule

ANSWERS: tuple[Answer, ...] = get_args(Answer)
# Rows: the answer in order AB, columns: in order BA. `?` unreadable, `!` failed, `-` missing, `s` split.
# Cells: the preference, or i(ncomplete), u(nreadable), x = inconsistent.
GRIDS: dict[SwapRule, str] = {
    "both_agree": """
          A B t ? ! - s
        A A x x u i i x
        B x B x u i i x
        t x x t u i i x
        ? u u u u i i u
        ! i i i i i i i
        - i i i i i i i
        s x x x u i i x
        """,
    "net_vote": """
          A B t ? ! - s
        A A x A A i i A
        B x B B B i i B
        t A B t u i i x
        ? A B u u i i u
        ! i i i i i i i
        - i i i i i i i
        s A B x u i i x
        """,
    "first_order": """
          A B t ? ! - s
        A A A A A A A A
        B B B B B B B B
        t t t t t t t t
        ? u u u u u u u
        ! i i i i i i i
        - A B t u i i x
        s x x x x x x x
        """,
}
LETTERS: dict[str, Answer] = {
    "A": "A",
    "B": "B",
    "t": "tie",
    "?": "unreadable",
    "!": "failed",
    "-": "missing",
    "s": "split",
}
CELLS = {
    "A": Settled("A", None),
    "B": Settled("B", None),
    "t": Settled("tie", None),
    "i": Settled(None, "incomplete"),
    "u": Settled(None, "unreadable"),
    "x": Settled(None, "inconsistent"),
}


def grid_cases() -> list[object]:
    cases: list[object] = []
    for rule, grid in GRIDS.items():
        head, *rows = (line.split() for line in grid.strip().splitlines())
        for ab, *cells in rows:
            for ba, cell in zip(head, cells, strict=True):
                cases.append(
                    pytest.param(rule, LETTERS[ab], LETTERS[ba], CELLS[cell], id=f"{rule}[{ab}{ba}]")
                )
    return cases


answers = st.sampled_from(ANSWERS)
rules = st.sampled_from(SWAP_RULES)


def other_side(answer: Answer) -> Answer:
    """The same answer about a pair whose sides have exchanged their names."""
    return {"A": "B", "B": "A"}.get(answer, answer)  # type: ignore[return-value]


def test_grids_hold_every_combination_once() -> None:
    seen = [(case.values[0], case.values[1], case.values[2]) for case in grid_cases()]  # type: ignore[attr-defined]
    assert sorted(seen) == sorted(product(SWAP_RULES, ANSWERS, ANSWERS))


@pytest.mark.parametrize(("rule", "ab", "ba", "expected"), grid_cases())
def test_settle_when_two_answers_are_given_then_the_rule_decides(
    rule: SwapRule, ab: Answer, ba: Answer, expected: Settled
) -> None:
    assert settle(ab, ba, rule) == expected


@given(answers, answers, rules)
def test_settle_when_sides_exchange_names_then_the_result_is_mirrored(
    ab: Answer, ba: Answer, rule: SwapRule
) -> None:
    straight = settle(ab, ba, rule)
    mirrored = settle(other_side(ab), other_side(ba), rule)
    assert mirrored.reason == straight.reason
    assert mirrored.preference == (straight.preference and other_side(straight.preference))


@given(answers, answers, st.sampled_from(["both_agree", "net_vote"]))
def test_settle_when_the_orders_are_exchanged_then_a_two_order_rule_says_the_same(
    ab: Answer, ba: Answer, rule: SwapRule
) -> None:
    assert settle(ab, ba, rule) == settle(ba, ab, rule)


@given(answers, rules)
def test_settle_when_an_answer_it_needs_is_unreadable_then_it_is_never_a_tie(
    other: Answer, rule: SwapRule
) -> None:
    assert settle("unreadable", other, rule).preference != "tie"
    if rule != "first_order":
        assert settle(other, "unreadable", rule).preference != "tie"


@given(answers, st.sampled_from(["failed", "missing"]), st.sampled_from(["both_agree", "net_vote"]))
def test_settle_when_a_call_brought_no_answer_then_a_two_order_rule_is_incomplete(
    other: Answer, silent: Answer, rule: SwapRule
) -> None:
    assert settle(silent, other, rule) == settle(other, silent, rule) == Settled(None, "incomplete")


@given(answers, answers, rules)
def test_settle_then_there_is_a_preference_or_a_reason_and_never_both(
    ab: Answer, ba: Answer, rule: SwapRule
) -> None:
    preference, reason = settle(ab, ba, rule)
    assert (preference is None) != (reason is None)


@given(answers, answers)
def test_settle_when_both_agree_names_a_side_then_net_vote_names_it_too(ab: Answer, ba: Answer) -> None:
    strict = settle(ab, ba, "both_agree").preference
    assert strict is None or settle(ab, ba, "net_vote").preference == strict


@pytest.mark.parametrize(
    ("ab", "ba", "expected"),
    [
        ("A", "A", 1),
        ("B", "B", 1),
        ("tie", "tie", 1),
        ("A", "B", 0),
        ("B", "A", 0),
        ("A", "tie", 0),
        ("tie", "B", 0),
        ("unreadable", "unreadable", None),
        ("A", "unreadable", None),
        ("failed", "A", None),
        ("failed", "failed", None),
        ("tie", "missing", None),
        ("missing", "missing", None),
    ],
)
def test_is_consistent_when_both_orders_were_read_then_it_says_whether_they_agree(
    ab: Answer, ba: Answer, expected: int | None
) -> None:
    assert is_consistent(ab, ba) == expected


@pytest.mark.parametrize(
    ("choice", "order", "preference"),
    [
        ("first", "AB", "A"),
        ("second", "AB", "B"),
        ("first", "BA", "B"),
        ("second", "BA", "A"),
        ("tie", "AB", "tie"),
        ("tie", "BA", "tie"),
        (None, "AB", None),
        (None, "BA", None),
    ],
)
def test_choice_when_it_is_turned_into_a_preference_then_it_can_be_turned_back(
    choice: Choice | None, order: Order, preference: Preference | None
) -> None:
    assert preference_of(choice, order) == preference
    assert choice_of(preference, order) == choice


def test_preference_when_slot_a_is_named_in_either_order_then_it_is_the_side_that_stood_there() -> None:
    """Case SW-01: order AB shows x in slot A, order BA shows y there."""
    judged: list[tuple[Order, Choice]] = [
        ("AB", "first"),
        ("BA", "second"),
        ("AB", "second"),
        ("BA", "first"),
        ("AB", "tie"),
    ]
    sides = {"A": "x", "B": "y", "tie": "tie"}
    winners = [sides[str(preference_of(choice, order))] for order, choice in judged]
    assert winners == ["x", "x", "y", "y", "tie"]
