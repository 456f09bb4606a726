"""The synthetic models behind the client that talks to real ones: a transport that answers in-process."""

from __future__ import annotations

from typing import Any

import httpx2
import orjson

from audit.offline.serve import MODELS, Refused, serve


class OfflineTransport(httpx2.AsyncBaseTransport):
    """Answers `POST .../chat/completions` and `GET .../models`; anything else is 404."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path.rstrip("/")
        if request.method == "POST" and path.endswith("/chat/completions"):
            return _response(request, *_complete(await request.aread()))
        if request.method == "GET" and path.endswith("/models"):
            models = [{"id": name, "object": "model", "owned_by": "synthetic"} for name in MODELS]
            return _response(request, 200, {"object": "list", "data": models})
        return _response(request, 404, _error(f"nothing is served at {request.method} {path}"))


def _complete(content: bytes) -> tuple[int, dict[str, Any]]:
    try:
        body = orjson.loads(content)
    except ValueError:
        return 400, _error("the body is not JSON")
    if not isinstance(body, dict):
        return 400, _error("the body is not a JSON object")
    try:
        return 200, serve(body)
    except Refused as refused:
        return refused.status, _error(str(refused))


def _response(request: httpx2.Request, status: int, body: dict[str, Any]) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(status, headers=headers, content=orjson.dumps(body), request=request)


def _error(problem: str) -> dict[str, Any]:
    return {"error": {"message": problem, "type": "invalid_request_error", "code": None}}
