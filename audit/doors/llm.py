"""The one door to models: every call goes through `Models.chat`, and no other module imports openai.

A call never raises for what a gateway does. Whatever came of it is a Reply: content, half a content, or an
error that says why there is none. Only a missing key raises, before anything is sent.
"""

import asyncio
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from audit.doors.llm_answer import Answer, error_body_says, parse, read_reply, retry_after_s, status_error
from audit.doors.llm_pace import Pace, Window, jittered, wait_s
from audit.doors.llm_request import Body, adapted, named_refusal, request_body
from audit.doors.llm_secrets import forms, key_for, redact
from audit.doors.llm_url import ENDPOINT_PATH, OFFLINE, clean_base_url
from audit.words.calls import Message, Reply
from audit.words.errors import AuditError
from audit.words.profiles import Endpoint
from audit.words.text import as_json

if TYPE_CHECKING:  # imported at first use: commands that ask no model need not wait for it
    import httpx2
    import openai

__all__ = ["Models", "clean_base_url", "held_keys", "reached_at", "redact"]

_KEEPALIVE_S = 30.0
_RETRIED = frozenset({408, 409, 429, *range(500, 600)})
_LONGEST_ERROR = 500
# What the SDK tells of this machine and its Python with each call. A gateway need not know it, and it takes a
# tenth of the call's processor time.
_TELEMETRY = [f"X-Stainless-{what}" for what in
              ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async")]  # fmt: skip
_OF_A_CALL = ("X-Stainless-Retry-Count", "X-Stainless-Read-Timeout")


@dataclass(slots=True)
class _Line:
    """What the calls of one endpoint share."""

    endpoint: Endpoint
    url: str
    client: "openai.AsyncOpenAI"
    pace: Pace
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
    answers in this process instead of a server, as all `offline://` addresses need.
    """

    def __init__(
        self,
        keys: Mapping[str, str | None],
        concurrency: int = 16,
        transports: "Mapping[str, httpx2.AsyncBaseTransport] | None" = None,
    ) -> None:
        self._keys = held_keys(keys)
        self._secrets = frozenset(self._keys.values())
        self._secret_forms = [form.encode() for form in forms(self._secrets)]
        self._concurrency = concurrency
        self._slots = asyncio.Semaphore(concurrency)
        self._transports = dict(transports or {})
        self._clients: dict[tuple[Any, ...], openai.AsyncOpenAI] = {}
        self._lines: dict[Endpoint, _Line] = {}

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
        line = self._lines.get(endpoint) or self._opened(endpoint)
        call = _Call(request_body(endpoint, messages, tools, response_schema, seed), line.refused)
        while True:
            answer = await self._ask(line, call)
            if answer.status in (400, 422):
                name = named_refusal(call.body, error_body_says(answer))
                if name is not None:
                    # No failure, so it takes none of the attempts: there are only so many parts to refuse.
                    call.refused += (name,)
                    call.build()
                    continue
            if answer.problem is None and answer.status not in _RETRIED:
                break
            call.failures += 1
            if call.failures >= endpoint.attempts:
                break
            if not _is_for_all(answer):
                await asyncio.sleep(jittered(wait_s(call.failures, None)))
        if answer.is_success:
            line.refused += tuple(name for name in call.refused if name not in line.refused)
        return self._reply(line, call, answer)

    async def _ask(self, line: _Line, call: _Call) -> Answer:
        """One HTTP request, when its turn has come."""
        window = line.pace.window
        await line.pace.enter(call.sent, is_retry=call.http_attempts > 0)
        try:
            sent_at = await self._take_slot(window)
            try:
                call.http_attempts += 1
                answer = await _send(line, call.sent)
            finally:
                self._slots.release()
            now = asyncio.get_running_loop().time()
            if _is_for_all(answer):
                window.refused(now, sent_at, wait_s(call.failures + 1, answer.retry_after))
            elif answer.problem is None:
                window.succeeded(now)
        finally:
            window.leave()
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

    def _reply(self, line: _Line, call: _Call, answer: Answer) -> Reply:
        if self._holds_secret(answer.content):
            answer = replace(answer, content=self._redacted(answer.content))
        if answer.is_success:
            reply = read_reply(answer)
            line.pace.correct(call.sent, reply.usage)
        else:
            reply = Reply("error", None, error=status_error(answer, line.url))
        # Redacted before it is cut: half a key would not be found, and still be half a key.
        error = None if reply.error is None else redact(reply.error, self._secrets)[:_LONGEST_ERROR]
        return replace(
            reply,
            error=error,
            latency_ms=answer.latency_ms,
            http_attempts=call.http_attempts,
            request=parse(self._redacted(call.sent)) if self._holds_secret(call.sent) else call.body,
            refused=call.left_out,
        )

    def _holds_secret(self, content: bytes) -> bool:
        return any(form in content for form in self._secret_forms)

    def _redacted(self, content: bytes) -> bytes:
        return redact(content.decode("utf-8", "replace"), self._secrets).encode()

    def _opened(self, endpoint: Endpoint) -> _Line:
        base_url, query, key = reached_at(endpoint, self._keys)
        place = (base_url, tuple(query.items()), key)
        if place not in self._clients:
            transport = self._transport(base_url, endpoint.name)
            self._clients[place] = _client(base_url, query, key, transport)
        pace = Pace(endpoint, self._concurrency)
        # The whole address: a path would be joined to the client's base URL anew for each call.
        line = _Line(endpoint, base_url + ENDPOINT_PATH, self._clients[place], pace)
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


def _client(
    base_url: str, query: dict[str, str], key: str, transport: "httpx2.AsyncBaseTransport | None"
) -> "openai.AsyncOpenAI":
    """A client that does what it is told here and nothing that the environment says.

    No proxy and no organization from variables that were meant for something else; no redirect either, which
    would send a prompt to an address that nobody wrote down. Certificates of `SSL_CERT_FILE` are used.
    """
    import httpx2
    import openai

    # Reading the certificates takes long. Without them no server is trusted, and none needs to be.
    certificates = httpx2.create_ssl_context if base_url.startswith("https:") else _no_certificates
    http_client = _straight_client()(
        transport=transport,
        verify=certificates(),
        timeout=None,
        trust_env=False,
        follow_redirects=False,
        # 0 is no limit of connections: the window and the slots are the limit.
        limits=httpx2.Limits(max_connections=0, keepalive_expiry=_KEEPALIVE_S),
    )
    client = openai.AsyncOpenAI(
        api_key=key,
        admin_api_key="",
        base_url=base_url,
        default_query=query or None,
        timeout=None,
        max_retries=0,
        http_client=http_client,
    )
    # An empty argument would send an empty header, and OPENAI_CUSTOM_HEADERS could even replace the key.
    client.organization = client.project = None
    client._custom_headers = dict.fromkeys(_TELEMETRY, openai.Omit())  # type: ignore[arg-type]
    return client


@cache
def _straight_client() -> "type[httpx2.AsyncClient]":
    """The SDK's aiohttp client without what no call needs: cookies, redirects, logins, a URL read anew."""
    import httpx2
    import openai

    class Straight(openai.DefaultAioHttpClient):
        url = httpx2.URL("")
        text = ""

        def build_request(self, method: str, url: Any, **parts: Any) -> httpx2.Request:
            if parts.get("params"):
                return super().build_request(method, url, **parts)
            if url != self.text:
                self.text, self.url = url, httpx2.URL(url)
            headers = [*parts["headers"], ("accept-encoding", self.headers["accept-encoding"])]
            return httpx2.Request(method, self.url, headers=headers, content=parts["content"])

        async def send(self, request: httpx2.Request, **_: Any) -> httpx2.Response:
            response = await self._transport.handle_async_request(request)
            response.request = request
            try:
                await response.aread()
            except BaseException:
                await response.aclose()
                raise
            return response

    return Straight


@cache
def _options() -> Any:
    """The client's own settings once more: what is left out, the SDK copies from its defaults for each call,
    which takes a tenth of the call's processor time.
    """
    import openai

    return {
        "headers": dict.fromkeys(_OF_A_CALL, openai.Omit()),
        "params": {},
        "timeout": None,
        "max_retries": 0,
        "security": {"bearer_auth": True},
    }


def _no_certificates() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _send(line: _Line, body: bytes) -> Answer:
    """One request, without a second try, and what came of it."""
    import aiohttp
    import httpx2
    import openai

    began = time.perf_counter()
    try:
        # A read timeout begins anew with each byte and never cuts a server that drips: this one is total.
        async with asyncio.timeout(line.endpoint.timeout_s):
            response = await line.client.post(
                line.url, cast_to=httpx2.Response, content=body, options=_options()
            )
    except openai.APIStatusError as error:
        response = error.response
    except TimeoutError:
        problem = f"timeout: no whole answer within {line.endpoint.timeout_s:g} s"
        return Answer(problem=problem, latency_ms=_ms_since(began))
    except (openai.APIError, httpx2.HTTPError, aiohttp.ClientError, OSError) as error:
        return Answer(problem=f"connection failed: {_first_cause(error)}", latency_ms=_ms_since(began))
    return Answer(
        status=response.status_code,
        content=response.content,
        headers=response.headers,
        retry_after=retry_after_s(response.headers) if response.status_code in _RETRIED else None,
        latency_ms=_ms_since(began),
    )


def _is_for_all(answer: Answer) -> bool:
    """Whether a failure tells all calls of the endpoint to wait. One 500 says nothing of the next call."""
    return answer.status == 429 or (answer.status in _RETRIED and answer.retry_after is not None)


def _first_cause(error: BaseException) -> str:
    """What the SDK's `Connection error.` or `Request timed out.` was in truth."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1000
