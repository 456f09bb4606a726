"""Agents: the mean verified reward of each with its interval, and pass^k."""

import math
from collections.abc import Iterable
from math import comb
from typing import Any, NamedTuple


class TaskSum(NamedTuple):
    """One agent's sessions on one task: how many, how many of known reward, their sum, and the successes.

    `known` and `passed` are of the sessions whose success is known.
    """

    sessions: int
    rewarded: int
    reward_sum: float
    known: int
    passed: int


def agent_row(agent: str, tasks: Iterable[TaskSum], *, has_tasks: bool) -> dict[str, Any]:
    """One entry of the report's `agents`. `has_tasks`: do the sessions say which task they are of?"""
    found = list(tasks)
    sessions = sum(task.sessions for task in found)
    rewarded = [task for task in found if task.rewarded]
    count = sum(task.rewarded for task in rewarded)
    row: dict[str, Any] = {
        "agent": agent,
        "sessions": sessions,
        "rewarded": count,
        "tasks": len(found) if has_tasks else None,
        "mean_reward": math.fsum(task.reward_sum for task in rewarded) / count if count else None,
        "se": None,
        "low": None,
        "high": None,
        "method": None,
        "pass_hat_k": pass_hat_k((task.known, task.passed) for task in found) if has_tasks else None,
    }
    if not has_tasks:
        return row | {"why": "the sessions name no task: nothing says which of them are independent"}
    if len(rewarded) < 2:
        return row | {"why": "fewer than two tasks with a known reward: no spread to tell an interval from"}
    return row | _interval(rewarded, row["mean_reward"], count)


def _interval(tasks: list[TaskSum], mean: float, count: int) -> dict[str, Any]:
    """The mean's 95% interval, clustered on task.

    se^2 = G/(G-1) * sum over the G tasks of (sum of the task's rewards - its sessions * mean)^2 / N^2, and
    mean +- t(.975, G-1) * se: Cochran 1977, Sampling Techniques, section 6.4 (the ratio estimator); with the
    same number of sessions on every task it is the t interval on task means.
    """
    clusters = len(tasks)
    squares = math.fsum((task.reward_sum - task.rewarded * mean) ** 2 for task in tasks)
    se = math.sqrt(clusters / (clusters - 1) * squares) / count
    if se == 0:
        return {"se": 0.0, "why": "every task has the same mean reward: no spread to tell an interval from"}
    from scipy.stats import t

    reach = float(t.ppf(0.975, clusters - 1)) * se
    return {"se": se, "low": mean - reach, "high": mean + reach, "method": "t on tasks"}


def pass_hat_k(tasks: Iterable[tuple[int, int]]) -> dict[str, float]:
    """k -> the mean over tasks of C(c,k)/C(n,k), for (n trials, c successes) of each task.

    That all of k trials succeed, estimated without bias (tau-bench, arXiv:2406.12045). k goes up to the
    smallest n of a task with any; tasks without a known success are left out.
    """
    found = [(n, c) for n, c in tasks if n]
    most = min((n for n, _ in found), default=0)
    return {
        str(k): math.fsum(comb(c, k) / comb(n, k) for n, c in found) / len(found) for k in range(1, most + 1)
    }
