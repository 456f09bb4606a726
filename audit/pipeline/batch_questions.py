"""Batch, first part: what is still to be asked becomes lines of batches; what is all answered is settled."""

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from audit.doors import ask_batches, store_batches, store_live, waiting
from audit.doors.db import reading, writing
from audit.doors.llm_batch_lines import stored_body
from audit.doors.prompts import Prompt
from audit.pipeline.asking import PAIR_SCHEMA, SATISFACTION_SCHEMA, Asking, Question, pair_seed
from audit.pipeline.live import Live
from audit.pipeline.to_judge import pairs_to_judge, sessions_to_ask
from audit.verbs.spending import CHARS_A_TOKEN, Spent
from audit.words import clock
from audit.words.calls import Message
from audit.words.profiles import Endpoint
from audit.words.records import BatchLine, ProviderBatch
from audit.words.text import as_json

SIZE = 100
# What a provider takes as one file: OpenAI's limits, which others have taken over.
MOST_LINES = 50_000
MOST_BYTES = 200_000_000
_WRAPPING = 200  # bytes of a line around its request
_EXPECTED_COMPLETION = 512
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


class Wanted(NamedTuple):
    """What a command is to have answered; calls that failed before `errors_after` are made again."""

    pairs: list[str]
    sessions: list[str]
    errors_after: int


def wanted(live: Live) -> Wanted:
    """What of the run is not answered yet, at most `limit` of each."""
    with reading(live.engine) as connection:
        return Wanted(
            pairs_to_judge(connection, live)[: live.limit],
            sessions_to_ask(connection, live, retry=live.retry_errors)[: live.limit],
            ask_batches.last_log_id(connection) if live.retry_errors else 0,
        )


class Sheet:
    """New lines, filed in batches by profile, none larger than a provider takes.

    `left_over` counts questions that the budget did not let in.
    """

    def __init__(
        self, live: Live, status: str, most_lines: int = MOST_LINES, most_bytes: int = MOST_BYTES
    ) -> None:
        self.live = live
        self.status = status
        self.most_lines = most_lines
        self.most_bytes = most_bytes
        self.count = self.left_over = 0
        self.planned = Spent()
        live.budget.begin("judge")
        self._batches: dict[str, ProviderBatch] = {}
        self._bytes: dict[str, int] = {}
        self._unsaved: dict[str, tuple[ProviderBatch, list[BatchLine]]] = {}
        self._cuts: list[tuple[str, str]] = []
        with reading(live.engine) as connection:
            self.open_places = ask_batches.open_places(connection, live.run.run_id)
            self._refused = ask_batches.refusals(connection, live.run.run_id)
        self.open_subjects = {place[0] for place in self.open_places}

    def has_room(self) -> bool:
        """May another line be added? If not, it is counted."""
        is_stopped = not self.live.is_answered() or self.live.meter.stopped_by is not None
        has_room = not is_stopped and self.live.budget.fits_beside(self.planned)
        self.left_over += not has_room
        return has_room

    def add(
        self,
        endpoint: Endpoint,
        prompt: Prompt,
        messages: Sequence[Message],
        schema: dict[str, Any],
        seed: int | None,
        *,
        attempt: int,
        pair_id: str | None = None,
        session_id: str | None = None,
        order: str | None = None,
    ) -> None:
        """One question more."""
        refused = self._refused.get(endpoint.name, ())
        body = stored_body(self.live.models, endpoint, messages, schema, seed, refused)
        request_json = as_json(body)
        batch = self._batch(endpoint.name, len(request_json.encode()) + _WRAPPING)
        line = BatchLine(
            custom_id=f"{batch.batch_id}-{batch.count_lines:06}",
            batch_id=batch.batch_id,
            pair_id=pair_id,
            session_id=session_id,
            role=prompt.role,
            profile=endpoint.name,
            presented_order=order,
            attempt=attempt,
            prompt_hash=prompt.prompt_hash,
            state="open",
            request_json=request_json,
            refused=None,
            error=None,
        )
        _, lines = self._unsaved.get(batch.batch_id, (batch, []))
        lines.append(line)
        self._unsaved[batch.batch_id] = (batch, lines)
        self.count += 1
        self.planned += self._expected(endpoint, request_json)

    def cut(self, source_json: str | None, session_id: str) -> None:
        """How a session was cut for the judge, where it was."""
        if source_json is not None:
            self._cuts.append((source_json, session_id))

    def save(self) -> None:
        """Store what is new. Killed before, nothing of it was ever asked; killed after, all of it will be."""
        with writing(self.live.engine) as connection:
            for batch, lines in self._unsaved.values():
                store_batches.save_batch(connection, batch, lines)
            store_live.set_source(connection, self._cuts)
        self._unsaved.clear()
        self._cuts.clear()

    def _expected(self, endpoint: Endpoint, request_json: str) -> Spent:
        """What a line may take."""
        prompt = len(request_json) // CHARS_A_TOKEN
        completion = endpoint.max_tokens or _EXPECTED_COMPLETION
        price = self.live.config.price_of(endpoint.name)
        cost = 0.0 if price is None else (prompt * price.prompt + completion * price.completion) / 1e6
        return Spent(prompt + completion, cost)

    def _batch(self, profile: str, size: int) -> ProviderBatch:
        """The batch that takes a profile's next line, which it counts already."""
        batch, held = self._batches.get(profile), self._bytes.get(profile, 0)
        if batch is None or batch.count_lines >= self.most_lines or held + size > self.most_bytes:
            batch, held = _new_batch(self.live.run.run_id, profile, self.status), 0
        batch = batch._replace(count_lines=batch.count_lines + 1, updated_at=clock.now())
        self._batches[profile], self._bytes[profile] = batch, held + size
        return batch


