"""Two functions of distributions that `export dpo` needs, and scipy.special has: a test compares them.

With scipy.special loaded the peak of an export of 200,000 pairs is 94 MB (measured; 77 without), and it is to
stay under 80. The rates ride with the rows, so that they cannot wait for the end. What loads scipy anyway, as
the error curve of agents does, uses it.
"""

import math
from functools import cache
from typing import TYPE_CHECKING

from audit.statistics.arrays import Z95

if TYPE_CHECKING:
    from audit.statistics.arrays import Array


def t_975(freedom: float) -> float:
    """The 97.5% point of Student's t, for any degrees of freedom from 1 up.

    Newton's steps on the distribution, which is the integral of the density from 0 on by Fejér's first rule
    (Fejér 1933, Math. Z. 37:287-309). They begin at the normal's point: it lies below, and there the
    distribution bends down, so that no step passes the root.
    """
    import numpy as np

    if freedom > 1e6:
        return Z95 + (Z95**3 + Z95) / (4 * freedom)
    log_norm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    nodes, weights = _fejer()
    t = Z95
    for _ in range(60):
        x = np.append(t * (nodes + 1) / 2, t)
        density = np.exp(log_norm - (freedom + 1) / 2 * np.log1p(x * x / freedom))
        step = (0.475 - t / 2 * float(weights @ density[:-1])) / float(density[-1])
        t += step
        if abs(step) <= 1e-13 * t:
            break
    return t


@cache
def _fejer() -> tuple["Array", "Array"]:
    """Nodes between -1 and 1, and their weights. numpy's Gauss nodes would take 2 MB more to find."""
    import numpy as np

    count = 128
    angles = (np.arange(count) + 0.5) * math.pi / count
    order = np.arange(1, count // 2 + 1)
    bends = np.cos(2 * np.outer(angles, order)) / (4 * order**2 - 1)
    return np.cos(angles), 2 / count * (1 - 2 * bends.sum(axis=1))


def mills(x: float) -> float:
    """phi(x) / Phi(x) of the normal distribution, also far out, where both are 0 to a computer."""
    if x < -37:
        return -x - 1 / x
    return math.exp(-x * x / 2) / math.sqrt(2 * math.pi) / (math.erfc(-x / math.sqrt(2)) / 2)
