"""Batch: the judge stage by a provider's batch API. The database is the checkpoint at every step.

A round files what is to be asked in batches, uploads and submits them, waits until the provider is done, and
stores what came. What failed, could not be read, or depends on an answer is the next round's. Killed
anywhere, the same command goes on; no line is submitted twice.
"""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from audit.doors import ask_batches, store_batches
from audit.doors.db import reading, writing
from audit.doors.llm_answer import Answer, parse
from audit.doors.llm_batch import LISTED_AFTER_S, BatchError, Provider, State
from audit.doors.llm_batch_lines import request_line, result_in
from audit.pipeline.batch_answers import Result, take
from audit.pipeline.batch_questions import Sheet, review, wanted
from audit.pipeline.live import Live
from audit.pipeline.work import Stopped
from audit.words.errors import BadRequest
from audit.words.records import ProviderBatch

UNDER_WAY = ("planned", "uploaded", "submitting", "accepted")
_FIRST_WAIT_S = 0.25
_GROWTH = 1.5
_LONGEST_WAIT_S = 60.0
_HEARTBEAT_S = 30.0
_MOST_SILENCES = 12  # polls in a row without an answer: ten minutes and more
_AT_ONCE = 256


async def check_batch(live: Live) -> None:
    """Raises AuditError where a judge's gateway has no batch API: before anything is spent."""
    for name in dict.fromkeys(live.config.judge_names()):
        await Provider(live.models, live.endpoint(name)).check()


def refuse_waiting(live: Live) -> None:
    """Raises BadRequest where lines of the run wait for a batch: asked here, they would be paid for twice."""
    with reading(live.engine) as connection:
        count = sum(ask_batches.count_open(connection, live.run.run_id).values())
    if count:
        raise BadRequest(
            f"run {live.run.run_id} waits for {count:,} answers of a batch: go on with `judge --batch`, "
            "bring them by `batch ingest`, or give them up by `batch drop`"
        )


async def judge_by_batch(live: Live) -> None:
    """Ask what is not answered yet, round by round. Raises Stopped where something is left to do."""
    goal = wanted(live)
    while True:
        await _finish(live)
        sheet = Sheet(live, "planned")
        goal = await review(live, goal, sheet)
        if not sheet.count:
            break
    with reading(live.engine) as connection:
        exported = ask_batches.count_open(connection, live.run.run_id).get("exported", 0)
    if exported:
        live.meter.stopped_by = (
            f"{exported:,} lines were exported: bring their answers by `batch ingest`, or `batch drop` them"
        )
    if exported or sheet.left_over:
        raise Stopped


async def _finish(live: Live) -> None:
    """Send what is not sent, and wait until nothing is under way; what came is stored."""
    providers: dict[str, Provider] = {}
    with reading(live.engine) as connection:
        batches = ask_batches.batches(connection, live.run.run_id, UNDER_WAY)
    for batch in batches:
        if batch.profile not in {profile.name for profile in live.config.profiles}:
            raise BadRequest(
                f"a batch of profile {batch.profile!r} is under way, which this config does not have: "
                "go on with the one that has it, or give it up by `batch drop`"
            )
        if batch.profile not in providers:
            providers[batch.profile] = Provider(live.models, live.endpoint(batch.profile))
        await _send(live, providers[batch.profile], batch)
    with reading(live.engine) as connection:
        accepted = ask_batches.batches(connection, live.run.run_id, ["accepted"])
    watch = _Watch(live, accepted)
    while watch.batches:
        for batch in list(watch.batches):
            state = await watch.state(providers[batch.profile], batch)
            if state is not None and state.is_over:
                await _take_all(live, providers[batch.profile], batch, state)
                watch.batches.remove(batch)
        if watch.batches:
            await watch.wait()


async def _send(live: Live, provider: Provider, batch: ProviderBatch) -> None:
    """Bring a batch from where it stands to `accepted`, each step stored before the next."""
    found: State | None = None
    file_id = batch.input_file_id
    if batch.status == "accepted":
        return
    if batch.status == "planned" or file_id is None:
        endpoint = live.endpoint(batch.profile)
        with reading(live.engine) as connection:
            requests = ask_batches.open_requests(connection, batch.batch_id)
            lines = [request_line(custom_id, request, endpoint) for custom_id, request in requests]
        if not lines:
            _set(live, batch, status="done")
            return
        file_id = await provider.upload(f"reward-audit-{batch.batch_id}.jsonl", lines)
        _set(live, batch, status="uploaded", input_file_id=file_id)
    elif batch.status == "submitting":
        found = await provider.find(file_id, batch.batch_id, batch.created_at)
        if found is None and (pause := LISTED_AFTER_S - _age_s(batch.updated_at)) > 0:
            await asyncio.sleep(pause)
            found = await provider.find(file_id, batch.batch_id, batch.created_at)
    if found is None:
        _set(live, batch, status="submitting")
        try:
            found = await provider.begin(file_id, batch.batch_id, batch.created_at)
        except BatchError as error:
            if not error.may_pass:  # so it was not begun, perhaps because the file is gone
                _set(live, batch, status="planned", input_file_id=None)
            raise
    _set(live, batch, status="accepted", provider_batch_id=found.batch_id, provider_status=found.status)


