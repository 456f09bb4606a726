"""One turn of the simulated user: what of it may reach the agent, and whether it ends the session."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from audit.verbs.stops import without_stops
from audit.verbs.verdict_text import without_thinking

Problem = Literal["empty", "agent_voice", "leak"]

_AGENT_VOICE = re.compile(
    r"\bas (?:your|the|an?) (?:\w+ ){0,3}(?:agent|assistant|representative)\b|\A\W*(?:agent|assistant)\s*:"
    r"|\bhow (?:can|may) I (?:help|assist) you\b|(?:作为|身为)(?:您|你)?的?(?:客服|助手)|请问有什么可以帮",
    re.IGNORECASE,
)
_LEAK = re.compile(
    r"\bmy (?:instructions?|system prompt|prompt)\b|^\s*##\s*(?:goal|facts)\b|\bhidden goal\b"
    r"|\bI (?:was|am|have been) (?:told|instructed|asked) to (?:play|act)\b"
    r"|我的(?:指令|提示词|系统提示)",
    re.IGNORECASE | re.MULTILINE,
)
_SECRET = re.compile(
    r"(?:do not|don't|never|must not)\s+(?:mention|tell|say|reveal|share|give)\b([^.;\n]*)"
    r"|(?:不要|绝不|别)(?:提到|透露|说出)([^。；\n]*)",
    re.IGNORECASE,
)
_CODE = re.compile(r"\b(?=[\w-]*\d)[\w-]{3,}\b")
_PART = re.compile(r"\d+|[^\W\d_]+")
_SEPARATOR = r"[\W_]{0,3}"
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")
_SECOND_PERSON = re.compile(r"\byou(?:r|rs|rself)?\b|[你您]", re.IGNORECASE)
# So many letters and digits of a sentence are no chance, in whatever script.
_LONG = 12


class UserTurn(NamedTuple):
    """`text` may be sent to the agent, and is empty where there is nothing to send.

    `ended` is the stop token that was said; `problem` says why the turn must not be delivered.
    """

    text: str
    ended: str | None
    problem: Problem | None


def read_user_turn(raw: str, stop_tokens: Sequence[str], told: Sequence[str], rules: str = "") -> UserTurn:
    """Read one reply of the simulated user; `told` is what it was told: its goal and its facts.

    All words around a stop token still go to the agent. Thinking is not said. A reply in the agent's voice is
    a problem, and so is one that shows the instructions, `rules` among them, or says what the goal forbids to
    mention.
    """
    said, ended = without_stops(without_thinking(raw), stop_tokens)
    text = said.strip()
    if not text:
        return UserTurn("", ended, None if ended else "empty")
    if _LEAK.search(text) or _says_a_secret(text, told) or _recites(text, told, rules):
        return UserTurn(text, ended, "leak")
    if _AGENT_VOICE.search(text):
        return UserTurn(text, ended, "agent_voice")
    return UserTurn(text, ended, None)


def _says_a_secret(text: str, told: Sequence[str]) -> bool:
    """Whether a code that must not be mentioned is, in whatever case and with whatever in between."""
    return any(
        re.search(rf"(?<![^\W_]){_SEPARATOR.join(_PART.findall(code))}(?![^\W_])", text, re.IGNORECASE)
        for line in told
        for match in _SECRET.finditer(line)
        for code in _CODE.findall(match[1] or match[2] or "")
    )


def _recites(text: str, told: Sequence[str], rules: str) -> bool:
    """Whether a sentence of its instructions stands in the turn as it is.

    What it was told counts where it speaks to the user: no customer calls itself `you`.
    """
    spoken = [line for part in told for line in _SENTENCE.split(part) if _SECOND_PERSON.search(line)]
    said = _letters(text)
    return any(
        len(letters) >= _LONG and letters in said
        for letters in map(_letters, [*spoken, *_SENTENCE.split(rules)])
    )


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
