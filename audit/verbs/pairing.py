"""Pairing: which sessions of two agents are put beside each other."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import NamedTuple


class Held(NamedTuple):
    """What pairing and scoring need of one session."""

    session_id: str
    task_id: str
    task_fingerprint: str | None
    agent: str
    trial: int
    category: str | None
    reward: float | None
    success: int | None


Place = tuple[str, str | None]


def pair_sessions(sessions: Iterable[Held]) -> Iterator[tuple[Held, Held]]:
    """Every two agents on each task both served; side A is the agent that came first.

    A task is its id and its fingerprint. Trials are matched by `match_trials`.
    """
    tasks: dict[Place, dict[str, dict[int, Held]]] = defaultdict(lambda: defaultdict(dict))
    ranks: dict[str, int] = {}
    for held in sessions:
        ranks.setdefault(held.agent, len(ranks))
        tasks[held.task_id, held.task_fingerprint][held.agent][held.trial] = held
    for agents in tasks.values():
        for a, b in combinations(sorted(agents, key=ranks.__getitem__), 2):
            for trial_a, trial_b in match_trials(agents[a], agents[b]):
                yield agents[a][trial_a], agents[b][trial_b]


def match_trials(trials_a: Iterable[int], trials_b: Iterable[int]) -> list[tuple[int, int]]:
    """Trials of the same number first; of those left over, the k-th of one with the k-th of the other."""
    a, b = set(trials_a), set(trials_b)
    rest = zip(sorted(a - b), sorted(b - a), strict=False)
    return [(trial, trial) for trial in sorted(a & b)] + list(rest)


def clashing_ids(places: Iterable[Place]) -> list[str]:
    """The ids that stand for several tasks: of different fingerprints."""
    known: dict[str, set[str]] = defaultdict(set)
    for task_id, task_fingerprint in places:
        if task_fingerprint is not None:
            known[task_id].add(task_fingerprint)
    return sorted(task_id for task_id, found in known.items() if len(found) > 1)
