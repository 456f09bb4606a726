"""pass^k: would an agent do a task k times in a row?"""

from typing import Any

from audit.statistics.arrays import counted
from audit.statistics.intervals import mean_interval


def pass_hat_k(successes: Any, trials: Any, k: int) -> dict[str, Any]:
    """Mean over tasks of C(c,k)/C(n,k): {"k", "value", "low", "high", "method", "tasks", "left_out"}.

    c_i successes of n_i trials in task i; tasks with fewer than k trials cannot tell and are left out, and
    counted. Source: tau-bench (Yao et al., arXiv:2406.12045). The interval is a t interval over tasks, within
    0..1. Value NULL without a task. Raises ValueError for k < 1, and where not 0 <= c_i <= n_i.
    """
    import numpy as np

    if k < 1:
        raise ValueError(f"k is from 1 up, not {k}")
    passed, tried = counted(successes, trials)
    enough = tried >= k
    steps = np.arange(k)
    each = np.maximum(passed[enough, None] - steps, 0) / (tried[enough, None] - steps)
    value, interval = mean_interval(each.prod(axis=1), np.ones(int(enough.sum())), 0.0, 1.0)
    return {
        "k": k,
        "value": value,
        **interval._asdict(),
        "tasks": int(enough.sum()),
        "left_out": int((~enough).sum()),
    }


def pass_hat_ks(successes: Any, trials: Any) -> list[dict[str, Any]]:
    """pass^k for every k from 1 up to the trials that each task has."""
    _, tried = counted(successes, trials)
    return [pass_hat_k(successes, trials, k) for k in range(1, (int(tried.min()) if len(tried) else 0) + 1)]
