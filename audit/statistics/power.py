"""Power: how small a change a run can see, and how many pairs it takes to see one.

Numbers of pairs are of independent ones: times the run's design effect (`intervals.design_effect`) they are
pairs of a run that clusters like this one.
"""

import math

from audit.statistics.arrays import Z95

Z80 = 0.8416212335729143
"""The 80% point of the normal distribution: what a power of 80% adds to 1.96."""


def pairs_to_see_change(
    delta: float, omega2: float, noise_a: float = 0.0, noise_b: float = 0.0, power: float = 0.8
) -> int:
    """How many paired questions show a mean difference of `delta` at 5% with that power.

    n = (1.96 + z_power)^2 (omega^2 + noise_a + noise_b) / delta^2, rounded up (Miller, arXiv:2411.00640):
    `omega2` the variance over questions of the difference of conditional means, `noise_a`,
    `noise_b` the variances within a question over the number of answers to it. Raises ValueError for delta 0,
    a negative variance, a power not between 0.5 and 1.
    """
    return _up(_reach(power) ** 2 * _variance(omega2, noise_a, noise_b) / _effect(delta) ** 2)


def smallest_change(
    n: float, omega2: float, noise_a: float = 0.0, noise_b: float = 0.0, power: float = 0.8
) -> float:
    """The smallest mean difference that n paired questions show at 5% with that power.

    delta = (1.96 + z_power) sqrt((omega^2 + noise_a + noise_b)/n); the inverse of `pairs_to_see_change`.
    """
    if n <= 0:
        raise ValueError(f"expected a number of pairs above 0, not {n:g}")
    return _reach(power) * math.sqrt(_variance(omega2, noise_a, noise_b) / n)


def smallest_seen(low: float | None, high: float | None) -> float | None:
    """The smallest effect that a measurement with this 95% interval shows with a power of 80%.

    (1.96 + 0.84) x the standard error, which is half the interval over 1.96: `smallest_change` of what was
    measured. NULL without an interval.
    """
    if low is None or high is None:
        return None
    return smallest_change(1, ((high - low) / 2 / Z95) ** 2)


def change_variance(discordant: float, change: float = 0.0) -> float:
    """omega^2 of paired yes/no answers: the share that differ between the runs, less the squared change.

    The variance of a difference that is -1, 0 or 1. Raises ValueError where not |change| <= discordant <= 1.
    """
    if not 0 <= abs(change) <= discordant <= 1:
        raise ValueError(f"a change of {change:g} with a share of {discordant:g} that differ cannot be")
    return discordant - change * change


def pairs_for_precision(share: float, half_width: float, design_effect: float = 1.0) -> int:
    """How many pairs give a rate near `share` to -+ `half_width`: z^2 p(1-p)/w^2 x design effect, rounded up.

    Half the width of the Wald interval (Cochran 1977, Sampling Techniques, 4.4; design effect: Kish 1965).
    Raises ValueError for a share outside 0..1, a width not above 0, a design effect under 1.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"a share is from 0 to 1, not {share:g}")
    if design_effect < 1:
        raise ValueError(f"a design effect is from 1 up, not {design_effect:g}")
    return max(_up(Z95**2 * share * (1 - share) / _effect(half_width) ** 2 * design_effect), 1)


def _reach(power: float) -> float:
    from scipy.special import ndtri

    if not 0.5 <= power < 1:
        raise ValueError(f"a power is from 0.5 to below 1, not {power:g}")
    return Z95 + float(ndtri(power))


def _effect(size: float) -> float:
    if not size or not math.isfinite(size):
        raise ValueError("the size to see must be a number other than 0")
    return abs(size)


def _variance(*parts: float) -> float:
    if min(parts) < 0:
        raise ValueError("a variance is from 0 up")
    return math.fsum(parts)


def _up(n: float) -> int:
    # The last digits of a product must not cost a pair.
    return math.ceil(n - 1e-9 * n)
