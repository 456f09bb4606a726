"""Label noise: how often a judge's preferences are flipped, and what that costs a training set."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from zlib import crc32

from audit.statistics.curve import error_curve
from audit.statistics.rates import Rate, clustered_rate

# Beyond so many tasks several share a cluster, so that memory does not grow with a run: the interval of
# coarser clusters holds as well.
MOST_CLUSTERS = 5000
_COARSE = 2000
_MOST_GAPS = 5000


def data_cost(flip_rate: float) -> float:
    """1/(1-2e)^2: how many times the rows a set with flip rate e needs to teach as much as a clean one.

    From the bound of robust DPO, whose error grows with 1/(1-2e) (Chowdhury et al., arXiv:2403.00409), and
    falls with the root of the rows. Raises ValueError for e outside 0 <= e < 1/2: at 1/2 nothing is taught.
    """
    if not 0 <= flip_rate < 0.5:
        raise ValueError(f"a flip rate is from 0 to below 1/2, not {flip_rate:g}")
    return 1 / (1 - 2 * flip_rate) ** 2


def label_smoothing(rows: Sequence[int], flip_rates: Sequence[float]) -> float | None:
    """The set's `label_smoothing`: the mean flip rate over the rows it holds; NULL for a set without rows.

    `rows`: how many rows have each of `flip_rates`, which are from 0 to 1. A mean of 1/2 or more is refused
    as in `data_cost`.
    """
    total = sum(rows)
    if not total:
        return None
    mean = sum(n * e for n, e in zip(rows, flip_rates, strict=True)) / total
    data_cost(mean)
    return mean


def flip_rates(decided: Iterable[Sequence[Any]], tasks: int) -> tuple[dict[str, Rate], Rate, dict[str, Any]]:
    """Rate by gap bucket, overall rate, error curve, from (bucket, gap, task, 1 where flipped) of each pair.

    The pairs are those that are decidable and have a verdict for a side, before any of them is filtered out;
    the rates' intervals are clustered on tasks, of which the run has so many. One pass, in bounded memory.
    """
    by_bucket: dict[str, dict[Any, list[int]]] = {}
    by_gap: dict[tuple[float, Any], list[int]] = {}
    is_coarse = tasks > MOST_CLUSTERS
    for bucket, gap, task, flipped in decided:
        cluster = crc32(task.encode("utf-8", "replace")) % _COARSE if is_coarse else task
        clusters = by_bucket.get(bucket)
        if clusters is None:
            clusters = by_bucket[bucket] = {}
        _count(clusters, cluster, flipped)
        if gap is not None:
            if len(by_gap) <= _MOST_GAPS:
                key = (gap, cluster)
            else:  # two digits of the gap, a hundred clusters
                key = (float(f"{gap:.2g}"), crc32(task.encode("utf-8", "replace")) % 100)
            _count(by_gap, key, flipped)
    overall: dict[Any, list[int]] = {}
    for clusters in by_bucket.values():
        for cluster, (k, n) in clusters.items():
            counted = overall.setdefault(cluster, [0, 0])
            counted[0] += k
            counted[1] += n
    rates = {bucket: _rate(clusters) for bucket, clusters in by_bucket.items()}
    largest = max((gap for gap, _ in by_gap), default=None)
    return rates, _rate(overall), _curve(by_gap) | {"largest_gap": largest}


def _count(counts: dict[Any, list[int]], key: Any, flipped: int) -> None:
    found = counts.get(key)
    if found is None:
        counts[key] = [flipped, 1]
    else:
        found[0] += flipped
        found[1] += 1


def _rate(clusters: Mapping[Any, list[int]]) -> Rate:
    return clustered_rate([k for k, _ in clusters.values()], [n for _, n in clusters.values()])


def _curve(by_gap: Mapping[tuple[float, Any], list[int]]) -> dict[str, Any]:
    clusters = [str(cluster) for _, cluster in by_gap]
    gaps = [gap for gap, _ in by_gap]
    return error_curve(gaps, [k for k, _ in by_gap.values()], [n for _, n in by_gap.values()], clusters)
