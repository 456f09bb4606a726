"""The grammar whose answer is a JSON object with a winner and, if asked for, scores and a reason."""

from __future__ import annotations

import orjson

from audit.verbs.grammars import Grammar
from audit.verbs.verdict_claims import Claim, Places, settle
from audit.verbs.verdict_find import MAX_DEPTH, Found, find_objects, json_safe
from audit.verbs.verdict_labels import marked_claims, strange_label
from audit.verbs.verdict_prose import TIES, named
from audit.verbs.verdict_scores import valid_score
from audit.verbs.verdict_shape import Choice, Status, Verdict, labelled, unreadable
from audit.verbs.verdict_text import answer_text, key, plain

_WINNERS: dict[object, Choice] = {
    "A": "first", "a": "first", "first": "first",
    "B": "second", "b": "second", "second": "second",
    "tie": "tie",
}  # fmt: skip
_OTHER_KEYS = ("verdict", "choice", "preference", "preferred", "decision", "胜者", "获胜者", "选择", "结论")
_SCORE_KEYS = (("score_a", "score_b"), ("score_first", "score_second"), ("score_1", "score_2"))


def read_object(raw: str, grammar: Grammar) -> Verdict:
    """`{"winner": "A", "score_a": 8, "score_b": 6, "reason": "..."}`, bare, fenced or among prose."""
    try:
        fields = orjson.loads(raw)
    except ValueError:
        fields = None
    # A winner named twice, which orjson settles in silence, is for the slower reading to find.
    if type(fields) is dict and raw.count('"winner"') == 1 and "winner" in fields and _is_shallow(raw):
        return _verdict(fields, grammar, "ok", fields)
    if type(fields) is str:
        return _search(fields, grammar, encoded=True)
    return _search(raw, grammar)


def _is_shallow(raw: str) -> bool:
    return raw.count("{") + raw.count("[") <= MAX_DEPTH


def _search(raw: str, grammar: Grammar, encoded: bool = False) -> Verdict:
    found, text = find_objects(raw, raw)
    if not any(_has_winner(one) for one in found) and not raw.isascii():
        # Full-width braces, quotes and colons.
        wide, wide_text = find_objects(plain(raw), plain(raw))
        found, text = (wide, wide_text) if wide else (found, text)
    told = [one for one in found if _has_winner(one)]
    if told:
        return _settled(text, told, grammar, mended=encoded or (text != raw and text == plain(raw)))
    verdict = _without_object(raw, grammar)
    if found and verdict.choice is None:
        return _verdict(_unwrapped(found[-1].fields), grammar, "ok")
    return verdict


def _settled(text: str, told: list[Found], grammar: Grammar, mended: bool) -> Verdict:
    places = Places(text, objects=True)
    claims = []
    for one in told:
        fields = _unwrapped(one.fields)
        weight = places.weigh(one.start, one.end)
        claims.append(Claim(_winner(fields, grammar), weight, _shown(_said(fields)), one.start, one.end))
    settled = settle(claims)
    last = told[-1] if settled.claim is None else next(o for o in told if o.start == settled.claim.start)
    fields = _unwrapped(last.fields)
    if settled.claim is None and any(claim.side for claim in claims):
        return unreadable(settled.why or "", json_safe(fields))
    if last.repeated:
        return unreadable("the object names its winner twice", json_safe(fields))
    return _verdict(fields, grammar, "ok" if last.strict and not mended else "repaired")


def _without_object(raw: str, grammar: Grammar) -> Verdict:
    """`winner: B`, or the side alone: the content of an object that was never written."""
    text = answer_text(raw)
    strange = strange_label(text)
    if strange is not None:
        return unreadable(f"'{strange}' is no verdict of this grammar", {"label": strange})
    whole = named(text)
    if whole is not None:
        return labelled(whole, text.strip(), "repaired", "no JSON object")
    settled = settle(marked_claims(text, grammar, {}))
    if settled.claim is None or settled.claim.side is None:
        return unreadable("no JSON object with a winner")
    return labelled(settled.claim.side, settled.claim.label, "repaired", "no JSON object")


def _verdict(
    fields: dict[str, object], grammar: Grammar, status: Status, safe: dict[str, object] | None = None
) -> Verdict:
    """The verdict of one object; `safe` = the object as it may be stored, when it needs no cleaning."""
    choice = _WINNERS.get(fields["winner"]) if type(fields.get("winner")) is str else None
    if choice is None:
        choice = _winner(fields, grammar)
    why: str | None = None
    first, second = _raw_scores(fields)
    score_first = None if first is None else valid_score(first, grammar)
    score_second = None if second is None else valid_score(second, grammar)
    if (first is not None and score_first is None) or (second is not None and score_second is None):
        why = "invalid score"
    parsed = json_safe(fields) if safe is None else safe
    if choice is None:
        said = _said(fields)
        why = "the object names no winner" if said is None else f"winner {_shown(said)!r} is no side"
        return Verdict(None, "unreadable", score_first, score_second, parsed, why)
    if score_first is not None and score_second is not None and _conflict(choice, score_first, score_second):
        why = "the scores speak against the winner"
    return Verdict(choice, status, score_first, score_second, parsed, why)


def _conflict(choice: Choice, first: float, second: float) -> bool:
    if choice == "tie":
        return first != second
    return first < second if choice == "first" else second < first


def _raw_scores(fields: dict[str, object]) -> tuple[object, object]:
    for first, second in _SCORE_KEYS:
        if first in fields or second in fields:
            return fields.get(first), fields.get(second)
    scores = fields.get("scores")
    if isinstance(scores, dict):
        return scores.get("A", scores.get("a")), scores.get("B", scores.get("b"))
    return None, None


def _unwrapped(fields: dict[str, object]) -> dict[str, object]:
    """The inner object of a wrapper such as {"result": {...}}, which holds nothing else."""
    if len(fields) == 1:
        (inner,) = fields.values()
        if isinstance(inner, dict) and _said(inner) is not None:
            return inner
    return fields


def _has_winner(found: Found) -> bool:
    return _said(_unwrapped(found.fields)) is not None


def _said(fields: dict[str, object]) -> object:
    """What the object gives as its winner, unread; None when it gives none."""
    lowered = {name.strip().lower(): value for name, value in fields.items()}
    if "winner" in lowered:
        return lowered["winner"]
    others = [lowered[name] for name in _OTHER_KEYS if name in lowered]
    return others[0] if len(others) == 1 else None


def _shown(value: object) -> str:
    # The text of a deeply nested value would take as deep a recursion.
    return f"a {type(value).__name__}" if isinstance(value, dict | list) else str(value)[:40]


def _winner(fields: dict[str, object], grammar: Grammar) -> Choice | None:
    value = _said(fields)
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or len(value) > 80:
        return None
    if grammar.allows_tie and key(value).strip("[]().") in TIES:
        return "tie"
    return named(plain(value).strip("[] "))
