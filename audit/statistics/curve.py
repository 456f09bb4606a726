"""The error curve: how likely the judge errs at a gap, p(err) = Phi(-gap/s); the smallest trustworthy gap.

One number, s, the judge's noise in units of reward: at gap 0 it errs half the time, at 1.28 s in one of ten.
"""

import math
from typing import TYPE_CHECKING, Any

from audit.statistics.arrays import aligned, counted, grouped
from audit.statistics.intervals import CLUSTER_T, degrees_of_freedom, t_quantile
from audit.statistics.resampling import BOOTSTRAP, numbered, pair_weights
from audit.statistics.special import mills

if TYPE_CHECKING:
    from audit.statistics.arrays import Array

# The key of `report --json` -> the z at which Phi(-z) is the share it names.
LEVELS = {"gap_at_25": 0.6744897501960817, "gap_at_10": 1.2815515655446004, "gap_at_5": 1.6448536269514722}
_GRID = 600
NO_PAIRS = "no pair has a gap and a verdict for a side"
NO_ERRORS = "no error was seen: every small scale fits, and only more pairs could tell"
NO_FALL = "errors do not get fewer as the gap grows: no scale fits"


def error_curve(gap: Any, errors: Any, n: Any, cluster: Any) -> dict[str, Any]:
    """The part `error_curve` of `report --json`, over session pairs, which cluster on tasks.

    errors_i of n_i pairs at gap_i in cluster_i; four rows, one number (or name) a group of equal gap and
    cluster. s = 1/beta by maximum likelihood (a probit in the gap without a constant); the interval is
    s exp(-+ t se(log s)) with the cluster-robust variance sum_c U_c^2 / H^2 of beta (White 1982, Econometrica
    50:1-25) and t as in `intervals.share_interval`. Each gap is {"value", "low", "high"}, in units of reward.
    """
    gaps, part, whole, unit = _rows(gap, errors, n)
    beta, why = _slope(gaps, part, whole)
    if beta is None:
        return _unknown("pairs", why)
    score, curvature = _derivatives(beta, gaps, part, whole)
    (scores,) = grouped(cluster, score)
    if len(scores) < 2:
        return _found("pairs", unit / beta, None, None, None, len(scores))
    se = math.sqrt(len(scores) / (len(scores) - 1) * float((scores**2).sum())) / float(curvature.sum()) / beta
    half = min(t_quantile(degrees_of_freedom(scores)) * se, 700.0)
    ends = unit * math.exp(-half) / beta, unit * math.exp(half) / beta
    return _found("pairs", unit / beta, *ends, CLUSTER_T, len(scores))


def error_curve_of_agents(gap: Any, errors: Any, first: Any, second: Any, seed: int = 0) -> dict[str, Any]:
    """The part `error_curve` of `report --json`, over agent pairs.

    Four rows, one item a pair with a pick and different rewards: its gap, 1 where misselected else 0, and the
    families (or agents) of its two sides, which are resampled, seeded, for the 95% percentile interval. The
    upper end is NULL where in too many resamples errors do not fall with the gap.
    """
    import numpy as np

    gaps, part, whole, unit = _rows(gap, errors, np.ones(len(gap)))
    beta, why = _slope(gaps, part, whole)
    if beta is None:
        return _unknown("agent_pairs", why)
    one, other, families = numbered(first, second)
    positive = gaps[gaps > 0]
    grid = np.linspace(math.log(positive.min() / 50), math.log(positive.max() * 50), _GRID)
    likelihood = _log_likelihood(np.exp(-grid)[None, :] * gaps[:, None], part[:, None], whole[:, None])
    scales = np.concatenate(
        [_best(weights @ likelihood, grid) for weights in pair_weights(one, other, families, seed)]
    )
    low, high = (float(end) for end in np.quantile(scales, (0.025, 0.975), method="inverted_cdf"))
    upper = unit * high if high < math.inf else None
    return _found("agent_pairs", unit / beta, unit * low, upper, BOOTSTRAP, families)


