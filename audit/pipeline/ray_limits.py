"""Limits over all Ray workers of a run: its budget, and the rates and slots of its profiles.

They are counted in one process, which every worker asks before it sends a request.
"""

import asyncio
from dataclasses import replace

from audit.doors.cluster import Cluster, Remote
from audit.doors.llm_pace import Pace
from audit.pipeline.budget import Budget, UsedUp
from audit.verbs.spending import Spent
from audit.words.calls import Usage
from audit.words.config import Config
from audit.words.profiles import Endpoint


class Limits:
    """The run's budget and its profiles' rates, in one process that all workers ask before each call."""

    def __init__(self, config: Config, used: dict[str, Spent], concurrency: int) -> None:
        self._budget = Budget(config, {}, concurrency, used)
        self._concurrency = concurrency
        self._paces: dict[str, Pace] = {}
        self._under_way: dict[int, list[str]] = {}
        self._waiting: dict[int, set[asyncio.Task[None]]] = {}
        self._lost: set[int] = set()

    async def refuse_call(self, role: str) -> tuple[str, str] | None:
        """The limit that is reached, where nothing is left for a call."""
        try:
            await self._budget.refuse_call(role)
        except UsedUp:
            return self._budget.reached
        return None

    def spend(self, role: str, spent: Spent) -> None:
        """A call was made."""
        self._budget.add(role, spent)

    async def enter(self, worker: int, endpoint: Endpoint, size: int, is_retry: bool) -> None:
        """Wait until a request of so many bytes may be sent."""
        if worker in self._lost:  # what it asked came later than the news of its end
            return
        pace = self._paces.setdefault(endpoint.name, Pace(endpoint, self._concurrency))
        turn = asyncio.create_task(pace.enter(size, is_retry=is_retry))
        waiting = self._waiting.setdefault(worker, set())
        waiting.add(turn)
        await asyncio.wait([turn])
        waiting.discard(turn)
        if turn.cancelled():
            return
        turn.result()
        if worker in self._lost:
            pace.leave()
        else:
            self._under_way.setdefault(worker, []).append(endpoint.name)

    def leave(self, worker: int, name: str) -> None:
        """A request is no longer under way."""
        if name in self._under_way.get(worker, []):
            self._under_way[worker].remove(name)
            self._paces[name].leave()

    def correct(self, name: str, size: int, usage: Usage) -> None:
        """What a request of so many bytes took in truth."""
        self._paces[name].correct(size, usage)

    def forget(self, worker: int) -> None:
        """A worker is lost, and its requests with it: those under way, and those that wait for their turn."""
        self._lost.add(worker)
        for turn in self._waiting.pop(worker, set()):
            turn.cancel()
        for name in self._under_way.pop(worker, []):
            self._paces[name].leave()


class SharedBudget:
    """The run's budget as one worker sees it; without limits nobody need be asked."""

    def __init__(self, limits: Remote | None) -> None:
        self._limits = limits
        self.reached: tuple[str, str] | None = None

    async def refuse_call(self, role: str) -> None:
        if self._limits is not None:
            reached = await self._limits.ask("refuse_call", role)
            if reached is not None:  # for this role: another may have something left
                self.reached = reached
                raise UsedUp

    async def spend(self, role: str, spent: Spent) -> None:
        if self._limits is not None:
            await self._limits.ask("spend", role, spent)


class SharedPace(Pace):
    """Rates and requests under way are counted over all workers; refusals are waited out by each."""

    def __init__(self, endpoint: Endpoint, concurrency: int, limits: Remote, worker: int) -> None:
        super().__init__(replace(endpoint, rpm=None, tpm=None), concurrency)
        self._of_all = replace(endpoint, extra={})
        self._limits = limits
        self._worker = worker

    async def enter(self, size: int, *, is_retry: bool) -> None:
        await self._limits.ask("enter", self._worker, self._of_all, size, is_retry)
        await super().enter(size, is_retry=is_retry)

    def leave(self) -> None:
        super().leave()
        self._limits.tell("leave", self._worker, self._of_all.name)

    def correct(self, size: int, usage: Usage) -> None:
        self._limits.tell("correct", self._of_all.name, size, usage)


def held_limits(cluster: Cluster, config: Config, used: dict[str, Spent], concurrency: int) -> Remote:
    """The limits in a process of their own."""
    # What waits for its turn waits in there, and must not keep another from leaving.
    at_once = 1000 + 2 * concurrency
    return cluster.hold(Limits, config, used, concurrency, cpus=0, at_once=at_once)


def has_budget(config: Config) -> bool:
    """Is anything limited over all calls?"""
    budget = config.budget
    every = [budget, *budget.roles.values()]
    return any(one.max_tokens is not None or one.max_cost is not None for one in every)


def is_paced(endpoint: Endpoint) -> bool:
    """Is anything limited over all calls of the endpoint?"""
    return bool(endpoint.rpm or endpoint.tpm or endpoint.concurrency)
