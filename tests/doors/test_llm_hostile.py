"""Gateways that send what no gateway should: each answer becomes a reply, and no reply holds a key."""

import asyncio
import gzip
import json
import selectors
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx2
import pytest
from server import ChatServer, Say, refusing
from sqlalchemy import text

from audit.doors import db, store, store_live
from audit.doors.llm import Models
from audit.doors.llm_answer import retry_after_s
from audit.doors.llm_client import LONGEST_ANSWER
from audit.doors.llm_pace import Pace
from audit.doors.llm_url import shown_url
from audit.words.calls import Reply, Usage
from audit.words.profiles import Endpoint
from audit.words.records import JudgeLog, Run, Session

KEY = "sk-judge/key+with=odd&letters"
USER = {"role": "user", "content": "Who did the task?"}
NOW = "2026-03-05T17:15:00.000Z"
on_asyncio = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def profile(base_url: str, **fields: Any) -> Endpoint:
    given = {"name": "judge", "base_url": base_url, "api_key_env": "JUDGE_KEY", "model": "asked"}
    return Endpoint(**{**given, "role": "llm_judge", "attempts": 1, **fields})


async def ask(base_url: str, key: str = KEY, **fields: Any) -> Reply:
    async with Models({"JUDGE_KEY": key}) as models:
        return await models.chat(profile(base_url, **fields), [USER])


async def answered(said: Say, key: str = KEY, **fields: Any) -> Reply:
    async with ChatServer([said]) as server:
        return await ask(server.base_url, key, **fields)


def choice(message: dict[str, Any], **more: Any) -> bytes:
    return json.dumps({"choices": [{"message": message, "finish_reason": "stop"}], **more}).encode()


# --- bodies ----------------------------------------------------------------------------------------------

DEEP_IN_ANSWER = b'{"choices":[{"message":{"content":"fine","x":' + b"[" * 1500 + b"]" * 1500 + b"}}]}"
# Deep enough that it can be read and not written again.
DEEP_ERROR = b'{"error":{"message":{"a":' + b"[" * 900 + b"]" * 900 + b"}}}"
ANSWERS: dict[str, tuple[Say, str, str | None, str | None]] = {
    "200,000 brackets": (
        Say(body=b"[" * 200_000),
        "error",
        None,
        "answer is not JSON (application/json): [[[",
    ),
    "deep in the answer": (
        Say(body=DEEP_IN_ANSWER),
        "error",
        None,
        "answer is not JSON (application/json): {",
    ),
    "deep under 400": (Say(status=400, body=b"[" * 200_000), "error", None, "HTTP 400: [[["),
    "deep in the message of a 400": (Say(status=400, body=DEEP_ERROR), "error", None, "HTTP 400: "),
    "a place that is a number": (
        Say(status=422, body={"detail": [{"loc": 5, "msg": "x"}, {"loc": ["body", 0], "msg": {"a": 1}}, 7]}),
        "error",
        None,
        'HTTP 422: 5: x; body.0: {"a": 1}; 7',
    ),
    "an error that is a list": (
        Say(status=400, body={"error": [1, "a"]}),
        "error",
        None,
        'HTTP 400: [1, "a"]',
    ),
    "a count of 5,000 digits": (
        Say(
            body=b'{"choices":[{"message":{"content":"fine"}}],"usage":{"total_tokens":' + b"9" * 5000 + b"}}"
        ),
        "ok",
        "fine",
        None,
    ),
    "parts that hold no text": (
        Say(
            message={"content": [{"type": "text", "text": "A"}, {"type": "text", "text": {"a": 1}}, 5, None]}
        ),
        "ok",
        "A",
        None,
    ),
    "status 0": (Say(status="000"), "error", None, "HTTP 0: "),
    "calls that are none": (Say(text="A", message={"tool_calls": ["x", 1, None]}), "ok", "A", None),
}


@on_asyncio
@pytest.mark.parametrize("case", ANSWERS)
async def test_chat_when_a_body_is_odd_then_the_reply_is_what_can_be_read(case: str) -> None:
    said, status, content, error = ANSWERS[case]
    reply = await answered(said)
    assert (reply.status, reply.content) == (status, content)
    assert (reply.error or "").startswith(error or "")
    assert (reply.error is None) == (error is None)
    assert reply.request["messages"] == [USER]


