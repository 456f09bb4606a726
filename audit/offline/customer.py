"""The synthetic customer: says its wish, answers from its facts, ends when the agent is done or refuses."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from audit.offline.reading import Briefing, read_briefing, text_of

# How "you", to whom the briefing speaks, speaks of itself.
_SELF = {
    "you are": "I am", "are you": "am I", "yourself": "myself", "yours": "mine", "your": "my", "you": "I",
}  # fmt: skip
_SECOND_PERSON = re.compile(r"\b(?:you are|are you|yourself|yours|your|you)\b", re.IGNORECASE)
_WORD = re.compile(r"[a-z]{4,}")
_COMMON = frozenset(
    {"have", "that", "this", "with", "please", "could", "would", "tell", "what", "your", "name"}
)
_CLOSING = re.compile(r"[^.!?]*\banything else\b[^?]*\?", re.IGNORECASE)
_REFUSED = re.compile(r"\b(?:afraid|cannot|can't|not possible|unable|may not|not allowed)\b", re.IGNORECASE)
# How often it says that it does not know before it gives up.
_PATIENCE = 2
_UNKNOWN = "I am sorry, I do not know that."


def customer_turn(messages: Sequence[Mapping[str, Any]]) -> str:
    """The customer's next words. Its own are the assistant's messages, the agent's are the user's."""
    prompts = [text_of(message) for message in messages]
    place = next((i for i, text in enumerate(prompts) if "## goal" in text.lower()), 0)
    briefing = read_briefing(prompts[place])
    own = [
        text for text, message in zip(prompts, messages, strict=True) if message.get("role") == "assistant"
    ]
    if not own:
        return f"Hello. {_spoken(briefing.goal)}"
    heard = [
        text
        for number, (text, message) in enumerate(zip(prompts, messages, strict=True))
        if message.get("role") == "user" and number != place
    ]
    return _answer(heard[-1] if heard else "", own, briefing)


def _answer(heard: str, own: Sequence[str], briefing: Briefing) -> str:
    asked = _CLOSING.sub("", heard)
    if "?" in asked:
        known = _fact_for(asked, briefing.facts)
        if known is not None:
            return _spoken(known)
        if own.count(_UNKNOWN) >= _PATIENCE:
            return f"Then let us leave it. {briefing.blocked}"
        return _UNKNOWN
    # How an answer begins tells whether the first wish, the one that matters most, was granted.
    if _REFUSED.search(asked.partition(". ")[0]):
        return f"That is a pity, but I understand. {briefing.blocked}"
    return briefing.finished


def _fact_for(question: str, facts: Sequence[str]) -> str | None:
    """The fact that shares the most words with the question, if it shares any that says something."""
    asked = set(_WORD.findall(question.lower())) - _COMMON
    shared = [(len(asked & set(_WORD.findall(fact.lower()))), -place) for place, fact in enumerate(facts)]
    best = max(shared, default=(0, 0))
    return facts[-best[1]] if best[0] else None


def _spoken(text: str) -> str:
    def own_word(match: re.Match[str]) -> str:
        word = _SELF[match[0].lower()]
        starts = match.start() == 0 or text[: match.start()].rstrip().endswith((".", "!", "?"))
        return word[0].upper() + word[1:] if starts else word

    return _SECOND_PERSON.sub(own_word, text)
