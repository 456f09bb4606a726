"""How often does a 95% interval hold the true rate, where pairs cluster on tasks?

Each repeat draws a run whose truth is known: `--tasks` tasks of `--pairs-a-task` pairs, true rates .3, .1 and
.05, intra-task correlation `--correlation`, in two ways that correlate alike and else differ:

    beta    each task has its own rate, from a beta distribution
    shared  a pair repeats its task's one draw, or makes its own

and counts for each method how often the truth lies within the interval:

    ours       audit.statistics.rates.clustered_rate
    wilson     Wilson's interval of all pairs, as if they were independent
    bootstrap  the percentile bootstrap over tasks

Goal: ours covers .93 to .97 in every case; the others stand beside it to show why. The draws are seeded: the
same figures come out on every machine.
"""

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import measure
import numpy as np

from audit.statistics.intervals import wilson
from audit.statistics.rates import clustered_rate

RATES = (0.3, 0.1, 0.05)
LOW, HIGH = 0.93, 0.97
RESAMPLES = 1000
Counts = np.ndarray[Any, np.dtype[np.int64]]


class Design(NamedTuple):
    """What a simulated run looks like."""

    tasks: int
    pairs: int
    correlation: float


def beta(chance: np.random.Generator, design: Design, rate: float) -> Counts:
    """Misselected pairs of each task; the correlation of a beta with a + b = 1/correlation - 1."""
    size = 1 / design.correlation - 1
    rates = chance.beta(rate * size, (1 - rate) * size, design.tasks)
    return chance.binomial(design.pairs, rates)


def shared(chance: np.random.Generator, design: Design, rate: float) -> Counts:
    """The same where a pair repeats the task's draw with chance sqrt(correlation)."""
    shape = (design.tasks, design.pairs)
    repeats = chance.random(shape) < math.sqrt(design.correlation)
    of_task = chance.random((design.tasks, 1)) < rate
    return np.where(repeats, of_task, chance.random(shape) < rate).sum(axis=1)


WAYS: dict[str, Callable[[np.random.Generator, Design, float], Counts]] = {"beta": beta, "shared": shared}


def intervals(chance: np.random.Generator, k: Counts, design: Design) -> dict[str, tuple[float, float]]:
    ours = clustered_rate(k, np.full(design.tasks, design.pairs))
    drawn = k[chance.integers(design.tasks, size=(RESAMPLES, design.tasks))].mean(axis=1) / design.pairs
    low, high = np.quantile(drawn, (0.025, 0.975))
    return {
        "ours": (ours["low"], ours["high"]),
        "wilson": wilson(int(k.sum()), design.tasks * design.pairs),
        "bootstrap": (float(low), float(high)),
    }


def cover(draw: Callable[..., Counts], design: Design, rate: float, repeats: int) -> dict[str, float]:
    """Method -> the share of repeats whose interval holds the rate; and the mean width of ours."""
    chance = np.random.default_rng(2411_00640)
    held = dict.fromkeys(("ours", "wilson", "bootstrap"), 0)
    width = 0.0
    for _ in range(repeats):
        found = intervals(chance, draw(chance, design, rate), design)
        for method, (low, high) in found.items():
            held[method] += low <= rate <= high
        width += found["ours"][1] - found["ours"][0]
    return {method: count / repeats for method, count in held.items()} | {"width": width / repeats}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=2000, help="simulated runs a case (%(default)s)")
    parser.add_argument("--tasks", type=int, default=50, help="tasks a run (%(default)s)")
    parser.add_argument("--pairs-a-task", type=int, default=6, help="pairs a task (%(default)s)")
    parser.add_argument("--correlation", type=float, default=0.3, help="within a task (%(default)s)")
    parser.add_argument("--no-limits", action="store_true", help="exit 0 also past a goal")
    options = parser.parse_args()
    design = Design(options.tasks, options.pairs_a_task, options.correlation)
    goals, cases = [], []
    for way, draw in WAYS.items():
        for rate in RATES:
            covered = cover(draw, design, rate, options.repeats)
            cases.append({"way": way, "rate": rate, **covered})
            goals.append(measure.Goal(f"{way}_{rate}_at_least", covered["ours"], 1, "at_least", LOW))
            goals.append(measure.Goal(f"{way}_{rate}_at_most", covered["ours"], 1, "at_most", HIGH))
    measure.finish(options, "coverage", goals, design=design._asdict(), repeats=options.repeats, cases=cases)


if __name__ == "__main__":
    main()
