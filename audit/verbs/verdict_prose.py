"""Verdicts in plain words: "Output (b) is better", "I would choose Output (a)", "Winner: B", `A更好`.

A side is only read from a delimited form ("Assistant A", "Output (a)", "Response 1") or from a bare letter
right where a verdict belongs ("Winner: A."): a lone "a" or "A" is an article far more often than a side.
Each pattern is bounded or possessive, so that a text is read in time linear in its length.
"""

from __future__ import annotations

import re

from audit.verbs.verdict_claims import FINAL, MOST_CLAIMS, Claim, TooManyClaims, Weight, denied, each
from audit.verbs.verdict_shape import Choice

_FIRST = {"A", "1", "FIRST"}
_SECOND = {"B", "2", "SECOND"}
TIES = {"TIE", "TIED", "DRAW", "EQUAL", "平局", "平手", "一样好", "不分上下"}

_NOUN = r"(?:assistant|response|output|agent|model|candidate|transcript|trajectory|conversation|system|reply)"
_THE = rf"(?:{_NOUN}|answer|option|side|player|助手|回答|回复|输出|模型|选项)"
_SIDE = rf"(?:\b{_NOUN}[ _#]{{0,2}}(?:\(\s?[ab12]\s?\)|(?-i:[AB12])(?!\w)))"
_ITS = r"\*{0,2}(?:['’]s(?:\s\w{1,20}){1,3}?)?\*{0,2}"
_BETTER = r"(?:better|best|superior|preferred|preferable|stronger|winner)\b"
_WORD = r"[\w'’-]{1,20}+"

_NAMED = re.compile(
    rf"(?:the )?(?:{_THE}[\s_#-]?)?[(\[]?(a|b|1|2|first|second)[)\]]?(?: {_THE}| one)?", re.IGNORECASE
)
_MENTION = re.compile(_SIDE, re.IGNORECASE)
_LETTER = re.compile(r"[ab12](?=\s?\)?$)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+|\n+")

_IS_BETTER = re.compile(
    rf"(?P<side>{_SIDE}){_ITS},?\s(?:(?:I|we)\s(?:believe|think|find|judge|consider|rate)\s(?:it|this)\s)?"
    rf"(?:is|was|to be|seems|appears|looks|remains|would be|should be|wins)"
    rf"(?P<between>(?:[ ,]{{1,2}}{_WORD}){{0,6}}?)"
    rf"[ ,*]{{1,4}}(?:{_BETTER}|as (?:the )?winner)",
    re.IGNORECASE,
)
_CHOOSING = re.compile(
    rf"\b(?:choose|chose|select|prefer|pick|favou?r|go with|vote for|opt for|recommend)"
    rf"(?:\s{_WORD}){{0,2}}?\s(?P<side>{_SIDE})",
    re.IGNORECASE,
)
_BETTER_IS = re.compile(
    rf"\b(?:better|best|superior|preferred|winning|stronger|winner|choice|verdict)(?:\s{_WORD}){{0,3}}?"
    rf"(?:\s(?:is|was|would be)|:)(?:\s{_WORD})?[\s*]{{1,4}}(?P<side>{_SIDE})",
    re.IGNORECASE,
)
_CHINESE = re.compile(
    rf"(?<![A-Za-z0-9和与或及])(?:{_THE}\s?)?\(?(?P<side>[ABab12])\)?\s?(?:的(?:回答|回复|表现|输出))?"
    r"(?:明显|略微|略|稍|显著|整体)?(?:更好|更优|更佳|更强|胜出|获胜)"
)
_NO_SIDE = re.compile(
    rf"\bneither\b(?:(?!\bneither\b).){{0,120}}?(?:{_BETTER}|chosen|selected)|\bequally\s(?:good|bad|poor|well|valid|helpful|correct|accurate"
    r"|effective|acceptable|strong|informative|satisfactory|matched)|\b(?:it is|it's|is) a (?:tie|draw)\b"
    r"|\bno (?:clear )?winner\b",
    re.IGNORECASE,
)
_JOINT = re.compile(
    rf"(?:{_SIDE}\s(?:and|or|nor)|\b(?:either|both|neither|whether|if|unless))\s(?:the\s)?$|[&/]\s?$",
    re.IGNORECASE,
)
_JOINED = re.compile(rf"\s?(?:and|or|nor|&|/)\s(?:the\s)?{_SIDE}", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|less|equally|cannot|unable|refuse)\b|n['’]t\b", re.IGNORECASE
)
_CONDITION = re.compile(r"\s(?:\w{1,20} ){0,2}(?:if|had|were)\b", re.IGNORECASE)
_ASPECT = re.compile(
    r"\bin terms of\b|\b(?:this|that|some|one) (?:regard|respect|aspect)\b|\bwith (?:regard|respect) to\b"
    r"|\bwhen it comes to\b"
    r"|\bregarding\b|\bas for\b|\bperspective\b",
    re.IGNORECASE,
)
_THEREFORE = re.compile(
    r"^\W*(?:therefore|thus|hence|so|overall|in summary|to sum up"
    r"|ultimately|consequently|accordingly|based on)\b"
    r"|\boverall\W*$|^\W*(?:因此|所以|综上|总之)",
    re.IGNORECASE,
)
_TELLS = re.compile(rf"\b{_BETTER}|\b(?:prefer|choose|select)", re.IGNORECASE)