@on_asyncio
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (10**12, 10**12),
        (10**12 + 1, None),
        (2**63 - 1, None),
        (-1, None),
        (1.5, None),
        (True, None),
        ("7", None),
        ([1], None),
    ],
)
async def test_chat_when_a_count_cannot_be_one_then_it_is_unknown(given: Any, expected: int | None) -> None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    details = {"completion_tokens_details": {"reasoning_tokens": given}}
    reply = await answered(Say(usage=dict.fromkeys(names, given) | details))
    assert reply.usage == Usage(expected, expected, expected, expected)
    assert reply.status == "ok"


MALFORMED = {"name": "malformed_call", "arguments": "{}"}


@on_asyncio
@pytest.mark.parametrize(
    ("call", "call_id", "function"),
    [
        ({"id": "a", "function": "get"}, "a", MALFORMED),
        ({"id": "a", "function": ["get"]}, "a", MALFORMED),
        ({"id": "a", "function": None}, "a", MALFORMED),
        ({"id": "a"}, "a", MALFORMED),
        ({"id": "a", "function": {"name": 7, "arguments": "{}"}}, "a", MALFORMED),
        ({"id": "a", "function": {"name": "", "arguments": "{}"}}, "a", MALFORMED),
        ({"id": {"x": 1}, "function": {"name": "get"}}, None, {"name": "get", "arguments": "{}"}),
        ({"function": {"name": "get", "arguments": None}}, None, {"name": "get", "arguments": "{}"}),
        ({"id": 7, "function": {"name": "get", "arguments": 5}}, "7", {"name": "get", "arguments": "5"}),
        (
            {"id": "a", "function": {"name": "get", "arguments": {"é": 1}}},
            "a",
            {"name": "get", "arguments": '{"é": 1}'},
        ),
        ({"id": "a", "function": {"name": "get", "arguments": ""}}, "a", {"name": "get", "arguments": ""}),
    ],
)
async def test_chat_when_a_tool_call_is_malformed_then_it_comes_in_the_usual_form(
    call: dict[str, Any], call_id: str | None, function: dict[str, str]
) -> None:
    reply = await answered(Say(text=None, message={"tool_calls": [call]}))
    assert reply.status == "ok"
    assert reply.tool_calls == ({"id": call_id, "type": "function", "function": function},)


@on_asyncio
async def test_chat_when_arguments_are_too_deep_to_be_written_then_they_are_none_that_can_be_read() -> None:
    deep = b"[" * 900 + b"]" * 900
    call = b'{"id":"a","function":{"name":"get","arguments":' + deep + b"}}"
    reply = await answered(Say(body=b'{"choices":[{"message":{"tool_calls":[' + call + b"]}}]}"))
    assert reply.status == "ok"
    assert isinstance(reply.tool_calls[0]["function"]["arguments"], str)


@on_asyncio
async def test_chat_when_names_have_no_end_then_they_are_cut() -> None:
    reply = await answered(Say(finish="x" * 100_000))
    assert reply.finish_reason == "x" * 200
    reply = await answered(Say(body=choice({"content": "A"}, model="m" * 1_000_000)))
    assert (reply.content, reply.served_model) == ("A", "m" * 200)


@pytest.mark.parametrize(
    "value",
    [
        "Mon, 01 Jan 2024 99999999999999999999:00:00 GMT",
        "Mon, 01 Jan 2024 00:00:00 +99999999999999999999",
        "Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        "Mon, 01 Jan 0001 00:00:00 +2359",
        ", ,",
        "9" * 400,
    ],
)
def test_retry_after_when_the_date_is_impossible_then_nothing_is_asked(value: str) -> None:
    assert retry_after_s({"retry-after": value}, datetime(2026, 11, 2, tzinfo=UTC)) in (None, 0.0)


