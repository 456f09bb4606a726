"""The SDK's client as the door to models needs it."""

import ssl
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # imported at first use: commands that ask no model need not wait for it
    import httpx2
    import openai

LONGEST_ANSWER = 32 * 2**20  # bytes, unpacked
_KEEPALIVE_S = 30.0
# What the SDK tells of this machine and its Python with each call. A gateway need not know it, and it takes a
# tenth of the call's processor time.
_TELEMETRY = [f"X-Stainless-{what}" for what in
              ("Lang", "Package-Version", "OS", "Arch", "Runtime", "Runtime-Version", "Async")]  # fmt: skip
_OF_A_CALL = ("X-Stainless-Retry-Count", "X-Stainless-Read-Timeout")


def client_for(
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
    # An address is read for each call anew, which takes longer than to send it.
    client._prepare_url = lru_cache(8)(client._prepare_url)  # type: ignore[method-assign]
    client._custom_headers = dict.fromkeys(_TELEMETRY, openai.Omit())  # type: ignore[arg-type]
    return client


class TooLongError(Exception):
    """An answer is longer than is read; it had this status."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the answer is longer than {LONGEST_ANSWER // 2**20} MB")
        self.status = status


async def _read(response: "httpx2.Response") -> None:
    """What `aread` does, up to a limit: an answer may have no end, or unpack to one.

    What is not packed is taken from its stream: the generators of `aiter_bytes` take a tenth of a call's
    processor time. Whoever calls closes the response.
    """
    import httpx2

    parts, size = [], 0
    stream = response.stream
    is_plain = isinstance(stream, httpx2.AsyncByteStream) and "content-encoding" not in response.headers
    async for part in stream if is_plain else response.aiter_bytes():  # type: ignore[union-attr]
        size += len(part)
        if size > LONGEST_ANSWER:
            raise TooLongError(response.status_code)
        parts.append(part)
    response._content = b"".join(parts)


@cache
def _straight_client() -> "type[httpx2.AsyncClient]":
    """The SDK's aiohttp client without what no call needs: cookies, redirects, logins, a URL read anew."""
    import httpx2
    import openai

    class Straight(openai.DefaultAioHttpClient):
        """The URL and the headers of the last call stay: the next one has the same."""

        url = httpx2.URL("")
        text = ""
        given: Any = None
        headers_given = httpx2.Headers()

        def build_request(self, method: str, url: Any, **parts: Any) -> httpx2.Request:
            # Only a call brings its body as bytes; others are a form, JSON or nothing.
            if parts.get("params") or parts.get("content") is None:
                return super().build_request(method, url, **parts)
            if url != self.text:
                self.text, self.url = url, httpx2.URL(url)
            if parts["headers"] != self.given:
                self.given = parts["headers"]
                accepted = ("accept-encoding", self.headers["accept-encoding"])
                self.headers_given = httpx2.Headers([*self.given, accepted])
            return httpx2.Request(method, self.url, headers=self.headers_given, content=parts.get("content"))

        async def send(self, request: httpx2.Request, **wish: Any) -> httpx2.Response:
            response = await self._transport.handle_async_request(request)
            response.request = request
            if wish.get("stream"):  # as a file is read, which has no limit; whoever reads it closes it
                return response
            try:
                await _read(response)
            finally:
                await response.aclose()
            return response

    return Straight


@cache
def options() -> Any:
    """The client's own settings once more: what is left out, the SDK makes anew or copies from its defaults
    for each call, which takes a fifth of the call's processor time.
    """
    import openai

    return {
        "headers": dict.fromkeys(_OF_A_CALL, openai.Omit()),
        "params": {},
        "timeout": None,
        "max_retries": 0,
        "security": {"bearer_auth": True},
        "idempotency_key": "",  # it is sent by clients with such a header only, and this one has none
        "follow_redirects": None,
        "extra_json": None,
        "post_parser": openai.NOT_GIVEN,
        "synthesize_event_and_data": None,
        "stream_mode": "legacy",
    }


def _no_certificates() -> ssl.SSLContext:
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
