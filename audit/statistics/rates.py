"""Rates: counts of pairs and answers that name their denominator, how sure they are, and how that was found.

A rate is a plain mapping, so that it goes into JSON as it is:
`{"k", "n", "value", "low", "high", "method", "clusters"}`, value NULL where n is 0.
"""

from collections.abc import Mapping
from typing import Any

from audit.statistics.arrays import aligned, counted, grouped
from audit.statistics.intervals import share_interval

Rate = dict[str, Any]


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


def clustered_rate_of_groups(cluster: Any, k: Any, n: Any, counts: Any) -> Rate:
    """As `clustered_rate`, for groups: k_i of n_i in cluster_i, of those alone where counts_i is true."""
    part, whole, kept = aligned(k, n, counts)
    return clustered_rate(*grouped(cluster, part * kept, whole * kept))


def clustered_pair_rates(counts: Mapping[str, Any]) -> dict[str, Rate]:
    """The rates of a group from its counts `decidable, correct, misselected, both_read, consistent`, each a
    row with one number a cluster.
    """
    correct, misselected = (counted(counts[name], counts["decidable"]) for name in ("correct", "misselected"))
    decided = correct[0] + misselected[0]
    return {
        "accuracy": clustered_rate(*correct),
        "misselected_of_decidable": clustered_rate(*misselected),
        "misselected_of_decided": clustered_rate(misselected[0], decided),
        "consistent": clustered_rate(counts["consistent"], counts["both_read"]),
    }