class Odd(httpx2.AsyncBaseTransport):
    """Fails as no library says that it may."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        raise LookupError(f"odd {request.headers['authorization']}")


@on_asyncio
async def test_chat_when_something_unforeseen_fails_then_the_reply_names_it_and_later_calls_go_on() -> None:
    async with (
        ChatServer([refusing("`strict` is unknown")]) as server,
        Models({"JUDGE_KEY": KEY}, concurrency=1, transports={"http://odd": Odd()}) as models,
    ):
        odd = await models.chat(profile("http://odd/v1", attempts=3), [USER])
        # More of the body than the door can look into, once a part of it is refused.
        strange = await models.chat(profile(server.base_url, extra={"tools": 5}), [USER])
        last = await models.chat(profile(server.base_url, concurrency=1), [USER])
    assert odd.error == "the answer could not be read: LookupError: odd Bearer [key]"
    assert (odd.status, odd.http_attempts, odd.request["messages"]) == ("error", 1, [USER])
    assert strange.error == "the answer could not be read: TypeError: 'int' object is not iterable"
    assert last.status == "ok"


# --- answers without an end ------------------------------------------------------------------------------


@asynccontextmanager
async def endless(head: bytes, part: bytes) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that sends the part until nobody takes it; its address, and what each client took."""
    taken: list[int] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head)
        taken.append(0)
        with closing(writer):
            try:
                while True:
                    writer.write(part)
                    await writer.drain()
                    taken[-1] += len(part)
            except ConnectionError:
                return

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", taken


@on_asyncio
async def test_chat_when_an_answer_has_no_end_then_it_is_left_at_the_limit() -> None:
    head = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with endless(head, b"40000\r\n" + b"x" * 0x40000 + b"\r\n") as (url, taken):
        began = time.monotonic()
        reply = await ask(url, attempts=3)
    assert (reply.status, reply.error) == ("error", "the answer is longer than 32 MB")
    # To ask again would bring the same once more.
    assert (reply.http_attempts, len(taken)) == (1, 1)
    assert taken[0] < 2 * LONGEST_ANSWER
    assert time.monotonic() - began < 20


@on_asyncio
async def test_chat_when_an_answer_unpacks_to_too_much_then_it_is_not_unpacked_to_its_end() -> None:
    bomb = gzip.compress(b" " * (4 * LONGEST_ANSWER), 1)
    assert len(bomb) < LONGEST_ANSWER / 20
    for status in (200, 400):
        reply = await answered(Say(status=status, body=bomb, headers={"Content-Encoding": "gzip"}))
        assert (reply.status, reply.error) == ("error", "the answer is longer than 32 MB")


@on_asyncio
async def test_chat_when_an_answer_is_just_as_long_as_may_be_then_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = choice({"content": "A" * 100_000})
    for limit, status in ((len(body), "ok"), (len(body) - 1, "error")):
        monkeypatch.setattr("audit.doors.llm_client.LONGEST_ANSWER", limit)
        assert (await answered(Say(body=body))).status == status


# --- tokens a minute -------------------------------------------------------------------------------------


class Quick(selectors.DefaultSelector):
    """Sixty times as fast as the clock."""

    def select(self, timeout: float | None = None) -> Any:
        return super().select(None if timeout is None else timeout / 60)


