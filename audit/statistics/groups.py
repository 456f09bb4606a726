"""Counts of groups, to be added up by cluster: all that a rate and its interval need, however many pairs."""

import array as compact
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audit.statistics.arrays import Array


class Groups:
    """One row a group: its cluster (the first key), other keys, and whole numbers.

    Keys are compared as they are, NULL too.
    """

    def __init__(self, rows: Iterable[Sequence[Any]], keys: Sequence[str], counts: Sequence[str]) -> None:
        import numpy as np

        codes: dict[str, dict[Any, int]] = {key: {} for key in keys}
        coded = {key: compact.array("q") for key in keys}
        numbers = compact.array("q")
        for row in rows:
            for key, value in zip(keys, row, strict=False):
                coded[key].append(codes[key].setdefault(value, len(codes[key])))
            numbers.extend(row[len(keys) :])
        self._cluster = keys[0]
        self._codes = codes
        self._coded = {key: np.asarray(values, dtype=np.int64) for key, values in coded.items()}
        self._numbers = np.asarray(numbers, dtype=np.int64).reshape(-1, len(counts))
        self._counts = tuple(counts)

    def values(self, key: str) -> list[Any]:
        """The different values of a key, in the order in which they came."""
        return list(self._codes[key])

    def by_cluster(self, **where: Sequence[Any]) -> "Mapping[str, Array]":
        """Count -> its sums, one number a cluster, over the groups whose keys are among the values given.

        The clusters are those of the groups left, the same for all counts.
        """
        return self._summed(self._kept(where), None)

    def on_all_clusters(self, **where: Sequence[Any]) -> "Mapping[str, Array]":
        """The same with a number for every cluster there is, 0 where nothing is left: for comparisons."""
        return self._summed(self._kept(where), len(self._codes[self._cluster]))

    def totals(self, **where: Sequence[Any]) -> dict[str, int]:
        """Count -> its sum over those groups."""
        sums = self._numbers.sum(axis=0, where=self._kept(where)[:, None])
        return {name: int(number) for name, number in zip(self._counts, sums, strict=True)}

    def _kept(self, where: Mapping[str, Sequence[Any]]) -> "Array":
        import numpy as np

        kept = np.ones(len(self._numbers), dtype=bool)
        for key, values in where.items():
            codes = [self._codes[key][value] for value in values if value in self._codes[key]]
            kept &= np.isin(self._coded[key], codes)
        return kept

    def _summed(self, kept: "Array", clusters: int | None) -> "Mapping[str, Array]":
        import numpy as np

        index = self._coded[self._cluster][kept]
        if clusters is None:
            names, index = np.unique(index, return_inverse=True)
            clusters = len(names)
        return {
            name: np.bincount(index, weights=self._numbers[kept, column], minlength=clusters)
            for column, name in enumerate(self._counts)
        }
