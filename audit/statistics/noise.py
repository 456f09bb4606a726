"""Label noise: what flipped preferences cost a training set."""

from collections.abc import Sequence


def data_cost(flip_rate: float) -> float:
    """1/(1-2e)^2: how many times the rows a set with flip rate e needs to teach as much as a clean one.

    From the bound of robust DPO, whose error grows with 1/(1-2e) (Chowdhury et al., arXiv:2403.00409), and
    falls with the root of the rows. Raises ValueError for e outside 0 <= e < 1/2: at 1/2 nothing is taught.
    """
    if not 0 <= flip_rate < 0.5:
        raise ValueError(f"a flip rate is from 0 to below 1/2, not {flip_rate:g}")
    return 1 / (1 - 2 * flip_rate) ** 2


def label_smoothing(rows: Sequence[int], flip_rates: Sequence[float]) -> float | None:
    """The set's `label_smoothing`: the mean flip rate over the rows it holds; NULL for a set without rows.

    `rows`: how many rows have each of `flip_rates`. A rate of 1/2 or more is refused as in `data_cost`.
    """
    for one in flip_rates:
        data_cost(one)
    total = sum(rows)
    return sum(n * e for n, e in zip(rows, flip_rates, strict=True)) / total if total else None
