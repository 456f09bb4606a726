"""agent_pairs: of two agents, whom the judge picks over all tasks, and whom the verified rewards do."""

from typing import Any

import pytest


def view(given: Any, columns: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = given.rows(
        f"select {columns} from agent_pairs order by run_id, gate, agent_a, agent_b"
    )
    return found


def meet(given: Any, task: str, a: str, b: str, rewards: tuple[Any, Any], pref: str | None) -> None:
    given.pairs(
        1, None, task_id=task, agent_a=a, agent_b=b, reward_a=rewards[0], reward_b=rewards[1], judge_pref=pref
    )


def test_agents_when_they_change_sides_then_it_is_one_row_and_wins_follow_the_agent(given: Any) -> None:
    given.run()
    meet(given, "t1", "ash", "elm", (1.0, 0.0), "A")
    meet(given, "t2", "elm", "ash", (0.5, 1.0), "A")
    meet(given, "t3", "elm", "ash", (0.0, 0.5), "A")
    meet(given, "t3", "elm", "ash", (None, 0.5), "tie")

    assert view(given, "agent_a, agent_b, pairs, tasks, pairs_rewarded, wins_a, wins_b, verdicts") == [
        ("ash", "elm", 4, 3, 3, 1, 2, 4)
    ]
    [(mean_a, mean_b, gap, pick, misselected)] = view(
        given, "mean_reward_a, mean_reward_b, reward_gap, pick, misselected"
    )
    assert (mean_a, mean_b, gap) == pytest.approx((2.5 / 3, 0.5 / 3, 2 / 3))
    assert (pick, misselected) == ("B", 1)


# rewards of ash and elm in two tasks, the judge's preferences -> pick, misselected
CASES = {
    "better picked": (((1, 0), (1, 0)), ("A", "A"), ("A", 0)),
    "worse picked": (((0, 1), (0, 1)), ("A", "A"), ("A", 1)),
    "as many wins": (((0, 1), (0, 1)), ("A", "B"), ("tie", 0)),
    "equal means that floats tell apart": (((0.1 + 0.2, 0.3), (0.7, 0.7)), ("A", "A"), ("A", None)),
    "no verdict": (((0, 1), (0, 1)), (None, None), (None, None)),
    "ties alone": (((0, 1), (0, 1)), ("tie", "tie"), ("tie", 0)),
    "no reward": (((None, 1), (None, 1)), ("A", "A"), ("A", None)),
}


@pytest.mark.parametrize(("rewards", "prefs", "expected"), CASES.values(), ids=CASES.keys())
def test_pick_when_compared_with_the_mean_rewards_then_only_a_worse_one_is_misselected(
    given: Any, rewards: Any, prefs: Any, expected: tuple[Any, Any]
) -> None:
    given.run()
    for number, (two, pref) in enumerate(zip(rewards, prefs, strict=True)):
        meet(given, f"t{number}", "ash", "elm", two, pref)

    assert view(given, "pick, misselected") == [expected]


def test_pairs_when_agents_are_unnamed_or_one_and_the_same_then_they_are_no_agent_pair(given: Any) -> None:
    given.run()
    given.pairs(2, "correct")
    meet(given, "t1", "ash", "ash", (1, 0), "A")

    assert view(given, "agent_a") == []
