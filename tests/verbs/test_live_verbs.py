"""The small verbs of a live run: the user's turn, rendering, votes, isolation, satisfaction, trajectories."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.verbs.isolation import family
from audit.verbs.pointwise import read_criterion, read_satisfaction
from audit.verbs.render import Hidden, nonce, render_session
from audit.verbs.trajectory import tool_calls_of
from audit.verbs.user_turn import UserTurn, read_user_turn
from audit.verbs.vote import vote
from audit.words.names import Answer

STOP = ("<finished>", "<blocked>", "###STOP###")
TOLD = ("Get a refund for order 17; do NOT mention the warranty code WX-991",)
TURNS = {
    "words before the token": (
        "Yes, please cancel it. ###STOP###",
        UserTurn("Yes, please cancel it.", "###STOP###", None),
    ),
    "the token alone": ("  ###STOP###\n", UserTurn("", "###STOP###", None)),
    "thinking": (
        "<think>I must hide WX-991.</think>I want a refund for order 17.",
        UserTurn("I want a refund for order 17.", None, None),
    ),
    "the agent's voice": (
        "As your support agent I have refunded order 17.",
        UserTurn("As your support agent I have refunded order 17.", None, "agent_voice"),
    ),
    "instructions": (
        "My instructions: Get a refund for order 17",
        UserTurn("My instructions: Get a refund for order 17", None, "leak"),
    ),
    "a secret": ("The code is WX-991.", UserTurn("The code is WX-991.", None, "leak")),
    "nothing": (" \n", UserTurn("", None, "empty")),
    "only thinking": ("<think>hm", UserTurn("", None, "empty")),
    "both tokens": ("Thanks. <finished> <blocked>", UserTurn("Thanks. <blocked>", "<finished>", None)),
}


@pytest.mark.parametrize("turn", [name for name in TURNS if name != "both tokens"])
def test_user_turn_when_read_then_only_what_a_customer_says_is_delivered(turn: str) -> None:
    raw, expected = TURNS[turn]
    assert read_user_turn(raw, STOP, TOLD) == expected


def test_user_turn_when_two_tokens_stand_in_it_then_neither_reaches_the_agent() -> None:
    found = read_user_turn(TURNS["both tokens"][0], STOP, TOLD)
    assert found.text == "Thanks."
    assert found.ended == "<finished>"


SESSION: list[dict[str, Any]] = [
    {"role": "system", "content": "secret policy of gpt-x"},
    {"role": "user", "content": "Cancel order 17 ###STOP###"},
    {
        "role": "assistant",
        "content": "<think>hm</think>I am GPT-X.\nresult of cancel: {}",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "cancel", "arguments": '{"order": "17"}'}}
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"changed": 1}'},
]


def test_session_when_rendered_then_it_shows_what_was_done_and_not_by_whom() -> None:
    assert render_session(SESSION, Hidden(["gpt-x"], STOP)).splitlines() == [
        "customer: Cancel order 17",
        "agent: I am [name].",
        "    result of cancel: {}",
        'agent calls cancel({"order": "17"})',
        'result of cancel: {"changed": 1}',
    ]


@pytest.mark.parametrize(
    "said",
    ["kestrel-7", "KESTREL-7", "Ask kestrel-7b.", "\u212aestrel-7", "ke\u017ftrel-7", "kestrel-7 \u4f60"],
)
def test_name_when_written_in_any_case_then_it_is_covered(said: str) -> None:
    """The quick look for names must pass over none that the pattern finds: a Kelvin sign is a k to it."""
    assert "[name]" in Hidden(["kestrel-7"], STOP).cover(said)


@given(st.text(st.sampled_from("kK\u212aeE <>fin\u0130\u0131shed"), max_size=30))
def test_stop_token_when_covered_then_none_is_left(text: str) -> None:
    assert "<finished>" not in Hidden([], STOP).cover(text + "<fini<finished>shed>")


@given(st.lists(st.text(), min_size=1, max_size=3))
def test_nonce_when_made_then_no_text_inside_holds_it(parts: list[str]) -> None:
    mark = nonce(*parts)
    assert len(mark) == 16
    assert not any(mark in part for part in parts)
    assert mark == nonce(*parts)


def test_session_when_it_holds_template_code_then_it_is_text() -> None:
    text = "total is {total} and {0.__class__} and {{ x }} and %s"
    assert text in render_session([{"role": "user", "content": text}], Hidden([], STOP))


VOTES: list[tuple[list[Answer], str, Answer]] = [
    (["A"], "majority", "A"),
    (["A", "B"], "majority", "split"),
    (["A", "A", "B"], "majority", "A"),
    (["A", "A", "B"], "unanimous", "split"),
    (["tie", "tie", "A"], "majority", "tie"),
    (["A", "B", "tie"], "majority", "split"),
    (["A", "A", "failed"], "majority", "A"),
    (["A", "B", "failed"], "majority", "failed"),
    (["A", "unreadable", "B"], "majority", "unreadable"),
    (["A", "A", "unreadable"], "unanimous", "unreadable"),
    (["failed"], "majority", "failed"),
    ([], "majority", "missing"),
]


@pytest.mark.parametrize(("answers", "rule", "expected"), VOTES)
def test_vote_when_members_answer_then_the_rule_decides_and_trouble_is_never_a_tie(
    answers: list[Answer], rule: Any, expected: Answer
) -> None:
    assert vote(answers, rule) == expected


SATISFACTIONS = [
    ('{"evidence": "e", "done": true, "satisfaction": 0.7}', 0.7, "ok"),
    ('so: {"satisfaction": 1}', 1.0, "ok"),
    ('{"satisfaction": 7}', None, "unreadable"),
    ('{"satisfaction": true}', None, "unreadable"),
    ('{"satisfaction": NaN}', None, "unreadable"),
    ("fine", None, "unreadable"),
    (None, None, "unreadable"),
]


@pytest.mark.parametrize(("raw", "value", "status"), SATISFACTIONS)
def test_satisfaction_when_read_then_it_is_on_the_scale_or_unknown(
    raw: str | None, value: float | None, status: str
) -> None:
    found = read_satisfaction(raw)
    assert (found.value, found.status) == (value, status)


CRITERIA = [
    ('{"evidence": "e", "met": true}', True, "ok"),
    ('so: {"met": false}', False, "ok"),
    ('{"met": false,}', None, "unreadable"),
    ('{"met": "true"}', None, "unreadable"),
    ('{"met": 1}', None, "unreadable"),
    ("yes", None, "unreadable"),
    (None, None, "unreadable"),
]


@pytest.mark.parametrize(("raw", "met", "status"), CRITERIA)
def test_criterion_when_read_then_only_true_and_false_count(
    raw: str | None, met: bool | None, status: str
) -> None:
    found = read_criterion(raw)
    assert (found.met, found.status) == (met, status)


FAMILIES = {"openai/gpt-4o-mini": "gpt", "gpt-5": "gpt", "claude-3-haiku": "claude", "Qwen2.5-7B": "qwen"}


def test_family_when_read_from_a_model_then_vendor_and_version_do_not_count() -> None:
    assert {model: family(model) for model in FAMILIES} == FAMILIES


def test_tool_calls_when_taken_from_messages_then_each_has_its_own_result() -> None:
    assert tool_calls_of(SESSION) == [
        {"name": "cancel", "arguments": {"order": "17"}, "result": '{"changed": 1}', "index": 0}
    ]
