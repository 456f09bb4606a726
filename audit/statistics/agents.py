"""The agent level of GAUGE (arXiv:2609.12191): does the judge pick the better of two agents?

An agent pair's pick is the agent that the judge prefers over all its verdicts; it is misselected where that
is the agent with the strictly lower mean reward.
"""

import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

from audit.statistics.arrays import Z95, aligned
from audit.statistics.intervals import ratio_variance
from audit.statistics.rates import Rate
from audit.statistics.resampling import resampled_share
from audit.words.names import TOLERANCE, Preference

Exact = Decimal | Fraction | int


class AgentPair(NamedTuple):
    """Two agents, how far apart they are, and whom the judge picks.

    `gap`: |mean reward of A - of B|. `se`: the standard error of that difference, NULL where unknown. `pick`
    is NULL without a verdict, `misselected` without a pick or where the rewards are equal.
    """

    agent_a: str
    agent_b: str
    gap: float
    se: float | None
    pick: Preference | None
    misselected: int | None
    oracle_resolved: bool | None


def agent_pair(
    agent_a: str, agent_b: str, difference: Exact, pick: Preference | None, se: float | None = None
) -> AgentPair:
    """Judge the pick by `difference` = mean reward of A - of B, an exact number, so that equal is equal.

    oracle_resolved = gap > 1.96 se: can the rewards themselves tell who is better? A tied pick is no error.
    """
    gap = abs(float(difference))
    worse = "A" if difference < 0 else "B"
    misselected = None if pick is None or difference == 0 else int(pick == worse)
    return AgentPair(agent_a, agent_b, gap, se, pick, misselected, None if se is None else gap > Z95 * se)


def pick_of(signal_a: Exact | float, signal_b: Exact | float) -> Preference:
    """sign(signal of A - of B): of wins, of mean scores; of ranks with their sign turned."""
    if signal_a == signal_b:
        return "tie"
    return "A" if signal_a > signal_b else "B"


def independent_se(se_a: float, se_b: float) -> float:
    """The standard error of a difference of two independent means: sqrt(se_a^2 + se_b^2)."""
    return math.hypot(se_a, se_b)


def paired_se(differences: Any, n: Any) -> float | None:
    """The standard error of the mean difference of two agents over the tasks that both did.

    `differences`: sum over trials of reward_a - reward_b in each task, `n`: how many trials. The
    cluster-robust sqrt(J/(J-1) sum (d_i - d n_i)^2) / N (Miller, arXiv:2411.00640); NULL under two tasks.
    """
    sums, counts = aligned(differences, n)
    sums, counts = sums[counts > 0], counts[counts > 0]
    if len(counts) < 2:
        return None
    all_of = float(counts.sum())
    return math.sqrt(ratio_variance(sums - sums.sum() / all_of * counts, all_of))


def noise_floor(pairs: Sequence[AgentPair]) -> float | None:
    """Mean of Phi(-gap/se) over pairs with different rewards: what a judge that knew the true rewards would
    still be charged, because the measured ones are noisy (GAUGE, arXiv:2609.12191).

    A share, 0..1; NULL where no pair has a standard error.
    """
    chances = [
        _phi(-pair.gap / pair.se) if pair.se else 0.0 for pair in pairs if pair.gap and pair.se is not None
    ]
    return math.fsum(chances) / len(chances) if chances else None


def regret(pairs: Sequence[AgentPair]) -> float | None:
    """Mean reward lost a pair by following the pick, over pairs with a pick and different rewards.

    sum of gap x misselected / pairs, in units of reward; a tied pick, being no error, loses nothing. NULL
    without a pair.
    """
    lost = [pair.gap * pair.misselected for pair in pairs if pair.misselected is not None]
    return math.fsum(lost) / len(lost) if lost else None


def misselection(pairs: Sequence[AgentPair], family: Mapping[str, str], seed: int = 0) -> Rate:
    """Misselected of the pairs with a pick and different rewards; the interval resamples agents.

    `family`: agent -> the family it is drawn with, where it has one (its base model, say).
    """
    counted = [pair for pair in pairs if pair.misselected is not None]
    k = [pair.misselected or 0 for pair in counted]
    first = [family.get(pair.agent_a, pair.agent_a) for pair in counted]
    second = [family.get(pair.agent_b, pair.agent_b) for pair in counted]
    interval, families = resampled_share(k, [1] * len(k), first, second, seed)
    return {
        "k": sum(k),
        "n": len(k),
        "value": sum(k) / len(k) if k else None,
        **interval._asdict(),
        "clusters": families,
    }


def is_near(gap: float, near_below: float) -> bool:
    """Below the edge, by more than 1e-9: a gap that close is on the edge, and wide."""
    return gap < near_below - TOLERANCE


def summary(
    pairs: Sequence[AgentPair], near_below: float, family: Mapping[str, str] | None = None, seed: int = 0
) -> dict[str, Any]:
    """The part `agent_pairs` of `report --json`.

    Near and wide are rates of `misselection`; `reward_ties`, `no_pick` and `pick_ties` count pairs;
    `unresolved_near` and `unresolved_wide` those whose rewards cannot tell who is better. `rows`: each pair.
    """
    halves = {
        "near": [pair for pair in pairs if is_near(pair.gap, near_below)],
        "wide": [pair for pair in pairs if not is_near(pair.gap, near_below)],
    }
    return {
        **{name: misselection(half, family or {}, seed) for name, half in halves.items()},
        "reward_ties": sum(pair.gap == 0 for pair in pairs),
        "pick_ties": sum(pair.pick == "tie" for pair in pairs),
        "no_pick": sum(pair.pick is None for pair in pairs),
        **{f"noise_floor_{name}": noise_floor(half) for name, half in halves.items()},
        **{
            f"unresolved_{name}": sum(bool(pair.gap) and pair.oracle_resolved is False for pair in half)
            for name, half in halves.items()
        },
        "regret": regret(pairs),
        "rows": [pair._asdict() for pair in pairs],
    }


def _phi(x: float) -> float:
    return math.erfc(-x / math.sqrt(2)) / 2
