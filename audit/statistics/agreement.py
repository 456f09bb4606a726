"""Agreement of two raters, and tests of a lean: Cohen's kappa, McNemar's exact test."""

import math
from typing import TYPE_CHECKING, Any

from audit.statistics.arrays import Z95
from audit.statistics.intervals import degrees_of_freedom, t_quantile

if TYPE_CHECKING:
    from audit.statistics.arrays import Array


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


def kappa(tables: Any) -> dict[str, Any]:
    """Cohen's kappa of two raters with its 95% interval: {"value", "low", "high", "agreed", "n", "clusters"}.

    `tables`: a square of counts for each task, shape (tasks, classes, classes): the first rater's class by
    row, the other's by column; of one square alone, shape (classes, classes), the ratings are independent.
    kappa = (po - pe)/(1 - pe) (Cohen 1960, Educ. Psychol. Meas. 20:37-46); its variance is the asymptotic one
    of Fleiss, Cohen & Everitt 1969, Psychol. Bull. 72:323-327, the interval kappa -+ 1.96 se within -1..1.
    Without any rating, or where both raters only ever use one and the same class, kappa is NULL with a `why`;
    with no variance (they always agree, say) the ends are NULL. Ratings of one task go up and down together:
    the products of their influences (that variance is the mean of their squares over n) are added, at
    Student's t over tasks, as in `corrected`. Raises ValueError for what is no square of counts.
    """
    import numpy as np

    by_task = np.asarray(tables, dtype=float)
    if by_task.ndim not in (2, 3) or by_task.shape[-1] != by_task.shape[-2] or not (by_task >= 0).all():
        raise ValueError("expected a square of counts from 0 up")
    counts = by_task if by_task.ndim == 2 else by_task.sum(axis=0)
    n = float(counts.sum())
    found: dict[str, Any] = {"value": None, "low": None, "high": None}
    found |= {"agreed": round(float(np.trace(counts))), "n": round(n)}
    by_task = by_task[by_task.sum(axis=(1, 2)) > 0] if by_task.ndim == 3 else counts[None][:0]
    found["clusters"] = len(by_task) or round(n)
    if not n:
        return found | {"why": "nothing was rated by both"}
    shares = counts / n
    rows, columns = shares.sum(axis=1), shares.sum(axis=0)
    agreed, by_chance = float(np.trace(shares)), float(rows @ columns)
    if by_chance >= 1 - 1e-12:
        return found | {"why": "both raters only ever used one class: agreement by chance is certain"}
    value = (agreed - by_chance) / (1 - by_chance)
    # What a rating moves kappa by, by cell; the mean of its squares over n is their variance.
    expected = columns[:, None] + rows[None, :] - 2 * by_chance
    influence = (np.eye(len(rows)) - agreed - (1 - value) * expected) / (1 - by_chance)
    variance = float((shares * influence**2).sum()) / n
    if variance <= 1e-15:
        return found | {"value": value, "why": "no disagreement to tell an interval from"}
    half = math.hypot(Z95 * math.sqrt(variance), _of_tasks(by_task, influence / n, variance))
    return found | {"value": value, "low": max(value - half, -1.0), "high": min(value + half, 1.0)}


def _of_tasks(by_task: "Array", influence: "Array", variance: float) -> float:
    """What clustering adds to half an interval; nothing where a task has one rating or each tells no more."""
    tasks = (by_task * influence).sum(axis=(1, 2))
    if len(tasks) < 2:
        return 0.0
    added = len(tasks) / (len(tasks) - 1) * float((tasks**2).sum() - variance)
    return t_quantile(degrees_of_freedom(tasks)) * math.sqrt(added) if added > 0 else 0.0