def in_quick_time(main: Callable[[asyncio.AbstractEventLoop], Any]) -> None:
    """Runs it on a loop on which a minute takes a second."""

    class Loop(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() * 60

    loop = Loop(Quick())
    with closing(loop):
        loop.run_until_complete(main(loop))


BODY = b"x" * 400


def test_pace_when_a_gateway_counts_beyond_measure_then_the_next_waits_a_minute_and_no_more() -> None:
    async def main(loop: asyncio.AbstractEventLoop) -> None:
        pace = Pace(profile("http://127.0.0.1:9/v1", tpm=6000, max_tokens=100), 4)
        await pace.enter(len(BODY), is_retry=False)
        for _ in range(3):
            pace.correct(len(BODY), Usage(total_tokens=10**12))
        began = loop.time()
        await pace.enter(len(BODY), is_retry=False)
        # A minute's worth, of which the ten seconds that may come at once are there.
        assert 45 < loop.time() - began < 65
        await pace.enter(len(BODY), is_retry=False)
        assert loop.time() - began < 70

    in_quick_time(main)


def test_pace_when_a_request_is_larger_than_a_minute_or_counted_as_nothing_then_it_still_keeps_to_it() -> (
    None
):
    async def main(loop: asyncio.AbstractEventLoop) -> None:
        pace = Pace(profile("http://127.0.0.1:9/v1", tpm=6000, max_tokens=10**9), 4)
        began = loop.time()
        await pace.enter(len(BODY), is_retry=False)
        assert 45 < loop.time() - began < 65
        # What an answer took less is given back, a minute's worth at most.
        for _ in range(3):
            pace.correct(len(BODY), Usage(total_tokens=0))
        began = loop.time()
        for _ in range(2):
            await pace.enter(len(BODY), is_retry=False)
        assert 90 < loop.time() - began < 125

    in_quick_time(main)


def test_pace_when_a_request_is_never_answered_then_it_is_charged_all_the_same() -> None:
    async def main(loop: asyncio.AbstractEventLoop) -> None:
        pace = Pace(profile("http://127.0.0.1:9/v1", tpm=6000, max_tokens=900), 4)  # each takes ten seconds
        began = loop.time()
        for _ in range(3):
            await pace.enter(len(BODY), is_retry=False)
        assert 18 < loop.time() - began < 25

    in_quick_time(main)


# --- keys ------------------------------------------------------------------------------------------------

ESCAPED = {
    "as it is": KEY,
    "JSON": KEY.replace("+", "\\u002B"),
    "JSON, every letter": "".join(f"\\u{ord(char):04x}" for char in KEY),
    "JSON in JSON": KEY.replace("+", "\\\\u002b").replace("/", "\\\\/"),
    "URL": quote(KEY, safe=""),
    "URL, every letter": "".join(f"%{ord(char):02x}" for char in KEY),
    "HTML": KEY.replace("&", "&amp;").replace("+", "&#43;"),
    "HTML, hexadecimal": KEY.replace("-", "&#x2D;"),
}


@on_asyncio
@pytest.mark.parametrize("form", ESCAPED)
async def test_chat_when_the_key_comes_back_in_any_form_then_it_is_nowhere_in_the_reply(form: str) -> None:
    echo = ESCAPED[form]
    call = {"id": echo, "function": {"name": echo, "arguments": json.dumps({"key": echo})}}
    said = {"content": f"It is {echo}, is it?", "tool_calls": [call]}
    reply = await answered(Say(body=choice(said, model=echo), finish=echo))
    assert reply.content == "It is [key], is it?"
    assert reply.tool_calls[0]["function"] == {"name": "[key]", "arguments": '{"key": "[key]"}'}
    assert (reply.tool_calls[0]["id"], reply.served_model) == ("[key]", "[key]")
    refused = await answered(Say(status=422, body=f"no {echo}!".encode()))
    assert refused.error == "HTTP 422: no [key]!"


@on_asyncio
async def test_chat_when_the_body_itself_escapes_the_key_then_it_is_found_after_reading() -> None:
    body = choice({"content": f"It is {KEY}"}, model=KEY).replace(b"+", b"\\u002B").replace(b"s", b"\\u0073")
    body = body.replace(b"choice\\u0073", b"choices").replace(b"me\\u0073\\u0073age", b"message")
    reply = await answered(Say(body=body))
    assert (reply.content, reply.served_model) == ("It is [key]", "[key]")


@on_asyncio
@pytest.mark.parametrize(
    "key", ["first", "content", "messages", "true", "1234", "role", "not-needed", "choices", '"']
)
async def test_chat_when_a_key_is_a_common_word_then_replies_and_requests_are_whole(key: str) -> None:
    verdict = '{"winner": "first", "content": true, "score": 1234, "role": "not-needed"}'
    reply = await answered(Say(text=verdict, finish=key), key)
    assert (reply.status, reply.content, reply.finish_reason) == ("ok", verdict, key)
    assert reply.request == {"model": "asked", "messages": [USER]}
    if len(key) >= 4:
        refused = await answered(Say(status=422, body={"error": f"no such key: {key}"}), key)
        assert refused.error == "HTTP 422: no such key: [key]"


@on_asyncio
@pytest.mark.parametrize("status", [401, 403])
async def test_chat_when_a_key_is_refused_then_the_error_names_address_and_variable_and_never_the_key(
    status: int,
) -> None:
    async with ChatServer([Say(status=status, body=f"no {KEY}!".encode())] * 2) as server:
        url = f"{server.base_url}/chat/completions"
        refused = await ask(f"{server.base_url}?api-version=1")
        keyless = await ask(server.base_url, api_key_env=None)
    assert refused.error == f"HTTP {status} at {url} (key: JUDGE_KEY): no [key]!"
    assert keyless.error == f"HTTP {status} at {url}: no [key]!"


@on_asyncio
async def test_chat_when_extra_and_query_hold_keys_then_they_are_sent_and_not_kept() -> None:
    held = {"api_key": "Xq7-extra-1", "headers": {"X-Trace": "Xq7-header-2"}, "token": 123456}
    nested = {"upstream": {"authToken": "Bearer Xq7-nested-3"}, "top_p": 0.5, "stop_token_ids": [7]}
    body = choice({"content": "Xq7-extra-1 Xq7-header-2 Xq7-nested-3 Xq7-query-4 2025-06-01"})
    async with ChatServer([Say(body=body), Say(status=404, body=b"no Xq7-query-4")]) as server:
        url = f"{server.base_url}?api-version=2025-06-01&api-key=Xq7-query-4#Xq7"
        reply, lost = [await ask(url, extra=held | nested) for _ in range(2)]
    assert server.bodies[0] == {"model": "asked", "messages": [USER], **held, **nested}
    assert server.targets[0].endswith("?api-version=2025-06-01&api-key=Xq7-query-4")
    assert reply.content == "[key] [key] [key] [key] 2025-06-01"
    assert reply.request == {
        "model": "asked",
        "messages": [USER],
        "api_key": "[key]",
        "headers": {"X-Trace": "[key]"},
        "token": "[key]",
        "upstream": {"authToken": "[key]"},
        "top_p": 0.5,
        "stop_token_ids": [7],
    }
    assert lost.error == f"HTTP 404 at {server.base_url}/chat/completions: no [key]"


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("https://h.example/v1?key=x#key=y", "https://h.example/v1"),
        ("https://h.example/v1#key=y?z", "https://h.example/v1"),
        ("https://me:x@h.example:8000/v1/@cf/m", "https://h.example:8000/v1/@cf/m"),
        (" offline://judge/a?x=1", "offline://judge/a"),
        ("me:x@h.example", "h.example"),
    ],
)
def test_shown_url_when_it_may_hold_a_key_then_that_part_is_left_out(given: str, shown: str) -> None:
    assert shown_url(given) == shown


