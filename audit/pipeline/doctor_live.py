"""Doctor, live: one tiny call a profile in use tells whether it answers, and takes a schema."""

import asyncio
import difflib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from audit.doors.llm import Models
from audit.doors.llm_url import OFFLINE
from audit.pipeline.doctor_machine import server_clock
from audit.pipeline.workplace import endpoint_of, key_name
from audit.words.calls import Reply
from audit.words.config import Profile
from audit.words.errors import AuditError
from audit.words.findings import Finding, error, fine, warning
from audit.words.profiles import Endpoint

_MOST_TOKENS, _LONGEST_S = 256, 30.0  # enough for a model that thinks first
_SCHEMA = {
    "type": "object",
    "properties": {"ready": {"type": "boolean"}},
    "required": ["ready"],
    "additionalProperties": False,
}
_ASKED = [{"role": "user", "content": 'Answer with the JSON object {"ready": true} and nothing else.'}]
_NO_MODEL = ("HTTP 404", "HTTP 400", "HTTP 422")


class Probe(NamedTuple):
    """What came of one profile's call, for JSON; and the findings."""

    row: dict[str, Any]
    findings: list[Finding]


async def probes(profiles: Sequence[tuple[str, Profile]]) -> list[Probe]:
    """(where, profile) each asked once, all at the same time. A failed call is not repeated."""
    keys = {
        key_name(profile) or profile.name: profile.api_key.get_secret_value() if profile.api_key else None
        for _, profile in profiles
    }
    async with Models(keys, concurrency=max(1, len(profiles))) as models:
        return list(await asyncio.gather(*(_probe(models, where, one) for where, one in profiles)))


async def _probe(models: Models, where: str, profile: Profile) -> Probe:
    if profile.base_url.strip().startswith(OFFLINE):
        told = fine("live", where, "is served inside this program: nothing to ask")
        return Probe({"profile": profile.name, "status": "offline"}, [told])
    whole = endpoint_of(profile)
    endpoint = replace(
        whole,
        max_tokens=min(whole.max_tokens or _MOST_TOKENS, _MOST_TOKENS),
        timeout_s=min(whole.timeout_s, _LONGEST_S),
        attempts=1,
    )
    try:
        reply = await models.chat(endpoint, _ASKED, response_schema=_SCHEMA)
    except AuditError as problem:
        row = {"profile": profile.name, "status": "error", "error": str(problem)}
        return Probe(row, [error("live", where, str(problem), "correct it, and ask again")])
    findings = await _told(models, where, profile, endpoint, reply)
    skew = _skew(where, reply)
    return Probe(_row(profile, reply), [*findings, *([skew] if skew else [])])


def _row(profile: Profile, reply: Reply) -> dict[str, Any]:
    return {
        "profile": profile.name,
        "status": reply.status,
        "latency_ms": reply.latency_ms,
        "served_model": reply.served_model,
        "takes_json_schema": None if reply.status == "error" else "json_schema" not in reply.refused,
        "refused": list(reply.refused),
        "tokens": reply.usage.total_tokens,
        "error": reply.error,
    }


async def _told(
    models: Models, where: str, profile: Profile, endpoint: Endpoint, reply: Reply
) -> list[Finding]:
    if reply.status == "error" and not reply.is_empty:
        return [await _failed(models, where, endpoint, reply)]
    served = reply.served_model
    as_other = f", served as {served}" if served and served != profile.model else ""
    took = f"{reply.latency_ms or 0:,.0f} ms"
    found = [fine("live", where, f"{profile.model} answers in {took}{as_other}")]
    others = [name for name in reply.refused if name not in ("json_schema", "json_object", "strict")]
    if others:
        found.append(fine("live_refused", where, f"refuses {', '.join(others)}: calls go without"))
    schema = _schema(where, profile, reply)
    return [*found, schema]


def _schema(where: str, profile: Profile, reply: Reply) -> Finding:
    """Whether an answer's form can be relied on, which matters of a judge."""
    grade = warning if profile.role == "llm_judge" else fine
    if "json_schema" in reply.refused:
        what = "refuses json_schema: it is asked for JSON in words, and its answers are read with more care"
        return grade("live_json_schema", where, what, "")
    if reply.status == "truncated" or reply.is_empty:
        what = f"takes json_schema; {_MOST_TOKENS} tokens were too few for it to finish"
        return fine("live_json_schema", where, what)
    if not _keeps_to_it(reply.content or ""):
        what = "takes json_schema and does not keep to it: its answers are read with more care"
        return grade("live_json_schema", where, what, "")
    return fine("live_json_schema", where, "takes json_schema")


def _keeps_to_it(content: str) -> bool:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and isinstance(found.get("ready"), bool)


async def _failed(models: Models, where: str, endpoint: Endpoint, reply: Reply) -> Finding:
    """Why there is no answer; the names that are near where it is the model that is not there."""
    problem = reply.error or "no answer"
    if problem.startswith(("HTTP 401", "HTTP 403")):
        return error("live_key_refused", where, problem, "check the key, and that it is of this gateway")
    if problem.startswith("HTTP 429"):
        return warning("live_limited", where, problem, "ask again later; rpm and tpm in the profile help")
    if problem.startswith(_NO_MODEL):
        names = await models.model_names(endpoint)
        if names is not None and endpoint.model not in names:
            return error(
                "live_no_model",
                where,
                f"the gateway lists no model {endpoint.model}: {problem}",
                _nearest(endpoint.model, names),
            )
    return error("live", where, problem, "check base_url and model, and that the gateway is up")


def _nearest(model: str, names: list[str]) -> str:
    lowered = {name.casefold(): name for name in names}
    near = [lowered[name] for name in difflib.get_close_matches(model.casefold(), lowered, n=3, cutoff=0.5)]
    if near:
        return f"write one of those that it lists: {', '.join(near)}"
    return f"it lists {len(names):,} others, such as {', '.join(names[:3])}"


def _skew(where: str, reply: Reply) -> Finding | None:
    try:
        date = parsedate_to_datetime(reply.date or "")
    except (ValueError, OverflowError):
        return None
    return server_clock(where, datetime.now(UTC), date if date.tzinfo else date.replace(tzinfo=UTC))
