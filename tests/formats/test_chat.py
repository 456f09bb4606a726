"""Messages of any recorder in one form: ids renumbered, arguments as objects, nothing else kept."""

import pytest

from audit.doors.formats.chat import Chat, arguments_of, fingerprint, read_chat
from audit.doors.formats.fields import Row
from audit.verbs.render import Hidden, render_session
from audit.words.errors import BadFile


def read(*messages):
    return read_chat(Row("FILE", "line 1", {"messages": list(messages)}), "messages")


def called(*arguments, raw_id="chatcmpl-tool-7f"):
    calls = [
        {"id": f"{raw_id}{i}", "type": "function", "function": {"name": "refund", "arguments": one}}
        for i, one in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ('{"order": 17}', {"order": 17}),
        ({"order": "17"}, {"order": "17"}),
        ('{"n": 123456789012345678901234567890}', {"n": 123456789012345678901234567890}),
        ("", {}),
        (None, {}),
        ("order 17", "order 17"),
        ("[1, 2]", "[1, 2]"),
        ('{"a": NaN}', '{"a": NaN}'),
        ('{"cut": ', '{"cut": '),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_arguments_when_they_are_the_text_of_an_object_then_they_become_it(given, kept):
    assert arguments_of(given) == kept


def test_read_chat_when_results_come_in_another_order_then_they_are_joined_on_their_ids():
    messages = read(
        called('{"order": 1}', '{"order": 2}'),
        {"role": "tool", "tool_call_id": "chatcmpl-tool-7f1", "content": "two"},
        {"role": "tool", "tool_call_id": "chatcmpl-tool-7f0", "content": "one"},
        called('{"order": 3}'),
        {"role": "tool", "tool_call_id": "chatcmpl-tool-7f0", "content": "three"},
    )
    assert [m.get("tool_call_id") for m in messages] == [None, "call_2", "call_1", None, "call_3"]
    assert "chatcmpl" not in str(messages)


def test_read_chat_when_calls_share_an_id_then_results_are_theirs_in_order():
    chat = Chat()
    chat.say("assistant", None, [("", "one", {}), ("", "two", {})])
    chat.result("", "of one")
    chat.result("", "of two")
    assert [m["tool_call_id"] for m in chat.messages[1:]] == ["call_1", "call_2"]


def test_read_chat_when_neither_calls_nor_results_have_ids_then_they_are_joined_in_order():
    calls = [{"function": {"name": name, "arguments": "{}"}} for name in ("put", "get")]
    messages = read(
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "content": "one"},
        {"role": "tool", "tool_call_id": "", "content": "two"},
    )
    assert [(m["tool_call_id"], m["content"]) for m in messages[1:]] == [("call_1", "one"), ("call_2", "two")]


def test_read_chat_when_a_message_has_no_calls_then_it_has_no_such_key():
    """Case DP-03: an object everywhere, and no key where there is nothing."""
    messages = read(called('{"order": 17}'), called({"order": "17"}), {"role": "user", "tool_calls": None})
    arguments = [m["tool_calls"][0]["function"]["arguments"] for m in messages[:2]]
    assert arguments == [{"order": 17}, {"order": "17"}]
    assert messages[2] == {"role": "user", "content": None}


def test_read_chat_when_there_is_more_in_a_message_then_only_the_chat_is_kept():
    messages = read(
        {"role": "developer", "content": "rules", "llm_args": {"api_key": "k"}},
        {
            "role": "user",
            "content": [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {}}],
        },
        {"role": "assistant", "content": "ok", "raw_data": {}, "reasoning": "hm", "usage": {}, "cost": 1},
    )
    assert messages == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "see\n[image_url]"},
        {"role": "assistant", "content": "ok"},
    ]


def test_read_chat_when_it_is_in_the_older_form_then_function_and_result_are_joined():
    messages = read(
        {"role": "assistant", "content": None, "function_call": {"name": "find", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "find", "content": "here"},
    )
    assert messages[0]["tool_calls"][0]["function"] == {"name": "find", "arguments": {"a": 1}}
    assert messages[1] == {"role": "tool", "content": "here", "tool_call_id": "call_1"}


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": "x"}, "role: is missing"),
        (
            {"role": "robot"},
            "role: expected one of system, developer, user, assistant, tool, function, found",
        ),
        ({"role": "user", "content": 5}, "content: expected text, found 5"),
        ({"role": "user", "content": [5]}, ", content[0]: expected an object, found 5"),
        ({"role": "assistant", "tool_calls": {}}, "tool_calls: expected an array, found an object"),
        (
            {"role": "assistant", "tool_calls": [{}]},
            ", tool_calls[0]: function: expected an object, found None",
        ),
        (called([1]), ", tool_calls[0], function: arguments: expected an object or its JSON text"),
    ],
)
def test_read_chat_when_a_message_is_wrong_then_its_place_is_named(message, problem):
    with pytest.raises(BadFile) as caught:
        read({"role": "user", "content": "hi"}, message)
    joint = "" if problem.startswith(",") else ": "
    assert str(caught.value).startswith(f"FILE, line 1, messages[1]{joint}{problem}")


def test_render_when_the_customer_calls_a_tool_then_the_judge_sees_it_on_the_customers_side():
    chat = Chat()
    chat.say("assistant", "Toggle it.", [("a", "lookup", {"id": 1})])
    chat.result("a", "line 1")
    chat.say("user", None, [("b", "toggle", {"on": True})])
    chat.result("b", "done")
    assert render_session(chat.messages, Hidden((), ())).splitlines() == [
        "agent: Toggle it.",
        'agent calls lookup({"id": 1})',
        "result of lookup: line 1",
        'customer calls toggle({"on": true})',
        "result of toggle: done",
    ]


def test_fingerprint_when_a_recorder_adds_empty_parts_then_it_is_the_same():
    assert fingerprint({"a": 1}) == fingerprint({"a": 1, "b": None, "c": []})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint(None, {}, {"a": None}) is None