async def _take_all(live: Live, provider: Provider, batch: ProviderBatch, state: State) -> None:
    """Store a finished batch's results; what has none failed, or was never worked on."""
    live.meter.begin("batch answers", batch.count_lines)
    unknown = 0
    for file_id in (state.output_file_id, state.error_file_id):
        if file_id is not None:
            async for some in _results(provider, file_id):
                unknown += len(take(live, some).unknown)
    if unknown:
        live.meter.note(f"batch {batch.batch_id}: {unknown:,} result lines belong to no line of this run")
    if state.status in ("failed", "cancelled"):
        said = f"the provider's batch {state.batch_id} {_verb(state)}"
        with writing(live.engine) as connection:
            dropped = store_batches.drop_open(connection, batch.batch_id, state.error or state.status)
        if dropped:
            live.meter.stopped_by = said
    else:
        why = "expired before it was answered" if state.status == "expired" else "the results do not hold it"
        with reading(live.engine) as connection:
            rest = [custom_id for custom_id, _ in ask_batches.open_requests(connection, batch.batch_id)]
        take(live, [Result(custom_id, Answer(problem=f"batch: {why}")) for custom_id in rest])
    _set(
        live,
        batch,
        status="done",
        provider_status=state.status,
        output_file_id=state.output_file_id,
        error_file_id=state.error_file_id,
        error=state.error,
    )


def _verb(state: State) -> str:
    how = "was cancelled" if state.status == "cancelled" else "failed"
    return f"{how} ({state.error})" if state.error else how


async def _results(provider: Provider, file_id: str) -> AsyncIterator[list[Result]]:
    """The lines of a results file, some at a time. One that cannot be read is as if it were not there."""
    found: list[Result] = []
    async for line in provider.lines(file_id):
        try:
            held: Any = parse(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(held, dict) and isinstance(held.get("custom_id"), str):
            found.append(Result(held["custom_id"], result_in(held)))
        if len(found) >= _AT_ONCE:
            yield found
            found = []
    if found:
        yield found


class _Watch:
    """The batches that a provider works on: asked after at growing intervals, and what is new is told."""

    def __init__(self, live: Live, batches: list[ProviderBatch]) -> None:
        self.live = live
        self.batches = list(batches)
        self.pause = _FIRST_WAIT_S
        self.silences = 0
        self.done: dict[str, int] = {}
        self.total = sum(batch.count_lines for batch in batches)
        self.told: tuple[Any, ...] = ()
        self.told_at = 0.0

    async def state(self, provider: Provider, batch: ProviderBatch) -> State | None:
        """Where a batch stands; NULL where the provider cannot be asked just now. Raises BatchError."""
        try:
            state = await provider.state(batch.provider_batch_id or "")
        except BatchError as error:
            self.silences += 1
            if not error.may_pass or self.silences > _MOST_SILENCES:
                raise
            return None
        self.silences = 0
        self.done[batch.batch_id] = batch.count_lines if state.is_over else state.count_done or 0
        self._tell(state.status)
        return state

    async def wait(self) -> None:
        await asyncio.sleep(self.pause)
        self.pause = min(self.pause * _GROWTH, _LONGEST_WAIT_S)

    def _tell(self, status: str) -> None:
        meter, now = self.live.meter, asyncio.get_running_loop().time()
        news = (status, sum(self.done.values()))
        if news == self.told and now - self.told_at < _HEARTBEAT_S:
            return
        self.told, self.told_at = news, now
        meter.stage, meter.done, meter.total = f"batch {status}", news[1], self.total
        meter.tell(meter)


def _set(live: Live, batch: ProviderBatch, **changes: Any) -> None:
    with writing(live.engine) as connection:
        store_batches.set_batch(connection, batch.batch_id, **changes)


def _age_s(stamp: str) -> float:
    return (datetime.now(UTC) - datetime.fromisoformat(stamp)).total_seconds()
