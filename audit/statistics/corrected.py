"""Corrected rates: what the judge says of many, set right by what people say of a few."""

import math
from typing import Any

from audit.statistics.arrays import Z95, aligned
from audit.statistics.labelled import Sample, of_tasks, quantile, sample
from audit.statistics.rogan_gladen import rogan_gladen_of

FEW_LABELS = 10
"""Under so many labels PPI++, which leans on the central limit theorem, tells no interval."""


def corrected(
    labels: Any,
    said: Any,
    weights: Any,
    flagged: Any,
    rows: Any,
    tasks: Any = None,
    strata: Any = None,
    heard: Any = None,
) -> dict[str, Any]:
    """A share corrected in both ways: {"rows", "uncorrected", "labels", "disagree", "clusters", "ppi",
    "rogan_gladen", "why"}.

    `labels` 0/1: what people say of the labelled rows; `said` 0/1: what is said of the same rows without
    them; `weights`: how many rows each stands for; `flagged` of all `rows` are said 1. `tasks`, `strata`,
    `heard` as in `labelled.sample`: with `tasks`, `flagged` and `rows` have a number a task. A part that
    cannot be told is NULL and has its reason under `why`. Both within 0..1. `clusters`: tasks with labels,
    without `tasks` the labels.
    """
    given = sample(labels, said, weights, flagged, rows, tasks, strata, heard)
    n, of = len(given.labels), int(given.rows.sum())
    found: dict[str, Any] = {
        "rows": of,
        "uncorrected": given.share if of else None,
        "labels": n,
        "disagree": int((given.labels != given.said).sum()),
        "clusters": n if tasks is None else len(set(tasks)),
        "ppi": None,
        "rogan_gladen": None,
        "why": {},
    }
    try:
        found["ppi"] = _ppi_of(given)
        if n < FEW_LABELS:
            found["ppi"] |= {"low": None, "high": None, "more_to_halve": None}
            found["why"]["ppi"] = f"{n} labels: no interval under {FEW_LABELS}"
    except ValueError as error:
        found["why"]["ppi"] = str(error)
    try:
        found["rogan_gladen"] = rogan_gladen_of(given)
    except ValueError as error:
        found["why"]["rogan_gladen"] = str(error)
    return found


def _ppi_of(given: Sample) -> dict[str, Any]:
    """`ppi_mean` of shares, its interval from two labels more, a denial each way, and over tasks.

    Where people deny few of the rows, the normal interval is too narrow: with 100 labels of 2,000 rows it was
    measured at .79 to .96 where this one gives .93 to .98 (tests/benchmarks/README.md). The value is that of
    the labels alone. Agresti & Coull 1998, Am. Statist. 52:119-126, do the same for a plain share. Each of
    the two varies half as much as a typical label.

    Rows of one task go up and down together: the products of their influences (what each moves the value by)
    are added to the variance, at Student's t over tasks; its degrees of freedom are Satterthwaite's, as in
    `intervals.share_interval`.
    """
    import numpy as np

    y, f, w, share = given.labels, given.said, given.weights, given.share
    everything = (int(given.rows.sum()), share, share * (1 - share))
    found = ppi_mean(y, f, w, *everything)
    denials = [math.sqrt(0.5) * given.typical] * 2
    more = ppi_mean(np.append(y, [1, 0]), np.append(f, [0, 1]), np.append(w, denials), *everything)
    left = y - more["lambda"] * f
    centred = left - (more["value"] - more["lambda"] * share)
    influence = centred[:, None] / (w.sum() + sum(denials))
    added, tasks = of_tasks(given, influence, np.array([more["lambda"]]))
    alone = (more["high"] - more["low"]) / (2 * Z95)
    # Rows of one task tell no more than independent ones.
    clustering = max(float(added[0, 0]), 0.0)
    half = math.hypot(Z95 * alone, quantile(tasks[:, 0]) * math.sqrt(clustering))
    value = _share(found["value"])
    return found | {
        "value": value,
        "low": min(_share(more["value"] - half), value),
        "high": max(_share(more["value"] + half), value),
        "method": "ppi++_plus_two",
        "more_to_halve": more_labels(len(y), everything[0], more["explained"], clustering / alone**2),
    }


