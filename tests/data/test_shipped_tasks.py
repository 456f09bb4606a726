"""The shipped tasks are what the default run needs: of each kind enough, few passed by doing nothing."""

from collections import Counter

import pytest
from offline.whole import hold, shipped_tasks, verified

from audit.doors.world import World
from audit.words.tasks import Task

TASKS = shipped_tasks()
IDLE = [task for task in TASKS if "nothing-to-do" in task.tags]
ids = pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task_id)


def passes(task: Task, *words: str) -> bool:
    """Does an agent pass that says these words and calls no tool?"""
    messages = [{"role": "user", "content": task.goal}]
    messages += [{"role": "assistant", "content": text} for text in words]
    with World(task) as world:
        return bool(verified(task, world, messages).success)


def test_there_are_48_tasks_of_two_domains_over_five_categories() -> None:
    assert Counter(task.domain.name for task in TASKS) == {"shop": 24, "travel": 24}
    counts = Counter((task.domain.name, task.category) for task in TASKS)
    assert {category for _, category in counts} == {"query", "booking", "change", "cancel", "complaint"}
    assert len(counts) == 10
    assert min(counts.values()) >= 4


def test_at_least_eight_tasks_are_done_by_doing_nothing() -> None:
    assert len(IDLE) >= 8
    assert all(any(check.spec.get("tables") == "all" for check in task.checks) for task in IDLE)
    assert all("except" not in check.spec for task in IDLE for check in task.checks)


@pytest.mark.parametrize("words", [(), ("I am sorry, that is not possible.",), ("All done, thank you!",)])
def test_at_most_a_fifth_is_passed_by_an_agent_that_does_nothing(words: tuple[str, ...]) -> None:
    passed = [task.task_id for task in TASKS if passes(task, *words)]
    assert len(passed) <= len(TASKS) / 5, passed


@ids
def test_each_task_begins_with_its_checks_on_the_world_unmet_or_rightly_met(task: Task) -> None:
    with World(task) as world:
        found = verified(task, world, [])
    assert all(result.passed is not None for result in found.checks)
    settled = [result.passed for result in found.checks if result.kind == "sql"]
    is_idle = task in IDLE
    # A wish that is still open is not met; in a task of two wishes one may be forbidden, and so met.
    assert all(settled) if is_idle else not settled or not all(settled)


@ids
def test_each_task_is_passed_with_the_full_reward_by_the_perfect_agent(task: Task) -> None:
    held = hold(task, "agent-100")
    assert held.is_ended
    assert held.verified.success, [check for check in held.verified.checks if not check.passed]
    assert held.reward == 1


@ids
def test_each_task_is_graded_by_several_checks_and_what_is_done_weighs_most(task: Task) -> None:
    assert len(task.checks) >= 4
    done = [check.weight for check in task.checks if check.weight > 1]
    assert bool(done) == any(check.kind == "sql" for check in task.checks)


def test_nobody_is_told_what_is_checked() -> None:
    for task in TASKS:
        told = " ".join([task.goal, *task.facts]).lower()
        assert "select " not in told
        assert not any(name in told for name in ("get_order", "get_booking", "reward", "check the database"))


def test_the_policy_is_not_enforced_by_the_tools() -> None:
    """A careless agent can do what the policy forbids: that is what the checks are there for."""
    task = next(task for task in TASKS if task.task_id == "shop-cancel-two")
    with World(task) as world:
        assert "error" not in world.call("cancel_order", {"order_id": "W3013"})
        assert "error" in world.call("cancel_order", {"order_id": "W9999"})
