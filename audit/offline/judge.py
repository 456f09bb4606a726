"""The synthetic judges: fallible readers of two transcripts.

A judge goes through the items of the task in both transcripts (`rubric`) and misreads one now and then: it
takes something for done that is not shown, or, half as often, overlooks what is. Its impression of the whole
wavers a little too, anew at each reading. It then names the side that seems to have more of the task done.
Two sessions that differ in one item are told apart wrongly by one misreading, two that differ in all only by
many.

The dials are shares of its answers: with `pos` it names the side shown first, with `verb` the one whose agent
said more, without reading. With no ties, the share of `first` among its answers is (1 + pos) / 2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from audit.offline.chance import normal, uniform
from audit.offline.reading import Judged
from audit.offline.rubric import Item, Shown, assess, completion, shown

# At skill 0: each item misread, and an impression that wavers by a quarter of the scale.
_WAVERS = 0.25
# Closer estimates are called a tie by a judge that knows it can err.
_TIE = 0.02
_EXACT = 1e-9
_QUOTE = 160
_CLAIM = re.compile(
    r"\b(?:is|are) (?:now |placed|cancelled|booked|changed|swapped|taken|added|moved|set|on|in)\b"
    r"|\b(?:you get|you have|you can|I have taken care|as you wished|goes to|costs?)\b",
    re.IGNORECASE,
)
_POLITE = re.compile(r"\b(?:thank you|pleasure|gladly|happy to)\b", re.IGNORECASE)
_REFUSES = re.compile(r"\b(?:afraid|cannot|unable)\b", re.IGNORECASE)


class Dials(NamedTuple):
    """A judge: `skill` 0..1, or a `fixed` way of answering without reading; `pos` and `verb` 0..1."""

    name: str
    skill: float
    fixed: str
    pos: float
    verb: float


_NAME = re.compile(r"judge-(?:(\d{1,3})|(coin|first))(?:-pos(\d{1,3}))?(?:-verb(\d{1,3}))?\Z")


def dials_of(model: str) -> Dials | None:
    """What a model's name says of it: `judge-80-pos30-verb10`, `judge-coin`; None for no judge's name."""
    match = _NAME.match(model)
    if match is None:
        return None
    skill, pos, verb = (min(int(match[group] or 0), 100) / 100 for group in (1, 3, 4))
    return Dials(model, skill, match[2] or "", pos, verb)


def pair_answer(judged: Judged, dials: Dials, seed: object) -> dict[str, Any]:
    """The answer to a pair, its keys in the order that was asked for."""
    texts = judged.transcripts[0], judged.transcripts[1]
    sides = [shown(text) for text in texts]
    items = assess(judged.goal, judged.policy, sides)
    marks = [_digest(text) for text in texts]
    seen = [_seen(items[side], side, marks, dials, seed) for side in (0, 1)]
    estimates = [_estimate(seen[side], side, marks, dials, seed) for side in (0, 1)]
    choice = _choice(estimates, sides, marks, dials, seed)
    scores = _scores(estimates, choice)
    return {
        "first": _side(sides[0], seen[0]),
        "second": _side(sides[1], seen[1]),
        "score_first": scores[0],
        "score_second": scores[1],
        "winner": choice,
    }


def satisfaction_answer(judged: Judged, dials: Dials, seed: object) -> dict[str, Any]:
    """The answer to the pointwise question: a friendly claim counts for more than what was done."""
    one = shown(judged.transcripts[0])
    items = assess(judged.goal, judged.policy, [one])[0]
    mark = _digest(judged.transcripts[0])
    seen = _seen(items, 0, [mark, mark], dials, seed)
    estimate = completion(seen)
    words = " ".join(one.words[-2:])
    claims = 1.0 if _CLAIM.search(words) and not _REFUSES.search(words) else 0.4 if words else 0.0
    liking = 0.5 * estimate + 0.4 * claims + (0.1 if _POLITE.search(words) else 0.05)
    wavering = (1 - dials.skill) * _WAVERS * normal(dials.name, seed, mark, "satisfaction")
    return {**_side(one, seen), "satisfaction": round(min(max(liking + wavering, 0.0), 1.0), 2)}


def _seen(items: Sequence[Item], side: int, marks: Sequence[str], dials: Dials, seed: object) -> list[Item]:
    """The items as this judge reads them; a misreading is the same in whichever order the pair is shown."""
    doubt = 1 - dials.skill
    pair = min(marks), max(marks)
    seen = []
    for item in items:
        chance = uniform(dials.name, seed, *pair, marks[side], item.name)
        is_misread = chance < (doubt / 2 if item.is_met else doubt)
        seen.append(Item(item.name, item.weight, item.is_met != is_misread))
    return seen


def _estimate(seen: Sequence[Item], side: int, marks: Sequence[str], dials: Dials, seed: object) -> float:
    """How much of the task seems done; a little off, and not the same in the other order."""
    doubt = 1 - dials.skill
    return completion(seen) + (doubt * _WAVERS * normal(dials.name, seed, *marks, side) if doubt else 0.0)


def _choice(
    estimates: Sequence[float], sides: Sequence[Shown], marks: Sequence[str], dials: Dials, seed: object
) -> str:
    key = (dials.name, seed, *marks)
    if dials.fixed == "first" or uniform(*key, "position") < dials.pos:
        return "first"
    if dials.fixed == "coin":
        return "first" if uniform(*key, "coin") < 0.5 else "second"
    lengths = [sum(map(len, side.words)) for side in sides]
    if lengths[0] != lengths[1] and uniform(*key, "length") < dials.verb:
        return "first" if lengths[0] > lengths[1] else "second"
    difference = estimates[0] - estimates[1]
    if abs(difference) < (_TIE if dials.skill < 1 else _EXACT):
        return "tie"
    return "first" if difference > 0 else "second"


def _scores(estimates: Sequence[float], choice: str) -> tuple[float, float]:
    """0..5, in the order that the choice has: who has decided finds the scores to it."""
    first, second = (round(5 * min(max(estimate, 0.0), 1.0), 1) for estimate in estimates)
    if choice == "tie":
        return (mean := round((first + second) / 2, 1)), mean
    low, high = sorted((first, second))
    if low == high:
        low, high = max(low - 0.5, 0.0), min(high + 0.5, 5.0)
    return (high, low) if choice == "first" else (low, high)


def _side(one: Shown, seen: Sequence[Item]) -> dict[str, Any]:
    """A quotation and whether the task seems done."""
    results = [work.shown for work in one.work if work.rows is not None]
    quote = (results or list(one.words) or ["nothing was said"])[-1][:_QUOTE]
    missing = [item.name for item in seen if not item.is_met]
    evidence = f"{quote}; not shown: {', '.join(missing)}" if missing else quote
    return {"evidence": evidence, "done": not missing}


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
