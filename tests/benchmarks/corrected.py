"""How often does the 95% interval of a corrected rate hold the true rate, with 100 labels of 2,000 rows?

Each repeat draws a run whose truth is known, with true rates .05, .2 and .5 and judges whose sensitivity and
specificity are .7 to .95, and 100 of its rows that people label, in two ways:

    simple  any 100
    kinds   one row in five is of a kind that needs a look, and twice as often true: 60 of them, 40 of the
            others, weighted, as `review export` picks them

The rows are independent, or cluster: `--tasks` tasks (default 100), of which each has its own rate, and its
own sensitivity and specificity, from beta distributions with the intra-task correlation `--correlation` (.3).
The share of repeats whose interval holds the truth is counted for

    ppi           audit.statistics.corrected, PPI++
    rogan_gladen  the same, Rogan-Gladen
    independent   Rogan-Gladen with the interval of arXiv:2511.21140
    plain_ppi     PPI++ without its two denials, and rows taken as independent

Goal: the first two cover .93 to .97; the others stand beside them to show why. A judge that told nothing in
the sample (Rogan-Gladen is refused) is no miss and no hit. The draws are seeded.
"""

import argparse
import zlib
from collections import Counter
from typing import Any, NamedTuple

import measure
import numpy as np

from audit.statistics.corrected import corrected, ppi_mean

RATES = (0.05, 0.2, 0.5)
JUDGES = ((0.7, 0.7), (0.7, 0.95), (0.85, 0.85), (0.95, 0.7), (0.95, 0.95))
ROWS, LABELS = 2000, 100
OF_KIND = ROWS // 5
LOW, HIGH = 0.93, 0.97
METHODS = ("ppi", "rogan_gladen")
Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """What is drawn; `tasks` 0: the rows are independent."""

    way: str
    rate: float
    sensitivity: float
    specificity: float
    tasks: int
    correlation: float


def by_task(chance: np.random.Generator, case: Case, share: float | Array) -> Array:
    """A chance for each row: `share` itself, or what its task has, from a beta around it."""
    if not case.tasks or not case.correlation:
        return np.broadcast_to(share, ROWS)
    size = 1 / case.correlation - 1
    tasks = np.resize(np.arange(case.tasks), ROWS)
    found = np.empty(ROWS)
    for value in np.unique(share):
        of_task = chance.beta(value * size, (1 - value) * size, case.tasks)
        found = np.where(np.broadcast_to(share, ROWS) == value, of_task[tasks], found)
    return found


def drawn(chance: np.random.Generator, case: Case) -> tuple[Array, Array, Array, Array]:
    """Truth and what is said of each row, the rows that are labelled, and the stratum of every row."""
    strata = np.zeros(ROWS, dtype=int)
    rate: float | Array = case.rate
    if case.way == "kinds":
        strata[chance.permutation(ROWS)[:OF_KIND]] = 1
        often = min(2 * case.rate, 0.9)
        rate = np.where(strata == 1, often, (case.rate - often / 5) / 0.8)
    true = chance.random(ROWS) < by_task(chance, case, rate)
    yes = chance.random(ROWS) < by_task(chance, case, case.sensitivity)
    no = chance.random(ROWS) < by_task(chance, case, case.specificity)
    said = np.where(true, yes, ~no)
    takes = (LABELS,) if case.way == "simple" else (40, 60)
    picked = [chance.permutation(np.flatnonzero(strata == one))[:take] for one, take in enumerate(takes)]
    return true, said, np.concatenate(picked), strata


def intervals(chance: np.random.Generator, case: Case) -> dict[str, Any]:
    """Method -> {"low", "high"}, NULL where it is refused."""
    true, said, picked, strata = drawn(chance, case)
    weights = (np.bincount(strata) / np.bincount(strata[picked]))[strata[picked]]
    flagged: Any = int(said.sum())
    rows: Any = ROWS
    tasks = None
    if case.tasks:
        of = np.resize(np.arange(case.tasks), ROWS)
        flagged, rows, tasks = np.bincount(of, weights=said), np.bincount(of), of[picked]
    found = corrected(true[picked], said[picked], weights, flagged, rows, tasks, strata[picked])
    share = said.mean()
    return {
        **{method: found[method] for method in METHODS},
        "independent": found["rogan_gladen"] and found["rogan_gladen"]["independent"],
        "plain_ppi": ppi_mean(true[picked], said[picked], weights, ROWS, share, share * (1 - share)),
    }


def cover(case: Case, repeats: int) -> dict[str, Any]:
    """Method -> the share of repeats whose interval holds the rate, and the mean width of each."""
    chance = np.random.default_rng(zlib.crc32(repr(case).encode()))
    held: Counter[str] = Counter()
    told: Counter[str] = Counter()
    widths: Counter[str] = Counter()
    for _ in range(repeats):
        for method, interval in intervals(chance, case).items():
            if interval is not None:
                told[method] += 1
                held[method] += interval["low"] <= case.rate <= interval["high"]
                widths[method] += interval["high"] - interval["low"]
    return {
        **{method: held[method] / n for method, n in told.items()},
        "widths": {method: widths[method] / n for method, n in told.items()},
        "refused": 1 - told["rogan_gladen"] / repeats,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=2000, help="simulated runs a case (%(default)s)")
    parser.add_argument("--tasks", type=int, default=100, help="tasks a clustered run (%(default)s)")
    parser.add_argument("--correlation", type=float, default=0.3, help="within a task (%(default)s)")
    parser.add_argument("--only", choices=("independent", "clustered"), help="half of the cases")
    parser.add_argument("--no-limits", action="store_true", help="exit 0 also past a goal")
    options = parser.parse_args()
    goals, cases = [], []
    for kind, tasks in (("independent", 0), ("clustered", options.tasks)):
        if options.only in (None, kind):
            for way in ("simple", "kinds"):
                for rate in RATES:
                    for judge in JUDGES:
                        case = Case(way, rate, *judge, tasks, options.correlation)
                        covered = cover(case, options.repeats)
                        cases.append({"rows": kind, **case._asdict(), **covered})
                        name = "_".join(map(str, (kind, way, rate, *judge)))
                        for method in METHODS:
                            figure = covered[method]
                            named = f"{name}_{method}"
                            goals.append(measure.Goal(f"{named}_at_least", figure, 1, "at_least", LOW))
                            goals.append(measure.Goal(f"{named}_at_most", figure, 1, "at_most", HIGH))
    measure.finish(options, "corrected", goals, labels=LABELS, repeats=options.repeats, cases=cases)


if __name__ == "__main__":
    main()
