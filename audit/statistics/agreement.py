"""Agreement of two raters, and tests of a lean: Cohen's kappa, McNemar's exact test."""

import math
from typing import Any

from audit.statistics.arrays import Z95


def mcnemar_p(one: int, other: int) -> float | None:
    """Exact two-sided McNemar test of two discordant counts (McNemar 1947), a binomial test at 1/2.

    NULL where both are 0.
    """
    # Here, because scipy takes longer to load than all else a command needs, and scipy.stats longest of it:
    # at 1/2 the distribution is symmetric, so both tails are twice the lower one.
    from scipy.special import bdtr

    if not one + other:
        return None
    return min(1.0, 2 * float(bdtr(min(one, other), one + other, 0.5)))


def kappa(table: Any) -> dict[str, Any]:
    """Cohen's kappa of two raters with its 95% interval: {"value", "low", "high", "agreed", "n"}.

    `table`: a square of counts, shape (classes, classes): the first rater's class by row, the other's by
    column.
    kappa = (po - pe)/(1 - pe) (Cohen 1960, Educ. Psychol. Meas. 20:37-46); its variance is the asymptotic one
    of Fleiss, Cohen & Everitt 1969, Psychol. Bull. 72:323-327, the interval kappa -+ 1.96 se within -1..1.
    Without any rating, or where both raters only ever use one and the same class, kappa is NULL with a `why`;
    with no variance (they always agree, say) the ends are NULL. Raises ValueError for a table that is no
    square of counts.
    """
    import numpy as np

    counts = np.asarray(table, dtype=float)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not (counts >= 0).all():
        raise ValueError("expected a square of counts from 0 up")
    n = float(counts.sum())
    found: dict[str, Any] = {"value": None, "low": None, "high": None}
    found |= {"agreed": round(float(np.trace(counts))), "n": round(n)}
    if not n:
        return found | {"why": "nothing was rated by both"}
    shares = counts / n
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    agreed, by_chance = float(np.trace(shares)), float(rows @ columns)
    if by_chance >= 1 - 1e-12:
        return found | {"why": "both raters only ever used one class: agreement by chance is certain"}
    value = (agreed - by_chance) / (1 - by_chance)
    weights = columns[:, None] + rows[None, :]
    diagonal = np.diag(shares) @ (1 - (rows + columns) * (1 - value)) ** 2
    off = (1 - value) ** 2 * float(((shares - np.diag(np.diag(shares))) * weights**2).sum())
    variance = (float(diagonal) + off - (value - by_chance * (1 - value)) ** 2) / (n * (1 - by_chance) ** 2)
    if variance <= 1e-15:
        return found | {"value": value, "why": "no disagreement to tell an interval from"}
    half = Z95 * math.sqrt(variance)
    return found | {"value": value, "low": max(value - half, -1.0), "high": min(value + half, 1.0)}
