"""Simulate: each agent serves each task's customer, each trial on a world of its own."""

from collections.abc import Iterator
from functools import partial
from itertools import islice

from audit.doors import store, store_live, waiting
from audit.doors.db import reading, writing
from audit.pipeline.conversation import TOOL_ERROR
from audit.pipeline.live import Live
from audit.pipeline.sampled import PairPlan, Place, planned_sessions
from audit.pipeline.simulating import Held, ToHold, session_id_of
from audit.pipeline.units import Workers
from audit.words.config import MOST_SESSIONS
from audit.words.errors import BadRequest


async def simulate(live: Live, workers: Workers) -> None:
    """Hold every session that is not stored yet, and again those that the gateway broke.

    With `retry_errors` also those that the simulated user or a tool's function broke. Raises BadRequest for
    more sessions than MOST_SESSIONS.
    """
    wanted = PairPlan(live.config, live.tasks)
    count = planned_sessions(live.config, live.tasks)
    if count > MOST_SESSIONS:
        raise BadRequest(f"{count:,} sessions are planned, at most {MOST_SESSIONS:,} can be: lower trials")
    again = {"gateway", "simulator", TOOL_ERROR} if live.retry_errors else {"gateway"}
    with reading(live.engine) as connection:
        stored = waiting.session_faults(connection, live.run.run_id)
        cut = waiting.cut_sessions(connection, live.run.run_id)

    def due() -> Iterator[ToHold]:
        """Made one by one: there may be millions."""
        needed = ((place, session_id_of(live, place)) for place in plan(live) if wanted.needs(place))
        found = (
            ToHold(place, cut.get(session_id))
            for place, session_id in needed
            if stored.get(session_id, "gateway") in again
        )
        return islice(found, live.limit)

    count = sum(1 for _ in due()) if stored else min(count, live.limit or count)
    live.begin("simulate", count)

    def keep(held: list[Held]) -> None:
        with writing(live.engine) as connection:
            store_live.save_sessions(connection, [one.session for one in held])
            store.add_logs(connection, [log for one in held for log in one.logs])
        for one in held:
            live.meter.count(one.logs)

    await live.work(partial(workers.do, "session"), keep).through(due())


def plan(live: Live) -> Iterator[Place]:
    """Where every session of the run stands, task by task."""
    for task in live.tasks:
        for trial in range(live.config.trials):
            for agent in live.config.agents:
                yield Place(task.task_id, task.fingerprint, agent, trial)
