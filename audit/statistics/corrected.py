"""Corrected rates: what the judge says of many, set right by what people say of a few."""

import math
from typing import Any

from audit.statistics.arrays import Z95, aligned


def rogan_gladen(said: int, n: int, right_no: int, m0: int, right_yes: int, m1: int) -> dict[str, Any]:
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
        if not 0 <= part <= whole or not whole:
            raise ValueError(f"{part} of {whole} is no share")
    informed = right_no / m0 + right_yes / m1 - 1
    if informed <= 1e-12:
        raise ValueError(
            f"sensitivity {right_yes / m1:.3f} + specificity {right_no / m0:.3f} is not above 1: "
            "the judge tells nothing of the truth, so its rate cannot be corrected"
        )
    z2 = Z95 * Z95
    more, more0, more1 = n + z2, m0 + 2, m1 + 2
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
    labels: Any, predictions: Any, weights: Any, others: int, others_mean: float, others_variance: float
) -> dict[str, Any]:
    """A true mean from few labels and many predictions: {"value", "low", "high", "lambda", "method"}.

    PPI++ (Angelopoulos, Duchi & Zrnic, arXiv:2311.01453). `labels` y and `predictions` f of the same n items,
    drawn with probabilities inverse to `weights` (all 1 where everything was as likely); `others`: how many
    items have a prediction and no label, with the mean and variance (divided by their number) of those. theta
    = lambda mean(f others) + mean_w(y - lambda f), variance lambda^2 var/N + sum w^2 r^2 / (sum w)^2 with r
    the weighted residuals of y - lambda f (the ratio estimator's, n/(n-1)), -+ 1.96 of its root. lambda =
    cov_w(y, f) / ((1 + n/N) var(f)), the most useful trust in the judge, within 0..1: at 0 the labels speak
    alone. Raises ValueError for fewer than two labels and for weights not above 0.
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
    variance = n / (n - 1) * float(np.square(residuals).sum())
    variance += trust**2 * others_variance / others if others else 0.0
    half = Z95 * math.sqrt(variance)
    return {"value": value, "low": value - half, "high": value + half, "lambda": trust, "method": "ppi++"}


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
