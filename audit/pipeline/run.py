"""Run: simulate, judge, verify, score. Each stage goes on where the database says it stands."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Engine

from audit.doors import ask, counts, store_live, waiting
from audit.doors.config import keys_of
from audit.doors.db import reading, writing
from audit.doors.lease import leased
from audit.doors.limited import give_up, take_up
from audit.doors.llm import Models
from audit.doors.tasks import load_tasks
from audit.pipeline import planning, recorded
from audit.pipeline.batch_rounds import check_batch, judge_by_batch
from audit.pipeline.budget import Budget, refuse_unknown_prices
from audit.pipeline.expected import units
from audit.pipeline.judge import judge
from audit.pipeline.live import Live, Meter
from audit.pipeline.ray_workers import RayEngine, ray_workers, refuse_ray
from audit.pipeline.scoring import score_run
from audit.pipeline.simulate import simulate
from audit.pipeline.standing import failed_share, left, settle_status
from audit.pipeline.units import Units, Workers
from audit.pipeline.verify import verify
from audit.pipeline.work import Stopped
from audit.pipeline.workplace import keys_for, transports
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.records import Run
from audit.words.tasks import Task

STAGES = ("simulate", "judge", "verify", "score")
RECORDED_STAGES = ("judge", "score")


class Order(NamedTuple):
    """What the command was asked for."""

    config: Config
    stages: Sequence[str] = STAGES
    concurrency: int = 16
    resume: str | None = None
    new: bool = False
    name: str | None = None
    retry_errors: bool = False
    limit: int | None = None
    batch: bool = False
    ray: RayEngine | None = None  # where not in this process
    is_named: bool = True  # was the config named or there, or is it the embedded one?


class Ran(NamedTuple):
    """How it went; `status` as `settle_status` says it."""

    run: Run
    status: str
    meter: Meter


def run(
    engine: Engine,
    order: Order,
    tell: Callable[[Meter], None],
    announce: Callable[[Run, bool], None],
) -> Ran:
    """Do the stages in order. KeyboardInterrupt passes through after what was done is stored."""
    config = order.config
    keys = keys_for(config)
    refuse_unknown_prices(config, keys_of(config))
    if order.ray is not None:
        refuse_ray(order.ray, config)
    found, is_new, tasks = _begin(engine, order)
    announce(found, is_new)
    if found.kind == "live" and found.status == "complete" and not order.retry_errors:
        return Ran(found, "complete", Meter())
    if found.kind == "live" and not is_new and order.resume is None and tuple(order.stages) == STAGES:
        with reading(engine) as connection:
            calls, failed = failed_share(connection, found)
            # All that keeps it from being complete are calls that failed: another night, another try.
            if failed > config.max_error_rate * calls and not any(left(connection, found).values()):
                order = order._replace(retry_errors=True)
    with leased(engine, found.run_id):
        return _work(engine, order, found, tasks, keys, Meter(tell=tell))


def _work(
    engine: Engine,
    order: Order,
    found: Run,
    tasks: list[Task],
    keys: Mapping[str, str | None],
    meter: Meter,
) -> Ran:
    """The stages of a run that nobody else is at work on."""
    stages = order.stages if found.kind == "live" else RECORDED_STAGES
    _set_status(engine, found, "running")
    try:
        is_done = asyncio.run(_stages(engine, order._replace(stages=stages), found, tasks, keys, meter))
    except BaseException:
        _set_status(engine, found, "stopped")
        raise
    finally:
        take_up()
    with writing(engine) as connection:
        status = settle_status(connection, found, stages, order.config.max_error_rate)
    return Ran(found, status if is_done or status.startswith("too_many") else "stopped", meter)


def _begin(engine: Engine, order: Order) -> tuple[Run, bool, list[Task]]:
    """The run to work on, whether it is new, and its tasks (of recorded sessions none)."""
    config, is_new = order.config, False
    wanted = order.resume
    if config.sessions is not None and wanted is None:
        wanted, is_new = recorded.import_of(engine, config, order.name)
    if wanted is not None and _is_import(engine, wanted):
        if "judge" not in order.stages:
            raise BadRequest(f"run {wanted} was imported: `judge` judges it, `verify` needs --checks")
        recorded.refuse_embedded(wanted, is_named=order.is_named)
        return recorded.judge_now(engine, wanted, config), is_new, []
    tasks = load_tasks([Path(path) for path in config.tasks])
    with writing(engine) as connection:
        may_begin = "simulate" in order.stages
        wish = planning.Wish(order.resume, order.new, order.name, may_begin, order.retry_errors)
        found, is_new = planning.begin(connection, config, tasks, wish)
    return found, is_new, tasks


def _is_import(engine: Engine, wanted: str) -> bool:
    with reading(engine) as connection:
        return ask.run_named(connection, wanted).kind == "import"


async def _stages(
    engine: Engine, order: Order, found: Run, tasks: list[Task], keys: Mapping[str, str | None], meter: Meter
) -> bool:
    """The stages, one after the other; false where the budget did not reach to the end."""
    budget = Budget(order.config, units(order.config, tasks), order.concurrency)
    with reading(engine) as connection:
        agents = waiting.agents(connection, found.run_id) if found.kind == "import" else []
        budget.count_before(counts.used(connection, found.run_id))
    async with Models(keys, order.concurrency, transports()) as models:
        live = Live(
            engine=engine,
            run=found,
            config=order.config,
            tasks=tasks,
            models=models,
            allowance=budget,
            note=meter.note,
            concurrency=order.concurrency,
            budget=budget,
            meter=meter,
            limit=order.limit,
            retry_errors=order.retry_errors,
            recorded_agents=frozenset(agents),
        )
        try:
            async with _workers(live, order.ray) as workers:
                await _calling_stages(live, workers, order)
        except Stopped:
            return False
        except asyncio.CancelledError:
            # A check of a user's that is at work would hold the end up for as long as it may take.
            give_up()
            raise
        finally:
            meter.used = budget.total()
            meter.over_budget = None if meter.stopped_by else budget.refusal()
    if "score" in order.stages:
        score_run(engine, found.run_id)
    return True


async def _calling_stages(live: Live, workers: Workers, order: Order) -> None:
    """The stages that ask models. Raises Stopped where something is left to do."""
    if order.batch:
        await check_batch(live)
    if "simulate" in order.stages:
        await simulate(live, workers)
    if "judge" in order.stages:
        if live.run.kind == "live":
            with writing(live.engine) as connection:
                planning.plan_pairs(connection, live.run, order.config, live.tasks)
        await (judge_by_batch(live) if order.batch else judge(live, workers))
    if "verify" in order.stages:
        await verify(live, workers)


@asynccontextmanager
async def _workers(live: Live, ray: RayEngine | None) -> AsyncIterator[Workers]:
    """Where units of work are done: in this process, or in Ray workers."""
    if ray is None:
        yield Units(live)
        return
    async with ray_workers(live, ray) as workers:
        yield workers


def _set_status(engine: Engine, found: Run, status: str) -> None:
    with writing(engine) as connection:
        store_live.set_status(connection, found.run_id, status)
