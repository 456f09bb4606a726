"""Satisfied but failed: what a judge's pointwise satisfaction says of the verified success.

Everything is counted from groups of sessions of one task and one satisfaction: `failed` of `n`.
"""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from audit.statistics.arrays import Codes, aligned, array, blocks, coded, counted
from audit.statistics.intervals import (
    CLUSTER_T,
    Interval,
    degrees_of_freedom,
    ratio_variance,
    t_quantile,
)
from audit.statistics.rates import clustered_rate
from audit.words.names import TOLERANCE

if TYPE_CHECKING:
    from audit.statistics.arrays import Array

CUTS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
FROM_TWO_RATES = "from_two_rates"
CLUSTER_LOGIT_T = "cluster_logit_t"


def satisfied_but_failed(
    task: Any, satisfaction: Any, failed: Any, n: Any, cut: float = 0.8, cuts: Sequence[float] = CUTS
) -> dict[str, Any]:
    """The part `satisfaction` of `report --json`.

    Four rows, one item a group: the task, the satisfaction 0..1, how many of its sessions failed, of how many
    with a verified success. `satisfied_failed` is P(failed | satisfaction >= cut), `base_failure` P(failed),
    both clustered on tasks; `relative_risk` P(failed | satisfied) / P(failed | not satisfied), `auc` and `j`
    as in their functions. `cuts` has the same at other cuts. Raises ValueError for rows that do not match.
    """
    rows = _rows(task, satisfaction, failed, n)
    area, area_interval = _auc(rows)
    _, _, k0, n0 = _split(rows, cut)
    return {
        **_at(cut, rows),
        "not_satisfied_failed": clustered_rate(k0, n0),
        "base_failure": clustered_rate(*_sums(rows, lambda of: (of.failed, of.n))),
        "auc": area,
        "auc_interval": area_interval._asdict(),
        "cuts": [_at(one, rows) for one in cuts],
    }


class _Rows(NamedTuple):
    task: Codes
    satisfaction: "Array"
    failed: "Array"
    n: "Array"

    def part(self, place: slice) -> "_Rows":
        task = Codes(self.task.numbers[place], self.task.groups)
        return _Rows(task, self.satisfaction[place], self.failed[place], self.n[place])


def _rows(task: Any, satisfaction: Any, failed: Any, n: Any) -> _Rows:
    """The rows, whole numbers left as small as they come: there may be millions."""
    import numpy as np

    found = _Rows(coded(task), array(satisfaction), np.asarray(failed), np.asarray(n))
    lengths = [len(found.task.numbers), *map(len, found[1:])]
    if len(set(lengths)) > 1:
        raise ValueError(f"rows of different lengths: {', '.join(map(str, lengths))}")
    if ((found.failed < 0) | (found.failed > found.n)).any():
        raise ValueError("a part must be from 0 up to its whole")
    return found


def _sums(rows: _Rows, weights: Callable[[_Rows], tuple["Array", ...]]) -> list["Array"]:
    """What `weights` makes of the rows, summed by task."""
    import numpy as np

    found: list[Any] = []
    for place in blocks(len(rows.n)):
        part = rows.part(place)
        sums = [
            np.bincount(part.task.numbers, weights=one, minlength=rows.task.groups) for one in weights(part)
        ]
        found = [one + more for one, more in zip(found, sums, strict=True)] if found else sums
    return found


def _split(rows: _Rows, cut: float) -> list["Array"]:
    """By task: failed of all satisfied sessions (k1, n1), and of the others (k0, n0)."""

    def weights(of: _Rows) -> tuple["Array", ...]:
        satisfied = of.satisfaction >= cut - TOLERANCE
        return of.failed * satisfied, of.n * satisfied, of.failed * ~satisfied, of.n * ~satisfied

    return _sums(rows, weights)


def _at(cut: float, rows: _Rows) -> dict[str, Any]:
    k1, n1, k0, n0 = _split(rows, cut)
    risk, interval = relative_risk(k1, n1, k0, n0)
    bad = float(k1.sum() + k0.sum())
    good = float(n1.sum() + n0.sum()) - bad
    tpr = float((n1 - k1).sum()) / good if good else None
    fpr = float(k1.sum()) / bad if bad else None
    return {
        "cut": cut,
        "satisfied": int(n1.sum()),
        "satisfied_failed": clustered_rate(k1, n1),
        "relative_risk": risk,
        "relative_risk_interval": interval._asdict(),
        "tpr": tpr,
        "fpr": fpr,
        "j": youden(tpr, fpr),
    }


