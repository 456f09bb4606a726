"""How many of each kind people should look at, and which: so that rates can be told of all of them.

Every kind (reason) is a stratum. Half of the places go to all by their share, half to the kinds that need a
look, in equal parts. Within a stratum the pick is a simple random one, so an item's inclusion probability is
the picked of its stratum over all of it, and the weight one over that (W. G. Cochran, Sampling Techniques,
3rd ed., 1977, chapter 5).
"""

import hashlib
from collections.abc import Iterable, Mapping

from audit.verbs.sampling import drawn
from audit.words.names import Side

_UNFLAGGED = "random"
# No I, L, O, U: an id is read aloud and typed.
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def places(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """How many of the `n` places each stratum gets, from how many it holds; all are given, as far as they go.

    As far as they suffice, each stratum gets two at least: one alone tells nothing of how much it varies.
    """
    whole = sum(sizes.values())
    flagged = [name for name in sizes if name != _UNFLAGGED]
    wish = {
        name: (size / whole) * (0.5 if flagged else 1) + (0.5 / len(flagged) if name in flagged else 0)
        for name, size in sizes.items()
        if size
    }
    by_wish = sorted(wish, key=lambda name: (-wish[name], name))
    given = dict.fromkeys(sizes, 0)
    left = min(n, whole)
    for least in (1, 2):
        for name in by_wish:
            if left and given[name] < min(least, sizes[name]):
                given[name] += 1
                left -= 1
    for _ in range(left):
        open_ones = [name for name in by_wish if given[name] < sizes[name]]
        given[max(open_ones, key=lambda name: wish[name] / (given[name] + 1))] += 1
    return given


def picked(keys: Iterable[str], count: int, seed: int) -> list[str]:
    """`count` of the keys at random; with one seed always the same, and more of them as `count` grows."""
    return sorted(keys, key=lambda key: drawn(seed, key))[:count]


def first_side(key: str, seed: int) -> Side:
    """The side of a pair that people see first, by a seeded coin."""
    return "A" if drawn(seed, f"side of {key}")[0] % 2 else "B"


def review_id(run_id: str, key: str) -> str:
    """A name for an item that tells nothing of it, and is the same whenever it is exported."""
    digest = hashlib.blake2b(f"{run_id}\0{key}".encode("utf-8", "surrogatepass"), digest_size=12).digest()
    return "v" + "".join(_ALPHABET[byte % 32] for byte in digest)
