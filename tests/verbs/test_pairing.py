"""Which sessions meet, and what is told of agents."""

import pytest

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
