"""95% intervals: of independent trials, of trials that cluster on tasks, of means, of changes.

Everything takes sums per cluster. Pairs and sessions of one task go up and down together; a plain interval
would be too narrow for them by the square root of the design effect. `tests/benchmarks/coverage.py` measures
how often the intervals hold the truth.
"""

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from audit.statistics.arrays import Z95, aligned, counted
from audit.statistics.special import t_975

if TYPE_CHECKING:
    from audit.statistics.arrays import Array

FEW_CLUSTERS = 20
"""With fewer, the report warns: how clusters differ is then itself hardly known."""

WILSON = "wilson"
CLUSTER_WILSON_T = "cluster_wilson_t"
WILSON_ON_CLUSTERS = "wilson_on_clusters"
CLUSTER_T = "cluster_t"
FROM_TWO_INTERVALS = "from_two_intervals"
PAIRED_WILSON = "paired_wilson"


class Interval(NamedTuple):
    """From `low` to `high`, and how they were found; both NULL where nothing can be said."""

    low: float | None
    high: float | None
    method: str | None


def wilson(k: float, n: float, z: float = Z95) -> tuple[float, float]:
    """The 95% score interval of k successes in n > 0 independent trials; neither need be whole.

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = k/n; `z` is the normal's point unless
    another distribution holds. Source: Wilson 1927, JASA 22:209-212. Raises ValueError where not 0 <= k <= n,
    n > 0.
    """
    if not 0 <= k <= n or n <= 0:
        raise ValueError(f"{k:g} of {n:g} is no share")
    p, z2 = k / n, z * z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # At the ends the formula gives 0 and 1 but for the last digits.
    return (0.0 if k == 0 else min(centre - half, p)), (1.0 if k == n else max(centre + half, p))


def share_interval(k: Any, n: Any) -> Interval:
    """The 95% interval of the share sum(k)/sum(n), for k_i of n_i in cluster i: two rows of numbers.

    p = K/N; u_i = k_i - p n_i; v = J/(J-1) sum u_i^2 / N^2 (the cluster-robust variance of a ratio), at least
    p(1-p)/N, as pairs of one task tell no more than independent ones. So the run is worth p(1-p)/v
    independent trials, and has Wilson's interval for that many, with Student's t for z (Kott & Carr 1997, J.
    Off. Stat. 13:209-224; Dean & Pagano 2015, J. Surv. Stat. Methodol. 3:484-503). The degrees of freedom of
    t are Satterthwaite's for a sum of squares, from the moments of u: for a rare event few clusters carry the
    variance, and J-1 would cover too little.

    No cluster with more than one trial: Wilson's. Nothing or everything counted, or one cluster alone:
    nothing tells how alike the trials of a cluster are, so Wilson's for as many trials as there are clusters,
    by Kish's effective number N^2 / sum n_i^2. Without any trial: NULL. Raises ValueError where not
    0 <= k_i <= n_i.
    """
    part, whole = counted(k, n)
    if not len(whole):
        return Interval(None, None, None)
    total, all_of = float(part.sum()), float(whole.sum())
    if whole.max() <= 1:
        low, high = wilson(total, all_of)
        return Interval(low, high, WILSON)
    if len(whole) < 2 or total in (0, all_of):
        effective = all_of**2 / float((whole**2).sum())
        low, high = wilson(total / all_of * effective, effective)
        return Interval(low, high, WILSON_ON_CLUSTERS)
    p = total / all_of
    residuals = part - p * whole
    variance = max(ratio_variance(residuals, all_of), p * (1 - p) / all_of)
    effective = p * (1 - p) / variance
    low, high = wilson(p * effective, effective, t_quantile(degrees_of_freedom(residuals)))
    return Interval(low, high, CLUSTER_WILSON_T)


def design_effect(k: Any, n: Any) -> float | None:
    """How many times the variance of independent trials this run's clustering gives, at least 1 (Kish 1965).

    v / (p(1-p)/N) with v as in `share_interval`. NULL where nothing or everything was counted, or in one
    cluster alone. N / design effect is the number of independent pairs that would tell as much.
    """
    part, whole = counted(k, n)
    total, all_of = float(part.sum()), float(whole.sum())
    if len(whole) < 2 or total in (0, all_of):
        return None
    p = total / all_of
    return max(ratio_variance(part - p * whole, all_of) / (p * (1 - p) / all_of), 1.0)


def mean_interval(
    total: Any, n: Any, low: float = -math.inf, high: float = math.inf
) -> tuple[float | None, Interval]:
    """The mean sum(total)/sum(n) over clusters, and its 95% t interval, cut to what the mean can be.

    `total`: the sum of the values in each cluster, `n`: how many they are. The variance is the cluster-robust
    one of a ratio, J/(J-1) sum (total_i - mean n_i)^2 / N^2 (the clustered standard error of Miller,
    arXiv:2411.00640, with the correction for few clusters), the degrees of freedom as in `share_interval`:
    with n_i = 1 and no heavy tails it is Student's interval. Where the clusters do not differ, or there is
    only one, there is no spread to tell from: NULL; but a mean at `low` or `high` itself is a share, and gets
    Wilson's for that many clusters.
    """
    totals, counts = aligned(total, n)
    if (counts < 0).any():
        raise ValueError("a number of values is from 0 up")
    totals, counts = totals[counts > 0], counts[counts > 0]
    if not len(counts):
        return None, Interval(None, None, None)
    all_of = float(counts.sum())
    mean = float(totals.sum()) / all_of
    if math.isfinite(high - low) and high > low and mean in (low, high):
        under, over = wilson(len(counts) if mean == high else 0, len(counts))
        return mean, Interval(low + under * (high - low), low + over * (high - low), WILSON_ON_CLUSTERS)
    residuals = totals - mean * counts
    if len(counts) < 2 or float(abs(residuals).max()) <= 1e-12 * max(float(abs(totals).max()), 1e-300):
        return mean, Interval(None, None, None)
    half = t_quantile(degrees_of_freedom(residuals)) * math.sqrt(ratio_variance(residuals, all_of))
    return mean, Interval(max(mean - half, low), min(mean + half, high), CLUSTER_T)


