"""Scores: what counts as one, and the grammar whose answer is a pair of them."""

from __future__ import annotations

import math
import re

from audit.verbs.grammars import Grammar
from audit.verbs.verdict_claims import Claim, Places, each, settle
from audit.verbs.verdict_prose import side
from audit.verbs.verdict_shape import Choice, Verdict, unreadable
from audit.verbs.verdict_text import answer_text

_NUMBER = r"[-+]?(?:[0-9]{1,9}(?:\.[0-9]{1,18})?|nan|inf(?:inity)?)"
_OUT_OF = r"(?:\s?/\s?(?P<of_%s>[0-9]{1,4}(?:\.[0-9]{1,4})?))?"
_PAIR = re.compile(
    rf"^[ \t>*_#`(\[]{{0,8}}"
    rf"(?:(?:final |overall )?(?:scores?|ratings?|评分|得分|分数)"
    rf"[*_]{{0,2}}\s?[:=][ \t*_]{{0,4}})?[*_`(\[]{{0,3}}"
    rf"(?P<first>{_NUMBER}){_OUT_OF % 'first'}[*_]{{0,2}}(?:\s?[,;|]\s?|[ \t]{{1,8}})[*_]{{0,2}}"
    rf"(?P<second>{_NUMBER}){_OUT_OF % 'second'}[*_`)\].]{{0,4}}[ \t\r]*+$",
    re.IGNORECASE | re.MULTILINE,
)
_OWN = re.compile(
    rf"(?:assistant|response|output|model|agent|candidate|助手|回答)"
    rf"[ #]?\(?(?P<side>[AB12])\)?(?:'s)?[*_]{{0,2}}"
    rf"(?: (?:final |overall )?(?:score|rating))?[*_]{{0,2}}[ \t]?[:=][ \t*_]{{0,4}}"
    rf"(?P<score>{_NUMBER}){_OUT_OF % 'score'}(?![\w/.]*\w)",
    re.IGNORECASE,
)


def valid_score(value: object, grammar: Grammar) -> float | None:
    """`value` as a score on the grammar's scale; None for anything else. Nothing is clipped or rescaled."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    # A bool is an int to Python; `true` is no score to a judge.
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        score = float(value)
    except OverflowError:
        return None
    low, high = grammar.low, grammar.high
    if not math.isfinite(score) or (low is not None and score < low) or (high is not None and score > high):
        return None
    return score


def read_score_pair(raw: str, grammar: Grammar, cut: bool) -> Verdict:
    """`9 8.5` on a line of its own, or one score named for each side; equal scores are a tie."""
    text = answer_text(raw)
    lines = each(_PAIR, text)
    # "9 1" at the very end of a cut reply may be the start of "9 10".
    lines = [m for m in lines if not (cut and m.end() == len(text) and m.end("second") == len(text))]
    if not lines:
        return _read_named(text, grammar, cut)
    places = Places(text)
    pairs = {m.start("first"): (_score(m, "first", grammar), _score(m, "second", grammar)) for m in lines}
    claims = [
        Claim(_higher(*pair), places.weigh(at, m.end()), m[0].strip(), at, m.end())
        for m, (at, pair) in zip(lines, pairs.items(), strict=True)
    ]
    settled = settle(claims)
    if settled.claim is None:
        first, second = pairs[claims[-1].start]
        if len(pairs) > 1 and any(claim.side for claim in claims):
            return unreadable(settled.why or "")
        return _verdict(first, second, claims[-1].label)
    return _verdict(*pairs[settled.claim.start], settled.claim.label)


def _score(match: re.Match[str], group: str, grammar: Grammar) -> float | None:
    out_of = match[f"of_{group}"]
    if out_of is not None and float(out_of) != grammar.high:
        return None
    return valid_score(match[group], grammar)


def _higher(first: float | None, second: float | None) -> Choice | None:
    if first is None or second is None:
        return None
    if first == second:
        return "tie"
    return "first" if first > second else "second"


def _verdict(first: float | None, second: float | None, label: str) -> Verdict:
    choice = _higher(first, second)
    parsed: dict[str, object] = {"scores": [first, second], "label": label}
    if choice is None:
        return Verdict(None, "unreadable", first, second, parsed, f"invalid score in {label!r}")
    return Verdict(choice, "ok", first, second, parsed, None)


def _read_named(text: str, grammar: Grammar, cut: bool) -> Verdict:
    """ "Assistant 1: 10 / Assistant 2: 6", each side with one score only."""
    scores: dict[Choice | None, set[float | None]] = {}
    for match in each(_OWN, text):
        if not (cut and match.end() == len(text)):
            scores.setdefault(side(match["side"]), set()).add(_score(match, "score", grammar))
    if any(len(given) > 1 for given in scores.values()):
        return unreadable("several scores for one side")
    if "first" not in scores or "second" not in scores:
        return unreadable("no pair of scores found")
    (first,), (second,) = scores["first"], scores["second"]
    return _verdict(first, second, f"{first} {second}")
