"""The agent level: picks, exact ties, noise floor, regret, and intervals that resample agents."""

from decimal import Decimal
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from audit.statistics.agents import (
    agent_pair,
    independent_se,
    is_near,
    misselection,
    noise_floor,
    paired_se,
    pick_of,
    regret,
    summary,
)
from audit.statistics.intervals import wilson
from audit.statistics.resampling import REPEATS, numbered, pair_weights, resampled_share


def test_pick_when_signals_differ_then_it_is_the_higher_and_else_a_tie() -> None:
    assert [pick_of(3, 1), pick_of(1, 3), pick_of(2, 2)] == ["A", "B", "tie"]
    # Ranks, 1 best, with their sign turned.
    assert pick_of(-1, -2) == "A"


@pytest.mark.parametrize(
    ("difference", "pick", "misselected"),
    [
        (Decimal("0.1"), "A", 0),
        (Decimal("0.1"), "B", 1),
        (Decimal("-0.1"), "A", 1),
        (Decimal("0.1"), "tie", 0),
        (Decimal("0.3") - Decimal("0.1") - Decimal("0.2"), "A", None),
        (Fraction(1, 10**30), "B", 1),
        (Decimal("0.1"), None, None),
    ],
)
def test_pair_when_judged_then_only_the_strictly_lower_reward_is_misselected(
    difference: Decimal, pick: str | None, misselected: int | None
) -> None:
    assert agent_pair("ash", "elm", difference, pick).misselected == misselected


def test_pair_when_the_gap_is_within_its_error_then_the_oracle_cannot_tell() -> None:
    wide, narrow = (agent_pair("a", "b", Decimal("0.1"), "A", se) for se in (0.0511, 0.0510))

    assert (wide.oracle_resolved, narrow.oracle_resolved) == (False, True)
    assert agent_pair("a", "b", Decimal("0.1"), "A").oracle_resolved is None


def test_gap_when_it_is_on_the_edge_then_it_is_wide() -> None:
    assert is_near(0.0999, 0.1)
    assert not is_near(float(Decimal("0.8") - Decimal("0.7")), 0.1)
    # As floats that is a hair below a tenth.
    assert 0.3 - 0.2 < 0.1
    assert not is_near(0.3 - 0.2, 0.1)


def test_error_when_two_agents_did_the_same_tasks_then_it_is_that_of_the_difference() -> None:
    assert independent_se(0.03, 0.04) == pytest.approx(0.05)
    # By hand: differences 1, 0, 1, 0 of one trial each: sd 0.57735, over the root of 4.
    assert paired_se([1, 0, 1, 0], [1, 1, 1, 1]) == pytest.approx(0.288675, abs=1e-6)
    assert paired_se([1], [3]) is None


def test_noise_floor_when_gaps_and_errors_are_given_then_it_is_the_mean_chance_of_the_wrong_order() -> None:
    pairs = [
        agent_pair("a", "b", Decimal("0.05"), "A", 0.05),
        agent_pair("a", "c", Decimal("0.1"), "A", 0.05),
        agent_pair("b", "c", Decimal("0.1"), "A", 0.0),
        agent_pair("b", "d", Decimal(0), "A", 0.05),
        agent_pair("c", "d", Decimal("0.1"), "A"),
    ]

    assert noise_floor(pairs) == pytest.approx((norm.cdf(-1) + norm.cdf(-2) + 0) / 3)
    assert noise_floor(pairs[4:]) is None


def test_regret_when_picks_are_followed_then_it_is_the_reward_lost_a_pair() -> None:
    pairs = [
        agent_pair("a", "b", Decimal("0.3"), "B"),
        agent_pair("a", "c", Decimal("0.1"), "A"),
        agent_pair("b", "c", Decimal("0.2"), "tie"),
        agent_pair("b", "d", Decimal(0), "A"),
        agent_pair("c", "d", Decimal("0.2"), None),
    ]

    assert regret(pairs) == pytest.approx(0.1)
    assert regret(pairs[3:]) is None


