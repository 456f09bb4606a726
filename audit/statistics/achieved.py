"""What each agent achieved: its mean verified reward with an interval, and pass^k."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from audit.statistics.agents import paired_se
from audit.statistics.intervals import mean_interval
from audit.statistics.passk import pass_hat_ks


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
    """One entry of the report's `agents`. `has_tasks`: do the sessions say which task they are of?

    The mean is over sessions; its standard error and 95% interval are those of `intervals.mean_interval`,
    clustered on task. pass^k leaves out tasks without a known success.
    """
    found = list(tasks)
    rewarded = [task for task in found if task.rewarded]
    count = sum(task.rewarded for task in rewarded)
    known = [task for task in found if task.known]
    row: dict[str, Any] = {
        "agent": agent,
        "sessions": sum(task.sessions for task in found),
        "rewarded": count,
        "tasks": len(found) if has_tasks else None,
        "mean_reward": math.fsum(task.reward_sum for task in rewarded) / count if count else None,
        "se": None,
        "low": None,
        "high": None,
        "method": None,
        "pass_hat_k": None,
    }
    if not has_tasks:
        return row | {"why": "the sessions name no task: nothing says which of them are independent"}
    passed = pass_hat_ks([task.passed for task in known], [task.known for task in known])
    row["pass_hat_k"] = {str(one["k"]): one["value"] for one in passed}
    if len(rewarded) < 2:
        return row | {"why": "fewer than two tasks with a known reward: no spread to tell an interval from"}
    sums, counts = [task.reward_sum for task in rewarded], [task.rewarded for task in rewarded]
    _, interval = mean_interval(sums, counts)
    row |= {"se": paired_se(sums, counts)} | interval._asdict()
    if interval.low is None:
        row["why"] = "every task has the same mean reward: no spread to tell an interval from"
    return row
