"""The answer grammars a judge's prompt may ask for.

A grammar belongs to the prompt, not to the reply: the reader is told what the judge was asked to write and
never guesses it from what came back.
"""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grammar:
    """What a prompt asked for. `low` and `high` bound a score, both inclusive; None = no bound stated."""

    name: str
    low: float | None
    high: float | None
    allows_tie: bool


_PLAIN = {
    "json": Grammar("json", None, None, True),
    "arena_hard_5way": Grammar("arena_hard_5way", None, None, True),
    "mtbench_3way": Grammar("mtbench_3way", None, None, True),
    "output_ab": Grammar("output_ab", None, None, False),
    "score_pair": Grammar("score_pair", 1.0, 10.0, True),
    "digit": Grammar("digit", None, None, True),
}
_ALIASES = {"llmbar_ab": "output_ab", "llmbar_cot": "output_ab"}
_SCALED = ("json", "score_pair")


def grammar(text: str) -> Grammar:
    """The grammar named by `text`: a name, or `json:LOW-HIGH` / `score_pair:LOW-HIGH` with the scores' scale.

    Raises ValueError, naming the text and what is known, for anything else.
    """
    name, colon, scale = text.partition(":")
    plain = _PLAIN.get(_ALIASES.get(name, name))
    if plain is None or (colon and plain.name not in _SCALED):
        raise ValueError(_unknown(text))
    if not colon:
        return plain
    low, high = _scale(text, scale)
    return Grammar(plain.name, low, high, plain.allows_tie)


def _scale(text: str, scale: str) -> tuple[float, float]:
    # The bound before the dash may itself be negative ("-1-1"), so the first character never separates.
    dash = scale.find("-", 1)
    try:
        low, high = float(scale[:dash]), float(scale[dash + 1 :])
    except ValueError:
        raise ValueError(_unknown(text)) from None
    if dash < 1 or not (math.isfinite(low) and math.isfinite(high)) or low >= high:
        raise ValueError(_unknown(text))
    return low, high


def _unknown(text: str) -> str:
    known = ", ".join([*_PLAIN, *_ALIASES])
    return (
        f"unknown verdict grammar {text!r}: use one of {known}; "
        "json and score_pair take a scale, as in score_pair:0-5"
    )