async def review(live: Live, goal: Wanted, sheet: Sheet | None) -> Wanted:
    """Settle the pairs that all is known of; put what is to be asked of the others on the sheet, if any.

    Gives what of the goal is left.
    """
    asking = Asking(live, goal.errors_after)
    left: list[str] = []
    for start in range(0, len(goal.pairs), SIZE):
        with reading(live.engine) as connection:
            pairs = waiting.pairs_to_judge(connection, goal.pairs[start : start + SIZE])
        settled = []
        for pair in pairs:
            questions = asking.questions(pair)
            left += [pair["pair_id"]] if questions else []
            if questions and sheet is not None:
                _add_pair(asking, pair, questions, sheet)
            elif not questions and pair["judged_at"] is None:
                update = (await asking.pair(pair)).update
                settled += [] if update is None else [update]
        with writing(live.engine) as connection:
            store_live.set_judgments(connection, settled)
        if sheet is not None:
            sheet.save()
        await asyncio.sleep(0)  # an interrupt is heard here
    with reading(live.engine) as connection:
        unasked = set(sessions_to_ask(connection, live, retry=True))
    sessions = [session_id for session_id in goal.sessions if session_id in unasked]
    if sheet is not None:
        for start in range(0, len(sessions), SIZE):
            _add_sessions(asking, sessions[start : start + SIZE], sheet)
            sheet.save()
            await asyncio.sleep(0)
    return goal._replace(pairs=left, sessions=sessions)


def _add_pair(asking: Asking, pair: dict[str, Any], questions: Sequence[Question], sheet: Sheet) -> None:
    for endpoint, order, attempt in questions:
        place = (pair["pair_id"], asking.pair_prompt.role, endpoint.name, order)
        if place not in sheet.open_places and sheet.has_room():
            sheet.add(
                endpoint,
                asking.pair_prompt,
                asking.messages(pair, order),
                PAIR_SCHEMA,
                pair_seed(endpoint, pair),
                attempt=attempt,
                pair_id=pair["pair_id"],
                order=order,
            )


def _add_sessions(asking: Asking, session_ids: Sequence[str], sheet: Sheet) -> None:
    live = sheet.live
    endpoint = live.endpoint(live.config.judges[0].members[0])
    for session, attempt in _due(live, asking.errors_after, session_ids):
        if session["session_id"] in sheet.open_subjects or not sheet.has_room():
            continue
        shown = live.shown(session["transcript_json"])
        sheet.cut(asking.with_cut(session, shown), session["session_id"])
        sheet.add(
            endpoint,
            asking.session_prompt,
            asking.session_messages(session, shown),
            SATISFACTION_SCHEMA,
            endpoint.seed,
            attempt=attempt,
            session_id=session["session_id"],
        )


def _due(
    live: Live, errors_after: int | None, session_ids: Sequence[str]
) -> Iterator[tuple[dict[str, Any], int]]:
    """(session, attempt) of those whose satisfaction question is to be asked now."""
    with reading(live.engine) as connection:
        sessions = waiting.sessions_to_ask(connection, session_ids)
        calls = waiting.satisfaction_calls(connection, session_ids)
    for session in sessions:
        log_id, attempt = calls.get(session["session_id"], (0, 0))
        failed_lately = attempt == 0 and log_id > (errors_after or 0)
        if not failed_lately:
            yield session, attempt + 1


def _new_batch(run_id: str, profile: str, status: str) -> ProviderBatch:
    now = clock.now()
    return ProviderBatch(
        batch_id="b" + "".join(secrets.choice(_ALPHABET) for _ in range(10)),
        run_id=run_id,
        profile=profile,
        status=status,
        provider_status=None,
        provider_batch_id=None,
        input_file_id=None,
        output_file_id=None,
        error_file_id=None,
        count_lines=0,
        count_stored=0,
        count_failed=0,
        error=None,
        created_at=now,
        updated_at=now,
    )