def field(rewards: list[int], signals: list[int]) -> list[object]:
    return [
        agent_pair(
            str(i), str(j), Decimal(rewards[i] - rewards[j]) / 100, pick_of(signals[i], signals[j]), 0.03
        )
        for i, j in combinations(range(len(rewards)), 2)
    ]


SIGNALS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), min_size=2, max_size=9)


@given(SIGNALS)
def test_summary_when_any_field_is_judged_then_its_counts_add_up_and_intervals_hold_the_rate(
    agents: list[tuple[int, int]],
) -> None:
    pairs = field(*zip(*agents, strict=True))
    found = summary(pairs, 0.1, seed=1)

    assert found["near"]["n"] + found["wide"]["n"] + found["reward_ties"] == len(pairs) == len(found["rows"])
    for half in ("near", "wide"):
        rate = found[half]
        if rate["n"]:
            assert 0 <= rate["low"] <= rate["high"] <= 1
            assert rate["low"] < rate["high"] or rate["clusters"] == 3
        else:
            assert rate["value"] is rate["low"] is rate["method"] is None
    # The judge that says the opposite is right where this one is wrong, ties aside.
    turned = field([a for a, _ in agents], [-b for _, b in agents])
    wrong = sum(pair.misselected or 0 for pair in pairs)
    decided = sum(pair.misselected is not None and pair.pick != "tie" for pair in pairs)
    assert sum(pair.misselected or 0 for pair in turned) == decided - wrong


def test_misselection_when_the_seed_is_the_same_then_so_is_the_interval_and_families_widen_it() -> None:
    chance = np.random.default_rng(5)
    names = [f"{model}{copy}" for model in "abcdefgh" for copy in "12"]
    rewards = dict(zip(names, np.repeat(chance.integers(0, 30, 8), 2) + np.tile([0, 1], 8), strict=True))
    signals = dict(zip(names, np.repeat(chance.integers(0, 30, 8), 2), strict=True))
    pairs = [
        agent_pair(a, b, int(rewards[a]) - int(rewards[b]), pick_of(int(signals[a]), int(signals[b])))
        for a, b in combinations(names, 2)
    ]
    alone, again = misselection(pairs, {}, 3), misselection(pairs, {}, 3)
    together = misselection(pairs, {name: name[0] for name in names}, 3)

    assert alone == again
    assert (alone["clusters"], together["clusters"]) == (16, 8)
    assert together["value"] == alone["value"]
    assert together["high"] - together["low"] > 1.2 * (alone["high"] - alone["low"])


def test_misselection_when_there_is_no_error_then_it_is_worth_half_as_many_trials_as_agents() -> None:
    rate = misselection(field(list(range(10)), list(range(10))), {})

    assert (rate["k"], rate["n"], rate["method"]) == (0, 45, "wilson_on_agents")
    assert (rate["low"], rate["high"]) == wilson(0, 5)


def test_weights_when_drawn_then_a_pair_counts_as_often_as_both_its_families_meet() -> None:
    first, second, families = numbered(["a", "a", "b"], ["b", "a", "c"])
    weights = np.concatenate(list(pair_weights(first, second, families, seed=0)))

    assert families == 3
    assert weights.shape == (REPEATS, 3)
    # ab, aa, bc: where a is never drawn neither counts, and three draws are three draws.
    assert (weights[weights[:, 1] == 0, 0] == 0).all()
    assert weights.max() == 3
    # E[m_a m_b] = 3 * 2 / 9, E[m_a] = 1.
    assert weights.mean(axis=0) == pytest.approx([2 / 3, 1, 2 / 3], abs=0.06)


def test_share_when_there_is_no_pair_then_it_is_null() -> None:
    assert resampled_share([], [], [], []) == ((None, None, None), 0)
