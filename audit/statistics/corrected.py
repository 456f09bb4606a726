"""Corrected rates: what the judge says of many, set right by what people say of a few."""

import math
from typing import Any

from audit.statistics.arrays import Z95, aligned

FEW_LABELS = 10
"""Under so many labels PPI++, which leans on the central limit theorem, tells no interval."""


def corrected(labels: Any, said: Any, weights: Any, flagged: int, rows: int) -> dict[str, Any]:
    """A share corrected in both ways: {"rows", "uncorrected", "labels", "disagree", "ppi", "rogan_gladen",
    "why"}.

    `labels` 0/1: what people say of the labelled rows; `said` 0/1: what is said of the same rows without
    them; `weights`: how many rows each stands for; `flagged` of all `rows` are said 1. A part that cannot be
    told is NULL and has its reason under `why`. Both within 0..1.
    """
    y, f, w = aligned(labels, said, weights)
    found: dict[str, Any] = {
        "rows": rows,
        "uncorrected": flagged / rows if rows else None,
        "labels": len(y),
        "disagree": int((y != f).sum()),
        "ppi": None,
        "rogan_gladen": None,
        "why": {},
    }
    try:
        found["ppi"] = _ppi_of_rows(y, f, w, flagged, rows)
        if len(y) < FEW_LABELS:
            found["ppi"] |= {"low": None, "high": None, "more_to_halve": None}
            found["why"]["ppi"] = f"{len(y)} labels: no interval under {FEW_LABELS}"
    except ValueError as error:
        found["why"]["ppi"] = str(error)
    try:
        found["rogan_gladen"] = _weighted_rogan_gladen(y, f, w, flagged, rows)
    except ValueError as error:
        found["why"]["rogan_gladen"] = str(error)
    return found


def _ppi_of_rows(y: Any, f: Any, w: Any, flagged: int, rows: int) -> dict[str, Any]:
    """`ppi_mean` of shares, its interval from two labels more: a denial each way, of mean weight.

    Where people deny few of the rows, the normal interval is too narrow: with 100 labels of 2,000 it was
    measured at .85 to .94 where this one gives .94 or more (tests/statistics/test_corrected.py). The value is
    that of the labels alone. Agresti & Coull 1998, Am. Statist. 52:119-126, do the same for a plain share.
    """
    import numpy as np

    share = flagged / rows if rows else 0.0
    everything = (rows, share, share * (1 - share))
    found = ppi_mean(y, f, w, *everything)
    typical = float(np.mean(w))
    more = ppi_mean(np.append(y, [1, 0]), np.append(f, [0, 1]), np.append(w, [typical, typical]), *everything)
    value = _share(found["value"])
    return found | {
        "value": value,
        "low": min(_share(more["low"]), value),
        "high": max(_share(more["high"]), value),
        "method": "ppi++_plus_two",
        "more_to_halve": more["more_to_halve"],
    }


def _weighted_rogan_gladen(y: Any, f: Any, w: Any, flagged: int, rows: int) -> dict[str, Any]:
    """`rogan_gladen` from rows that were not equally likely: weighted shares, each of as many rows as the
    weights are worth, (sum w)^2 / sum w^2 (L. Kish, Survey Sampling, 1965, section 11.7).
    """
    worth = []
    for truth, words in ((0, "not so"), (1, "so")):
        own = w * (y == truth)
        if not own.any():
            raise ValueError(f"of no labelled row people say that it is {words}")
        m = float(own.sum() ** 2 / (own @ own))
        worth.append((m * float(own @ (f == truth) / own.sum()), m))
    (right_no, m0), (right_yes, m1) = worth
    return rogan_gladen(flagged, rows, right_no, m0, right_yes, m1)


