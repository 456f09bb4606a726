"""The one door to models: every call goes through `Models.chat`, and no other module imports openai.

A call never raises for what a gateway does. Whatever came of it is a Reply: content, half a content, or an
error that says why there is none. Only a missing key raises, before anything is sent.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from audit.doors.llm_answer import (
    Answer,
    error_body_says,
    listed_models,
    read_reply,
    retry_after_s,
    status_error,
)
from audit.doors.llm_client import TooLongError, client_for, options
from audit.doors.llm_pace import Pace, Window, jittered, wait_s
from audit.doors.llm_request import Body, adapted, named_refusal, request_body
from audit.doors.llm_secrets import Secrets, key_for, redact
from audit.doors.llm_url import ENDPOINT_PATH, OFFLINE, clean_base_url, keys_of_query
from audit.words.calls import Message, Reply
from audit.words.errors import AuditError, Lost
from audit.words.keys import keys_in, without_keys
from audit.words.profiles import Endpoint
from audit.words.text import as_json

if TYPE_CHECKING:  # imported at first use: commands that ask no model need not wait for it
    import httpx2
    import openai

__all__ = ["Models", "clean_base_url", "held_keys", "reached_at", "redact"]

RETRIED = frozenset({408, 409, 429, *range(500, 600)})
_LONGEST_ERROR = 500
_LONGEST_NAME = 200  # of the served model, of the finish reason


@dataclass(slots=True)
class Line:
    """What the calls of one endpoint share."""

    endpoint: Endpoint
    url: str
    client: "openai.AsyncOpenAI"
    pace: Pace
    hidden: Body = field(default_factory=dict)  # what stands in the stored request in place of a key
    refused: tuple[str, ...] = ()


@dataclass(slots=True)
class _Call:
    """One call on its way: what was wished, what is sent, how often it was."""

    wish: Body
    refused: tuple[str, ...]
    body: Body = field(init=False)
    left_out: tuple[str, ...] = field(init=False)
    sent: bytes = field(init=False)
    http_attempts: int = 0
    failures: int = 0

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> None:
        self.body, self.left_out = adapted(self.wish, self.refused)
        self.sent = as_json(self.body).encode()


class Models:
    """The models of a run, with one client for each gateway and key.

    `keys` maps the name of a key's variable to its value. `concurrency` is how many requests may be under way
    at once, of all endpoints together. `transports` maps a base URL (or the beginning of several) to what
    answers in this process instead of a server, as all `offline://` addresses need. `pace_of`: how fast an
    endpoint may be asked, where other processes ask it too.
    """

    def __init__(
        self,
        keys: Mapping[str, str | None],
        concurrency: int = 16,
        transports: "Mapping[str, httpx2.AsyncBaseTransport] | None" = None,
        pace_of: Callable[[Endpoint, int], Pace] = Pace,
    ) -> None:
        self._keys = held_keys(keys)
        self.secrets = Secrets(self._keys.values())
        self._concurrency = concurrency
        self._pace_of = pace_of
        self._slots = asyncio.Semaphore(concurrency)
        self._transports = dict(transports or {})
        self._clients: dict[tuple[Any, ...], openai.AsyncOpenAI] = {}
        self._lines: dict[Endpoint, Line] = {}

    async def __aenter__(self) -> Self:
        import openai  # noqa: F401 - takes a second, and must not take it from a call

        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._lines.clear()
        while self._clients:
            _, client = self._clients.popitem()
            await client.close()

    async def chat(
        self,
        endpoint: Endpoint,
        messages: Sequence[Message],
        *,
        tools: Sequence[dict[str, Any]] | None = None,
        response_schema: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> Reply:
        """Ask once, and again where that may help. Raises AuditError where the key is missing.

        `response_schema` is the JSON schema of the answer. The loop is written out and not left to stamina or
        tenacity: there each call sleeps for itself, here the whole endpoint waits in one queue (`Pace`).
        """
        line = self.line(endpoint)
        call = _Call(request_body(endpoint, messages, tools, response_schema, seed), line.refused)
        try:
            return self._reply(line, call, await self._answer(line, call))
        except Lost:
            raise
        except Exception as error:  # whatever a gateway sends, it stops no run
            problem = f"the answer could not be read: {type(error).__name__}: {error}"
            return self._reply(line, call, Answer(problem=problem))

    async def model_names(self, endpoint: Endpoint) -> list[str] | None:
        """The models that the gateway lists; NULL where it lists none, or not so that it can be read."""
        line = self.line(endpoint)
        answer = await _send(line, line.url.removesuffix(ENDPOINT_PATH) + "/models", None)
        names = listed_models(answer) if answer.is_success else []
        return [str(self.secrets.out_of(name)) for name in names] or None

    def line(self, endpoint: Endpoint) -> Line:
        """What all that is sent to an endpoint shares. Raises AuditError where its key is missing."""
        return self._lines.get(endpoint) or self._opened(endpoint)

    def cleaned(self, reply: Reply) -> Reply:
        """The reply without any key, its short texts short."""
        secrets = self.secrets
        # Redacted before it is cut: half a key would not be found, and still be half a key.
        finish_reason, served_model = secrets.out_of(reply.finish_reason), secrets.out_of(reply.served_model)
        error = None if reply.error is None else secrets.out_of_error(reply.error)[:_LONGEST_ERROR]
        return replace(
            reply,
            content=secrets.out_of(reply.content),
            tool_calls=secrets.out_of(reply.tool_calls),
            finish_reason=finish_reason and finish_reason[:_LONGEST_NAME],
            served_model=served_model and served_model[:_LONGEST_NAME],
            error=error,
        )

    async def _answer(self, line: Line, call: _Call) -> Answer:
        """The last answer, when it is one, or asking again is of no use."""
        while True:
            answer = await self._ask(line, call)
            if answer.status in (400, 422):
                name = named_refusal(call.body, error_body_says(answer))
                if name is not None:
                    # No failure, so it takes none of the attempts: there are only so many parts to refuse.
                    call.refused += (name,)
                    call.build()
                    continue
            if answer.status is not None and answer.status not in RETRIED:
                break
            call.failures += 1
            if call.failures >= line.endpoint.attempts:
                break
            if not _is_for_all(answer):
                await asyncio.sleep(jittered(wait_s(call.failures, None)))
        if answer.is_success:
            line.refused += tuple(name for name in call.refused if name not in line.refused)
        return answer

    async def _ask(self, line: Line, call: _Call) -> Answer:
        """One HTTP request, when its turn has come."""
        window = line.pace.window
        await line.pace.enter(len(call.sent), is_retry=call.http_attempts > 0)
        try:
            sent_at = await self._take_slot(window)
            try:
                call.http_attempts += 1
                answer = await _send(line, line.url, call.sent)
            finally:
                self._slots.release()
            now = asyncio.get_running_loop().time()
            if _is_for_all(answer):
                window.refused(now, sent_at, wait_s(call.failures + 1, answer.retry_after))
            elif answer.problem is None:
                window.succeeded(now)
        finally:
            line.pace.leave()
        return answer

    async def _take_slot(self, window: Window) -> float:
        """Take one of the slots of all endpoints, but none while this one waits. Gives the loop's time."""
        loop = asyncio.get_running_loop()
        await self._slots.acquire()
        while (wait := window.not_before - loop.time()) > 0:
            self._slots.release()
            await asyncio.sleep(wait)
            await self._slots.acquire()
        return loop.time()

    def _reply(self, line: Line, call: _Call, answer: Answer) -> Reply:
        if answer.is_success:
            reply = read_reply(answer)
            line.pace.correct(len(call.sent), reply.usage)
        else:
            reply = Reply("error", None, error=status_error(answer, line.url, line.endpoint.api_key_env))
        request = call.body | {name: value for name, value in line.hidden.items() if name in call.body}
        has_secret = self.secrets.are_in_json(call.sent.decode())
        return replace(
            self.cleaned(reply),
            latency_ms=answer.latency_ms,
            http_attempts=call.http_attempts,
            request=self.secrets.out_of(request) if has_secret else request,
            refused=call.left_out,
            date=answer.headers.get("date"),
        )

    def _opened(self, endpoint: Endpoint) -> Line:
        base_url, query, key = reached_at(endpoint, self._keys)
        self.secrets.add(keys_of_query(query) | keys_in(endpoint.extra))
        place = (base_url, tuple(query.items()), key)
        if place not in self._clients:
            transport = self._transport(base_url, endpoint.name)
            self._clients[place] = client_for(base_url, query, key, transport)
        pace = self._pace_of(endpoint, self._concurrency)
        # The whole address: a path would be joined to the client's base URL anew for each call.
        shown = without_keys(endpoint.extra)
        hidden = {name: value for name, value in shown.items() if value != endpoint.extra[name]}
        line = Line(endpoint, base_url + ENDPOINT_PATH, self._clients[place], pace, hidden)
        self._lines[endpoint] = line
        return line

    def _transport(self, base_url: str, name: str) -> "httpx2.AsyncBaseTransport | None":
        """What answers in this process at the address: the longest that it begins with, None for a server."""
        fitting = [start for start in self._transports if f"{base_url}/".startswith(start.rstrip("/") + "/")]
        if fitting:
            return self._transports[max(fitting, key=len)]
        if base_url.startswith(OFFLINE):
            raise AuditError(f"profile {name!r}: nothing is served at {base_url}")
        return None


