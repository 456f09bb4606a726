"""Which sessions meet, and what is told of agents."""

import math

import pytest
from scipy.stats import t

from audit.verbs.agents import TaskSum, agent_row, pass_hat_k
from audit.verbs.pairing import Held, clashing_ids, match_trials, pair_sessions


def held(agent: str, task: str = "t", trial: int = 0, fingerprint: str | None = "f") -> Held:
    return Held(f"{agent}/{task}/{trial}/{fingerprint}", task, fingerprint, agent, trial, None, 1.0, 1)


def met(*sessions: Held) -> list[tuple[str, str]]:
    return [(a.session_id, b.session_id) for a, b in pair_sessions(sessions)]


@pytest.mark.parametrize(
    ("a", "b", "pairs"),
    [
        ([0, 1], [0, 1], [(0, 0), (1, 1)]),
        ([0, 1, 2], [0, 2], [(0, 0), (2, 2)]),
        ([0], [7], [(0, 7)]),
        ([0, 1, 5], [3, 1], [(1, 1), (0, 3)]),
        ([], [0], []),
    ],
)
def test_match_trials_when_numbers_differ_then_equal_ones_meet_first_and_the_rest_in_order(a, b, pairs):
    assert match_trials(a, b) == pairs


def test_pair_sessions_when_three_agents_share_a_task_then_each_two_meet_first_named_as_side_a():
    assert met(held("zoe"), held("ann"), held("bo")) == [
        ("zoe/t/0/f", "ann/t/0/f"),
        ("zoe/t/0/f", "bo/t/0/f"),
        ("ann/t/0/f", "bo/t/0/f"),
    ]


def test_pair_sessions_when_one_id_is_of_two_tasks_then_only_the_same_task_is_paired():
    sessions = (held("x", fingerprint="f"), held("y", fingerprint="g"), held("y", fingerprint="f"))
    assert met(*sessions) == [("x/t/0/f", "y/t/0/f")]
    assert clashing_ids((one.task_id, one.task_fingerprint) for one in sessions) == ["t"]


def test_clashing_ids_when_a_fingerprint_is_unknown_then_it_proves_no_clash():
    assert clashing_ids([("t", None), ("t", "f"), ("u", "f")]) == []


def test_pass_hat_k_when_trials_are_counted_then_it_is_the_formula():
    # Two tasks of three trials, with 3 and 2 successes: C(2,2)/C(3,2) = 1/3.
    assert pass_hat_k([(3, 3), (3, 2)]) == {"1": pytest.approx(5 / 6), "2": pytest.approx(2 / 3), "3": 0.5}


def test_pass_hat_k_when_a_task_has_fewer_trials_then_k_stops_there_and_unknown_tasks_are_left_out():
    assert pass_hat_k([(4, 4), (1, 0), (0, 0)]) == {"1": 0.5}
    assert pass_hat_k([]) == {}


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
