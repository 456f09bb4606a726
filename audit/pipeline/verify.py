"""Verify: every session without a finding is checked, and the findings brought to the pairs."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from audit.doors import store, store_live, waiting
from audit.doors.db import reading, writing
from audit.pipeline.checking import Checked
from audit.pipeline.live import Live
from audit.pipeline.units import Workers

SIZE = 100


async def verify(live: Live, workers: Workers) -> None:
    """Check every session without a finding, and bring the findings to the pairs."""
    with reading(live.engine) as connection:
        total = waiting.count_unverified(connection, live.run.run_id, live.retry_errors)

    def keep(found: list[Checked]) -> None:
        with writing(live.engine) as connection:
            store.add_logs(connection, [log for one in found for log in one.logs])
            store_live.set_findings(connection, [one.finding for one in found if one.finding is not None])
        for one in found:
            live.meter.count(one.logs)

    asks_models = any(item.kind == "llm" for task in live.tasks for item in task.checks)

    async def may_go_on() -> bool:
        """Is there budget left, where checking takes any?"""
        return not asks_models or await live.may_go_on()

    live.begin("verify", total)
    work = live.work(partial(workers.do, "check"), keep, may_go_on)
    try:
        await work.through(_unverified(live))
    finally:
        with writing(live.engine) as connection:
            store_live.copy_findings(connection, live.run.run_id)


def _unverified(live: Live) -> Iterator[dict[str, Any]]:
    after = ""
    while True:
        with reading(live.engine) as connection:
            found = waiting.unverified(connection, live.run.run_id, after, SIZE, live.retry_errors)
        if not found:
            return
        yield from found
        after = found[-1]["session_id"]