def named(text: str) -> Choice | None:
    """The position that `text`, as a whole, names: "A", "Output (b)", "the second response", 2; else None."""
    found = _NAMED.fullmatch(text.strip(" \t\r\n*_`\"'“”.!,;:#"))
    return side(found[1]) if found else None


def side(letter: str) -> Choice | None:
    upper = letter.upper()
    if upper in _FIRST:
        return "first"
    return "second" if upper in _SECOND else None


def prose_claims(text: str) -> list[Claim]:
    """Every sentence that tells which side is better, or that neither is, in the order of the text."""
    length = len(text.rstrip())
    claims: list[Claim] = []
    start = 0
    for gap in [*_SENTENCE_END.finditer(text), None]:
        end = gap.start() if gap else len(text)
        sentence = text[start:end]
        # A sentence without one of these can hold no pattern below; most sentences end here.
        if _TELLS.search(sentence) or _NO_SIDE.search(sentence) or not sentence.isascii():
            claims += _sentence_claims(sentence, start, last=end >= length)
            if len(claims) > MOST_CLAIMS:
                raise TooManyClaims
        start = gap.end() if gap else end
    return claims


def _sentence_claims(sentence: str, at: int, last: bool) -> list[Claim]:
    concluding = _THEREFORE.search(sentence) or FINAL.search(sentence)
    weight = Weight.FINAL if concluding else Weight.STATED
    if _ASPECT.search(sentence) or sentence.lstrip().startswith((">", '"', "“", "「")):
        weight = Weight.ASIDE
    if _NO_SIDE.search(sentence):
        # "Equally good" in passing is no verdict; as the conclusion it is one, though not for a side.
        undecided = weight if weight is Weight.FINAL or last else Weight.ASIDE
        return [Claim(None, undecided, "no side", at, at)]
    found = [
        Claim(told, weight, match["side"], at + match.start("side"), at + match.end("side"))
        for pattern in (_IS_BETTER, _CHOOSING, _BETTER_IS, _CHINESE)
        for match in each(pattern, sentence)
        if (told := _told(sentence, match)) is not None
    ]
    return found or (_only_side(sentence, at) if weight is Weight.FINAL else [])


def _told(sentence: str, match: re.Match[str]) -> Choice | None:
    """The side a match is for; None when it is joined with the other, denied, or conditional."""
    start, end = match.span("side")
    before, between = sentence[max(0, start - 48) : start], match.groupdict().get("between") or ""
    asks = match.re is _CHOOSING or match.re is _BETTER_IS
    if _JOINT.search(before) or _JOINED.match(sentence, end) or denied(before):
        return None
    if _NEGATION.search(between) or (asks and _NEGATION.search(sentence[max(0, match.start() - 32) : start])):
        return None
    if match.re is _IS_BETTER and _CONDITION.match(sentence, match.end()):
        return None
    return _letter_side(match["side"])


def _letter_side(mention: str) -> Choice | None:
    letter = _LETTER.search(mention)
    return side(letter[0]) if letter else None


def _only_side(sentence: str, at: int) -> list[Claim]:
    """The one side that a concluding sentence with a word for better names, when it denies nothing."""
    if not _TELLS.search(sentence) or _NEGATION.search(sentence) or _CONDITION.search(sentence):
        return []
    mentions = [mention[0] for mention in _MENTION.finditer(sentence)]
    sides = {_letter_side(mention) for mention in mentions}
    choice = sides.pop() if len(sides) == 1 else None
    return [Claim(choice, Weight.FINAL, mentions[-1], at, at + len(sentence))] if choice else []


def closing_choice(tail: str) -> Choice | None:
    """The side for which the prose after the last label concludes, if its conclusion is for one side."""
    told = [claim.side for claim in prose_claims(tail) if claim.weight is Weight.FINAL]
    return told[-1] if told and set(told) <= {told[-1]} else None
