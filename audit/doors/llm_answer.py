"""What a gateway sent back, read for what it is: an answer, half an answer, or none."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any

import orjson

from audit.doors.llm_url import ENDPOINT_PATH, shown_url
from audit.words.calls import Reply, ReplyStatus, Usage

_CUT = ("length", "max_tokens", "content_filter")
_MOST_TOKENS = 10**12  # a count beyond it is none, and sums of more would not fit an INTEGER column
_LONGEST_EXCERPT = 100_000
_LONGEST_MODEL = 200
_NO_CALL = {"name": "malformed_call", "arguments": "{}"}


@dataclass(frozen=True, slots=True)
class Answer:
    """The outcome of one HTTP request: a status with its body, or a `problem` where there was no answer.

    A problem with a status: an answer came and cannot be taken.
    """

    status: int | None = None
    content: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: float | None = None
    problem: str | None = None
    latency_ms: float = 0.0

    @property
    def is_success(self) -> bool:
        return self.problem is None and self.status is not None and 200 <= self.status < 300


def read_reply(answer: Answer) -> Reply:
    """The reply in an answer with a success status. Reasoning text is never its content."""
    try:
        found = parse(answer.content)
    except ValueError:
        kind = answer.headers.get("content-type", "").partition(";")[0] or "no content type"
        return Reply("error", None, error=f"answer is not JSON ({kind}): {_excerpt(answer.content)}")
    if not isinstance(found, dict):
        return Reply("error", None, error=f"answer is not a JSON object: {_excerpt(answer.content)}")
    served = found.get("model")
    common: dict[str, Any] = {
        "usage": _usage(found.get("usage")),
        "served_model": served if isinstance(served, str) else None,
    }
    if found.get("error") and not found.get("choices"):
        return Reply("error", None, error=f"error under status {answer.status}: {complaint(found)}", **common)
    choices = found.get("choices")
    if not isinstance(choices, list):
        return Reply("error", None, error=f"no choices: {_excerpt(answer.content)}", **common)
    if not choices:
        return Reply("error", None, error="empty choices", **common)
    return _read_choice(choices[0] if isinstance(choices[0], dict) else {}, common)


def _read_choice(choice: dict[str, Any], common: dict[str, Any]) -> Reply:
    message = choice.get("message")
    if not isinstance(message, dict):
        message = {}
    given = choice.get("finish_reason")
    finish_reason = given if isinstance(given, str) else None
    content = _text(message.get("content"))
    calls = message.get("tool_calls")
    tool_calls = (
        tuple(_tool_call(call) for call in calls if isinstance(call, dict)) if isinstance(calls, list) else ()
    )
    common = {**common, "finish_reason": finish_reason, "tool_calls": tool_calls}
    if choice.get("error"):
        return Reply("error", content, error=f"error in the answer: {complaint(choice)}", **common)
    if tool_calls or (content and not content.isspace()):
        status: ReplyStatus = "truncated" if (finish_reason or "").lower() in _CUT else "ok"
        return Reply(status, content, **common)
    error = f"empty content, finish_reason={finish_reason or 'null'}"
    if isinstance(message.get("refusal"), str) and message["refusal"]:
        error += f", refusal: {_one_line(message['refusal'])}"
    return Reply("error", content, error=error, is_empty=True, **common)


def _text(content: Any) -> str | None:
    """Content as text, also where it comes in parts; a part that is no text (thinking) is left out."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    parts = [part.get("text") for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(part for part in parts if isinstance(part, str)) if parts else None


def _tool_call(call: dict[str, Any]) -> dict[str, Any]:
    """The call with an id (text or NULL), a name and arguments as text, whatever it had.

    One that names no function becomes one of a tool that no domain has: the agent is told so and goes on.
    """
    found, given = call.get("id"), call.get("function")
    call_id = str(found) if isinstance(found, str | int) and not isinstance(found, bool) else None
    function = _NO_CALL
    if isinstance(given, dict) and isinstance(given.get("name"), str) and given["name"]:
        arguments = given.get("arguments")
        text = "{}" if arguments is None else _plain(arguments)
        function = {"name": given["name"], "arguments": text}
    return {"id": call_id, "type": "function", "function": dict(function)}


