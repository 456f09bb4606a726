"""Run: simulate, judge, verify, score. Each stage goes on where the database says it stands."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Engine

from audit.doors import store, store_live, waiting
from audit.doors.config import keys_of
from audit.doors.db import reading, writing
from audit.doors.llm import Models
from audit.doors.tasks import load_tasks
from audit.pipeline import planning
from audit.pipeline.judge import judge
from audit.pipeline.live import Live, Meter, key_name
from audit.pipeline.scoring import score_run
from audit.pipeline.simulate import plan, session_id_of, simulate
from audit.pipeline.verify import verify
from audit.pipeline.work import Stopped
from audit.words.config import Config
from audit.words.records import Run
from audit.words.tasks import Task

STAGES = ("simulate", "judge", "verify", "score")


class Order(NamedTuple):
    """What the command was asked for."""

    config: Config
    stages: Sequence[str] = STAGES
    concurrency: int = 16
    resume: str | None = None
    new: bool = False
    retry_errors: bool = False
    limit: int | None = None


class Ran(NamedTuple):
    """How it went. `status`: complete; stopped (budget, limit or interruption); or too_many_errors."""

    run: Run
    status: str
    meter: Meter


def run(
    engine: Engine,
    order: Order,
    tell: Callable[[Meter], None],
    announce: Callable[[Run, bool], None],
    environ: Mapping[str, str] | None = None,
) -> Ran:
    """Do the stages in order. KeyboardInterrupt passes through after what was done is stored."""
    config = order.config
    keys = _keys(config, environ)
    tasks = load_tasks([Path(path) for path in config.tasks])
    with writing(engine) as connection:
        found, is_new = planning.begin(connection, config, tasks, resume=order.resume, new=order.new)
    announce(found, is_new)
    if found.status == "complete" and not order.retry_errors:
        return Ran(found, "complete", Meter())
    meter = Meter(tell=tell)
    try:
        status = asyncio.run(_stages(engine, order, found, tasks, keys, meter))
    except BaseException:
        _set_status(engine, found, "stopped")
        raise
    _set_status(engine, found, status)
    return Ran(found, status, meter)


async def _stages(
    engine: Engine, order: Order, found: Run, tasks: list[Task], keys: Mapping[str, str | None], meter: Meter
) -> str:
    """The stages, one after the other; what the run's status is then."""
    async with Models(keys, order.concurrency, transports()) as models:
        live = Live(
            engine=engine,
            run=found,
            config=order.config,
            tasks=tasks,
            models=models,
            concurrency=order.concurrency,
            meter=meter,
            limit=order.limit,
            retry_errors=order.retry_errors,
        )
        try:
            if "simulate" in order.stages:
                await simulate(live)
            if "judge" in order.stages:
                with writing(engine) as connection:
                    planning.plan_pairs(connection, found, order.config)
                await judge(live)
            if "verify" in order.stages:
                await verify(live)
        except Stopped:
            return "stopped"
    if "score" in order.stages:
        score_run(engine, found.run_id)
    return _outcome(live)


def _outcome(live: Live) -> str:
    """Complete where nothing is left to be asked; a call that failed for good counts as asked."""
    run_id = live.run.run_id
    with reading(live.engine) as connection:
        stored = waiting.session_faults(connection, run_id)
        left = sum(stored.get(session_id_of(live, item), "gateway") == "gateway" for item in plan(live))
        left += waiting.count_unjudged(connection, run_id, False)
        calls, failed = waiting.failed_calls(connection, run_id)
    if failed > live.config.max_error_rate * calls:
        return "too_many_errors"
    return "stopped" if left else "complete"


def _set_status(engine: Engine, found: Run, status: str) -> None:
    with writing(engine) as connection:
        if status == "complete":
            store.finish_run(connection, found.run_id, "complete")
        else:
            store_live.set_status(connection, found.run_id, "stopped")


def _keys(config: Config, environ: Mapping[str, str] | None) -> dict[str, str | None]:
    by_profile = keys_of(config, environ)
    return {
        key_name(profile) or profile.name: by_profile[profile.name]
        for profile in config.profiles
        if profile.name in by_profile
    }


def transports() -> dict[str, Any]:
    """What answers in this process: the synthetic models."""
    from audit.offline.transport import OfflineTransport

    return {"offline://": OfflineTransport()}
