"""A sample in which each stratum has its share, the same whenever it is drawn."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable


def stratified(items: Iterable[tuple[Hashable, str]], size: int, seed: int) -> set[str]:
    """At most `size` of the keys in `items`, which are (stratum, key); keys must differ.

    Proportionate allocation (W. G. Cochran, Sampling Techniques, 3rd ed., 1977, section 5.5): of each stratum
    its share of the whole, rounded down, and one more where the largest remainders are. Which keys, the
    seed's hash of the key decides, so the order of the items does not matter.
    """
    strata: dict[Hashable, list[str]] = defaultdict(list)
    for stratum, key in items:
        strata[stratum].append(key)
    whole = sum(map(len, strata.values()))
    if size >= whole:
        return {key for keys in strata.values() for key in keys}
    quotas = {stratum: divmod(size * len(keys), whole) for stratum, keys in strata.items()}
    missing = size - sum(share for share, _ in quotas.values())
    favoured = sorted(quotas, key=lambda stratum: (-quotas[stratum][1], drawn(seed, repr(stratum))))[:missing]
    return {
        key
        for stratum, keys in strata.items()
        for key in sorted(keys, key=lambda key: drawn(seed, key))[
            : quotas[stratum][0] + (stratum in favoured)
        ]
    }


def drawn(seed: int, text: str) -> bytes:
    """By what keys are drawn: the smallest first."""
    return hashlib.blake2b(f"{seed}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
