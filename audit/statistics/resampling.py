"""Resampling: pairs of agents share agents, so whole agents, or families of them, are drawn anew."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from audit.statistics.arrays import aligned
from audit.statistics.intervals import Interval, wilson

if TYPE_CHECKING:
    from audit.statistics.arrays import Array

REPEATS = 2000
BOOTSTRAP = "bootstrap_of_agents"
WILSON_ON_AGENTS = "wilson_on_agents"
# Weights held at a time: 16 MB.
_HELD = 2_000_000


def numbered(first: Any, second: Any) -> tuple["Array", "Array", int]:
    """The families of both sides of each pair as numbers from 0, and how many families there are."""
    import numpy as np

    names, index = np.unique(np.concatenate([np.asarray(first), np.asarray(second)]), return_inverse=True)
    half = len(index) // 2
    return index[:half], index[half:], len(names)


def pair_weights(first: "Array", second: "Array", families: int, seed: int) -> Iterator["Array"]:
    """How often each pair is in each resample, in portions of shape (resamples, pairs); REPEATS rows in all.

    As many families are drawn, with replacement, as there are; a pair of two families counts the product of
    how often they were drawn, a pair within one family as often as the family was, and a family drawn twice
    makes no pair with itself. `first`, `second`: numbers of families, shape (pairs,). Source: the node
    bootstrap of Snijders & Borgatti 1999, Connections 22:61-70.
    """
    import numpy as np

    chance = np.random.default_rng(seed)
    portion = max(1, _HELD // max(len(first), 1))
    for start in range(0, REPEATS, portion):
        size = min(portion, REPEATS - start)
        drawn = chance.multinomial(families, np.full(families, 1 / families), size=size)
        yield np.where(first == second, drawn[:, first], drawn[:, first] * drawn[:, second])


def resampled_share(k: Any, n: Any, first: Any, second: Any, seed: int = 0) -> tuple[Interval, int]:
    """The 95% percentile interval of sum(k)/sum(n) over pairs of agents, and how many families they are of.

    k_i of n_i for pair i, of the families (or agents) first_i and second_i; all four of shape (pairs,).
    Nothing or everything counted, or fewer than three families: no resample would differ, so it is Wilson's
    for half as many trials as there are families, the least that a mean over pairs can be worth (Hoeffding
    1948, Ann. Math. Stat. 19:293-325: its variance is at most 2/m of one pair's). No pair: NULL.
    """
    import numpy as np

    part, whole = aligned(k, n)
    one, other, families = numbered(np.asarray(first)[whole > 0], np.asarray(second)[whole > 0])
    part, whole = part[whole > 0], whole[whole > 0]
    if not len(whole):
        return Interval(None, None, None), 0
    share = float(part.sum() / whole.sum())
    if families < 3 or share in (0, 1):
        worth = max(families / 2, 1)
        low, high = wilson(share * worth, worth)
        return Interval(low, high, WILSON_ON_AGENTS), families
    shares = []
    for weights in pair_weights(one, other, families, seed):
        counted = weights @ whole
        shares.append((weights @ part)[counted > 0] / counted[counted > 0])
    low, high = np.quantile(np.concatenate(shares), (0.025, 0.975))
    return Interval(float(low), float(high), BOOTSTRAP), families
