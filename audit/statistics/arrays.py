"""What all measures take: counts per cluster (mostly a task) as numbers in a row, never one row a pair."""

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array: TypeAlias = NDArray[Any]

Z95 = 1.959963984540054
"""The 97.5% point of the normal distribution."""


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
    """Each row summed by group, in the order of the sorted group names; shape (groups,)."""
    import numpy as np

    _, index = np.unique(np.asarray(groups), return_inverse=True)
    values = aligned(*rows)
    if len(index) != len(values[0]):
        raise ValueError(f"{len(index)} groups for {len(values[0])} numbers")
    return [np.bincount(index, weights=row) for row in values]
