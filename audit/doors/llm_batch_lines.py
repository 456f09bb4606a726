"""The lines of batch files: requests as they go, results as they come. No network.

As OpenAI's batch API has them, which `vllm run-batch` reads and writes as well.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from audit.doors.llm import RETRIED, Models
from audit.doors.llm_answer import Answer, complaint, error_body_says, parse, read_reply, status_error
from audit.doors.llm_request import Body, adapted, named_refusal, request_body
from audit.doors.llm_url import ENDPOINT_PATH, shown_url
from audit.words.calls import Message, Reply
from audit.words.keys import without_keys
from audit.words.profiles import Endpoint
from audit.words.text import as_json

URL = "/v1" + ENDPOINT_PATH


def stored_body(
    models: Models,
    endpoint: Endpoint,
    messages: Sequence[Message],
    response_schema: dict[str, Any],
    seed: int | None,
    refused: Sequence[str],
) -> Body:
    """The body of a request as `Models.chat` makes it, and as it may be stored: keys in it replaced."""
    body, _ = adapted(request_body(endpoint, messages, None, response_schema, seed), refused)
    shown = without_keys(endpoint.extra)
    body |= {name: value for name, value in shown.items() if name in body}
    has_secret = models.secrets.are_in_json(as_json(body))
    found: Body = models.secrets.out_of(body) if has_secret else body
    return found


def request_line(custom_id: str, request_json: str, endpoint: Endpoint | None = None) -> bytes:
    """One line of a file of requests; with an endpoint, what it sends under a key's name is in it again."""
    body = parse(request_json.encode())
    if endpoint is not None:
        shown = without_keys(endpoint.extra)
        sent = {name: value for name, value in endpoint.extra.items() if shown[name] != value}
        body |= {name: value for name, value in sent.items() if name in body}
    return as_json({"custom_id": custom_id, "method": "POST", "url": URL, "body": body}).encode()


def result_in(line: dict[str, Any]) -> Answer:
    """The HTTP answer that a line of a results file holds, or the problem that it tells instead."""
    response, error = line.get("response"), line.get("error")
    status = response.get("status_code") if isinstance(response, dict) else None
    if isinstance(response, dict) and type(status) is int:
        body = response.get("body")
        if body is None and error:  # as vLLM has it
            body = {"error": error}
        return Answer(status, as_json(body).encode(), {"content-type": "application/json"})
    said = complaint({"error": error}) if error else "the line holds neither a response nor an error"
    return Answer(problem=f"batch: {said}")


def is_passing(answer: Answer) -> bool:
    """Whether the request may be answered when it is sent again."""
    return answer.status is None or answer.status in RETRIED


def refused_part(answer: Answer, body: Body) -> str | None:
    """The part of the request that the gateway takes from nobody, if that is what its answer complains of."""
    return named_refusal(body, error_body_says(answer)) if answer.status in (400, 422) else None


def reply_in(models: Models, endpoint: Endpoint, answer: Answer, body: Body) -> Reply:
    """The answer read as `Models.chat` reads one. How long it took nobody knows."""
    try:
        url = shown_url(endpoint.base_url) + ENDPOINT_PATH
        reply = (
            read_reply(answer)
            if answer.is_success
            else Reply("error", None, error=status_error(answer, url, endpoint.api_key_env))
        )
    except Exception as error:  # whatever stands in a file, it stops no run
        problem = f"the answer could not be read: {type(error).__name__}: {error}"
        reply = Reply("error", None, error=problem)
    return replace(models.cleaned(reply), request=body)