def ppi_mean(
    labels: Any,
    predictions: Any,
    weights: Any,
    others: int,
    others_mean: float,
    others_variance: float,
    ddof: int = 1,
) -> dict[str, Any]:
    """A true mean from few labels and many predictions: {"value", "low", "high", "lambda", "explained",
    "method", "more_to_halve"}.

    PPI++ (Angelopoulos, Duchi & Zrnic, arXiv:2311.01453). `labels` y and `predictions` f of the same n items,
    drawn with probabilities inverse to `weights` (all 1 where everything was as likely); `others`: how many
    items have a prediction and no label, with the mean and variance (divided by their number) of those. theta
    = lambda mean(f others) + mean_w(y - lambda f), variance lambda^2 var/N + sum w^2 r^2 / (sum w)^2 with r
    the weighted residuals of y - lambda f (the ratio estimator's, n/(n-1), which the paper leaves out: `ddof`
    0), -+ 1.96 of its root. lambda = cov_w(y, f) / ((1 + n/N) var(f)), the most useful trust in the judge,
    within 0..1: at 0 the labels speak alone. `more_to_halve`, `explained`: see `more_labels`. Raises
    ValueError for fewer than two labels and for weights not above 0.
    """
    import numpy as np

    y, f, w = aligned(labels, predictions, weights)
    n = len(y)
    if n < 2:
        raise ValueError(f"expected two labels or more, found {n}")
    if (w <= 0).any():
        raise ValueError("a weight must be above 0")
    if others < 1:
        others, others_mean, others_variance = 0, 0.0, 0.0
    share = w / w.sum()
    mean_f = float(share @ f)
    squares = n * float(share @ (f - mean_f) ** 2) + others * others_variance
    squares += n * others / (n + others) * (mean_f - others_mean) ** 2
    spread = squares / (n + others - 1)
    covariance = float(share @ ((y - share @ y) * (f - mean_f)))
    trust = covariance / ((1 + n / others) * spread) if others and spread > 0 else 0.0
    trust = min(max(float(trust), 0.0), 1.0)
    left = y - trust * f
    value = float(share @ left) + trust * others_mean
    residuals = share * (left - share @ left)
    variance = n / (n - ddof) * float(np.square(residuals).sum())
    variance += trust**2 * others_variance / others if others else 0.0
    half = Z95 * math.sqrt(variance)
    spread_y = float(share @ np.square(y - share @ y))
    explained = max(covariance, 0.0) ** 2 / (spread_y * spread) if spread_y > 0 and spread > 0 else 0.0
    explained = min(explained, 1.0)
    return {
        "value": value,
        "low": value - half,
        "high": value + half,
        "lambda": trust,
        "explained": explained,
        "method": "ppi++",
        "more_to_halve": more_labels(n, others, explained),
    }


def more_labels(n: int, others: int, explained: float, clustering: float = 0.0) -> int | None:
    """How many labels beside `n` make the interval of PPI++ half as wide; NULL where no number can.

    With the best lambda the variance of n labels is s^2/n (1 - r^2 N/(N + n)), N the `others`, r^2 =
    `explained` the squared correlation of label and prediction: a quarter of it is solved for n.
    `clustering` is what tasks add to the variance, as a multiple of that, and stays: labels do not make
    tasks.
    """
    target = (1 - explained * others / (others + n)) / (4 * n) * (1 - 3 * clustering)
    if target <= 0:
        return None
    if not others:
        return math.ceil(1 / target - 1e-9) - n
    straight = 1 - target * others
    root = math.sqrt(straight**2 + 4 * target * others * (1 - explained))
    return math.ceil((straight + root) / (2 * target) - 1e-9) - n


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
