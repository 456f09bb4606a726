"""Gaps: how far apart two sides are, by reward, by agent, by the judge's own scores; and into which bucket.

A bucket set is a list of edges. The first bucket starts at 0 and holds it, the last is open at the top, and
what has no gap is `unknown`, so every pair is in exactly one bucket and the counts add up.
"""

import math
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from decimal import Decimal, localcontext
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from audit.words.names import TOLERANCE, UNKNOWN_BUCKET, GapSource

# The sum of the largest and the smallest float, to the last digit.
_DIGITS = 700


class Bucket(NamedTuple):
    """One interval of gaps. `upper` NULL: open at the top. `closed`: which of its edges belongs to it."""

    label: str
    lower: float | None
    upper: float | None
    closed: Literal["left", "right"] | None
    is_near: int | None


class BucketSet(NamedTuple):
    """`inner` are the edges between buckets, ascending; `buckets` has one more, in order."""

    name: str
    inner: tuple[float, ...]
    closed: Literal["left", "right"]
    buckets: tuple[Bucket, ...]

    def with_unknown(self) -> tuple[Bucket, ...]:
        """All rows of the set as stored: the buckets, and the one for pairs without a gap."""
        return (*self.buckets, Bucket(UNKNOWN_BUCKET, None, None, None, None))


def session_gap(reward_a: float | None, reward_b: float | None) -> float | None:
    """|reward_a - reward_b|, NULL where either is unknown.

    Finite like the rewards: where the difference of two is not, it is the largest number there is.
    """
    if reward_a is None or reward_b is None:
        return None
    return min(abs(reward_a - reward_b), sys.float_info.max)


def judge_gap(score_a: float | None, score_b: float | None) -> float | None:
    """|judge_score_a - judge_score_b|, NULL where either is unknown."""
    return session_gap(score_a, score_b)


def chosen_gap(
    source: GapSource,
    *,
    agent: float | None,
    session: float | None,
    judge: float | None,
    external: float | None,
) -> float | None:
    """The gap that `gap_source` names."""
    if source == "session":
        return session
    if source == "agent":
        return agent
    return judge if source == "judge" else external


def agent_gaps(
    rewards: Iterable[tuple[str, str, str | None, float, float, int]],
    tasks: Iterable[tuple[str, str, str | None, int]],
) -> dict[tuple[str, str, str | None], float]:
    """|mean reward of one agent - of the other| over what both finished, by (agent, agent, category).

    `rewards`: (agent_a, agent_b, category, reward_a, reward_b, number of such pairs); `tasks`: (agent, agent,
    category, number of shared tasks). Only agents that share more than one task have a gap. Rewards are added
    as the decimals they were written as, so that equal means come out equal. Both orders of the two names
    are keys of the result.
    """
    sums: dict[tuple[str, str, str | None], tuple[Decimal, int]] = {}
    with localcontext(prec=_DIGITS):
        for agent_a, agent_b, category, reward_a, reward_b, pairs in rewards:
            difference = (Decimal(repr(reward_a)) - Decimal(repr(reward_b))) * pairs
            if agent_a > agent_b:
                agent_a, agent_b, difference = agent_b, agent_a, -difference
            total, count = sums.get((agent_a, agent_b, category), (Decimal(0), 0))
            sums[agent_a, agent_b, category] = total + difference, count + pairs
        gaps = {}
        for one, other, category, shared in tasks:
            key = (min(one, other), max(one, other), category)
            if shared > 1 and key in sums:
                total, count = sums[key]
                gap = min(float(abs(total) / count), sys.float_info.max)
                gaps[key] = gaps[key[1], key[0], category] = gap
        return gaps


def bucket_of(gap: float | None, buckets: BucketSet) -> str:
    """The label of the bucket that holds `gap`; a gap within 1e-9 of an edge is on the edge.

    Raises ValueError for a negative or non-finite gap.
    """
    if gap is None:
        return UNKNOWN_BUCKET
    if not 0 <= gap < math.inf:
        raise ValueError(f"a gap is a finite number from 0 up, not {gap}")
    if buckets.closed == "left":
        return buckets.buckets[bisect_right(buckets.inner, gap + TOLERANCE)].label
    return buckets.buckets[bisect_left(buckets.inner, gap - TOLERANCE)].label


def buckets_from_rows(name: str, rows: Sequence[tuple[Any, ...]]) -> BucketSet:
    """A bucket set from its stored rows (label, lower, upper, closed, is_near), with `unknown` or without."""
    buckets = tuple(Bucket(*row) for row in rows if row[0] != UNKNOWN_BUCKET)
    inner = tuple(bucket.upper for bucket in buckets if bucket.upper is not None)
    return BucketSet(name, inner, buckets[0].closed or "left", buckets)


