"""What comes back from a model, whatever it was asked for."""

from dataclasses import dataclass, field
from typing import Any, Literal

Message = dict[str, Any]
ReplyStatus = Literal["ok", "truncated", "error"]


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the gateway gave them; NULL where it gave none, never 0 for unknown.

    `reasoning_tokens` are part of `completion_tokens`.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered, or finally failed, model call.

    `status` is `error` where there is no content to read (`error` says why, without keys), `truncated` where
    the model was cut off. `is_empty`: a whole answer came, with nothing in it. `request` is what was sent,
    without keys: with the parameters the gateway had refused before left out, and `refused` naming those.
    `date`: when the server says it answered, as the HTTP header has it.
    """

    status: ReplyStatus
    content: str | None
    tool_calls: tuple[dict[str, Any], ...] = ()
    finish_reason: str | None = None
    served_model: str | None = None
    usage: Usage = field(default_factory=Usage)
    latency_ms: float | None = None
    error: str | None = None
    is_empty: bool = False
    http_attempts: int = 1
    request: dict[str, Any] = field(default_factory=dict)
    refused: tuple[str, ...] = ()
    date: str | None = None