def _rows(gap: Any, errors: Any, n: Any) -> tuple["Array", "Array", "Array", float]:
    """The rows, and the largest gap, which is their unit: so that no gap is too large to be squared."""
    gaps, part, whole = aligned(gap, errors, n)
    counted(part, whole)
    if (gaps < 0).any():
        raise ValueError("a gap is a number from 0 up")
    unit = float(max(gaps, default=0.0)) or 1.0
    return gaps / unit, part, whole, unit


def _slope(gaps: "Array", part: "Array", whole: "Array") -> tuple[float | None, str]:
    """The most likely beta = 1/s, or why there is none. The likelihood has one hill: its slope falls."""
    seen = gaps > 0
    if not whole[seen].sum():
        return None, NO_PAIRS
    if not part[seen].sum():
        return None, NO_ERRORS

    # Half of all, weighed by the gap, is no fall; but for the last digits it is not exactly 0.
    if _derivatives(0.0, gaps, part, whole)[0].sum() <= 1e-9 * float((gaps * whole).sum()):
        return None, NO_FALL
    low, high = 0.0, 1 / float(gaps.max())
    while _derivatives(high, gaps, part, whole)[0].sum() > 0:
        low, high = high, 2 * high
    beta = high
    while high - low > 1e-13 * high:
        score, curvature = _derivatives(beta, gaps, part, whole)
        slope, bend = float(score.sum()), float(curvature.sum())
        low, high = (beta, high) if slope > 0 else (low, beta)
        # Newton's step, and where that leaves the bracket, its middle.
        step = beta + slope / bend if bend > 0 else low
        if abs(step - beta) <= 1e-14 * beta:
            break
        beta = step if low < step < high else (low + high) / 2
    return beta, ""


def _derivatives(beta: float, gaps: "Array", part: "Array", whole: "Array") -> tuple["Array", "Array"]:
    """Of each row's log-likelihood: the first derivative in beta, and the second with its sign turned."""
    right, wrong = _mills(beta * gaps), _mills(-beta * gaps)
    x = beta * gaps
    score = gaps * ((whole - part) * right - part * wrong)
    curvature = gaps**2 * ((whole - part) * right * (x + right) + part * wrong * (wrong - x))
    return score, curvature


def _mills(x: "Array") -> "Array":
    import numpy as np

    values, place = np.unique(x, return_inverse=True)
    found: Array = np.array([mills(value) for value in values.tolist()])[place]
    return found


def _log_likelihood(x: "Array", part: "Array", whole: "Array") -> "Array":
    from scipy.special import log_ndtr

    likelihood: Array = (whole - part) * log_ndtr(x) + part * log_ndtr(-x)
    return likelihood


def _best(likelihood: "Array", grid: "Array") -> "Array":
    """The most likely s of each row, from the parabola through the best point of the grid and its neighbours;
    0 and infinity where the best is at an end of the grid."""
    import numpy as np

    best = likelihood.argmax(axis=1)
    inner = np.clip(best, 1, len(grid) - 2)
    row = np.arange(len(likelihood))
    left, middle, right = (likelihood[row, inner + shift] for shift in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = np.where(bend < 0, (left - right) / np.where(bend < 0, 2 * bend, -1.0), 0.0)
    scales = np.exp(grid[inner] + np.clip(shift, -1, 1) * (grid[1] - grid[0]))
    return np.where(best == 0, 0.0, np.where(best == len(grid) - 1, np.inf, scales))


def _found(
    unit: str, s: float, low: float | None, high: float | None, method: str | None, clusters: int
) -> dict[str, Any]:
    def at(z: float) -> dict[str, float | None]:
        return {
            "value": z * s,
            "low": None if low is None else z * low,
            "high": None if high is None else z * high,
        }

    levels = {name: at(z) for name, z in LEVELS.items()}
    return {"unit": unit, "s": s, **levels, "method": method, "clusters": clusters}


def _unknown(unit: str, why: str) -> dict[str, Any]:
    return {"unit": unit, "s": None, **dict.fromkeys(LEVELS), "method": None, "clusters": 0, "why": why}
