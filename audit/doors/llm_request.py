"""The body of a request, and what is changed in it after a gateway refused a part of it.

Gateways that call themselves compatible differ in what they take. Each refusal has a name, which is stored
with the answer, and a change to the body that is made from then on.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from audit.words.calls import Message
from audit.words.profiles import Endpoint

Body = dict[str, Any]


class Refusal(NamedTuple):
    """`is_sent`: the body holds the part; `pattern`: a complaint names it; `adapt`: the body without it."""

    name: str
    is_sent: Callable[[Body], bool]
    pattern: re.Pattern[str]
    adapt: Callable[[Body], Body]


def request_body(
    endpoint: Endpoint,
    messages: Sequence[Message],
    tools: Sequence[dict[str, Any]] | None,
    response_schema: dict[str, Any] | None,
    seed: int | None,
) -> Body:
    """What is asked, before anything was refused. `seed` comes before the profile's own."""
    body: Body = {"model": endpoint.model, "messages": list(messages)}
    chosen_seed = endpoint.seed if seed is None else seed
    parameters = {"temperature": endpoint.temperature, "max_tokens": endpoint.max_tokens, "seed": chosen_seed}
    body |= {name: value for name, value in parameters.items() if value is not None}
    if tools:
        body["tools"] = list(tools)
    if response_schema is not None:
        schema = {"name": "answer", "schema": response_schema, "strict": True}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body | endpoint.extra


def adapted(body: Body, refused: Sequence[str]) -> tuple[Body, tuple[str, ...]]:
    """The body with everything changed that was refused before, and the names of what it held of that."""
    left_out = []
    for name in refused:
        refusal = _BY_NAME[name]
        if refusal.is_sent(body):
            body = refusal.adapt(body)
            left_out.append(name)
    return body, tuple(left_out)


def named_refusal(body: Body, complaint: str) -> str | None:
    """The part of the body that the complaint of a 400 or 422 names first, if it is one that can be changed.

    A complaint about a value (`max_tokens is too large`) refuses no parameter: the user has to change it.
    """
    text = complaint.lower()
    if _VALUE.search(text) and not _PARAMETER.search(text):
        return None
    found = [
        (match.start(), refusal.name)
        for refusal in REFUSALS
        if refusal.is_sent(body) and (match := refusal.pattern.search(text))
    ]
    return min(found, key=lambda place: place[0])[1] if found else None


_VALUE = re.compile(
    r"\b(between|(less|greater) than|at (most|least)|too (large|long|big|high|small|low)|maximum|exceeds?"
    r"|range)\b"
)
_PARAMETER = re.compile(r"unsupported|not support|unknown|unrecognized|unexpected|not permitted|not allowed")


def _without(name: str) -> Callable[[Body], Body]:
    return lambda body: {key: value for key, value in body.items() if key != name}


def _with_completion_limit(body: Body) -> Body:
    return {("max_completion_tokens" if key == "max_tokens" else key): value for key, value in body.items()}


def _has_system(body: Body) -> bool:
    return any(message.get("role") == "system" for message in body["messages"])


def _system_merged(body: Body) -> Body:
    """The system messages put before the first user message's text; where there is none, they become it."""
    system = "\n\n".join(str(m.get("content") or "") for m in body["messages"] if m.get("role") == "system")
    others = [message for message in body["messages"] if message.get("role") != "system"]
    place = next((i for i, message in enumerate(others) if message.get("role") == "user"), None)
    if place is None:
        return body | {"messages": [{"role": "user", "content": system}, *others]}
    own = others[place].get("content")
    joined = [{"type": "text", "text": system}, *own] if isinstance(own, list) else f"{system}\n\n{own or ''}"
    others[place] = others[place] | {"content": joined}
    return body | {"messages": others}


def _format_is(kind: str) -> Callable[[Body], bool]:
    return lambda body: (body.get("response_format") or {}).get("type") == kind


def _as_json_object(body: Body) -> Body:
    return body | {"response_format": {"type": "json_object"}}


def _strict_holders(body: Body) -> list[dict[str, Any]]:
    """What may carry `strict`: each tool's function, and the schema of the answer."""
    holders = [tool.get("function") for tool in body.get("tools") or ()]
    holders.append((body.get("response_format") or {}).get("json_schema"))
    return [holder for holder in holders if isinstance(holder, dict)]


def _is_strict(body: Body) -> bool:
    return any("strict" in holder for holder in _strict_holders(body))


def _not_strict(body: Body) -> Body:
    lax = _without("strict")
    changed = dict(body)
    if body.get("tools"):
        changed["tools"] = [
            tool | {"function": lax(tool["function"])} if isinstance(tool.get("function"), dict) else tool
            for tool in body["tools"]
        ]
    if _format_is("json_schema")(body):
        answer = body["response_format"]
        changed["response_format"] = answer | {"json_schema": lax(answer["json_schema"])}
    return changed


_FORMAT = re.compile(r"response[_ ]format|json[_ ](schema|object|mode)|structured[_ ]output|guided")
_SYSTEM = re.compile(r"system\W+(role|message|instruction|prompt)|role.{0,60}\bsystem\b|roles must alternate")


def _holds(name: str) -> Callable[[Body], bool]:
    return lambda body: name in body


REFUSALS = (
    Refusal("json_schema", _format_is("json_schema"), _FORMAT, _as_json_object),
    Refusal("json_object", _format_is("json_object"), _FORMAT, _without("response_format")),
    Refusal("strict", _is_strict, re.compile(r"\bstrict\b"), _not_strict),
    Refusal("max_tokens", _holds("max_tokens"), re.compile(r"\bmax_tokens\b"), _with_completion_limit),
    Refusal("temperature", _holds("temperature"), re.compile(r"\btemperature\b"), _without("temperature")),
    Refusal("seed", _holds("seed"), re.compile(r"\bseed\b"), _without("seed")),
    Refusal("system_role", _has_system, _SYSTEM, _system_merged),
)
_BY_NAME = {refusal.name: refusal for refusal in REFUSALS}
