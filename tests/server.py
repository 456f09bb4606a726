"""A small server that speaks chat completions over HTTP, and misbehaves as it is told.

In a test: `async with ChatServer([Say(status=503), Say(text="fine")]) as server`, then `server.base_url`,
`server.bodies`, `server.headers`. What is scripted is used up request by request; after that every request
gets `server.default`.

By itself: `python -m tests.server --port 0 --latency-ms 50 --rps 300` prints its port. `GET /stats` gives
the counts as JSON, `GET /reset` sets them to zero, `GET .../models` lists `server.models`.
"""

import argparse
import asyncio
import json
import random
import signal
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass(frozen=True)
class Say:
    """One answer. `text` is the content of a usual completion, `message` and `finish` change it.

    `body` replaces the whole body (a dict is sent as JSON). `delay` seconds pass before the first byte;
    with `drip`, so many between one byte and the next; with `hang`, nothing is ever sent; with `drop`, the
    connection is closed instead.
    """

    text: str | None = "fine"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    message: Mapping[str, Any] = field(default_factory=dict)
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = field(
        default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    )
    delay: float = 0.0
    drip: float | None = None
    hang: bool = False
    drop: bool = False

    def content(self) -> bytes:
        """The body as it goes over the wire."""
        if isinstance(self.body, bytes):
            return self.body
        return json.dumps(self._completion() if self.body is None else self.body).encode()

    def _completion(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, **self.message}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        found = {"id": "chatcmpl-1", "object": "chat.completion", "model": "served", "choices": [choice]}
        return found | ({"usage": self.usage} if self.usage is not None else {})

    def wire(self) -> bytes:
        """The whole answer, head and body."""
        content = self.content()
        headers = {"Content-Type": "application/json", "Content-Length": len(content), **self.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"HTTP/1.1 {self.status} Said\r\n{head}\r\n".encode() + content


def refusing(message: str, status: int = 400, **more: Any) -> Say:
    """An error as OpenAI words it."""
    return Say(status=status, body={"error": {"message": message, "type": "invalid_request_error", **more}})


Answerer = Callable[[dict[str, Any]], Say]
LIMITED = refusing("rate limited", 429, code="rate_limit_exceeded")
BROKEN = refusing("boom", 500)


@dataclass
class Load:
    """How a server under load behaves. Rates are shares of requests; `rps` is a limit, held a second long."""

    latency: float = 0.0
    rate_429: float = 0.0
    rate_500: float = 0.0
    rps: float = 0.0
    retry_after: str | None = "1"

    def __post_init__(self) -> None:
        self._chance = random.Random(7)
        self._left, self._asked_at = self.rps, 0.0

    def chosen(self, now: float) -> Say | None:
        """The refusal that this request gets, if it gets one."""
        chance = self._chance.random()
        if self._is_over_limit(now) or chance < self.rate_429:
            headers = {"Retry-After": self.retry_after} if self.retry_after is not None else {}
            return Say(status=429, body=LIMITED.body, headers=headers)
        if chance < self.rate_429 + self.rate_500:
            return BROKEN
        return None

    def _is_over_limit(self, now: float) -> bool:
        if not self.rps:
            return False
        self._left = min(self.rps, self._left + (now - self._asked_at) * self.rps)
        self._asked_at = now
        if self._left < 1:
            return True
        self._left -= 1
        return False


class ChatServer:
    """The server in this process. Counts, records, and closes all connections at the end."""

    def __init__(
        self, script: Iterable[Say] = (), *, answer: Answerer | None = None, load: Load | None = None
    ) -> None:
        self.script = list(script)
        self.answer = answer
        self.load = load
        self.default = Say()
        self.models: list[str] | None = None  # what `GET .../models` lists; none: 404
        self.looked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.targets: list[str] = []
        self.times: list[float] = []
        self.is_recording = True
        self.counts: dict[str, int] = {}
        self.under_way = 0
        self.max_under_way = 0
        self.connections: set[_Connection] = set()
        self.port = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        """How many requests have come in."""
        return self.counts.get("requests", 0)

    async def __aenter__(self) -> Self:
        await self.start(0)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self, port: int) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", port, backlog=4096)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for connection in list(self.connections):
            connection.close()
        await self._server.wait_closed()

    def count(self, what: str) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1

    def serves(self, _target: str) -> bool:
        """Is a GET of this for `route`, and not for the counts?"""
        return False

    def route(self, _method: str, target: str, headers: dict[str, str], content: bytes) -> Say:
        """What a request is answered with, whatever its method."""
        return self.choose(target, headers, content)

    def choose(self, target: str, headers: dict[str, str], content: bytes) -> Say:
        """What a request is answered with."""
        now = asyncio.get_running_loop().time()
        self.count("requests")
        self.under_way += 1
        self.max_under_way = max(self.max_under_way, self.under_way)
        if self.is_recording:
            self.bodies.append(json.loads(content))
            self.headers.append(headers)
            self.targets.append(target)
            self.times.append(now)
        if self.script:
            return self.script.pop(0)
        if self.answer is not None:
            return self.answer(self.bodies[-1])
        return (self.load and self.load.chosen(now)) or self.default

    def stats(self) -> dict[str, Any]:
        return {**self.counts, "max_under_way": self.max_under_way, "open": len(self.connections)}

    def reset(self) -> None:
        self.counts.clear()
        self.max_under_way = self.under_way


