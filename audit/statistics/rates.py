"""Rates: counts of pairs and answers that name their denominator, how sure they are, and how that was found.

A rate is a plain mapping, so that it goes into JSON as it is:
`{"k", "n", "value", "low", "high", "method", "clusters"}`, value NULL where n is 0.
"""

from collections.abc import Mapping
from typing import Any

from audit.statistics.arrays import counted
from audit.statistics.intervals import WILSON, share_interval, wilson

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
    return result | {"low": low, "high": high, "method": WILSON, "clusters": n}


def clustered_rate(k: Any, n: Any) -> Rate:
    """sum(k) of sum(n), for k_i of n_i in cluster i, with the interval of `intervals.share_interval`.

    `k`, `n`: whole numbers, one a cluster; clusters with n_i = 0 do not count. Raises ValueError where not
    0 <= k_i <= n_i. The two answers of a pair, the pairs of a task, its trials: all are in one cluster.
    """
    part, whole = counted(k, n)
    of, total = int(part.sum()), int(whole.sum())
    low, high, method = share_interval(part, whole)
    return {
        "k": of,
        "n": total,
        "value": of / total if total else None,
        "low": low,
        "high": high,
        "method": method,
        "clusters": len(whole),
    }


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


def clustered_pair_rates(counts: Mapping[str, Any]) -> dict[str, Rate]:
    """As `pair_rates`, each count a row with one number a cluster, and each rate with its interval."""
    correct, misselected = (counted(counts[name], counts["decidable"]) for name in ("correct", "misselected"))
    decided = correct[0] + misselected[0]
    return {
        "accuracy": clustered_rate(*correct),
        "misselected_of_decidable": clustered_rate(*misselected),
        "misselected_of_decided": clustered_rate(misselected[0], decided),
        "consistent": clustered_rate(counts["consistent"], counts["both_read"]),
    }