def held_keys(keys: Mapping[str, str | None]) -> dict[str, str]:
    """The keys that are there, without the line end that a file left at one."""
    return {name: value.strip() for name, value in keys.items() if value and value.strip()}


def reached_at(endpoint: Endpoint, keys: Mapping[str, str]) -> tuple[str, dict[str, str], str]:
    """(base URL, query, key) of an endpoint. Raises AuditError that names its profile."""
    try:
        base_url, query = clean_base_url(endpoint.base_url)
    except AuditError as error:
        raise AuditError(f"profile {endpoint.name!r}: {error}") from error
    return base_url, query, key_for(endpoint, base_url, keys)


async def _send(line: Line, url: str, body: bytes | None) -> Answer:
    """One request, without a second try, and what came of it. Without a body it only looks."""
    import aiohttp
    import httpx2
    import openai

    began = time.perf_counter()
    try:
        # A read timeout begins anew with each byte and never cuts a server that drips: this one is total.
        async with asyncio.timeout(line.endpoint.timeout_s):
            if body is None:
                response = await line.client.get(url, cast_to=httpx2.Response, options=options())
            else:
                response = await line.client.post(
                    url, cast_to=httpx2.Response, content=body, options=options()
                )
    except openai.APIStatusError as error:
        response = error.response
    except TimeoutError:
        problem = f"timeout: no whole answer within {line.endpoint.timeout_s:g} s"
        return Answer(problem=problem, latency_ms=_ms_since(began))
    except (openai.APIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
        return Answer(problem=f"connection failed: {_first_cause(error)}", latency_ms=_ms_since(began))
    except TooLongError as error:
        return Answer(error.status, problem=str(error), latency_ms=_ms_since(began))
    return Answer(
        status=response.status_code,
        content=response.content,
        headers=response.headers,
        retry_after=retry_after_s(response.headers) if response.status_code in RETRIED else None,
        latency_ms=_ms_since(began),
    )


def _is_for_all(answer: Answer) -> bool:
    """Whether a failure tells all calls of the endpoint to wait. One 500 says nothing of the next call."""
    return answer.status == 429 or (answer.status in RETRIED and answer.retry_after is not None)


def _first_cause(error: BaseException) -> str:
    """What the SDK's `Connection error.` or `Request timed out.` was in truth."""
    while error.__cause__ is not None:
        error = error.__cause__
    return " ".join(str(error).split()) or type(error).__name__


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
