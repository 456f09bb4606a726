"""The units of work of a run in Ray workers: the same units, models and prompts, in several processes.

The driver, which is this command, alone reads and stores; a worker is handed a unit and hands back what
became of it. A worker that is lost is replaced, and what it had not handed back is asked again.
"""

import asyncio
import os
import traceback
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from audit.doors.cluster import Cluster, Remote, refuse_unreachable
from audit.doors.config import with_key
from audit.doors.limited import importable_folders, importable_from
from audit.doors.llm import Models
from audit.doors.llm_pace import Pace
from audit.doors.llm_url import keys_of_query, shown_url
from audit.doors.world import load_function
from audit.pipeline.budget import ROLES, UsedUp
from audit.pipeline.live import Live
from audit.pipeline.ray_limits import SharedBudget, SharedPace, has_budget, held_limits, is_paced
from audit.pipeline.units import Kind, Units
from audit.pipeline.workplace import Workplace, keys_for, transports
from audit.verbs.spending import spent_by
from audit.words.config import Config, Profile
from audit.words.errors import AuditError, BadRequest, Lost
from audit.words.keys import keys_in
from audit.words.profiles import Endpoint
from audit.words.records import Run
from audit.words.tasks import Task

_MOST_LOST = 3  # workers that one unit may end, or that may end as they start, one after the other
_START_S = 300.0


class RayEngine(NamedTuple):
    """On which cluster: `address` is one that runs already; `workers`: NULL for as many as it has CPUs."""

    address: str | None = None
    workers: int | None = None


class Brief(NamedTuple):
    """All that a worker is told of a run: no key. `folders`: where functions of the user's may lie."""

    run: Run
    config: Config
    tasks: list[Task]
    folders: list[str]
    recorded_agents: frozenset[str]
    concurrency: int


class Told(NamedTuple):
    """What became of a unit; `reached`: the limit (role, what) that left it no call."""

    done: Any
    notes: list[str]
    problem: str | None = None
    reached: tuple[str, str] | None = None


class Worker:
    """What one Ray process holds: a workplace without a database."""

    def __init__(self, brief: Brief, number: int, limits: Remote | None) -> None:
        self._brief = brief
        self._number = number
        self._limits = limits
        self._notes: list[str] = []

    async def begin(self) -> str | None:
        """Open the door to models; the problem, where this node has not what they need."""
        brief = self._brief
        profiles = [with_key(profile, os.environ) for profile in brief.config.profiles]
        config = brief.config.model_copy(update={"profiles": profiles})
        try:
            for folder in brief.folders:
                importable_from(Path(folder))
            for function in sorted(_functions_of(brief.tasks)):
                load_function(function)
            keys = keys_for(config)
        except AuditError as error:
            return f"{error} (on the node {os.uname().nodename}, before Ray is started there)"
        self._models = await Models(keys, brief.concurrency, transports(), self._pace).__aenter__()
        is_limited = has_budget(config)
        self._budget = SharedBudget(self._limits if is_limited else None)
        self._units = Units(
            Workplace(
                run=brief.run,
                config=config,
                tasks=brief.tasks,
                models=self._models,
                allowance=self._budget,
                note=self._notes.append,
                recorded_agents=brief.recorded_agents,
            )
        )
        return None

    async def do(self, kind: Kind, item: Any) -> Told:
        """One unit of work."""
        done, problem = None, None
        try:
            done = await self._units.do(kind, item)
        except UsedUp:
            pass  # told by `reached`
        except AuditError as error:
            problem = self._models.secrets.out_of_error(str(error))
        except Exception:
            # Ray writes it down as it is.
            raise RuntimeError(self._models.secrets.out_of_error(traceback.format_exc())) from None
        notes = self._notes[:]
        self._notes.clear()
        return Told(done, notes, problem, self._budget.reached)

    def _pace(self, endpoint: Endpoint, concurrency: int) -> Pace:
        if self._limits is None or not is_paced(endpoint):
            return Pace(endpoint, concurrency)
        return SharedPace(endpoint, concurrency, self._limits, self._number)


def _functions_of(tasks: list[Task]) -> set[str]:
    """Every `module:function` of the user's that the tasks name."""
    found = {item.spec["python"] for task in tasks for item in task.checks if item.kind == "python"}
    return found | {tool.function for task in tasks for tool in task.domain.tools if tool.function}


@dataclass(slots=True)
class _Seat:
    """One worker as the driver sees it."""

    remote: Remote
    number: int
    under_way: int = 0
    is_ready: bool = False


