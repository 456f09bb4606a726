"""Who may use a local page that stores things: whoever was told its token, from the page itself.

The token comes in the address once and then in a cookie, or in a header. What is sent from another origin is
refused, whatever cookie comes with it: another port of this machine shares our cookies.
"""

import secrets
from typing import Any

from starlette.datastructures import Headers, QueryParams
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse

HEADER = "x-review-token"
_READS = ("GET", "HEAD")


def with_token(app: Any, token: str, port: int) -> Any:
    """The ASGI application behind the token; `port` tells its cookie from those of other servers here."""
    cookie = f"reward_audit_{port}"

    def problem(method: str, headers: Headers) -> str | None:
        given = headers.get(HEADER, "")
        is_told = _same(given, token)
        if not is_told and not _same(cookie_parser(headers.get("cookie", "")).get(cookie, ""), token):
            return "Open the address that `reward-audit review serve` printed: this one lacks its token."
        if method in _READS:
            return None
        if headers.get("origin", f"http://{headers.get('host')}") != f"http://{headers.get('host')}":
            return "Refused: sent from another origin."
        site = headers.get("sec-fetch-site")
        if site not in (None, "same-origin"):
            return "Refused: sent from another site."
        if not is_told and site is None and "origin" not in headers:
            return "Refused: it is not said from where it was sent."
        return None

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        given = QueryParams(scope["query_string"]).get("token", "")
        answer: Any = app
        if scope["method"] == "GET" and _same(given, token):
            # On to the address without it, so that it stands in no history and in nobody's view.
            answer = RedirectResponse("/", 303)
            # Not strict: who clicks the address in a terminal that is a web page would be turned away.
            answer.set_cookie(cookie, token, httponly=True, samesite="lax")
        elif refused := problem(scope["method"], Headers(scope=scope)):
            answer = PlainTextResponse(refused + "\n", 403)
        await answer(scope, receive, send)

    return asked


def new_token() -> str:
    """A token that nobody guesses."""
    return secrets.token_urlsafe(24)


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode(), token.encode())