def rogan_gladen(
    said: int, n: int, right_no: float, m0: float, right_yes: float, m1: float
) -> dict[str, Any]:
    """A true share from the judge's, its specificity and its sensitivity: {"value", "low", "high", "method"}.

    The judge said yes to `said` of `n`. Of `m0` that people call no it said no to `right_no` (specificity
    q0 = right_no/m0), of `m1` that they call yes it said yes to `right_yes` (sensitivity q1). theta =
    (p + q0 - 1)/(q0 + q1 - 1), within 0..1 (Rogan & Gladen 1978, Am. J. Epidemiol. 107:71-76).

    The 95% interval is that of Lee et al., arXiv:2511.21140: with n + z^2, m0 + 2, m1 + 2 trials and z^2/2,
    1, 1 successes more, theta~ + shift -+ z sqrt(p~(1-p~)/n~ + (1-theta~)^2 v0 + theta~^2 v1)/(q0~ + q1~ -
    1), shift = 2 z^2 (theta~ v1 - (1-theta~) v0), v = q~(1-q~)/m~. Raises ValueError where q0 + q1 <= 1 (the
    judge tells nothing, or the opposite), for a part above its whole, and for a whole of 0.
    """
    for part, whole in ((said, n), (right_no, m0), (right_yes, m1)):
        if not 0 <= part <= whole * (1 + 1e-12) or not whole:
            raise ValueError(f"{part} of {whole} is no share")
    informed = right_no / m0 + right_yes / m1 - 1
    if informed <= 1e-12:
        raise ValueError(
            f"sensitivity {right_yes / m1:.3f} + specificity {right_no / m0:.3f} is not above 1: "
            "the judge tells nothing of the truth, so its rate cannot be corrected"
        )
    z2 = Z95 * Z95
    more, more0, more1 = n + z2, m0 + 2, m1 + 2
    right_no, right_yes = min(right_no, m0), min(right_yes, m1)
    p, q0, q1 = (said + z2 / 2) / more, (right_no + 1) / more0, (right_yes + 1) / more1
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    v0, v1 = q0 * (1 - q0) / more0, q1 * (1 - q1) / more1
    centre = theta + 2 * z2 * (theta * v1 - (1 - theta) * v0)
    spread = math.sqrt(p * (1 - p) / more + (1 - theta) ** 2 * v0 + theta**2 * v1)
    half = Z95 * spread / (q0 + q1 - 1)
    return {
        "value": _share((said / n + right_no / m0 - 1) / informed),
        "low": _share(centre - half),
        "high": _share(centre + half),
        "method": "rogan_gladen",
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
    """A true mean from few labels and many predictions: {"value", "low", "high", "lambda", "method",
    "more_to_halve"}.

    PPI++ (Angelopoulos, Duchi & Zrnic, arXiv:2311.01453). `labels` y and `predictions` f of the same n items,
    drawn with probabilities inverse to `weights` (all 1 where everything was as likely); `others`: how many
    items have a prediction and no label, with the mean and variance (divided by their number) of those. theta
    = lambda mean(f others) + mean_w(y - lambda f), variance lambda^2 var/N + sum w^2 r^2 / (sum w)^2 with r
    the weighted residuals of y - lambda f (the ratio estimator's, n/(n-1), which the paper leaves out: `ddof`
    0), -+ 1.96 of its root. lambda = cov_w(y, f) / ((1 + n/N) var(f)), the most useful trust in the judge,
    within 0..1: at 0 the labels speak alone. `more_to_halve`: see `more_labels`. Raises ValueError for fewer
    than two labels and for weights not above 0.
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
    return {
        "value": value,
        "low": value - half,
        "high": value + half,
        "lambda": trust,
        "method": "ppi++",
        "more_to_halve": more_labels(n, others, min(explained, 1.0)),
    }


def more_labels(n: int, others: int, explained: float) -> int | None:
    """How many labels beside `n` make the interval of PPI++ half as wide; NULL where no number can.

    With the best lambda the variance of n labels is s^2/n (1 - r^2 N/(N + n)), N the `others`, r^2 =
    `explained` the squared correlation of label and prediction: a quarter of it is solved for n.
    """
    target = (1 - explained * others / (others + n)) / (4 * n)
    if target <= 0:
        return None
    if not others:
        return 3 * n
    straight = 1 - target * others
    root = math.sqrt(straight**2 + 4 * target * others * (1 - explained))
    return math.ceil((straight + root) / (2 * target) - 1e-9) - n


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