# --- the store -------------------------------------------------------------------------------------------


def test_store_when_a_gateway_wrote_nul_or_half_an_emoji_then_every_column_takes_it(
    database_url: str,
) -> None:
    nasty = "a\x00b \ud83d ␀"
    stored = "a␀b ␛D83D ␛␀"
    names = {"run_id": "r1", "name": "r", "kind": "live", "config_json": "{}", "config_hash": "h"}
    scale = {"swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run", "bucket_set": "b"}
    run = Run(**dict.fromkeys(Run._fields) | names | scale | {"status": "running", "created_at": NOW})
    blank = Session(**dict.fromkeys(Session._fields))._replace(run_id="r1", trial=0, created_at=NOW)
    sessions = [
        blank._replace(session_id=name, task_id=name, agent="a", error=nasty) for name in ("s1", "s2")
    ]
    log = JudgeLog(**dict.fromkeys(JudgeLog._fields))._replace(
        run_id="r1", role="judge", attempt=1, parse_status="error", created_at=NOW
    )
    texts = ("served_model", "raw_output", "finish_reason", "error")
    engine = db.open_database(database_url, create=True)
    with db.writing(engine) as connection:
        store.add_run(connection, run)
        store.add_sessions(connection, sessions[:1])
        store_live.save_sessions(connection, sessions[1:])
        store.add_logs(connection, [log._replace(**{name: nasty}) for name in texts])
        store.add_logs(connection, [log._replace(error="fine")])
    with db.reading(engine) as connection:
        rows = connection.execute(text(f"select {', '.join(texts)} from judge_logs order by log_id")).all()
        errors = connection.execute(text("select distinct error from sessions")).scalars().all()
    engine.dispose()
    assert [tuple(row) for row in rows[:4]] == [
        tuple(stored if name == other else None for other in texts) for name in texts
    ]
    assert rows[4].error == "fine"
    assert errors == [stored]
