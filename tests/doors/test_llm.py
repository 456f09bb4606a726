"""The door to models, over real HTTP against a server that misbehaves as it is told."""

import asyncio
import gc
import logging
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from server import ChatServer, Load, Say, refusing

from audit.doors.llm import Models, clean_base_url, redact
from audit.doors.llm_answer import retry_after_s
from audit.doors.llm_pace import Window, jittered, wait_s
from audit.doors.llm_request import named_refusal
from audit.words.calls import Message, Reply, Usage
from audit.words.errors import AuditError
from audit.words.profiles import Endpoint

KEY = "sk-judge/key+with=odd&letters"
USER: Message = {"role": "user", "content": "Who did the task?"}
SYSTEM: Message = {"role": "system", "content": "You judge."}
SCHEMA = {"type": "object", "properties": {"winner": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}, "strict": True}}

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(autouse=True)
def quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that no server asked for are short, so that the tests are."""
    monkeypatch.setattr("audit.doors.llm_pace._FIRST_WAIT_S", 0.02)


def profile(server: ChatServer | None = None, **fields: Any) -> Endpoint:
    base_url = server.base_url if server else "http://127.0.0.1:9/v1"
    given = {"name": "judge", "base_url": base_url, "api_key_env": "JUDGE_KEY", "model": "asked"}
    return Endpoint(**{**given, "role": "llm_judge", **fields})


async def ask(endpoint: Endpoint, *messages: Message, **more: Any) -> Reply:
    async with Models({"JUDGE_KEY": KEY}) as models:
        return await models.chat(endpoint, messages or (USER,), **more)


async def answered(*script: Say, **fields: Any) -> tuple[Reply, ChatServer]:
    async with ChatServer(script) as server:
        return await ask(profile(server, **fields)), server


# --- what a gateway may answer ---------------------------------------------------------------------------

FENCED = '```json\n{"winner": "A"}\n```'
HALF = '{"winner":"A","reason":"the agent asked for the order num'
LENGTH_THINKING = Say(text=None, finish="length", message={"reasoning_content": "I think A"})


@pytest.mark.parametrize(
    ("said", "status", "content", "error"),
    [
        pytest.param(Say(text=FENCED), "ok", FENCED, None, id="fenced"),
        pytest.param(Say(text=HALF, finish="length"), "truncated", HALF, None, id="truncated"),
        pytest.param(
            Say(text="I cannot", finish="content_filter"),
            "truncated",
            "I cannot",
            None,
            id="filtered in the midst",
        ),
        pytest.param(
            LENGTH_THINKING, "error", None, "empty content, finish_reason=length", id="null, all thought"
        ),
        pytest.param(Say(text=""), "error", "", "empty content, finish_reason=stop", id="empty"),
        pytest.param(Say(text=" \n"), "error", " \n", "empty content, finish_reason=stop", id="blank"),
        pytest.param(
            Say(text=None, finish="content_filter"),
            "error",
            None,
            "empty content, finish_reason=content_filter",
            id="null, filtered",
        ),
        pytest.param(
            Say(text=None, finish=None),
            "error",
            None,
            "empty content, finish_reason=null",
            id="no reason given",
        ),
        pytest.param(
            Say(text=None, message={"refusal": "I will not"}),
            "error",
            None,
            "empty content, finish_reason=stop, refusal: I will not",
            id="refusal",
        ),
        pytest.param(
            Say(body={"choices": [], "usage": Say().usage}),
            "error",
            None,
            "empty choices",
            id="empty choices",
        ),
        pytest.param(
            Say(body={"error": {"message": "no credit", "code": 402}}),
            "error",
            None,
            "error under status 200: no credit (402)",
            id="200 with error",
        ),
        pytest.param(
            Say(body={"error": "overloaded"}),
            "error",
            None,
            "error under status 200: overloaded",
            id="200 with error text",
        ),
        pytest.param(Say(body={"id": 1}), "error", None, 'no choices: {"id": 1}', id="no choices"),
        pytest.param(
            Say(body={"choices": [{"error": {"message": "upstream died"}, "message": {"content": "half"}}]}),
            "error",
            "half",
            "error in the answer: upstream died",
            id="error in the choice",
        ),
        pytest.param(
            Say(body=b"<html>\n Welcome</html>", headers={"Content-Type": "text/html; charset=utf-8"}),
            "error",
            None,
            "answer is not JSON (text/html): <html> Welcome</html>",
            id="html",
        ),
        pytest.param(
            Say(body=b'{"choices": ['),
            "error",
            None,
            'answer is not JSON (application/json): {"choices": [',
            id="half of a body",
        ),
        pytest.param(Say(body=[1]), "error", None, "answer is not a JSON object: [1]", id="a list"),
        pytest.param(
            Say(body=None, message={"content": [{"type": "text", "text": "A"}]}), "ok", "A", None, id="parts"
        ),
        pytest.param(
            Say(message={"content": [{"type": "thinking", "text": "A"}]}),
            "error",
            None,
            "empty content, finish_reason=stop",
            id="only thinking parts",
        ),
        pytest.param(
            Say(body={"choices": [7]}), "error", None, "empty content, finish_reason=null", id="nonsense"
        ),
    ],
)
async def test_chat_when_answered_then_reply_is_what_it_is(
    said: Say, status: str, content: str | None, error: str | None
) -> None:
    reply, server = await answered(said)
    assert (reply.status, reply.content, reply.error) == (status, content, error)
    assert (reply.http_attempts, server.requests) == (1, 1)


async def test_chat_when_json_comes_under_another_type_then_it_is_read() -> None:
    reply, _ = await answered(Say(text="A", headers={"Content-Type": "text/plain"}))
    assert (reply.status, reply.content) == ("ok", "A")


async def test_chat_when_emoji_is_cut_then_the_lone_surrogate_is_kept() -> None:
    reply, _ = await answered(Say(text="cut \ud83d", finish="length"))
    assert (reply.status, reply.content) == ("truncated", "cut \ud83d")


@pytest.mark.parametrize("said", [LENGTH_THINKING, Say(body={"choices": [], "usage": Say().usage})])
async def test_chat_when_there_is_no_content_then_tokens_are_still_recorded(said: Say) -> None:
    reply, _ = await answered(said)
    assert reply.usage == Usage(100, 20, None, 120)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Usage()),
        ({"prompt_tokens": None, "completion_tokens": "60", "total_tokens": -1}, Usage()),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 60,
                "total_tokens": 160,
                "completion_tokens_details": {"reasoning_tokens": 45},
            },
            Usage(100, 60, 45, 160),
        ),
    ],
)
async def test_chat_when_usage_is_given_or_not_then_unknown_stays_unknown(
    usage: dict[str, Any] | None, expected: Usage
) -> None:
    reply, _ = await answered(Say(usage=usage))
    assert (reply.status, reply.usage) == ("ok", expected)


async def test_chat_when_tools_are_called_then_calls_are_kept_as_given() -> None:
    calls = [{"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"order": 7'}}]
    said = Say(text=None, finish="tool_calls", message={"tool_calls": calls})
    async with ChatServer([said]) as server:
        reply = await ask(profile(server), tools=[TOOL])
    assert (reply.status, reply.content, reply.tool_calls) == ("ok", None, tuple(calls))
    assert server.bodies[0]["tools"] == [TOOL]


async def test_chat_when_asked_then_body_and_reply_say_what_was_sent() -> None:
    fields = {"temperature": 0.0, "max_tokens": 50, "seed": 1, "extra": {"top_p": 0.5}}
    async with ChatServer() as server:
        reply = await ask(profile(server, **fields), SYSTEM, USER, seed=2, response_schema=SCHEMA)
    assert server.bodies == [
        {
            "model": "asked",
            "messages": [SYSTEM, USER],
            "temperature": 0.0,
            "max_tokens": 50,
            "seed": 2,
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
            },
            "top_p": 0.5,
        }
    ]
    assert reply.request == server.bodies[0]
    assert (reply.served_model, reply.finish_reason, reply.refused) == ("served", "stop", ())
    assert reply.latency_ms is not None
    assert 0 < reply.latency_ms < 5000


# --- failures, retries, deadlines ------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
async def test_chat_when_it_fails_once_then_is_asked_again(status: int) -> None:
    reply, server = await answered(Say(status=status, body={"error": {"message": "later"}}))
    assert (reply.status, reply.content) == ("ok", "fine")
    assert (reply.http_attempts, server.requests) == (2, 2)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
async def test_chat_when_the_request_is_at_fault_then_is_asked_once(status: int) -> None:
    reply, server = await answered(Say(status=status, body={"error": {"message": "no"}}))
    assert (reply.status, reply.content, server.requests) == ("error", None, 1)
    assert reply.error is not None
    assert reply.error.startswith(f"HTTP {status}")
    assert reply.error.endswith(": no")


async def test_chat_when_gateway_always_answers_503_then_exactly_the_attempts_are_sent() -> None:
    async with ChatServer() as server:
        server.default = Say(status=503, body={"error": {"message": "busy"}})
        reply = await ask(profile(server, attempts=3))
    assert (server.requests, reply.http_attempts) == (3, 3)
    assert (reply.status, reply.error) == ("error", "HTTP 503: busy")


async def test_chat_when_connection_is_dropped_then_is_asked_again() -> None:
    reply, server = await answered(Say(drop=True))
    assert (reply.status, reply.http_attempts, server.requests) == ("ok", 2, 2)


async def test_chat_when_nobody_listens_then_error_names_the_cause() -> None:
    async with ChatServer() as server:
        endpoint = profile(server, attempts=2)
    reply = await ask(endpoint)
    assert (reply.status, reply.http_attempts) == ("error", 2)
    assert reply.error is not None
    assert reply.error.startswith("connection failed: ")
    assert str(server.port) in reply.error


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_chat_when_429_says_when_then_it_waits_until_then(form: str) -> None:
    async with ChatServer() as server:
        # A date has no fractions: two seconds from now is more than one second away.
        later = format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)
        wanted = {"seconds": "1", "date": later}[form]
        server.script = [Say(status=429, headers={"Retry-After": wanted}, body={})]
        reply = await ask(profile(server))
    assert (reply.status, reply.http_attempts) == ("ok", 2)
    assert 0.9 < server.times[1] - server.times[0] < 2.5


async def test_chat_when_retry_after_is_an_hour_then_only_the_cap_is_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("audit.doors.llm_pace.RETRY_AFTER_CAP_S", 0.2)
    reply, server = await answered(Say(status=503, headers={"Retry-After": "3600"}, body={}))
    assert reply.status == "ok"
    assert 0.2 <= server.times[1] - server.times[0] < 1


@pytest.mark.parametrize(
    "slots", [1, 2], ids=["the others not begun", "the others waiting for a slot of all"]
)
async def test_chat_when_one_is_refused_then_all_of_its_endpoint_wait_and_no_other(slots: int) -> None:
    refusal = Say(status=429, headers={"Retry-After": "0.5"}, body={})
    async with (
        ChatServer([refusal]) as server,
        ChatServer() as other_server,
        Models({"JUDGE_KEY": KEY}, concurrency=2 if slots == 1 else 1) as models,
    ):
        line, other = profile(server, concurrency=slots), profile(other_server, name="other")
        replies = await asyncio.gather(*(models.chat(e, [USER]) for e in (line, line, line, other)))
    assert [reply.status for reply in replies] == ["ok"] * 4
    assert sorted(reply.http_attempts for reply in replies) == [1, 1, 1, 2]
    first, *following = server.times
    assert len(following) == 3
    assert min(following) - first >= 0.5
    assert other_server.times[0] - first < 0.4


@pytest.mark.parametrize(
    "said",
    [Say(hang=True), Say(drip=1.0), Say(delay=30.0)],
    ids=["says nothing", "one byte a second", "too late"],
)
async def test_chat_when_the_answer_stalls_then_is_cut_at_the_deadline(said: Say) -> None:
    began = time.monotonic()
    reply, server = await answered(said, timeout_s=0.5, attempts=1)
    assert (reply.status, reply.error) == ("error", "timeout: no whole answer within 0.5 s")
    assert (reply.http_attempts, server.requests) == (1, 1)
    assert 0.5 <= time.monotonic() - began < 2


async def test_chat_when_others_stall_then_good_calls_still_end_well() -> None:
    script = [Say(), Say(hang=True), Say(drip=1.0)]
    async with ChatServer(script) as server, Models({"JUDGE_KEY": KEY}) as models:
        endpoint = profile(server, timeout_s=0.5, attempts=1)
        replies = await asyncio.gather(*(models.chat(endpoint, [USER]) for _ in script))
    assert (
        sorted(reply.error or "fine" for reply in replies)
        == ["fine"] + ["timeout: no whole answer within 0.5 s"] * 2
    )


async def test_chat_when_cancelled_then_no_connection_or_slot_stays_open() -> None:
    async with ChatServer() as server, Models({"JUDGE_KEY": KEY}, concurrency=2) as models:
        server.default = Say(hang=True)
        endpoint = profile(server)
        tasks = [asyncio.create_task(models.chat(endpoint, [USER])) for _ in range(6)]
        while server.requests < 2:
            await asyncio.sleep(0.01)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(end, asyncio.CancelledError) for end in ended)
        server.default = Say()
        replies = await asyncio.gather(*(models.chat(endpoint, [USER]) for _ in range(4)))
        assert [reply.status for reply in replies] == ["ok"] * 4
        assert len(server.connections) <= 2
    gc.collect()


async def test_chat_when_many_are_asked_then_no_more_than_allowed_are_under_way() -> None:
    async with (
        ChatServer(load=Load(latency=0.05)) as server,
        Models({"JUDGE_KEY": KEY}, concurrency=5) as models,
    ):
        narrow, wide = profile(server, concurrency=2), profile(server, name="wide")
        await asyncio.gather(*(models.chat(narrow, [USER]) for _ in range(6)))
        assert server.max_under_way == 2
        await asyncio.gather(*(models.chat(e, [USER]) for e in (narrow, wide) for _ in range(20)))
        assert server.max_under_way == 5


async def test_chat_when_rpm_is_set_then_requests_keep_to_it() -> None:
    async with ChatServer() as server, Models({"JUDGE_KEY": KEY}) as models:
        endpoint = profile(server, rpm=600)  # ten a second, ten at once
        await asyncio.gather(*(models.chat(endpoint, [USER]) for _ in range(15)))
    assert 0.4 < server.times[-1] - server.times[0] < 2


async def test_chat_when_tpm_is_set_then_what_was_really_used_is_charged() -> None:
    used = {"prompt_tokens": 900, "completion_tokens": 100, "total_tokens": 1000}
    async with ChatServer() as server, Models({"JUDGE_KEY": KEY}) as models:
        server.default = Say(usage=used)
        endpoint = profile(server, tpm=60_000, max_tokens=1)  # 1,000 a second, 10,000 at once
        for _ in range(12):
            await models.chat(endpoint, [USER])
    assert 0.5 < server.times[-1] - server.times[0] < 4


# --- what a gateway refuses to take ----------------------------------------------------------------------


def picky(refuses: Callable[[dict[str, Any]], Say | None]) -> Callable[[dict[str, Any]], Say]:
    return lambda body: refuses(body) or Say()


def no_schema(body: dict[str, Any]) -> Say | None:
    kind = body.get("response_format", {}).get("type")
    if kind == "json_schema":
        return refusing("Invalid parameter: 'response_format' of type 'json_schema' is not supported")
    return None


def no_format(body: dict[str, Any]) -> Say | None:
    return refusing("response_format is not supported by this model") if "response_format" in body else None


def no_temperature(body: dict[str, Any]) -> Say | None:
    text = (
        "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is."
    )
    return refusing(text, param="temperature") if "temperature" in body else None


def no_max_tokens(body: dict[str, Any]) -> Say | None:
    text = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    return refusing(text, param="max_tokens", code="unsupported_parameter") if "max_tokens" in body else None


def no_seed(body: dict[str, Any]) -> Say | None:
    fault = {
        "type": "extra_forbidden",
        "loc": ["body", "seed"],
        "msg": "Extra inputs are not permitted",
        "input": body,
    }
    return Say(status=422, body={"detail": [fault]}) if "seed" in body else None


def no_system(body: dict[str, Any]) -> Say | None:
    has_system = any(message["role"] == "system" for message in body["messages"])
    return refusing("System role not supported") if has_system else None


def no_strict(body: dict[str, Any]) -> Say | None:
    is_strict = any("strict" in tool["function"] for tool in body.get("tools", ()))
    return refusing("tools[0].function: unknown field `strict`") if is_strict else None


def without(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda body: name not in body


@pytest.mark.parametrize(
    ("refuses", "refused", "holds"),
    [
        (no_schema, ("json_schema",), lambda body: body["response_format"] == {"type": "json_object"}),
        (no_format, ("json_schema", "json_object"), without("response_format")),
        (no_temperature, ("temperature",), without("temperature")),
        (
            no_max_tokens,
            ("max_tokens",),
            lambda b: "max_tokens" not in b and b["max_completion_tokens"] == 50,
        ),
        (no_seed, ("seed",), without("seed")),
        (
            no_system,
            ("system_role",),
            lambda b: b["messages"] == [{"role": "user", "content": "You judge.\n\nWho did the task?"}],
        ),
        (no_strict, ("strict",), lambda b: "strict" not in b["tools"][0]["function"]),
    ],
)
async def test_chat_when_a_part_is_refused_then_it_is_left_out_from_then_on(
    refuses: Callable[[dict[str, Any]], Say | None],
    refused: tuple[str, ...],
    holds: Callable[[dict[str, Any]], bool],
) -> None:
    async with ChatServer(answer=picky(refuses)) as server, Models({"JUDGE_KEY": KEY}) as models:
        endpoint = profile(server, temperature=0.0, max_tokens=50, seed=1, attempts=1)
        wish: dict[str, Any] = {"tools": [TOOL], "response_schema": SCHEMA}
        first = await models.chat(endpoint, [SYSTEM, USER], **wish)
        second = await models.chat(endpoint, [SYSTEM, USER], **wish)
    assert [first.status, second.status] == ["ok", "ok"]
    assert (first.http_attempts, second.http_attempts) == (1 + len(refused), 1)
    assert first.refused == second.refused == refused
    assert holds(first.request)
    assert holds(server.bodies[-1])
    assert first.request == second.request == server.bodies[-1]


async def test_chat_when_everything_is_refused_then_each_is_learned_once() -> None:
    rules = [no_format, no_temperature, no_max_tokens, no_seed, no_system, no_strict]

    def refuses(body: dict[str, Any]) -> Say | None:
        return next((said for rule in rules if (said := rule(body))), None)

    async with ChatServer(answer=picky(refuses)) as server, Models({"JUDGE_KEY": KEY}) as models:
        endpoint = profile(server, temperature=0.0, max_tokens=50, seed=1, attempts=1)
        reply = await models.chat(endpoint, [SYSTEM, USER], tools=[TOOL], response_schema=SCHEMA)
        plain = await models.chat(replace(endpoint), [USER])
    assert reply.status == "ok"
    assert reply.http_attempts == 8
    assert len(reply.refused) == 7
    assert plain.http_attempts == 1
    assert set(plain.refused) == {"temperature", "max_tokens", "seed"}  # only what this call held


async def test_chat_when_the_adapted_request_is_no_better_then_nothing_is_learned() -> None:
    async with ChatServer() as server, Models({"JUDGE_KEY": KEY}) as models:
        endpoint = profile(server, temperature=0.0)
        server.default = refusing("temperature is not supported, nor is anything else")
        failed = await models.chat(endpoint, [USER])
        server.default = Say()
        good = await models.chat(endpoint, [USER])
    assert (failed.status, failed.refused, failed.http_attempts) == ("error", ("temperature",), 2)
    assert (good.refused, good.request["temperature"]) == ((), 0.0)


@pytest.mark.parametrize(
    "complaint",
    [
        "max_tokens is too large: 99999. This model supports at most 4096 completion tokens",
        "temperature must be between 0 and 1",
        "This model's maximum context length is 4096 tokens, you asked for max_tokens=5000",
        "Invalid API key",
        "the system is down for maintenance",
    ],
)
async def test_named_refusal_when_the_complaint_is_of_a_value_then_nothing_is_left_out(
    complaint: str,
) -> None:
    body = {"messages": [SYSTEM, USER], "temperature": 2.0, "max_tokens": 99999}
    assert named_refusal(body, complaint) is None


@pytest.mark.parametrize(
    "complaint",
    [
        "System role not supported",
        "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "System messages are not allowed",
    ],
)
async def test_named_refusal_when_words_for_the_system_role_differ_then_it_is_known(complaint: str) -> None:
    assert named_refusal({"messages": [SYSTEM, USER]}, complaint) == "system_role"


# --- keys, addresses, the environment --------------------------------------------------------------------


async def test_chat_when_the_key_is_not_set_then_nothing_is_sent_and_no_other_key_is_taken(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-company-123")
    async with ChatServer() as server:
        for keys in ({}, {"JUDGE_KEY": None}, {"JUDGE_KEY": " "}, {"OPENAI_API_KEY": "sk-company-123"}):
            async with Models(keys) as models:
                with pytest.raises(AuditError) as caught:
                    await models.chat(profile(server), [USER])
            assert str(caught.value) == (
                "profile 'judge' needs a key in JUDGE_KEY, which is not set: export JUDGE_KEY=..."
            )
        assert server.requests == 0
    assert "sk-company-123" not in caplog.text


async def test_chat_when_no_key_is_named_then_only_this_machine_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-company-123")
    async with ChatServer() as server:
        reply = await ask(profile(server, api_key_env=None))
    assert reply.status == "ok"
    assert server.headers[0]["authorization"] == "Bearer none"
    with pytest.raises(
        AuditError, match=r"profile 'judge' names no key for https://gateway\.example/v1: set api_key_env"
    ):
        await ask(profile(base_url="https://gateway.example/v1", api_key_env=None))


async def test_chat_when_key_cannot_be_a_header_then_error_does_not_show_it() -> None:
    async with Models({"JUDGE_KEY": "sk-\u201cquoted\u201d"}) as models:
        with pytest.raises(AuditError) as caught:
            await models.chat(profile(), [USER])
    assert str(caught.value) == "profile 'judge': JUDGE_KEY holds characters that no HTTP header takes"


async def test_chat_when_the_environment_has_left_overs_then_they_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    left_over = {
        "OPENAI_BASE_URL": "",
        "OPENAI_ORG_ID": "org-left",
        "OPENAI_PROJECT_ID": "proj-left",
        "OPENAI_ADMIN_KEY": "sk-admin-left",
        "OPENAI_CUSTOM_HEADERS": "X-Left: over\nAuthorization: Bearer sk-left",
        "HTTP_PROXY": "http://127.0.0.1:1",
        "ALL_PROXY": "http://127.0.0.1:1",
    }
    for name, value in left_over.items():
        monkeypatch.setenv(name, value)
    reply, server = await answered(Say())
    assert reply.status == "ok"
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    sent = " ".join(f"{name}: {value}" for name, value in server.headers[0].items())
    assert "left" not in sent
    assert not {"openai-organization", "openai-project"} & server.headers[0].keys()
    # Nor is the gateway told of this machine.
    assert [name for name in server.headers[0] if name.startswith("x-stainless")] == []


async def test_chat_when_two_profiles_share_address_and_key_then_they_share_connections() -> None:
    async with ChatServer() as server, Models({"JUDGE_KEY": KEY, "OTHER": "sk-other"}) as models:
        for endpoint in (profile(server), profile(server, name="b"), profile(server, api_key_env="OTHER")):
            await models.chat(endpoint, [USER])
        assert len(server.connections) == 2
    assert [headers["authorization"] for headers in server.headers] == [f"Bearer {KEY}"] * 2 + [
        "Bearer sk-other"
    ]


@pytest.mark.parametrize(
    "echo",
    [
        KEY,
        quote(KEY, safe=""),
        quote(KEY, safe="").lower(),
        KEY.replace("/", "\\/"),
        f"{{'Authorization': 'Bearer {KEY}'}}",
    ],
)
@pytest.mark.parametrize("status", [200, 401, 422])
async def test_chat_when_the_gateway_echoes_the_key_then_it_is_nowhere_in_the_reply(
    echo: str, status: int
) -> None:
    body = {"error": {"message": f"bad key {echo} in request"}}
    reply, _ = await answered(Say(status=status, body=body, headers={"X-Echo": KEY, "WWW-Authenticate": KEY}))
    assert reply.status == "error"
    assert reply.error is not None
    assert "[key]" in reply.error
    for form in {KEY, quote(KEY), quote(KEY, safe=""), quote(KEY, safe="").lower()}:
        assert form not in repr(reply)


async def test_chat_when_a_long_error_holds_the_key_at_the_cut_then_no_half_of_it_is_left() -> None:
    for padding in range(460, 500, 5):
        reply, _ = await answered(Say(status=401, body=("x" * padding + KEY + "y" * 99).encode()))
        assert reply.error is not None
        assert "sk-j" not in reply.error
        assert len(reply.error) <= 500


async def test_chat_when_request_or_content_hold_a_key_then_both_are_stored_without() -> None:
    said = Say(text=f"Your key is {KEY}")
    async with ChatServer([said]) as server:
        reply = await ask(
            profile(server, extra={"user": KEY}), {"role": "user", "content": f"Is {KEY} good?"}
        )
    assert server.bodies[0]["user"] == KEY
    assert reply.request["user"] == "[key]"
    assert reply.request["messages"][0]["content"] == "Is [key] good?"
    assert reply.content == "Your key is [key]"


async def test_redact_when_a_value_is_short_or_empty_then_words_are_left_alone() -> None:
    assert redact("a cat sat", ["", " ", "a", "cat"]) == "a cat sat"
    assert redact("sk-1234567 and sk-1234", ["sk-1234", "sk-1234567"]) == "[key] and [key]"


@pytest.mark.parametrize(
    ("given", "base_url", "query"),
    [
        ("http://127.0.0.1:9/v1", "http://127.0.0.1:9/v1", {}),
        ("http://127.0.0.1:9/v1/", "http://127.0.0.1:9/v1", {}),
        (" http://127.0.0.1:9/v1// ", "http://127.0.0.1:9/v1", {}),
        (
            "http://127.0.0.1:9/openai?api-version=2025-04-01",
            "http://127.0.0.1:9/openai",
            {"api-version": "2025-04-01"},
        ),
        ("http://127.0.0.1:9/v1/chat/completions", "http://127.0.0.1:9/v1", {}),
        ("http://127.0.0.1:9/v1/chat/completions/?a=", "http://127.0.0.1:9/v1", {"a": ""}),
        ("http://127.0.0.1:9", "http://127.0.0.1:9", {}),
        ("http://127.0.0.1:9/v1#top", "http://127.0.0.1:9/v1", {}),
        ("offline://", "offline://", {}),
        ("offline://shop/", "offline://shop", {}),
    ],
)
async def test_clean_base_url_when_it_can_be_meant_then_path_and_query_part(
    given: str, base_url: str, query: dict[str, str]
) -> None:
    assert clean_base_url(given) == (base_url, query)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            "http://127.0.0.1:9/v1?utm_source=mail&api-version=1",
            "base_url 'http://127.0.0.1:9/v1' carries tracking parameters (utm_source): "
            "write http://127.0.0.1:9/v1?api-version=...",
        ),
        (
            "https://g.example/v1/?gclid=1&fbclid=2",
            "base_url 'https://g.example/v1/' carries tracking parameters (gclid, fbclid): "
            "write https://g.example/v1",
        ),
        ("g.example/v1", "base_url 'g.example/v1' is not an address: write it as https://g.example/v1"),
        ("", "base_url '' is not an address: write it as https://HOST/v1"),
        (
            "g.example/v1?api-key=secret#secret",
            "base_url 'g.example/v1' is not an address: write it as https://g.example/v1",
        ),
        ("http://[::1/v1?k=secret", "base_url is not an address: write it as https://[::1/v1"),
        (
            "https://me:se/cret@g.example/v1",
            "base_url is not an address: write it as https://g.example/v1",
        ),
        (
            "https://me:secret@g.example/v1?key=secret",
            "base_url holds a password: write https://g.example/v1 and name the key in api_key_env",
        ),
    ],
)
async def test_clean_base_url_when_it_cannot_be_meant_then_the_right_one_is_proposed(
    given: str, message: str
) -> None:
    with pytest.raises(AuditError) as caught:
        clean_base_url(given)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("path", "target"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/openai?api-version=2025-04-01", "/openai/chat/completions?api-version=2025-04-01"),
        ("/v1/chat/completions", "/v1/chat/completions"),
        ("", "/chat/completions"),
    ],
)
async def test_chat_when_base_url_is_as_pasted_then_the_right_target_is_called(
    path: str, target: str
) -> None:
    async with ChatServer() as server:
        reply = await ask(profile(base_url=f"http://127.0.0.1:{server.port}{path}"))
    assert (reply.status, server.targets) == ("ok", [target])


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("", "/chat/completions (is /v1 missing in base_url?)"),
        ("/v2?key=sesame-123", "/v2/chat/completions"),
    ],
)
async def test_chat_when_404_then_error_shows_the_url_that_was_called(path: str, shown: str) -> None:
    async with ChatServer([Say(status=404, body=b"no such page")]) as server:
        root = f"http://127.0.0.1:{server.port}"
        reply = await ask(profile(base_url=root + path))
    assert reply.error == f"HTTP 404 at {root}{shown}: no such page"


async def test_chat_when_redirected_then_the_prompt_is_not_sent_on() -> None:
    async with ChatServer() as stranger:
        to = stranger.base_url + "/chat/completions"
        reply, server = await answered(Say(status=307, headers={"Location": f"{to}?a=b"}, body={}))
    assert (server.requests, stranger.requests) == (1, 0)
    called = f"{server.base_url}/chat/completions"
    assert reply.error == f"HTTP 307 at {called}: it redirects to {to}, write that as base_url"


# --- models in this process ------------------------------------------------------------------------------


async def test_chat_when_offline_then_the_longest_fitting_transport_answers() -> None:
    def serve(name: str) -> httpx2.MockTransport:
        choice = {"message": {"content": name}, "finish_reason": "stop"}
        return httpx2.MockTransport(lambda request: httpx2.Response(200, json={"choices": [choice]}))

    transports = {"offline://": serve("any"), "offline://shop": serve("shop")}
    async with Models({}, transports=transports) as models:
        found = [
            (await models.chat(profile(base_url=url, api_key_env=None), [USER])).content
            for url in ("offline://", "offline://desk/agent-1", "offline://shop", "offline://shop/x")
        ]
    assert found == ["any", "any", "shop", "shop"]


async def test_chat_when_nothing_serves_an_offline_address_then_says_so() -> None:
    async with Models({}) as models:
        with pytest.raises(AuditError, match="profile 'judge': nothing is served at offline://x"):
            await models.chat(profile(base_url="offline://x", api_key_env=None), [USER])


# --- the server itself -----------------------------------------------------------------------------------


async def test_server_when_run_by_itself_then_prints_its_port_and_counts() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.server",
        "--port",
        "0",
        "--rps",
        "2",
        "--text",
        "A",
        "--retry-after",
        "",
    ]
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE, cwd=Path(__file__).parents[2])
    try:
        assert process.stdout is not None
        url = f"http://127.0.0.1:{int(await process.stdout.readline())}"
        endpoint = profile(base_url=url, attempts=1, concurrency=1)
        async with Models({"JUDGE_KEY": KEY}) as models:
            replies = [await models.chat(endpoint, [USER]) for _ in range(3)]
        async with httpx2.AsyncClient(trust_env=False) as client:
            stats = (await client.get(f"{url}/stats")).json()
    finally:
        process.terminate()
        await process.wait()
    assert [(reply.content, reply.error) for reply in replies[:2]] == [("A", None)] * 2
    assert replies[2].error == "HTTP 429: rate limited (rate_limit_exceeded)"
    assert {name: stats[name] for name in ("requests", "200", "429")} == {"requests": 3, "200": 2, "429": 1}


# --- waiting, as plain functions -------------------------------------------------------------------------

NOON = datetime(2026, 11, 2, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Mon, 02 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"retry-after": "Mon, 02 Nov 2026 11:00:00 GMT"}, 0.0),
    ],
)
async def test_retry_after_when_given_in_any_form_then_is_seconds(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after_s(headers, NOON) == seconds


async def test_wait_when_nothing_is_asked_then_doubles_with_jitter_up_to_a_cap() -> None:
    assert [wait_s(attempt, None) for attempt in (1, 2, 3, 500)] == [0.02, 0.04, 0.08, 8]
    assert (wait_s(1, 0.7), wait_s(9, 1e9)) == (0.7, 60)
    drawn = [jittered(10) for _ in range(200)]
    assert 10 <= min(drawn) < 10.1 < 10.4 < max(drawn) <= 10.5


async def test_window_when_refused_then_shrinks_by_the_share_and_grows_back_with_time() -> None:
    window = Window(100)
    window.refused(now=10.0, sent_at=9.0, wait=1.0)
    assert window.size == 80
    for _ in range(39):
        window.refused(now=10.1, sent_at=9.5, wait=1.0)
    assert window.size == 60  # forty of a hundred were refused in one go
    window.succeeded(10.5)
    assert window.size == 60  # not while all wait
    window.succeeded(window.not_before + 2)
    assert window.size == pytest.approx(66)
    for _ in range(66):
        window.refused(now=14.0, sent_at=13.5, wait=1.0)
    assert window.size == pytest.approx(66 / 4)
    window.succeeded(999.0)
    assert window.size == 100


async def test_window_when_a_call_is_cancelled_as_its_turn_comes_then_the_next_gets_it() -> None:
    window = Window(1)
    await window.enter(is_retry=False)
    cancelled, fresh, retried = (
        asyncio.create_task(window.enter(is_retry=is_retry)) for is_retry in (False, False, True)
    )
    await asyncio.sleep(0)
    retried.cancel()
    await asyncio.sleep(0)
    window.leave()  # hands the slot to the first that waits, which is cancelled before it can run
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    await asyncio.wait_for(fresh, 1)


async def test_import_when_no_model_is_asked_then_the_client_is_not_loaded() -> None:
    code = "import sys, audit.doors.llm; sys.exit('openai' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, cwd=Path(__file__).parents[2])
    assert await process.wait() == 0
