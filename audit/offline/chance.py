"""Chance without state: the same parts give the same number, in any process and in any order of calls."""

from hashlib import blake2b
from statistics import NormalDist

_NORMAL = NormalDist()
_TOP = 2**64


def uniform(*parts: object) -> float:
    """A number in (0, 1), evenly spread over different `parts`."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return (int.from_bytes(blake2b(text, digest_size=8).digest(), "big") + 0.5) / (_TOP + 1)


def normal(*parts: object) -> float:
    """A standard normal deviate."""
    return _NORMAL.inv_cdf(min(max(uniform(*parts), 1e-12), 1 - 1e-12))
