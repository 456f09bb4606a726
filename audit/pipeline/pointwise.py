"""A question about one session, to the first judge: how satisfied can its customer be, is a criterion met."""

import json
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from audit.doors.prompts import Prompt
from audit.pipeline.budget import UsedUp
from audit.pipeline.calls import Read, log_of
from audit.pipeline.expected import ATTEMPTS
from audit.pipeline.workplace import Workplace
from audit.verbs.render import nonce
from audit.words.calls import Message
from audit.words.records import JudgeLog


class Found(Protocol):
    """What was read in an answer."""

    @property
    def status(self) -> str: ...

    @property
    def parsed_json(self) -> str | None: ...


Answered = TypeVar("Answered", bound=Found)


async def ask_pointwise(
    workplace: Workplace,
    prompt: Prompt,
    schema: dict[str, Any],
    session: dict[str, Any],
    rendered: str,
    read: Callable[[str | None, bool], Answered],
    **values: str,
) -> tuple[Answered, list[JudgeLog]]:
    """The answer and its calls; asked once more where the reply cannot be read."""
    endpoint = workplace.endpoint(workplace.config.judges[0].members[0])
    messages = pointwise_messages(prompt, session, rendered, **values)
    logs: list[JudgeLog] = []
    found: Answered | None = None
    while True:
        try:
            reply = await workplace.chat(endpoint, messages, response_schema=schema, seed=endpoint.seed)
        except UsedUp:
            if found is None:
                raise
            return found, logs
        found = read(reply.content, reply.status == "truncated")
        status = "error" if reply.status == "error" else found.status
        logs.append(
            log_of(
                reply,
                Read(status, found.parsed_json),
                run_id=workplace.run.run_id,
                endpoint=endpoint,
                prompt=prompt,
                session_id=session["session_id"],
                attempt=len(logs) + 1,
            )
        )
        if is_read(status, found) or status == "error" or len(logs) == ATTEMPTS:
            return found, logs


def pointwise_messages(
    prompt: Prompt, session: dict[str, Any], rendered: str, **values: str
) -> list[Message]:
    """The question about one session, which is shown as `rendered`."""
    source = json.loads(session["source_json"] or "{}")
    return prompt.fill(
        goal=source.get("goal", ""),
        policy=source.get("policy", ""),
        nonce=nonce(rendered),
        session=rendered,
        **values,
    )


def is_read(status: str, found: Found) -> bool:
    """Did an answer say something? What is cut may have said it before."""
    return status != "unreadable" and not (status == "truncated" and found.parsed_json is None)
