"""One model call as a row of judge_logs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from audit.doors.llm_url import shown_url
from audit.doors.prompts import Prompt
from audit.verbs.spending import Call
from audit.words import clock
from audit.words.calls import Reply
from audit.words.profiles import Endpoint
from audit.words.records import JudgeLog
from audit.words.text import as_json


class Read(NamedTuple):
    """What was read in a reply, for the log."""

    parse_status: str
    parsed_json: str | None = None
    choice: str | None = None
    preference: str | None = None


def log_of(
    reply: Reply,
    read: Read,
    *,
    run_id: str,
    endpoint: Endpoint,
    prompt: Prompt,
    pair_id: str | None = None,
    session_id: str | None = None,
    order: str | None = None,
    attempt: int = 1,
) -> JudgeLog:
    """The row. What the gateway did not tell stays NULL."""
    usage = reply.usage
    return JudgeLog(
        run_id=run_id,
        pair_id=pair_id,
        session_id=session_id,
        role=prompt.role,
        profile=endpoint.name,
        model=endpoint.model,
        served_model=reply.served_model,
        base_url=shown_url(endpoint.base_url),
        presented_order=order,
        attempt=attempt,
        prompt_hash=prompt.prompt_hash,
        request_json=as_json(reply.request),
        raw_output=reply.content,
        parsed_json=read.parsed_json,
        choice=read.choice,
        preference=read.preference,
        parse_status=read.parse_status,
        finish_reason=reply.finish_reason,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        total_tokens=usage.total_tokens,
        latency_ms=reply.latency_ms,
        temperature=_number(reply.request.get("temperature")),
        seed=_integer(reply.request.get("seed")),
        error=reply.error,
        created_at=clock.now(),
    )


def _number(value: Any) -> float | None:
    """A parameter as its column holds it; `extra` may have put anything in its place."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _integer(value: Any) -> int | None:
    return value if type(value) is int and abs(value) < 2**63 else None


def tokens_of(logs: Sequence[Call]) -> tuple[int | None, int | None, int | None]:
    """Prompt, completion and total tokens of several calls; NULL as soon as one of them is unknown."""
    return (
        _sum([log.prompt_tokens for log in logs]),
        _sum([log.completion_tokens for log in logs]),
        _sum([log.total_tokens for log in logs]),
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None
