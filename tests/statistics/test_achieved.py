"""Means and pass^k of agents, from what their sessions sum up to on each task."""

import math

import pytest
from scipy.stats import t

from audit.statistics.achieved import TaskSum, agent_row


def test_agent_row_when_tasks_have_the_same_trials_then_the_interval_is_that_of_task_means():
    means = [1.0, 0.5, 0.0, 0.5]
    row = agent_row("a", [TaskSum(2, 2, 2 * mean, 2, int(2 * mean)) for mean in means], has_tasks=True)
    se = math.sqrt(sum((mean - 0.5) ** 2 for mean in means) / 3 / 4)
    assert row["mean_reward"] == 0.5
    assert row["se"] == pytest.approx(se)
    assert row["high"] == pytest.approx(0.5 + t.ppf(0.975, 3) * se)
    assert row["low"] == pytest.approx(0.5 - t.ppf(0.975, 3) * se)


@pytest.mark.parametrize(
    ("tasks", "has_tasks", "why"),
    [
        ([TaskSum(4, 4, 2.0, 4, 2)], True, "fewer than two tasks"),
        ([TaskSum(1, 1, 1.0, 1, 1), TaskSum(1, 0, 0.0, 0, 0)], True, "fewer than two tasks"),
        ([TaskSum(2, 2, 2.0, 2, 2)] * 2, True, "every task has the same mean"),
        ([TaskSum(9, 9, 3.0, 9, 3)], False, "the sessions name no task"),
    ],
)
def test_agent_row_when_there_is_no_spread_to_tell_then_the_interval_is_null_with_a_reason(
    tasks, has_tasks, why
):
    row = agent_row("a", tasks, has_tasks=has_tasks)
    assert (row["low"], row["high"]) == (None, None)
    assert row["why"].startswith(why)


def test_agent_row_when_no_reward_is_known_then_the_mean_is_null_and_not_zero():
    row = agent_row("a", [TaskSum(3, 0, 0.0, 0, 0)], has_tasks=True)
    assert (row["sessions"], row["mean_reward"], row["pass_hat_k"]) == (3, None, {})
