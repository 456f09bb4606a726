"""One turn of the simulated user: what of it may reach the agent, and whether it ends the session."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

Problem = Literal["empty", "agent_voice", "leak"]

_THINKING = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL | re.IGNORECASE)
_STRAY_END = re.compile(r"\A.*</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
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


class UserTurn(NamedTuple):
    """`text` may be sent to the agent, and is empty where there is nothing to send.

    `ended` is the stop token that was said; `problem` says why the turn must not be delivered.
    """

    text: str
    ended: str | None
    problem: Problem | None


def read_user_turn(raw: str, stop_tokens: Sequence[str], told: Sequence[str]) -> UserTurn:
    """Read one reply of the simulated user; `told` is what it was told: its goal and its facts.

    Words before a stop token still go to the agent. Thinking is not said. A reply in the agent's voice, one
    that shows the instructions, or one that says what the goal forbids to mention, is a problem.
    """
    said = _THINKING.sub("", raw)
    said = _STRAY_END.sub("", said)
    ended = None
    for token in stop_tokens:
        place = said.find(token)
        if place >= 0:
            ended = ended or token
            said = said[:place] + said[place + len(token) :].replace(token, "")
    text = said.strip()
    if not text:
        return UserTurn("", ended, None if ended else "empty")
    if _LEAK.search(text) or _says_a_secret(text, told):
        return UserTurn(text, ended, "leak")
    if _AGENT_VOICE.search(text):
        return UserTurn(text, ended, "agent_voice")
    return UserTurn(text, ended, None)


def _says_a_secret(text: str, told: Sequence[str]) -> bool:
    for line in told:
        for match in _SECRET.finditer(line):
            if any(code in text for code in _CODE.findall(match[1] or match[2] or "")):
                return True
    return False