def make_buckets(
    name: str,
    inner: Sequence[float],
    closed: Literal["left", "right"],
    near_below: float | None = None,
    shown: Sequence[str] | None = None,
) -> BucketSet:
    """A bucket set from its inner edges; those that end by `near_below` are near (default: the first).

    `shown` are the edges as they are to be written in labels. Raises ValueError where edges do not rise
    from 0 by more than the tolerance, or where no bucket ends by `near_below`.
    """
    edges = [0.0, *inner]
    if not inner:
        raise ValueError("give at least one bucket edge above 0")
    if not all(map(math.isfinite, inner)) or any(b - a <= TOLERANCE for a, b in pairwise(edges)):
        raise ValueError("bucket edges must be finite and rise from above 0, each by more than 1e-9")
    words = ["0", *(shown or [repr(edge).removesuffix(".0") for edge in inner])]
    near = inner[0] if near_below is None else near_below
    if not inner[0] <= near + TOLERANCE:
        raise ValueError(f"no bucket is near: the first ends at {words[1]}, after {near:g}")
    rows = []
    for i, lower in enumerate(edges):
        upper = inner[i] if i < len(inner) else None
        is_near = int(upper is not None and upper <= near + TOLERANCE)
        rows.append(Bucket(_label(words, i, closed), lower, upper, closed, is_near))
    return BucketSet(name, tuple(inner), closed, tuple(rows))


_INTERVAL = re.compile(r"([\[(])([^,\[\]()]*),([^,\[\]()]*)([\])])")


def buckets_from_text(text: str, near_below: float | None = None) -> BucketSet:
    """A preset by name, or own edges: `0,.1,.3` (closed left) or `[0,1] (1,3] (3,..)` as brackets say.

    Edges may be fractions such as `1/3`. Raises ValueError saying what is wrong.
    """
    wanted = text.strip()
    if wanted in PRESETS:
        if near_below is not None:
            raise ValueError(f"the preset {wanted!r} says itself what is near: give own edges with --near")
        return PRESETS[wanted]
    words, closed = _brackets(wanted) if wanted[:1] in ("[", "(") else (wanted.split(","), "left")
    words = [word.strip() for word in words]
    if words and _number(words[0]) == 0:
        words = words[1:]
    edges = [_number(word) for word in words]
    name = f"{closed}:{','.join(words)}" + ("" if near_below is None else f":near={near_below:g}")
    return make_buckets(name, edges, closed, near_below, words)


def _brackets(text: str) -> tuple[list[str], Literal["left", "right"]]:
    found = _INTERVAL.findall(text)
    if not found or _INTERVAL.sub("", text).strip(" ,"):
        raise ValueError(f"cannot read the buckets {text!r}: write [0,.1) [.1,.3) [.3,..) or 0,.1,.3")
    ends = [upper.strip() for _, _, upper, _ in found]
    if ends[-1] not in ("..", "", "inf"):
        raise ValueError(f"the last bucket must be open at the top: write ({found[-1][1].strip()},..)")
    for (_, _, upper, _), (_, lower, _, _) in pairwise(found):
        if _number(upper) != _number(lower):
            raise ValueError(f"buckets must touch: {upper.strip()} is not {lower.strip()}")
    if _number(found[0][1]) != 0:
        raise ValueError(f"the first bucket must start at 0, not at {found[0][1].strip()}")
    # What closes a bucket tells what must open the next one: an edge is in exactly one of the two.
    touching = {closing + opening for (_, _, _, closing), (opening, *_) in pairwise(found)}
    if len(found) > 1 and touching not in ({")["}, {"]("}):
        raise ValueError("all buckets must be closed on the same side")
    return ends[:-1], "right" if touching == {"]("} else "left"


def _number(word: str) -> float:
    try:
        above, slash, below = word.partition("/")
        number = float(above) / float(below) if slash else float(above)
    except (ValueError, ZeroDivisionError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{word.strip()!r} is not a number")
    return number


def _label(words: Sequence[str], i: int, closed: str) -> str:
    last = i == len(words) - 1
    if closed == "left":
        return f"[{words[i]},{'..' if last else words[i + 1]})"
    return f"{'[' if i == 0 else '('}{words[i]},{'..)' if last else words[i + 1] + ']'}"


GAUGE = make_buckets("gauge", (0.05, 0.10, 0.15, 0.30), "left", near_below=0.10)
SCORES = make_buckets("scores", (0.2, 0.5, 1.0), "right")
PRESETS = {GAUGE.name: GAUGE, SCORES.name: SCORES}
