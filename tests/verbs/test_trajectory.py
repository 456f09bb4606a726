"""Whatever was stored of tool calls is read, and each result goes to the call it answers."""

from typing import Any

import pytest

from audit.doors.recorded import RecordedEvidence
from audit.verbs.trajectory import tool_calls_of
from audit.verbs.verify import verify
from audit.words.tasks import Check

Messages = list[Any]


def said(*calls: tuple[str, Any]) -> dict[str, Any]:
    """One message of the agent that calls these tools by these ids."""
    listed = [{"id": call_id, "function": {"name": name, "arguments": "{}"}} for name, call_id in calls]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def result(call_id: Any, content: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def results(messages: Messages) -> list[tuple[str, Any]]:
    return [(call["name"], call["result"]) for call in tool_calls_of(messages)]


JOINED: dict[str, tuple[Messages, list[tuple[str, Any]]]] = {
    "by id, in any order": (
        [said(("put", "x"), ("get", "y")), result("y", "2"), result("x", "1")],
        [("put", "1"), ("get", "2")],
    ),
    **{
        f"by order where all ids are {shared!r}": (
            [said(("put", shared), ("get", shared)), result(shared, "1"), result(shared, "2")],
            [("put", "1"), ("get", "2")],
        )
        for shared in ("x", None, "", {"x": 1}, ["x"])
    },
    "an id repeated in a later turn answers the later call": (
        [said(("put", "x")), {"role": "user", "content": "?"}, said(("get", "x")), result("x", "2")],
        [("put", None), ("get", "2")],
    ),
    "calls of one turn in messages of their own": (
        [said(("put", "x")), said(("get", "x")), result("x", "1"), result("x", "2")],
        [("put", "1"), ("get", "2")],
    ),
    "results that lost their ids": (
        [said(("put", "x"), ("get", "y")), result(None, "1"), result("", "2")],
        [("put", "1"), ("get", "2")],
    ),
    "calls that lost their ids": (
        [said(("put", None), ("get", None)), result("a", "1"), result("b", "2")],
        [("put", "1"), ("get", "2")],
    ),
    "a result of a stranger answers nothing": (
        [said(("put", "x")), result("other", "1")],
        [("put", None)],
    ),
    "a number is an id": ([said(("put", 5)), result("5", "1")], [("put", "1")]),
    "an answer of nothing is an answer": ([said(("put", "x")), result("x", None)], [("put", "null")]),
}


@pytest.mark.parametrize("case", JOINED)
def test_tool_calls_when_ids_are_missing_or_shared_then_each_result_goes_to_its_own_call(case: str) -> None:
    messages, wanted = JOINED[case]
    assert results(messages) == wanted


ODD: dict[str, tuple[Any, list[str]]] = {
    "an id that is an object": ([{"id": {"x": 1}, "function": {"name": "get"}}], ["get"]),
    "a function that is text": ([{"id": "a", "function": "get"}], ["get"]),
    "calls that are none": (["x", 1, None], ["x", "1", "None"]),
    "no list of calls": ("get", ["get"]),
    "a name that is none": ([{"function": {"name": None}}], ["None"]),
}


@pytest.mark.parametrize("case", ODD)
def test_tool_calls_when_they_are_malformed_then_they_are_read_all_the_same(case: str) -> None:
    listed, names = ODD[case]
    messages: Messages = [None, "text", {"role": "assistant", "tool_calls": listed}, {"role": "tool"}]
    assert [call["name"] for call in tool_calls_of(messages)] == names


@pytest.mark.parametrize("text", ["[" * 100_000, '{"id":' + "[" * 2000 + "]" * 2000 + "}", "9" * 5000, "{"])
def test_tool_calls_when_arguments_cannot_be_read_then_they_are_the_text(text: str) -> None:
    message = {"role": "assistant", "tool_calls": [{"function": {"name": "get", "arguments": text}}]}
    assert tool_calls_of([message])[0]["arguments"] == text


def test_check_when_a_call_has_no_result_then_it_was_made_and_did_not_work() -> None:
    messages = [said(("put", "x"), ("get", "y")), result("y", "[]")]
    evidence = RecordedEvidence(messages, tool_calls_of(messages))
    checks = [
        Check("tool_called", "put worked", {"name": "put"}),
        Check("tool_called", "get worked", {"name": "get"}),
        Check("tool_not_called", "put never tried", {"name": "put"}),
    ]
    assert [one.passed for one in verify(checks, evidence).checks] == [False, True, False]