def youden(tpr: float | None, fpr: float | None) -> float | None:
    """J = TPR - FPR, -1..1: P(satisfied | success) - P(satisfied | failed) (Youden 1950, Cancer 3:32-35).

    NULL where a run has no success, or no failure.
    """
    return None if tpr is None or fpr is None else tpr - fpr


def relative_risk(k1: Any, n1: Any, k0: Any, n0: Any) -> tuple[float | None, Interval]:
    """(K1/N1) / (K0/N0) with its 95% interval, for k of n failed in each cluster, exposed (1) and not (0).

    log RR -+ t sqrt(J/(J-1) sum u_i^2), u_i = (k1_i - p1 n1_i)/K1 - (k0_i - p0 n0_i)/K0, the delta method of
    Katz et al. 1978, Biometrics 34:469-474, with clusters. Without a failure on one side, or any spread, from
    the intervals of the two rates: low1/high0 to high1/low0, which is wider than need be. NULL where a side
    has no session, or the unexposed have no failure.
    """
    one, all_one, zero, all_zero = aligned(k1, n1, k0, n0)
    counted(one, all_one)
    counted(zero, all_zero)
    if not all_one.sum() or not all_zero.sum() or not zero.sum():
        return None, Interval(None, None, None)
    p1, p0 = float(one.sum() / all_one.sum()), float(zero.sum() / all_zero.sum())
    ratio = p1 / p0
    if ratio:
        influence = (one - p1 * all_one) / one.sum() - (zero - p0 * all_zero) / zero.sum()
        influence = influence[all_one + all_zero > 0]
        if len(influence) > 1 and abs(influence).max() > 1e-12:
            half = t_quantile(degrees_of_freedom(influence)) * math.sqrt(ratio_variance(influence, 1.0))
            half = min(half, 700.0)
            return ratio, Interval(ratio * math.exp(-half), ratio * math.exp(half), CLUSTER_T)
    exposed, other = clustered_rate(one, all_one), clustered_rate(zero, all_zero)
    low, high = exposed["low"] / other["high"], exposed["high"] / other["low"]
    return ratio, Interval(min(low, ratio), max(high, ratio), FROM_TWO_RATES)


def auc(task: Any, satisfaction: Any, failed: Any, n: Any) -> tuple[float | None, Interval]:
    """P(a success has the higher satisfaction than a failure), ties counting half, with its 95% interval.

    Rows as in `satisfied_but_failed`. Mann & Whitney's U over all pairs of sessions, by midranks (Hanley &
    McNeil 1982, Radiology 143:29-36). The variance is that of clustered placements: u_i = (sum of the
    placements of the task's successes - m_i A)/M + (the same for its failures)/N, J/(J-1) sum u_i^2
    (Obuchowski 1997, Biometrics 53:567-578); logit(A) -+ t se / (A(1-A)). NULL without a success or a
    failure; the ends are NULL where A is 0 or 1 or where tasks do not differ.
    """
    return _auc(_rows(task, satisfaction, failed, n))


def _auc(rows: _Rows) -> tuple[float | None, Interval]:
    import numpy as np

    failures = float(rows.failed.sum())
    successes = float(rows.n.sum()) - failures
    if not successes or not failures:
        return None, Interval(None, None, None)
    values = np.unique(rows.satisfaction)
    good_at, bad_at = np.zeros(len(values)), np.zeros(len(values))
    for part in map(rows.part, blocks(len(rows.n))):
        place = np.searchsorted(values, part.satisfaction)
        good_at += np.bincount(place, weights=part.n - part.failed, minlength=len(values))
        bad_at += np.bincount(place, weights=part.failed, minlength=len(values))
    # The share of failures below each satisfaction, of successes above it, and half of those at it.
    below = (np.cumsum(bad_at) - bad_at / 2) / failures
    above = 1 - (np.cumsum(good_at) - good_at / 2) / successes
    area = float((good_at * below).sum() / successes)

    def weights(of: _Rows) -> tuple["Array"]:
        place = np.searchsorted(values, of.satisfaction)
        good = (of.n - of.failed) * (below[place] - area) / successes
        return (good + of.failed * (above[place] - area) / failures,)

    (influence,) = _sums(rows, weights)
    if len(influence) < 2 or not 1e-12 < area < 1 - 1e-12 or abs(influence).max() <= 1e-12:
        return area, Interval(None, None, None)
    half = t_quantile(degrees_of_freedom(influence)) * math.sqrt(ratio_variance(influence, 1.0))
    half /= area * (1 - area)
    logit = math.log(area / (1 - area))
    low, high = (1 / (1 + math.exp(-max(min(logit + sign * half, 700.0), -700.0))) for sign in (-1, 1))
    return area, Interval(low, high, CLUSTER_LOGIT_T)
