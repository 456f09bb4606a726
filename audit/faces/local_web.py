"""A web application for one person on this machine: at 127.0.0.1, under no other name, ended by Ctrl-C."""

import importlib
import os
import socket
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from audit.words.errors import BadRequest, MissingExtra

HOST = "127.0.0.1"
# Longer than a statement may take, or wait for another writer: it ends in its own time all the same, and
# people would be told that an answer was not stored that was.
_ENDS_WITHIN_S = 40
# Under a name of its own choice a stranger's site would be of one origin with ours (DNS rebinding).
_NAMES = [HOST, "localhost"]


def require(module: str, extra: str, purpose: str) -> None:
    """Import the module of an optional library. Raises MissingExtra."""
    library = module.partition(".")[0]
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtra(library, extra, purpose) from error


def listen(port: int) -> socket.socket:
    """A socket that listens on this machine alone; port 0 takes a free one. Raises BadRequest."""
    try:
        return socket.create_server((HOST, port))
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise BadRequest(
            f"port {port} cannot be had ({why}): name another with --port, or 0 for a free one"
        ) from error


def guarded(app: Any, policy: str, *, reads_only: bool = False) -> Any:
    """The ASGI application, which answers to this machine's names alone, under a content security policy.

    `reads_only`: another site's page may link to it, and no more: a picture's address could be a statement
    that keeps the machine busy.
    """
    from starlette.datastructures import Headers
    from starlette.middleware.trustedhost import TrustedHostMiddleware
    from starlette.responses import PlainTextResponse

    headers = [
        (b"content-security-policy", policy.encode()),
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
    ]

    async def with_headers(scope: Any, receive: Any, send: Any) -> None:
        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", []), *headers]}
            await send(message)

        if reads_only and scope.get("method", "GET") not in ("GET", "HEAD"):
            await PlainTextResponse("This page only reads.\n", 405)(scope, receive, sent)
        elif reads_only and _is_embedded(Headers(scope=scope)):
            await PlainTextResponse("Refused: asked for by another site.\n", 403)(scope, receive, sent)
        else:
            await app(scope, receive, sent)

    return TrustedHostMiddleware(with_headers, allowed_hosts=_NAMES, www_redirect=False)


def _is_embedded(headers: Any) -> bool:
    """Does a page of another site ask for it, as a picture, a frame or a script, and no person by a link?"""
    site, for_what = headers.get("sec-fetch-site"), headers.get("sec-fetch-dest")
    return site in ("cross-site", "same-site") and for_what != "document"


def serve(app: Any, listening: socket.socket, url: str, *, opens: bool, said: Callable[[], None]) -> None:
    """Serve until Ctrl-C or a termination signal; `said` tells the address once it can be asked for."""
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            # Not before: from here on Ctrl-C is the server's.
            said()
            if opens:
                # A browser in the terminal would not come back.
                threading.Thread(target=webbrowser.open, args=[url], daemon=True).start()

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=_ENDS_WITHIN_S,
    )
    with listening, suppress(KeyboardInterrupt):
        Announced(config).run(sockets=[listening])