def change_interval(
    k_before: Any, n_before: Any, k_after: Any, n_after: Any
) -> tuple[float | None, Interval]:
    """The change of a share from one run to another, after - before, with its 95% interval.

    Four rows over the same clusters, 0 of 0 where a run has nothing in a cluster. The runs share tasks, so
    the variance is that of the difference itself: J/(J-1) sum u_i^2 with u_i = (k'_i - p' n'_i)/N' -
    (k_i - p n_i)/N, and a t interval (the paired analysis of Miller, arXiv:2411.00640). Where u has no spread
    the interval is put together from those of the two shares (MOVER: Newcombe 1998, Stat. Med. 17:873-890),
    which takes them as independent and is the wider for it. NULL where a run has no trial.
    """
    k1, n1, k2, n2 = aligned(k_before, n_before, k_after, n_after)
    counted(k1, n1)
    counted(k2, n2)
    if not n1.sum() or not n2.sum():
        return None, Interval(None, None, None)
    p1, p2 = (float(k.sum() / n.sum()) for k, n in ((k1, n1), (k2, n2)))
    influence = (k2 - p2 * n2) / n2.sum() - (k1 - p1 * n1) / n1.sum()
    influence = influence[n1 + n2 > 0]
    change = p2 - p1
    if len(influence) > 1 and abs(influence).max() > 1e-12:
        half = t_quantile(degrees_of_freedom(influence)) * math.sqrt(ratio_variance(influence, 1.0))
        return change, Interval(max(change - half, -1.0), min(change + half, 1.0), CLUSTER_T)
    low1, high1, _ = share_interval(k1, n1)
    low2, high2, _ = share_interval(k2, n2)
    if low1 is None or high1 is None or low2 is None or high2 is None:
        return change, Interval(None, None, None)
    down, up = math.hypot(p2 - low2, high1 - p1), math.hypot(high2 - p2, p1 - low1)
    return change, Interval(change - down, change + up, FROM_TWO_INTERVALS)


def paired_interval(
    k_before: Any, n_before: Any, k_after: Any, n_after: Any
) -> tuple[float | None, Interval]:
    """As `change_interval`, of the same trials answered twice: most answers stay, and the interval knows it.

    The change is b - c: the share b of trials that are counted now and were not, less the share c of those
    that no longer are (as the clusters tell of them: net in each). Two intervals, of which the far ends hold:

    that of the differences over clusters, as in `change_interval`. With few trials that differ it has too few
    clusters to tell a spread from, and with none no width at all;

    that put together from Wilson's of b and of c (MOVER for paired shares: Tang et al. 2010, Comput. Stat.
    Data Anal. 54:2842-2854), each for N / design effect of the run independent trials. Where nothing differs
    it is -+z^2/(n + z^2), which is Tango's score interval there (1998, Stat. Med. 17:891-908).

    Simulated with 20 to 100 tasks of 4 to 9 pairs, 0 to 10% of them differing, alone or by tasks, it held
    the truth in .958 to 1.0 of runs, the first alone in .19 to .99.
    """
    k1, n1, k2, n2 = aligned(k_before, n_before, k_after, n_after)
    change, spread = change_interval(k1, n1, k2, n2)
    if change is None:
        return None, spread
    whole = float(min(n1.sum(), n2.sum()))
    effects = [effect for effect in (design_effect(k1, n1), design_effect(k2, n2)) if effect is not None]
    # Where all or nothing is counted a cluster is worth one trial.
    effective = whole / max(effects) if effects else float(n1.sum()) ** 2 / float((n1**2).sum())
    gained, lost = (float((more - less).clip(0).sum()) / whole for more, less in ((k2, k1), (k1, k2)))
    low_gained, high_gained = wilson(min(gained, 1.0) * effective, effective)
    low_lost, high_lost = wilson(min(lost, 1.0) * effective, effective)
    low = max(change - math.hypot(gained - low_gained, high_lost - lost), -1.0)
    high = min(change + math.hypot(high_gained - gained, lost - low_lost), 1.0)
    if spread.low is None or spread.high is None or spread.method != CLUSTER_T:
        return change, Interval(low, high, PAIRED_WILSON)
    is_wider = spread.low <= low and high <= spread.high
    return change, Interval(
        min(low, spread.low), max(high, spread.high), CLUSTER_T if is_wider else PAIRED_WILSON
    )


def ratio_variance(residuals: "Array", all_of: float) -> float:
    """J/(J-1) sum u_i^2 / N^2, for J > 1 residuals u that add up to 0."""
    clusters = len(residuals)
    return float(clusters / (clusters - 1) * (residuals**2).sum() / all_of**2)


def degrees_of_freedom(residuals: "Array") -> float:
    """Satterthwaite's degrees of freedom of a sum of J squares, 2J / (m4/m2^2 - 1), between 1 and J-1.

    m2 and m4 are the second and fourth moments (Satterthwaite 1946, Biometrics Bull. 2:110-114).
    """
    clusters = len(residuals)
    second = float((residuals**2).mean())
    if second <= 0:
        return float(clusters - 1)
    excess = float(((residuals**2 / second) ** 2).mean()) - 1
    return max(1.0, min(clusters - 1.0, 2 * clusters / excess if excess > 0 else math.inf))


def t_quantile(freedom: float) -> float:
    """The 97.5% point of Student's t."""
    return t_975(freedom)
