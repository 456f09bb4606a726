"""The sample of pairs that a run looks at, where its config wants no more: by category and agent pair."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import waiting
from audit.verbs.sampling import stratified
from audit.words.records import Run
from audit.words.text import as_json

if TYPE_CHECKING:  # as heavy as the database library, and `export dpo` only asks where a run stands
    from audit.words.config import Config
    from audit.words.tasks import Task


class Place(NamedTuple):
    """Where a session stands in a run's plan."""

    task_id: str
    task_fingerprint: str
    agent: str
    trial: int


class PairPlan:
    """Which pairs of a live run are to be judged, and so which sessions are needed."""

    def __init__(self, config: "Config", tasks: "list[Task]") -> None:
        self._chosen: set[str] | None = None
        self._needed: set[Place] | None = None
        if config.sample is not None:
            planned = {_key(a, b): (category, a, b) for category, a, b in _all_pairs(config, tasks)}
            self._chosen = stratified(
                (((category, a.agent, b.agent), key) for key, (category, a, b) in planned.items()),
                config.sample,
                config.seed,
            )
            self._needed = {place for key in self._chosen for place in planned[key][1:]}

    def needs(self, place: Place) -> bool:
        """Is the session part of a pair that is to be judged?"""
        return self._needed is None or place in self._needed

    def holds(self, a: Place, b: Place) -> bool:
        """Is the pair to be judged?"""
        return self._chosen is None or _key(a, b) in self._chosen

    def sessions(self) -> int | None:
        """How many sessions are needed; NULL where all are."""
        return None if self._needed is None else len(self._needed)


def planned_sessions(config: "Config", tasks: "list[Task]") -> int:
    """How many sessions a live run of the config holds."""
    needed = PairPlan(config, tasks).sessions()
    return len(tasks) * config.trials * len(config.agents) if needed is None else needed


def place_of(session: Mapping[str, Any]) -> Place:
    """Where a stored session stands."""
    return Place(*(session[name] for name in Place._fields))


def in_sample(
    connection: Connection, run: Run, pair_ids: list[str], size: int | None, seed: int
) -> list[str]:
    """Those of the pairs that are in a sample of the run's. A live run has planned no others.

    Pairs of the same sessions are in the sample under every gate, or under none.
    """
    if size is None or run.kind == "live":
        return pair_ids
    pairs = waiting.pairs_to_sample(connection, run.run_id)
    keys = {pair["pair_id"]: as_json([pair["session_a"], pair["session_b"]]) for pair in pairs}
    strata = {keys[p["pair_id"]]: (p["category"], p["agent_a"], p["agent_b"]) for p in pairs}
    chosen = stratified(((stratum, key) for key, stratum in strata.items()), size, seed)
    return [pair_id for pair_id in pair_ids if keys[pair_id] in chosen]


def _all_pairs(config: "Config", tasks: "list[Task]") -> Iterator[tuple[str | None, Place, Place]]:
    for task in tasks:
        for trial in range(config.trials):
            for a, b in config.agent_pairs():
                sides = (Place(task.task_id, task.fingerprint, agent, trial) for agent in (a, b))
                yield task.category, *sides  # type: ignore[misc] # two of them


def _key(a: Place, b: Place) -> str:
    return as_json([a, b])
