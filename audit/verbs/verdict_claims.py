"""Claims: the places of a reply that name a verdict, how much weight each has, and what they say together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import islice

from audit.verbs.verdict_shape import Choice


class Weight(IntEnum):
    """How a claim is put forward.

    ASIDE = quoted, supposed, or about one aspect only: heard when there is nothing else.
    """

    ASIDE = 0
    STATED = 1
    FINAL = 2


@dataclass(frozen=True, slots=True)
class Claim:
    """One verdict at a place. `side` None = a verdict the grammar has no choice for ([[D]], "neither")."""

    side: Choice | None
    weight: Weight
    label: str
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Settled:
    """`claim` is the last of the deciding ones if they name one choice, else None and `why` says why."""

    claim: Claim | None
    why: str | None


def settle(claims: Sequence[Claim]) -> Settled:
    """What the claims, in the order of the text, say together.

    A final claim takes back what was stated before it, but not what is stated after it; asides count only
    alone. The claims that are left must name one and the same choice.
    """
    heard = _deciding(claims)
    if not heard:
        return Settled(None, "no verdict found")
    sides = {claim.side for claim in heard}
    if sides == {None}:
        return Settled(None, f"{heard[-1].label!r} is no verdict of this grammar")
    if len(sides) > 1:
        labels = ", ".join(dict.fromkeys(repr(claim.label) for claim in heard[:8]))
        return Settled(None, f"contradictory verdicts: {labels}")
    return Settled(heard[-1], None)


def _deciding(claims: Sequence[Claim]) -> Sequence[Claim]:
    stated = [claim for claim in claims if claim.weight >= Weight.STATED]
    for at, claim in enumerate(stated):
        if claim.weight is Weight.FINAL:
            return stated[at:]
    return stated or claims


_VERDICTS = r"(?:verdict|decision|judge?ments?|choice|ranking|winner|preference|selection|pick|scores?)"
_KINDS = rf"(?:{_VERDICTS}|answer|conclusion|assessment|evaluation|rating|result)"
# "The final answer is wrong" and "Assistant B's final conclusion" are about what is judged, not the judging.
_FINAL = (
    rf"(?:(?<!'s )(?<!’s )\b(?:final|overall|ultimate)\s+(?:\w+\s+)?{_VERDICTS}\b"
    rf"|(?:^\W*|\bmy )(?:final|overall|ultimate)\s+(?:\w+\s+)?{_KINDS}\b"
    r"|\bin conclusion\b|\bto conclude\b|最终|综上|总之)"
)
FINAL = re.compile(_FINAL, re.IGNORECASE)
_LEAD = r"[\s:*_#>~-]*+(?:(?:is|was|would be|remains)\b|为|是)?[\s:*_#>~(\[-]*+"
_FINAL_LEAD = re.compile(rf"{_FINAL}{_LEAD}$", re.IGNORECASE)
_OWN_LEAD = re.compile(rf"\b(?:my|the|i)\s+(?:\w+\s+)?{_KINDS}{_LEAD}$|^\W*{_KINDS}{_LEAD}$", re.IGNORECASE)
_QUOTE_LEAD = re.compile(
    r"\b(?:transcripts?|candidates?|agents?|assistants?|outputs?|responses?|page|tool|users?|customers?|inject\w*"
    r"|plant\w*|quot\w+|claim\w*|wrote|writes?|says?|said|contain\w*|reads?|examples?|formats?|prompts?"
    r"|instructions?)\b[^\n]*[:,][\s*_>-]*$",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"(?:^|[.!?;:,]\s+|^\W+)(?:if|had|were|unless|suppose|supposing)\b[^.!?]*$", re.IGNORECASE
)
_DENIED = re.compile(
    r"(?:(?:\b(?:not|never|cannot)|n['’]t)(?:\s(?:say|give|choose|select|pick|answer|be))?"
    r"|\b(?:rather than|instead of|neither|nor|over))[\s*_:\"'`(]*$",
    re.IGNORECASE,
)
# The words the pattern above can end in: one tuple look-up spares nearly every label the pattern.
_DENYING_ENDS = (
    *("not", "never", "cannot", "n't", "n’t", "than", "of", "neither", "nor", "over"),
    *("say", "give", "choose", "select", "pick", "answer", "be"),
)
_OPENING = re.compile(r"(?:\s|```\w*|[\"'“「\[{*_>#])+$")

_NEAR = 160
MOST_CLAIMS = 2000


def denied(before: str) -> bool:
    """Whether what follows `before` is set aside by it: "not [[A]]", "rather than [[A]]"."""
    end = before[-32:].rstrip(" *_:\"'`(").lower()
    return end.endswith(_DENYING_ENDS) and _DENIED.search(end) is not None


class TooManyClaims(Exception):
    """More places than any honest reply has; reading on would only spend time."""


def each(pattern: re.Pattern[str], text: str) -> list[re.Match[str]]:
    """The matches of `pattern`. Raises TooManyClaims beyond MOST_CLAIMS."""
    found = list(islice(pattern.finditer(text), MOST_CLAIMS + 1))
    if len(found) > MOST_CLAIMS:
        raise TooManyClaims
    return found


class Places:
    """Walks a text once and weighs each place by what stands before it on its line and just above.

    With `objects`, the places are JSON objects: those are often fenced, so a fence quotes nothing, and one
    that stands in the middle of a prose line is quoted by it.
    """

    def __init__(self, text: str, objects: bool = False) -> None:
        self._text = text
        self._objects = objects
        self._at = 0
        self._quote_marks = 0
        self._ticks = 0
        self._curly = 0
        self._in_fence = False
        self._blockquote = text.startswith(">")

    def weigh(self, start: int, end: int) -> Weight:
        """The weight of the claim at [start, end); the places must come in the order of the text."""
        gap = self._text[self._at : start]
        self._at = end
        here = self._follow(gap)
        alone = not here.strip(" \t*_#>-`[{\"'“「")
        lead = _line_above(gap) if alone else here[-_NEAR:].rstrip("\"'`“「 *")
        if self._quoted(start, end) or (self._objects and not (alone and self._ends_line(end))):
            # Only a marker right outside the quotes makes a quoted verdict the judge's own: Final verdict:
            # "[[B]]".
            return _weigh_lead(lead, otherwise=Weight.ASIDE)
        if alone:
            return _weigh_lead(lead, otherwise=Weight.ASIDE if _QUOTE_LEAD.search(lead) else Weight.STATED)
        if _SUPPOSED.search(here[-_NEAR:]):
            return Weight.ASIDE
        return Weight.FINAL if FINAL.search(here) else Weight.STATED

    def _follow(self, gap: str) -> str:
        """Keep count of open quotes over `gap`; give its last line."""
        if gap.count("```") % 2:
            self._in_fence = not self._in_fence
        newline = gap.rfind("\n")
        here = gap[newline + 1 :]
        if newline >= 0:
            self._quote_marks = self._ticks = self._curly = 0
            self._blockquote = here.lstrip().startswith(">")
        self._quote_marks += here.count('"')
        self._ticks += here.replace("```", "").count("`")
        self._curly += here.count("“") + here.count("「") - here.count("”") - here.count("」")
        return here

    def _ends_line(self, end: int) -> bool:
        after = self._text[end : end + 40].partition("\n")[0].strip(" \t`*_.,;")
        return not after or after[0] in "{}]"

    def _quoted(self, start: int, end: int) -> bool:
        if self._in_fence and not self._objects:
            return True
        single = self._text[start - 1 : start] == "'" == self._text[end : end + 1]
        return self._blockquote or single or bool(self._quote_marks % 2 or self._ticks % 2) or self._curly > 0


def _line_above(gap: str) -> str:
    """The last line with words in it before the place, across a fence's opening."""
    return _OPENING.sub("", gap[-_NEAR:]).rpartition("\n")[2]


def _weigh_lead(lead: str, otherwise: Weight) -> Weight:
    if _FINAL_LEAD.search(lead):
        return Weight.FINAL
    return Weight.STATED if _OWN_LEAD.search(lead) else otherwise
