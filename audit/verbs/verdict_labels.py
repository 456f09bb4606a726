"""The grammars whose answer is a label: double brackets, "Output (a)", and the single digit."""

from __future__ import annotations

import re
from collections.abc import Callable

from audit.verbs.grammars import Grammar
from audit.verbs.verdict_claims import MOST_CLAIMS, Claim, Places, TooManyClaims, Weight, denied, each, settle
from audit.verbs.verdict_prose import TIES, closing_choice, named, prose_claims
from audit.verbs.verdict_shape import Choice, Verdict, labelled, unreadable
from audit.verbs.verdict_text import answer_text, key

LABELS: dict[str, dict[str, Choice]] = {
    # The grammar has one way to write a tie; the other is the same answer with the sides exchanged.
    "arena_hard_5way": {
        "A>>B": "first", "A>B": "first", "A=B": "tie", "B=A": "tie", "B>A": "second", "B>>A": "second",
    },
    "mtbench_3way": {"A": "first", "B": "second", "C": "tie"},
    "digit": {"1": "first", "2": "second", "0": "tie"},
    "output_ab": {},
    "json": {},
}  # fmt: skip

_BRACKETED = re.compile(r"\\?\[ ?\\?\[\s{0,4}([^\[\]\n\\]{1,24})\\?\] ?\\?\]")
_STRANGE = re.compile(r"\[\[\s?([AB12C](?:[<>=]{1,2}[AB])?|TIE|DRAW)\s?\]\]", re.IGNORECASE)
_SINGLE = re.compile(r"\[\s?([AB]\s?(?:>{1,2}|=)\s?[AB])\s?\]")
# What looks like a verdict and is none ([[D]], [[A<B]]) contradicts; a matrix or a wiki link ([[1, 0]]) does
# not.
_LIKE_A_LABEL = re.compile(r"[A-Z](?:[<>=~≈]+[A-Z])*|TIE|DRAW|BOTH|NEITHER|NONE|平局")

_MARK = (
    r"(?:^[ \t#>*_\-]{0,8}|[.!?;,]\s{0,2})(?:(?:so|therefore|thus|hence),? )?"
    r"(?:my |the |our )?(?:final |overall )?"
    r"(?:verdict|winner|decision|judge?ment|choice|conclusion|preference|selection"
    r"|better (?:output|response|answer|assistant)"
    r"|最终选择|最终结论|最终判断|最终答案|选择|结论|答案|判断|胜者|获胜者|赢家"
)
_VALUE = (
    r")[*_]{0,2}(?:\s?(?:\bis\b|为|是))?\s?:?\s{0,2}[*_\"'(\[`]{0,3}(?P<value>%s)[*_\"')\]`]{0,3}"
    r"(?=[ \t]*+$|\s?[.,;!(]|\s(?:because|since|as|with|by|is better)\b)"
)
_SIDE_VALUE = (
    r"(?:(?:the )?(?:assistant|response|output|answer|option|model|agent|candidate|transcript"
    r"|助手|回答|输出)[ _#]{0,2})?"
    r"\(?(?:[ab12]|first|second)(?![A-Za-z0-9_])\)?(?:更好)?|tie\b|draw\b|平局|平手|neither\b"
)
_FLAGS = re.IGNORECASE | re.MULTILINE
_MARKED = re.compile(_MARK + "|answer|result" + _VALUE % _SIDE_VALUE, _FLAGS)
# In the bracket grammars the judge first solves the task: its "Final answer: A" is a choice of the task's
# options.
_MARKED_VERDICT = re.compile(_MARK + _VALUE % rf"[AB]\s?(?:>{{1,2}}|=)\s?[AB]|{_SIDE_VALUE}", _FLAGS)


def read_bracketed(raw: str, grammar: Grammar) -> Verdict:
    """`[[A>>B]]`, `[[C]]`: the label in double brackets; plain words only where there is no such label."""
    text = answer_text(raw)
    table = LABELS[grammar.name]
    start = text.rfind("[[")
    if start >= 0 and text.find("[[") == start:
        end = text.find("]]", start)
        label = text[start + 2 : end]
        choice = table.get(label)
        if choice is not None and end >= 0 and not denied(text[:start]):
            return _beside_prose(choice, label, text, end + 2)
    return _read_claims(text, grammar, table)


def _read_claims(text: str, grammar: Grammar, table: dict[str, Choice]) -> Verdict:
    claims, odd = _bracket_claims(text, table, _BRACKETED)
    if not claims:
        return (
            unreadable(f"{odd!r} is no label of {grammar.name}")
            if odd
            else _unbracketed(text, grammar, table)
        )
    settled = settle(claims)
    if settled.claim is not None and settled.claim.side is not None:
        last = claims[-1]
        return _beside_prose(settled.claim.side, settled.claim.label, text, last.end)
    last_side = claims[-1].side
    if last_side is not None and closing_choice(text[claims[-1].end :]) == last_side:
        return labelled(last_side, claims[-1].label, why="several labels; the closing words confirm the last")
    return unreadable(settled.why or "", {"label": claims[-1].label})


def _beside_prose(choice: Choice, label: str, text: str, end: int) -> Verdict:
    """The label's verdict, unless the reply goes on to conclude for another side."""
    if len(text) - end > 24:
        closing = closing_choice(text[end:])
        if closing is not None and closing != choice:
            return unreadable(f"closing words contradict {label!r}", {"label": label})
    return labelled(choice, label)


