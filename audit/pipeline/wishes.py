"""What an import is asked for, and what came of it."""

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar

from audit.verbs.gaps import BucketSet
from audit.words.names import SUCCESS_AT, GapScope, GapSource, SwapRule

Item = TypeVar("Item")
BATCH = 1000


class Wish(NamedTuple):
    """What an import was asked for; NULL leaves the choice to the format and the file.

    `agents`: none, one for each file, or one for all; `success_at`: from which reward on a session succeeded.
    """

    format: str
    paths: tuple[Path, ...]
    name: str | None = None
    swap_rule: SwapRule | None = None
    gap_source: GapSource | None = None
    gap_scope: GapScope = "run"
    buckets: BucketSet | None = None
    grammar: str | None = None
    reread: bool = False
    agents: tuple[str, ...] = ()
    success_at: float = SUCCESS_AT

    def agent_of(self, index: int) -> str | None:
        """The agent that was named for the file at `index`."""
        return self.agents[0 if len(self.agents) == 1 else index] if self.agents else None


class Imported(NamedTuple):
    """What came of it: the run, and whether this import made it or found it there.

    `passed_over` are the columns of a file in our own formats that are none of ours. The rest is of recorded
    sessions: ids that stand for several tasks, sessions whose reward is not what its own parts give, sessions
    of unknown reward, pairs of two trials with different numbers, and agents that share no task.
    """

    run_id: str
    is_new: bool
    pairs: int
    sessions: int
    passed_over: tuple[str, ...] = ()
    clashing_ids: int = 0
    odd_rewards: int = 0
    unknown_rewards: int = 0
    other_trials: int = 0
    unpaired: tuple[tuple[str, str], ...] = ()


def batches(items: Iterable[Item], size: int = BATCH) -> Iterator[list[Item]]:
    """The items, so many at a time."""
    found = iter(items)
    while batch := list(islice(found, size)):
        yield batch
