"""pass^k: tau-bench's published figures, and what must hold."""

import json
from collections import defaultdict
from itertools import combinations, pairwise
from math import comb
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.statistics.intervals import wilson
from audit.statistics.passk import pass_hat_k, pass_hat_ks

TASKS = st.lists(
    st.integers(1, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=12
)


@pytest.mark.shared_data
def test_pass_hat_k_when_the_published_trajectories_are_counted_then_it_is_tau_benchs(shared: Path) -> None:
    trials = defaultdict(list)
    for session in json.loads((shared / "data" / "tau" / "gpt-4o-airline.json").read_text(encoding="utf-8")):
        trials[session["task_id"]].append(session["reward"] >= 1 - 1e-6)
    found = pass_hat_ks([sum(task) for task in trials.values()], [len(task) for task in trials.values()])

    # The README of tau-bench, gpt-4o, airline: pass^1 to pass^4.
    assert [round(one["value"], 3) for one in found] == [0.42, 0.273, 0.22, 0.2]
    assert all(one["tasks"] == 50 and one["low"] < one["value"] < one["high"] for one in found)


@given(TASKS, st.integers(1, 6))
def test_pass_hat_k_when_all_draws_of_k_are_looked_at_then_it_is_the_share_that_all_pass(
    tasks: list[tuple[int, int]], k: int
) -> None:
    found = pass_hat_k(*zip(*tasks, strict=True), k)
    enough = [(c, n) for c, n in tasks if n >= k]

    assert (found["tasks"], found["left_out"]) == (len(enough), len(tasks) - len(enough))
    if not enough:
        assert found["value"] is found["low"] is None
        return
    shares = [
        sum(all(trial < c for trial in drawn) for drawn in combinations(range(n), k)) / comb(n, k)
        for c, n in enough
    ]
    assert found["value"] == pytest.approx(sum(shares) / len(shares), abs=1e-12)
    if found["low"] is not None:
        assert 0 <= found["low"] <= found["value"] + 1e-12
        assert found["value"] - 1e-12 <= found["high"] <= 1


@given(TASKS)
def test_pass_hat_k_when_k_grows_then_it_falls(tasks: list[tuple[int, int]]) -> None:
    values = [one["value"] for one in pass_hat_ks(*zip(*tasks, strict=True))]

    assert len(values) == min(n for _, n in tasks)
    assert all(later <= earlier + 1e-12 for earlier, later in pairwise(values))


def test_pass_hat_k_when_every_task_is_always_done_then_the_interval_is_no_point() -> None:
    found = pass_hat_k([4] * 10, [4] * 10, 4)

    assert (found["value"], found["low"], found["high"]) == (1, *wilson(10, 10))
    assert pass_hat_ks([], []) == []
    with pytest.raises(ValueError, match="k is from 1 up, not 0"):
        pass_hat_k([1], [1], 0)
