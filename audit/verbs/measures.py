"""Measures: counts of pairs and answers as rates that name their denominator.

A rate is a plain mapping, so that it goes into JSON as it is:
`{"k", "n", "value", "low", "high", "method", "clusters"}`, value NULL where n is 0.
"""

from collections.abc import Mapping
from typing import Any

Rate = dict[str, Any]
_CLUSTERED = "pairs of one task are not independent: no plain interval holds"


def rate(k: int, n: int, *, independent: bool, clusters: int | None = None, why: str = _CLUSTERED) -> Rate:
    """k of n with a 95% Wilson score interval.

    The interval is for independent trials: where they are not, `low` and `high` are NULL and `why` tells the
    reason. `clusters`: how many independent groups the n fall into, where that is known.
    """
    result: Rate = {"k": k, "n": n, "value": k / n if n else None, "low": None, "high": None, "method": None}
    if not n:
        return result | {"clusters": 0}
    if not independent:
        return result | {"clusters": clusters, "why": why}
    low, high = wilson(k, n)
    return result | {"low": low, "high": high, "method": "wilson", "clusters": n}


def wilson(k: int, n: int) -> tuple[float, float]:
    """The 95% score interval of k successes in n > 0 independent trials (Wilson 1927, JASA 22:209-212)."""
    interval = _binomial(k, n).proportion_ci(confidence_level=0.95, method="wilson")
    return float(interval.low), float(interval.high)


def mcnemar_p(one: int, other: int) -> float | None:
    """Exact two-sided McNemar test of two discordant counts (McNemar 1947), a binomial test at 1/2.

    NULL where both are 0.
    """
    return float(_binomial(one, one + other).pvalue) if one + other else None


def _binomial(k: int, n: int) -> Any:
    # Here, because scipy takes longer to load than all else a command needs.
    from scipy.stats import binomtest

    return binomtest(k, n, 0.5)


def pair_rates(counts: Mapping[str, int], *, independent: bool) -> dict[str, Rate]:
    """The rates of a group from its counts `decidable, correct, misselected, both_read, consistent`.

    `independent`: is every pair of the group the only one of its task?
    """
    decided = counts["correct"] + counts["misselected"]

    def over(k: int, n: int) -> Rate:
        return rate(k, n, independent=independent)

    return {
        "accuracy": over(counts["correct"], counts["decidable"]),
        "misselected_of_decidable": over(counts["misselected"], counts["decidable"]),
        "misselected_of_decided": over(counts["misselected"], decided),
        "consistent": over(counts["consistent"], counts["both_read"]),
    }