class _Connection(asyncio.Protocol):
    """One connection: requests come one after the other, each answered in full before the next."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._received = b""
        self._timer: asyncio.TimerHandle | None = None
        self._is_busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(self)

    def connection_lost(self, _: Exception | None) -> None:
        self._server.connections.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self._finished()

    def close(self) -> None:
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        if not self._is_busy:
            self._next_request()

    def _next_request(self) -> None:
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = rest[length:]
        if method == "GET" and not self._server.serves(target):
            self._transport.write(self._control(target).wire())
            return
        self._is_busy = True
        self._say(self._server.route(method, target, headers, rest[:length]))

    def _control(self, target: str) -> Say:
        if target.partition("?")[0].endswith("/models"):
            self._server.looked.append(target)
            names = self._server.models
            listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in names or []]}
            return Say(status=200 if names is not None else 404, body=listed)
        if target.startswith("/reset"):
            self._server.reset()
        return Say(body=self._server.stats())

    def _say(self, say: Say) -> None:
        if say.hang:
            return
        if say.drop:
            self.close()
            return
        load = self._server.load
        # A refusal comes at once, as it does from real gateways: only work takes time.
        delay = say.delay or (load.latency if load is not None and say.status == 200 else 0.0)
        loop = asyncio.get_running_loop()
        self._server.count(str(say.status))
        if delay:
            self._timer = loop.call_later(delay, self._write, say)
        else:
            self._write(say)

    def _write(self, say: Say) -> None:
        if say.drip is None:
            self._transport.write(say.wire())
            self._done()
        else:
            self._drip(say.wire(), say.drip)

    def _drip(self, left: bytes, pause: float) -> None:
        self._transport.write(left[:1])
        if left[1:]:
            self._timer = asyncio.get_running_loop().call_later(pause, self._drip, left[1:], pause)
        else:
            self._done()

    def _done(self) -> None:
        self._finished()
        if self._received:
            self._next_request()

    def _finished(self) -> None:
        if self._is_busy:
            self._is_busy = False
            self._server.under_way -= 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--rate-429", type=float, default=0.0, help="share of requests refused")
    parser.add_argument("--rate-500", type=float, default=0.0, help="share of requests that fail")
    parser.add_argument("--rps", type=float, default=0.0, help="limit of requests a second")
    parser.add_argument("--retry-after", default="1", help="as the header has it; empty for none")
    parser.add_argument("--text", default="fine", help="what every answer says")
    return parser.parse_args()


async def _serve(options: argparse.Namespace) -> None:
    load = Load(
        latency=options.latency_ms / 1000,
        rate_429=options.rate_429,
        rate_500=options.rate_500,
        rps=options.rps,
        retry_after=options.retry_after or None,
    )
    server = ChatServer(load=load)
    server.default = Say(text=options.text)
    server.is_recording = False
    await server.start(options.port)
    print(server.port, flush=True)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopped.set)
    await stopped.wait()
    await server.stop()


if __name__ == "__main__":
    asyncio.run(_serve(_options()))
