"""Two functions of distributions, in plain arithmetic: to load scipy's takes 15 MB."""

import math

from audit.statistics.arrays import Z95

_TINY = 1e-300


def t_975(freedom: float) -> float:
    """The 97.5% point of Student's t, for any degrees of freedom from 1 up.

    Newton's steps on the distribution from the normal's point: it lies below, and there the distribution
    bends down, so that no step passes the root.
    """
    if freedom > 1e6:
        return Z95 + (Z95**3 + Z95) / (4 * freedom)
    log_norm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    t = Z95
    for _ in range(60):
        above = _beta_share(t * t / (freedom + t * t), 0.5, freedom / 2)
        density = math.exp(log_norm - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (0.975 - (1 + above) / 2) / density
        t += step
        if abs(step) <= 1e-14 * t:
            break
    return t


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction (DLMF 8.17.22)."""
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    # Lentz's method, modified.
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 500):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _not_zero(1 + term * d)
            c = _not_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _not_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def mills(x: float) -> float:
    """phi(x) / Phi(x) of the normal distribution, also far out, where both are 0 to a computer."""
    if x > -30:
        return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / (math.erfc(-x / math.sqrt(2)) / 2)
    square = x * x
    # Phi(x) = phi(x)/-x (1 - 1/x^2 + 3/x^4 - 15/x^6 ..): twelve digits from here on.
    return -x / (1 - (1 - (3 - (15 - 105 / square) / square) / square) / square)
