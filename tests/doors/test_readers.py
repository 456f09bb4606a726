"""Several readers go through all views while a run writes: nobody fails, nobody waits for a lock."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from audit.doors import store
from audit.doors.db import open_database, reading, state, writing
from audit.doors.shipped import view_texts
from audit.words.records import JudgeLog, Pair, Run

READERS = 4
BATCHES, BATCH = 30, 200
NOW = "2026-01-01T00:00:00.000Z"
# Sessions of this database that wait for another's lock.
WAITING = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


def run_row() -> Run:
    known = {"run_id": "r", "kind": "live", "status": "running", "finished_at": None, "config_json": "{}"}
    known |= {"swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run", "bucket_set": "gauge"}
    return Run(**(dict.fromkeys(Run._fields, NOW) | known))


def batch(number: int) -> tuple[list[Pair], list[JudgeLog]]:
    blank: dict[str, Any] = dict.fromkeys(Pair._fields) | {"run_id": "r", "gate": "g", "trial": 0}
    blank |= {"gap_bucket": "unknown", "created_at": NOW, "outcome": "correct", "reward_a": 1.0}
    call: dict[str, Any] = dict.fromkeys(JudgeLog._fields) | {"run_id": "r", "role": "judge", "attempt": 1}
    call |= {"parse_status": "ok", "created_at": NOW, "raw_output": "[[A]]"}
    names = [f"p{number:04d}-{nth}" for nth in range(BATCH)]
    pairs = [Pair(**blank | {"pair_id": name, "task_id": f"t{number}"}) for name in names]
    return pairs, [JudgeLog(**call | {"pair_id": name}) for name in names]


def test_views_when_four_read_them_while_a_run_writes_then_none_fails_and_none_waits(
    database_url: str,
) -> None:
    writer = open_database(database_url, create=True)
    with writing(writer) as connection:
        store.add_run(connection, run_row())
    is_done = threading.Event()
    begun = threading.Barrier(READERS + 1, timeout=60)

    def read() -> tuple[int, list[int]]:
        """How many rounds, and how many pairs were there in each."""
        engine = open_database(database_url, create=False)
        counts: list[int] = []
        begun.wait()
        while not is_done.is_set() or not counts:
            with reading(engine) as connection:
                seen = connection.execute(text("select count(*) from audit_pairs")).scalar_one()
                for view in view_texts():
                    connection.execute(text(f"select * from {view}")).all()
                # One transaction sees one state: whole batches, the same at its end as at its begin.
                told = connection.execute(text("select pairs, calls from run_progress")).one()
                assert tuple(told) == (seen, seen)
                assert seen % BATCH == 0
            counts.append(seen)
        engine.dispose()
        return len(counts), counts

    def write() -> None:
        begun.wait()
        try:
            for number in range(BATCHES):
                pairs, calls = batch(number)
                with writing(writer) as connection:
                    store.add_pairs(connection, pairs)
                    store.add_logs(connection, calls)
            with writing(writer) as connection:
                store.finish_run(connection, "r", "complete")
        finally:
            is_done.set()

    with ThreadPoolExecutor(READERS + 1) as people:
        readers = [people.submit(read) for _ in range(READERS)]
        wrote = people.submit(write)
        waited = []
        while not is_done.wait(0.01):
            if database_url.startswith("postgresql"):
                with reading(writer) as connection:
                    waited.append(connection.execute(text(WAITING)).scalar_one())
        wrote.result()
        found = [one.result() for one in readers]
    with reading(writer) as connection:
        assert connection.execute(text("select count(*) from judge_logs")).scalar_one() == BATCHES * BATCH
    writer.dispose()
    assert not any(waited)
    for rounds, counts in found:
        assert rounds
        assert counts == sorted(counts)


def test_views_when_they_are_read_in_a_transaction_that_only_reads_then_postgres_refuses_to_write(
    postgres_url: str,
) -> None:
    engine = open_database(postgres_url, create=True)
    with pytest.raises(DBAPIError, match="read-only transaction"), reading(engine) as connection:
        connection.execute(text("delete from prompts"))
    with writing(engine) as connection:  # the same connection of the pool
        store.add_run(connection, run_row())
    assert state(postgres_url)["rows"]["audit_runs"] == 1
    engine.dispose()