class RayWorkers:
    """Hands units to the worker with the fewest under way."""

    def __init__(self, live: Live, cluster: Cluster, count: int) -> None:
        self._live = live
        self._cluster = cluster
        self._brief = Brief(
            live.run,
            without_keys(live.config),
            live.tasks,
            importable_folders(),
            live.recorded_agents,
            live.concurrency,
        )
        self._limits: Remote | None = None
        if has_budget(live.config) or any(is_paced(live.endpoint(name)) for name in live.config.role_names()):
            used = dict(live.budget.used)
            self._limits = held_limits(cluster, self._brief.config, used, live.concurrency)
        self._seats: list[_Seat] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._problem: str | None = None
        self._last = 0
        self._lost_at_start = 0
        for _ in range(count):
            self._open()

    async def do(self, kind: Kind, item: Any) -> Any:
        """What became of the item. Raises UsedUp, and AuditError where no worker can be had."""
        for _ in range(_MOST_LOST):
            seat = await self._free()
            seat.under_way += 1
            try:
                told: Told = await seat.remote.ask("do", kind, item)
            except Lost:
                self._replace(seat)
                continue
            finally:
                seat.under_way -= 1
            return self._taken(told)
        raise AuditError(
            f"--engine ray: {_MOST_LOST} workers ended one after the other at the same {kind}: "
            f"{_id_of(item)}; what is done is stored"
        )

    async def ready(self) -> None:
        """Wait for the first worker. Raises AuditError where none starts."""
        await self._free()

    def _taken(self, told: Told) -> Any:
        live = self._live
        for note in told.notes:
            live.note(note)
        if told.problem is not None:
            raise AuditError(told.problem)
        if told.reached is not None:
            live.budget.reach(*told.reached)
        if told.done is None:
            raise UsedUp
        for log in told.done.logs:
            live.budget.add(ROLES[log.role], spent_by(log, live.config))
        return told.done

    async def _free(self) -> _Seat:
        """The worker with the least to do."""
        try:
            async with asyncio.timeout(_START_S):
                while True:
                    if self._problem is not None:
                        raise AuditError(self._problem)
                    ready = [seat for seat in self._seats if seat.is_ready]
                    if ready:
                        return min(ready, key=lambda seat: seat.under_way)
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AuditError(
                f"--engine ray: no worker started within {_START_S:.0f} s: each needs one free CPU, and the "
                f"cluster has {self._cluster.cpus} in all"
            ) from None

    def _open(self) -> None:
        """One more worker, used from when it is ready."""
        self._last += 1
        at_once = self._live.concurrency + 8
        remote = self._cluster.hold(Worker, self._brief, self._last, self._limits, at_once=at_once)
        seat = _Seat(remote, self._last)
        self._seats.append(seat)
        task = asyncio.create_task(self._start(seat))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self, seat: _Seat) -> None:
        try:
            self._problem = await seat.remote.ask("begin") or self._problem
            seat.is_ready = True
            self._lost_at_start = 0
        except Lost as error:
            self._lost_at_start += 1
            if self._lost_at_start < _MOST_LOST:
                self._replace(seat)
            else:
                self._problem = f"--engine ray, while a worker started: {error}"
        self._changed.set()

    def _replace(self, lost: _Seat) -> None:
        if lost not in self._seats:
            return
        self._seats.remove(lost)
        lost.remote.end()  # it may be cut off only, and go on asking
        self._live.note(f"worker {lost.number} was lost, and what it was at is asked again")
        if self._limits is not None:
            self._limits.tell("forget", lost.number)
        self._open()


@asynccontextmanager
async def ray_workers(live: Live, engine: RayEngine) -> AsyncIterator[RayWorkers]:
    """Workers on Ray, for as long as the run goes. Raises AuditError where none starts."""
    variables = variables_of(live.config)
    with Cluster(engine.address, engine.workers or os.cpu_count() or 1, variables) as cluster:
        workers = RayWorkers(live, cluster, engine.workers or max(cluster.cpus, 1))
        await workers.ready()
        yield workers


def refuse_ray(engine: RayEngine, config: Config) -> None:
    """Raises AuditError where the run cannot be had on Ray, as far as that is seen before it begins."""
    variables_of(config)
    refuse_unreachable(engine.address)


def variables_of(config: Config) -> dict[str, str]:
    """Variable -> key, of the profiles in use. Raises BadRequest where a key stands anywhere else."""
    used, found = set(config.role_names()), {}
    for profile in config.profiles:
        if profile.name not in used:
            continue
        if keys_in(dict(profile.extra)) or keys_of_query(_query(profile)):
            raise BadRequest(
                f"--engine ray: profile {profile.name!r} has a key in base_url or extra, which would pass "
                "through Ray's store: give it by api_key_env"
            )
        if profile.api_key is None:
            continue
        if profile.api_key_env is None:
            raise BadRequest(
                f"--engine ray: profile {profile.name!r} has its key in the file, and workers take keys from "
                "their environment only: put it into a variable and name that in api_key_env"
            )
        found[profile.api_key_env] = profile.api_key.get_secret_value()
    return found


def without_keys(config: Config) -> Config:
    """The config as it may pass through Ray's store."""
    used = set(config.role_names())
    profiles = []
    for profile in config.profiles:
        changes: dict[str, Any] = {"api_key": None}
        if profile.name not in used:
            changes |= {"extra": {}, "base_url": shown_url(profile.base_url)}
        profiles.append(profile.model_copy(update=changes))
    return config.model_copy(update={"profiles": profiles})


def _query(profile: Profile) -> dict[str, str]:
    return dict(parse_qsl(urlsplit(profile.base_url).query))


def _id_of(item: Any) -> str:
    if isinstance(item, dict):
        return str(item.get("pair_id") or item.get("session_id"))
    return f"{item.place.task_id}, {item.place.agent}, trial {item.place.trial}"
