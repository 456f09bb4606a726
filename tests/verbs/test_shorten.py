"""A session that is too long for a judge: what must be kept is kept, and what is gone is said."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.verbs.render import Hidden, render_session
from audit.verbs.shorten import LEFT_OUT, shorten
from audit.verbs.trajectory import tool_calls_of


def said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}


def called(name: str, number: int, result: str) -> list[dict[str, Any]]:
    call = {"id": f"call_{number}", "function": {"name": name, "arguments": {"n": number}}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


def long_session() -> list[dict[str, Any]]:
    """A greeting, fifty looks at orders, one cancellation in their middle, and an end."""
    messages = [said("user", "please cancel order 7"), said("assistant", "your number?")]
    for number in range(50):
        messages += called("get_order", number, "x" * 400)
        if number == 20:
            messages += called("cancel_order", 99, '{"changed": 1}')
    return [*messages, said("user", "is it done?"), said("assistant", "it is done")]


def test_shorten_when_it_fits_then_nothing_changes() -> None:
    messages = long_session()
    assert shorten(messages, 100_000) == (messages, 0, 0)


def test_shorten_when_too_long_then_head_end_and_changes_are_kept_and_the_rest_is_counted() -> None:
    messages = long_session()
    found, left_out, clipped = shorten(messages, 1000)
    texts = [message.get("content") for message in found]
    assert texts[:2] == ["please cancel order 7", "your number?"]
    assert texts[-2:] == ["is it done?", "it is done"]
    names = [call["function"]["name"] for message in found for call in message.get("tool_calls", ())]
    assert names.count("cancel_order") == 1
    assert '{"changed": 1}' in texts
    gaps = [message["content"] for message in found if message["role"] == LEFT_OUT]
    assert len(gaps) == 2
    assert sum(int(gap.split()[0]) for gap in gaps) == left_out
    assert left_out + len(found) - len(gaps) == len(messages)
    assert clipped == 0


def test_shorten_when_what_must_be_kept_is_too_long_then_its_middle_goes() -> None:
    messages = [said("user", "a" * 40_000 + "END"), said("assistant", "b" * 40_000)]
    found, left_out, clipped = shorten(messages, 1000)
    assert (left_out, clipped) == (0, 2)
    assert found[0]["content"].startswith("aaa")
    assert found[0]["content"].endswith("END")
    assert "characters are left out here" in found[0]["content"]
    assert sum(len(message["content"]) for message in found) < 5000


MESSAGES = st.lists(
    st.one_of(
        st.builds(lambda role, text: [said(role, text)], st.sampled_from(["user", "assistant"]), st.text()),
        st.builds(called, st.sampled_from(["get_x", "cancel_x"]), st.integers(0, 99), st.text()),
    ),
    max_size=40,
).map(lambda groups: [message for group in groups for message in group])


@given(MESSAGES, st.integers(1, 3000))
def test_shorten_whatever_the_session_then_order_results_and_changes_stay(
    messages: list[dict[str, Any]], budget: int
) -> None:
    found, left_out, _ = shorten(messages, budget)
    kept = [message for message in found if message["role"] != LEFT_OUT]
    assert len(kept) + left_out == len(messages)
    roles = iter(message["role"] for message in messages)
    assert all(message["role"] in roles for message in kept)
    for before, message in itertools.pairwise(found):
        if message["role"] == "tool":
            assert before["role"] in ("assistant", "tool")
    changes = sum("cancel_x" in str(message.get("tool_calls")) for message in messages)
    assert sum("cancel_x" in str(message.get("tool_calls")) for message in kept) == changes


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        (["x"], ["agent calls x(null)"]),
        ("delete all", ["agent calls delete all(null)"]),
        (7, ["agent calls 7(null)"]),
        ([None, {"id": ["c"], "function": "f"}], ["agent calls None(null)", "agent calls f(null)"]),
        ({"a": 1}, ["agent calls None(null)"]),
        ([{"function": {"name": None, "arguments": {"a": [1]}}}], ['agent calls None({"a": [1]})']),
        (None, []),
    ],
)
def test_messages_when_their_tool_calls_are_none_then_they_are_shown_as_they_are_written(
    odd: object, shown: list[str]
) -> None:
    """Judged pairs may bring messages of any make: what is in them is seen, and stops nothing."""
    messages = [
        {"role": "assistant", "content": None, "tool_calls": odd},
        {"role": "tool", "tool_call_id": ["c"]},
    ]

    assert render_session(shorten(messages, 0).messages[:1], Hidden((), ())).splitlines() == shown
    assert len(tool_calls_of(messages)) == len(shown)
