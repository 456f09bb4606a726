"""What all measures take: counts per cluster (mostly a task) as numbers in a row, never one row a pair."""

import array as compact
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

Z95 = 1.959963984540054
"""The 97.5% point of the normal distribution."""
BLOCK = 1 << 17
"""So many rows are worked on at once, where millions would need memory for each step of a formula."""


class Codes(NamedTuple):
    """Which group each row is of: a number from 0 to `groups` - 1 instead of its name."""

    numbers: "Array"
    groups: int


def columns(rows: Iterable[Sequence[Any]], kinds: str) -> tuple[list[Any], list[list[Any]]]:
    """Streamed rows as columns, in a tenth of the memory of a list of them.

    `kinds` has a letter a column: `c` for names, which become `Codes`, `f` for floats, `i` for whole numbers
    below 2^31. The second answer has the different names of each `c`, sorted, by code.
    """
    import numpy as np

    found = [compact.array("d" if kind == "f" else "i") for kind in kinds]
    codes: list[dict[Any, int]] = [{} for _ in kinds]
    rest = iter(rows)
    while block := list(islice(rest, 10_000)):
        for place, values in enumerate(zip(*block, strict=True)):
            if kinds[place] == "c":
                known = codes[place]
                found[place].extend([known.setdefault(value, len(known)) for value in values])
            else:
                found[place].extend(values)
    made: list[Any] = []
    names: list[list[Any]] = []
    for kind, column, known in zip(kinds, found, codes, strict=True):
        if kind != "c":
            made.append(np.asarray(column))
            continue
        # By name, so that sums come out the same in whatever order a database hands out its rows.
        names.append(sorted(known, key=lambda name: (name is None, name)))
        renumbered = np.empty(len(known), dtype=np.int32)
        renumbered[[known[name] for name in names[-1]]] = range(len(known))
        made.append(Codes(renumbered[np.asarray(column)], len(known)))
    return made, names


def coded(groups: Any) -> Codes:
    """The groups as codes, in the order of their sorted names; codes as they are."""
    import numpy as np

    if isinstance(groups, Codes):
        return groups
    names, index = np.unique(np.asarray(groups), return_inverse=True)
    return Codes(index, len(names))


def in_order(codes: Codes, values: "Array", *more: "Array") -> tuple[Any, ...]:
    """The columns by code, then by value: floats add up to other last digits in another order."""
    import numpy as np

    order = np.lexsort((values, codes.numbers))
    return Codes(codes.numbers[order], codes.groups), *(column[order] for column in (values, *more))


def blocks(count: int) -> Iterator[slice]:
    """The places of `count` rows, a block at a time; of none too there is one."""
    for start in range(0, max(count, 1), BLOCK):
        yield slice(start, start + BLOCK)


def array(values: Any) -> "Array":
    """Numbers in a row, as floats. Raises ValueError for another shape, and for what is not finite."""
    import numpy as np

    found = np.asarray(values, dtype=float)
    if found.ndim != 1:
        raise ValueError(f"expected numbers in one row, found {found.ndim} dimensions")
    if not np.isfinite(found).all():
        raise ValueError("expected finite numbers")
    return found


def aligned(*rows: Any) -> tuple["Array", ...]:
    """Several rows of numbers. Raises ValueError where they differ in length."""
    arrays = tuple(array(row) for row in rows)
    if len({len(one) for one in arrays}) > 1:
        raise ValueError(f"rows of different lengths: {', '.join(str(len(one)) for one in arrays)}")
    return arrays


def counted(k: Any, n: Any) -> tuple["Array", "Array"]:
    """k_i of n_i for each cluster that has any. Raises ValueError where not 0 <= k_i <= n_i."""
    part, whole = aligned(k, n)
    if ((part < 0) | (part > whole)).any():
        raise ValueError("a part must be from 0 up to its whole")
    return part[whole > 0], whole[whole > 0]


def grouped(groups: Any, *rows: Any) -> list["Array"]:
    """Each row summed by group, in the order of the codes or of the sorted group names; shape (groups,)."""
    import numpy as np

    of, count = coded(groups)
    values = aligned(*rows)
    if len(of) != len(values[0]):
        raise ValueError(f"{len(of)} groups for {len(values[0])} numbers")
    return [np.bincount(of, weights=row, minlength=count) for row in values]
