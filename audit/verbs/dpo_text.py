"""A conversation as plain strings, for trainers that know no chat; and words that are meant for the judge."""

import json
import re
from collections.abc import Sequence

from audit.words.calls import Message

_NAMES = {"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"}


def is_plain(prompt: Sequence[Message], *completions: Sequence[Message]) -> bool:
    """One question and one answer each, without tools?"""
    return (
        len(prompt) == 1
        and prompt[0]["role"] == "user"
        and all(len(one) == 1 and "tool_calls" not in one[0] for one in completions)
    )


def as_strings(prompt: Sequence[Message], *completions: Sequence[Message]) -> tuple[str, ...]:
    """The prompt and each completion as a string: prompt + completion is the whole conversation.

    One question with one answer is left as it is. Of others every turn begins with its speaker, `User: `,
    `Assistant: `, `Tool: `, and the prompt ends where the agent's turn begins; a tool call stands behind the
    words of its turn, as `name(arguments)`.
    """
    if is_plain(prompt, *completions):
        return (prompt[0]["content"], *(one[0]["content"] for one in completions))
    opening = "".join(f"{_turn(message)}\n\n" for message in prompt) + "Assistant:"
    return (opening, *(_completion(one) for one in completions))


def _completion(messages: Sequence[Message]) -> str:
    return "\n\n".join(_turn(message) for message in messages).removeprefix("Assistant:")


def _turn(message: Message) -> str:
    calls = [
        f"{call['function']['name']}({json.dumps(call['function']['arguments'], ensure_ascii=False)})"
        for call in message.get("tool_calls", ())
    ]
    said = [message["content"]] if message["content"] or not calls else []
    return f"{_NAMES[message['role']]}: " + "\n".join([*said, *calls])


# One of these stands in every text that the pattern finds, and is looked for a hundred times as quickly.
_STEMS = (
    "judge", "[[", "winner", "grader", "rater", "evaluator", "ignore", "disregard", "response", "answer",
    "transcript_", "assistant a ", "assistant b ",
)  # fmt: skip
_WHO = r"(?:judge|evaluator|grader|rater)s?"
_TO_JUDGE = re.compile(
    r"\[\[\s*(?:[ABC]|tie|[AB](?:>>?|<<?|=)[AB])\s*\]\]"
    rf"|\b(?:dear|attention|hey|hello|hi|note (?:to|for)|message (?:to|for)|to) (?:the |any |all )?{_WHO}\b"
    rf"|\b{_WHO}\s*[:,]\s*(?:please|you|this|give|note|choose|pick|rate|score|the)\b"
    rf"|\byou are (?:an? |the )?(?:\w+ )?{_WHO}\b"
    r"|\b(?:ignore|disregard)\s+(?:all |any |the |your |every)*"
    r"(?:above|previous|prior|earlier|preceding|other (?:assistant|response|answer|agent|session))"
    r"|[\"']winner[\"']\s*:\s*[\"']"
    r"|\b(?:choose|pick|prefer|select|rate|score|reward|favou?r|vote for)\s+(?:this|my)\s+(?:response|answer)"
    r"|\b(?:assistant|response) [ab] (?:is|was) (?:\w+ )?(?:better|best|superior|worse|the winner)\b"
    r"|</?\s*transcript_[ab]\b",
    re.IGNORECASE,
)


def may_think(raw: str) -> bool:
    """Can there be a thinking block in these messages, of which `raw` is the JSON?"""
    # One letter is found twenty times as quickly as a word.
    return "<" in raw or ("K" in raw and "THINK]" in raw)


def addresses_judge(messages: Sequence[Message]) -> bool:
    """Does the agent say what is meant for a judge: a verdict in a judge's words, an order, a block's end?"""
    said = "\n".join(message["content"] for message in messages if message["role"] == "assistant")
    low = said.lower()
    return any(map(low.__contains__, _STEMS)) and _TO_JUDGE.search(said) is not None
