"""A share set right by the judge's sensitivity and specificity (Rogan & Gladen)."""

import math
from typing import TYPE_CHECKING, Any

from audit.statistics.arrays import Z95
from audit.statistics.labelled import Sample, covariance, of_tasks, quantile

if TYPE_CHECKING:
    from audit.statistics.arrays import Array


def rogan_gladen(
    said: float, n: float, right_no: float, m0: float, right_yes: float, m1: float
) -> dict[str, Any]:
    """A true share from the judge's, its specificity and its sensitivity: {"value", "low", "high"}.

    The judge said yes to `said` of `n`. Of `m0` that people call no it said no to `right_no` (specificity
    q0 = right_no/m0), of `m1` that they call yes it said yes to `right_yes` (sensitivity q1). theta =
    (p + q0 - 1)/(q0 + q1 - 1), within 0..1 (Rogan & Gladen 1978, Am. J. Epidemiol. 107:71-76).

    The 95% interval is that of Lee et al., arXiv:2511.21140, which is Lang & Reiczigel's (2014, Prev. Vet.
    Med. 113:13-22): with n + z^2, m0 + 2, m1 + 2 trials and z^2/2, 1, 1 successes more, theta~ + shift -+
    z sqrt(p~(1-p~)/n~ + (1-theta~)^2 v0 + theta~^2 v1)/(q0~ + q1~ - 1), shift = 2 z^2 (theta~ v1 -
    (1-theta~) v0), v = q~(1-q~)/m~. It takes the n rows as others than the m0 + m1, and all as independent.
    With so few labels that q0~ + q1~ <= 1 it is from 0 to 1. Raises ValueError where q0 + q1 <= 1 (the judge
    tells nothing, or the opposite), for a part above its whole, and for a whole of 0.
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
    value = _share((said / n + right_no / m0 - 1) / informed)
    if q0 + q1 - 1 <= 1e-12:
        return {"value": value, "low": 0.0, "high": 1.0}
    theta = (p + q0 - 1) / (q0 + q1 - 1)
    v0, v1 = q0 * (1 - q0) / more0, q1 * (1 - q1) / more1
    centre = theta + 2 * z2 * (theta * v1 - (1 - theta) * v0)
    spread = math.sqrt(p * (1 - p) / more + (1 - theta) ** 2 * v0 + theta**2 * v1)
    half = Z95 * spread / (q0 + q1 - 1)
    return {
        "value": value,
        "low": _share(centre - half),
        "high": _share(centre + half),
    }


def rogan_gladen_of(given: Sample) -> dict[str, Any]:
    """`rogan_gladen` of labelled rows that are some of all rows: {"value", "low", "high", "method",
    "independent"}.

    Sensitivity and specificity are weighted shares. `independent` has the ends of the paper's interval, each
    class counting as the (sum w)^2 / sum w^2 labels that its weights are worth (L. Kish, Survey Sampling,
    1965, section 11.7). It is too wide here: the labels are some of the rows, so that errors of p and of q0,
    q1 cancel out in part, in labels picked by what the judge said almost wholly; and too narrow for
    clusters.

    Our own interval is Fieller's (1954, J. R. Stat. Soc. B 16:175-185) for the ratio of p + q0 - 1 to q0 + q1
    - 1: every theta for which their difference, p + q0 - 1 - theta (q0 + q1 - 1), is within z standard errors
    of 0. These are of the sampled rows themselves (`labelled.covariance`, `labelled.of_tasks`), with one
    right and one wrong label more, each as heavy as the heaviest, shared out to the classes as their labels
    are: where of n labels none was wrong, up to 3/n may be (Hanley & Lippman-Hand 1983, JAMA 249:1743-1745).
    The paper's pair for each class is too much for two. tests/benchmarks/corrected.py has the coverage.
    Raises ValueError as `rogan_gladen` does, and for a class without labels.
    """
    import numpy as np

    y, f, w = given.labels, given.said, given.weights
    classes = []
    for truth, words in ((0, "not so"), (1, "so")):
        own = w * (y == truth)
        if not own.any():
            raise ValueError(f"of no labelled row people say that it is {words}")
        whole, right = float(own.sum()), float(own @ (f == truth))
        classes.append(_Class(whole, right, float(own @ own) / whole))
    no, yes = classes
    flagged, rows = float(given.flagged.sum()), float(given.rows.sum())
    paper = rogan_gladen(flagged, rows, *no.counts(), *yes.counts())
    heaviest, everything = float(w.max()), no.whole + yes.whole
    q0, of0, alone0 = no.more(heaviest, no.whole / everything)
    q1, of1, alone1 = yes.more(heaviest, yes.whole / everything)
    specific, sensitive = (1 - y) * (1 - f - q0) / of0, y * (f - q1) / of1
    influence = np.column_stack([specific, specific + sensitive])
    of_share = np.array([1.0, 0.0])
    spread = covariance(given, influence, of_share) + np.array([[alone0, alone0], [alone0, alone0 + alone1]])
    above = flagged / rows + no.right / no.whole - 1
    below = no.right / no.whole + yes.right / yes.whole - 1
    at = np.array([1.0, -above / below])
    added, tasks = of_tasks(given, influence, of_share)
    # Rows of one task tell no more than independent ones.
    clustering = quantile(tasks @ at) ** 2 * added if at @ added @ at > 0 else 0
    low, high = fieller(above, below, Z95**2 * spread + clustering)
    # Of a value below 0 or above 1 the set may hold the far part of 0..1 alone.
    return {
        "value": paper["value"],
        "low": min(_share(low), paper["value"]),
        "high": max(_share(high), paper["value"]),
        "method": "rogan_gladen_fieller",
        "independent": {"low": paper["low"], "high": paper["high"]},
    }


class _Class:
    """The labels of which people say one thing: `right` of `whole`, `typical` the weight of one."""

    def __init__(self, whole: float, right: float, typical: float) -> None:
        self.whole, self.right, self.typical = whole, right, typical

    def counts(self) -> tuple[float, float]:
        """Right ones, and all, in labels."""
        return self.right / self.typical, self.whole / self.typical

    def more(self, weight: float, part: float) -> tuple[float, float, float]:
        """With `part` of one right and one wrong label of that weight more: the share that is right, the
        weight of all, and what those two alone vary.
        """
        whole = self.whole + 2 * part * weight
        q = (self.right + part * weight) / whole
        return q, whole, part * (weight / whole) ** 2 * ((1 - q) ** 2 + q**2)


def fieller(above: float, below: float, spread: "Array") -> tuple[float, float]:
    """The ends, within 0..1, of all theta with (above - theta below)^2 <= z^2 times its variance.

    `spread` is z^2 times the covariance of `above` and `below`, shape (2, 2). Where `below` is within z
    standard errors of 0 the set has a hole or no end; from its first to its last point in 0..1 is told.
    """
    a = below**2 - float(spread[1, 1])
    b = above * below - float(spread[0, 1])
    c = above**2 - float(spread[0, 0])
    inner = b * b - a * c
    if a > 0:
        # Rounding alone makes it negative: above/below itself is in the set.
        root = math.sqrt(max(inner, 0.0))
        return (b - root) / a, (b + root) / a
    if a == 0 or inner <= 0:
        return 0.0, 1.0
    root = math.sqrt(inner)
    first, last = sorted(((b - root) / a, (b + root) / a))
    # All but what lies between the two.
    low = last if first < 0 else 0.0
    high = first if last > 1 else 1.0
    return (0.0, 1.0) if low > high or low > 1 or high < 0 else (low, high)


def _share(value: float) -> float:
    return min(max(value, 0.0), 1.0)