def _bracket_claims(
    text: str, table: dict[str, Choice], pattern: re.Pattern[str]
) -> tuple[list[Claim], str | None]:
    """The labels as claims, and the first bracketed text that is not even like a label."""
    places, claims, odd = Places(text), [], None
    for match in each(pattern, text):
        label = key(match[1])
        weight = places.weigh(*match.span())
        if label not in table and not _LIKE_A_LABEL.fullmatch(label):
            odd = odd or match[1]
        elif not denied(text[max(0, match.start() - 32) : match.start()]):
            claims.append(Claim(table.get(label), weight, label, *match.span()))
    return claims, odd


def _unbracketed(text: str, grammar: Grammar, table: dict[str, Choice]) -> Verdict:
    """A known label that lost its brackets, or a verdict in plain words: read, but marked as repaired."""
    bare = key(text.strip(" \t\r\n.()"))
    # A lone letter where a comparison was asked for is the beginning of one: "A" of "A=B".
    whole = table.get(bare) or (_plain_value(bare, grammar) if len(bare) > 1 and "[" not in bare else None)
    if whole is not None:
        return labelled(whole, text.strip(), "repaired", "no label in double brackets")
    claims: list[Claim] = []
    if grammar.name == "arena_hard_5way":
        claims, _ = _bracket_claims(text, table, _SINGLE)
    claims = claims or marked_claims(text, grammar, table, _MARKED_VERDICT) or _chinese(text)
    return _from_claims(claims, "repaired", grammar, "no label in double brackets")


def _chinese(text: str) -> list[Claim]:
    return [] if text.isascii() else [claim for claim in prose_claims(text) if claim.label in "ABab12"]


def marked_claims(
    text: str, grammar: Grammar, table: dict[str, Choice], pattern: re.Pattern[str] = _MARKED
) -> list[Claim]:
    """Each "Winner: B", "Final verdict: Output (a)", `选择：A`: a verdict word right before its value."""
    places, claims = Places(text), []
    for match in each(pattern, text):
        start, end = match.span("value")
        value = key(match["value"]).removesuffix("更好")
        choice = table.get(value) or _plain_value(match["value"].removesuffix("更好"), grammar)
        claims.append(Claim(choice, places.weigh(start, end), match["value"], start, end))
    return claims


def _plain_value(value: str, grammar: Grammar) -> Choice | None:
    if grammar.allows_tie and key(value) in TIES:
        return "tie"
    return named(value)


def _from_claims(claims: list[Claim], status: str, grammar: Grammar, why: str | None = None) -> Verdict:
    settled = settle(claims)
    if settled.claim is None or settled.claim.side is None:
        return unreadable(settled.why if claims and settled.why else f"no verdict of {grammar.name} found")
    side, label = settled.claim.side, settled.claim.label
    return labelled(side, label, "repaired", why) if status == "repaired" else labelled(side, label)


def read_output_ab(raw: str, grammar: Grammar) -> Verdict:
    """`Output (a)`: the whole reply, a line of its own, or a sentence that tells which is better. No ties."""
    text = answer_text(raw)
    strange = strange_label(text)
    if strange is not None:
        return unreadable(f"'{strange}' is no verdict of this grammar", {"label": strange})
    whole = named(text)
    if whole is not None:
        return labelled(whole, text.strip())
    claims = [*line_claims(text, _output_line), *marked_claims(text, grammar, {}), *prose_claims(text)]
    return _from_claims(sorted(claims, key=_place), "ok", grammar)


def strange_label(text: str) -> str | None:
    """A verdict in double brackets, as other grammars write it: here it is a label that is not known."""
    if "[[" not in text:
        return None
    found = _STRANGE.search(text)
    return found[1].upper() if found else None


def _place(claim: Claim) -> int:
    return claim.start


def _output_line(line: str) -> Choice | None:
    # "Output (a):" heads what is said of it.
    return None if line.rstrip("*_ ").endswith(":") else named(line)


def read_digit(raw: str, grammar: Grammar) -> Verdict:
    """`1`, `2`, `Tie` or `0` on a line of its own; a marked or told verdict where there is no such line."""
    text = answer_text(raw)
    strange = strange_label(text)
    if strange is not None:
        return unreadable(f"'{strange}' is no verdict of this grammar", {"label": strange})
    claims = [*line_claims(text, _digit_line), *marked_claims(text, grammar, LABELS["digit"])]
    if claims:
        return _from_claims(sorted(claims, key=_place), "ok", grammar)
    return _from_claims(prose_claims(text), "repaired", grammar, "told in words")


def _digit_line(line: str) -> Choice | None:
    bare = key(line.strip(" \t\r\n.*_#`\"'()[]"))
    return LABELS["digit"].get(bare) or ("tie" if bare in TIES else None)


def line_claims(text: str, choice_of: Callable[[str], Choice | None]) -> list[Claim]:
    """The lines that hold a label and nothing else: the first, the last, and those called final.

    Any other line of that kind is a heading or an enumeration.
    """
    places, claims, at = Places(text), [], 0
    begin, stop = len(text) - len(text.lstrip()), len(text.rstrip())
    labels = 0
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        choice = choice_of(line.strip()) if len(line) < 80 else None
        if choice is None:
            continue
        labels += 1
        if labels > MOST_CLAIMS:
            raise TooManyClaims
        start, end = start + len(line) - len(line.lstrip()), start + len(line.rstrip())
        weight = places.weigh(start, end)
        if start == begin or end == stop or weight is Weight.FINAL:
            claims.append(Claim(choice, weight, line.strip(), start, end))
    return claims
