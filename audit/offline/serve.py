"""One chat completion by a synthetic model: a pure function of the request's body.

Models: `customer`, `agent-SKILL`, `judge-SKILL` with the dials `-posSHARE` and `-verbSHARE`, `judge-coin`,
`judge-first`; all numbers in percent. They see nothing but the messages, and say that they are synthetic.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from audit.offline.agent import agent_turn, tool_calls
from audit.offline.chance import uniform
from audit.offline.customer import customer_turn
from audit.offline.judge import Dials, dials_of, pair_answer, satisfaction_answer
from audit.offline.reading import read_judged, text_of

MODELS = (
    "customer",
    *(f"agent-{skill}" for skill in range(100, 0, -5)),
    *(f"judge-{skill}" for skill in range(100, 0, -10)),
    "judge-coin",
    "judge-first",
)

_AGENT = re.compile(r"agent-(\d{1,3})\Z")
_NO_TRANSCRIPT = "I see no transcript between markers, so I cannot judge."


class Refused(Exception):
    """A request that no synthetic model can answer; `status` is what an HTTP server would give."""

    def __init__(self, status: int, problem: str) -> None:
        super().__init__(problem)
        self.status = status


def serve(body: Mapping[str, Any]) -> dict[str, Any]:
    """The completion for a request. Raises Refused."""
    model, messages = body.get("model"), body.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise Refused(400, "messages must be a list of messages")
    if body.get("stream"):
        raise Refused(400, "the synthetic models do not stream")
    message = _message(str(model), body, messages)
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    prompt_tokens = _tokens(*map(text_of, messages), *_calls_of(messages))
    if body.get("tools"):
        prompt_tokens += _tokens(json.dumps(body["tools"]))
    completion_tokens = _tokens(text_of(message), *_calls_of([message]))
    return {
        "id": f"synthetic-{int(uniform(model, body.get('seed'), messages) * 16**12):012x}",
        "object": "chat.completion",
        "created": 0,
        "model": f"synthetic/{model}",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        },
    }


def _message(model: str, body: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    if model == "customer":
        return _said(customer_turn(messages))
    agent, dials = _AGENT.match(model), dials_of(model)
    if agent:
        turn = agent_turn(body, min(int(agent[1]), 100))
        if isinstance(turn, str):
            return _said(turn)
        made = sum(len(message.get("tool_calls") or ()) for message in messages)
        return {"role": "assistant", "content": None, "tool_calls": tool_calls(turn, made)}
    if dials:
        return _said(_judgment("\n\n".join(map(text_of, messages)), dials, body.get("seed")))
    raise Refused(404, f"no synthetic model {model!r}: there are customer, agent-SKILL and judge-SKILL")


def _judgment(prompt: str, dials: Dials, seed: object) -> str:
    judged = read_judged(prompt)
    if not judged.transcripts:
        return _NO_TRANSCRIPT
    answer = pair_answer if len(judged.transcripts) > 1 else satisfaction_answer
    return json.dumps(answer(judged, dials, seed), ensure_ascii=False)


def _said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _calls_of(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    calls = (call for message in messages for call in message.get("tool_calls") or ())
    return [str(call.get("function")) for call in calls]


def _tokens(*texts: str) -> int:
    """Rough: four characters a token."""
    return sum(len(text) + 3 for text in texts) // 4