def _usage(usage: Any) -> Usage:
    if not isinstance(usage, dict):
        return Usage()
    details = usage.get("completion_tokens_details")
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        reasoning_tokens=_count(details.get("reasoning_tokens")) if isinstance(details, dict) else None,
        total_tokens=_count(usage.get("total_tokens")),
    )


def _count(value: Any) -> int | None:
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def parse(content: bytes) -> Any:
    """JSON, also with what the faster library refuses: a lone surrogate where an emoji was cut, NaN.

    Raises ValueError for what is none, or is nested too deeply to be read.
    """
    try:
        return orjson.loads(content)
    except ValueError:
        return _patiently_parsed(content)


def _patiently_parsed(content: bytes) -> Any:
    try:
        return json.loads(content, parse_int=_int)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _int(digits: str) -> int | None:
    return int(digits) if len(digits) < 1000 else None


def complaint(found: Any) -> str:
    """What an error body says, on one line: parameter and code before the message, where they are given."""
    error = found.get("error") or found if isinstance(found, dict) else found
    if not isinstance(error, dict):
        return _one_line(_plain(error))
    if isinstance(error.get("detail"), list):
        return _one_line("; ".join(_detail(item) for item in error["detail"]))
    message = error.get("message") or error.get("detail") or error.get("error") or error.get("msg")
    if not message:
        return _one_line(_plain(error))
    marks = [_plain(error[name]) for name in ("param", "code") if error.get(name)]
    text = _plain(message)
    return _one_line(f"{text} ({', '.join(marks)})" if marks else text)


def _detail(item: Any) -> str:
    """One fault as FastAPI lists them. Its `input` is left out: it may repeat the whole request."""
    if not isinstance(item, dict):
        return _plain(item)
    steps = item.get("loc") or ()
    place = ".".join(_plain(step) for step in (steps if isinstance(steps, list) else [steps]))
    return f"{place}: {_plain(item.get('msg'))}"


def _plain(value: Any) -> str:
    """Text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "(nested too deeply)"


def error_body_says(answer: Answer) -> str:
    """The complaint in an answer with an error status, whatever form it has."""
    try:
        found = parse(answer.content)
    except ValueError:
        return _excerpt(answer.content)
    return complaint(found)


def listed_models(answer: Answer) -> list[str]:
    """The names in an answer of `GET /models`, as OpenAI and those who follow it write it."""
    try:
        found = parse(answer.content)
    except ValueError:
        return []
    listed = found.get("data", found.get("models")) if isinstance(found, dict) else found
    names = [item.get("id", item.get("name")) if isinstance(item, dict) else item for item in
             (listed if isinstance(listed, list) else [])]  # fmt: skip
    return [name for name in names if isinstance(name, str) and 0 < len(name) <= _LONGEST_MODEL]


def status_error(answer: Answer, url: str, key_variable: str | None) -> str:
    """Why there is no reply: the problem, or the status with what the body says. `url` is without query.

    `key_variable`: the name, never the key, that a status which refuses it is told with.
    """
    if answer.problem is not None:
        return answer.problem
    location = answer.headers.get("location")
    if location is not None and answer.status is not None and answer.status < 400:
        to = shown_url(location)
        return f"HTTP {answer.status} at {url}: it redirects to {to}, write that as base_url"
    if answer.status == 404:
        has_path = "/" in url.removesuffix(ENDPOINT_PATH).partition("://")[2]
        hint = "" if has_path else " (is /v1 missing in base_url?)"
        return f"HTTP 404 at {url}{hint}: {error_body_says(answer)}"
    if answer.status in (401, 403):
        key = f" (key: {key_variable})" if key_variable else ""
        return f"HTTP {answer.status} at {url}{key}: {error_body_says(answer)}"
    return f"HTTP {answer.status}: {error_body_says(answer)}"


def retry_after_s(headers: Any, now: datetime | None = None) -> float | None:
    """Seconds that the server asks to wait, given as such or as an HTTP date; None where it asks nothing."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        return max(0.0, seconds) if isfinite(seconds) else None
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
        aware = date if date.tzinfo else date.replace(tzinfo=UTC)
        return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())
    except (ValueError, OverflowError):  # such as a year, an hour or an offset of twenty digits
        return None


def _excerpt(content: bytes) -> str:
    text = _one_line(content[:_LONGEST_EXCERPT].decode("utf-8", "replace"))
    return text or "nothing"


def _one_line(text: str) -> str:
    return " ".join(text[:_LONGEST_EXCERPT].split())
