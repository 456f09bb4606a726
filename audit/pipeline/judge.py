"""Judge: every pair of sessions asked in both orders, and every session how satisfied its customer can be."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from sqlalchemy import Connection

from audit.doors import store, store_live, waiting
from audit.doors.db import reading, writing
from audit.pipeline.asking import Judged, Satisfied
from audit.pipeline.batch_rounds import refuse_waiting
from audit.pipeline.live import Live
from audit.pipeline.to_judge import pairs_to_judge, sessions_to_ask
from audit.pipeline.units import Workers

SIZE = 100


async def judge(live: Live, workers: Workers) -> None:
    """Ask what is not answered yet: pairs first, then the satisfaction question."""
    refuse_waiting(live)
    await _judge_pairs(live, workers)
    await _ask_satisfaction(live, workers)


async def _judge_pairs(live: Live, workers: Workers) -> None:
    with reading(live.engine) as connection:
        found = pairs_to_judge(connection, live)[: live.limit]

    def keep(judged: list[Judged]) -> None:
        with writing(live.engine) as connection:
            store.add_logs(connection, [log for one in judged for log in one.logs])
            store_live.set_judgments(connection, [one.update for one in judged if one.update is not None])
        for one in judged:
            live.meter.count(one.logs)

    live.begin("judge", len(found))
    pairs = _read(live, found, waiting.pairs_to_judge)
    await live.work(partial(workers.do, "pair"), keep).through(pairs)


async def _ask_satisfaction(live: Live, workers: Workers) -> None:
    with reading(live.engine) as connection:
        found = sessions_to_ask(connection, live, retry=live.retry_errors)[: live.limit]

    def keep(asked: list[Satisfied]) -> None:
        with writing(live.engine) as connection:
            store.add_logs(connection, [log for one in asked for log in one.logs])
            store_live.set_satisfaction(connection, [(one.satisfaction, one.session_id) for one in asked])
            cut = [(one.source_json, one.session_id) for one in asked if one.source_json is not None]
            store_live.set_source(connection, cut)
        for one in asked:
            live.meter.count(one.logs)

    live.begin("satisfaction", len(found))
    sessions = _read(live, found, waiting.sessions_to_ask)
    await live.work(partial(workers.do, "satisfaction"), keep).through(sessions)


def _read(
    live: Live, ids: list[str], rows: Callable[[Connection, list[str]], list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """What is to be asked, read from the database as it is needed: only ids are all held at once."""
    for start in range(0, len(ids), SIZE):
        with reading(live.engine) as connection:
            found = rows(connection, ids[start : start + SIZE])
        yield from found
