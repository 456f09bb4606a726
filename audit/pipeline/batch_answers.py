"""Batch, second part: result lines, in any order and from anywhere, become rows of judge_logs, each once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from audit.doors import ask_batches, store, store_batches, store_live
from audit.doors.db import reading, writing
from audit.doors.llm_answer import Answer
from audit.doors.llm_batch_lines import is_passing, refused_part, reply_in
from audit.pipeline.asking import read_verdict_in
from audit.pipeline.budget import ROLES
from audit.pipeline.calls import Read, log_of
from audit.pipeline.live import Live
from audit.verbs.pointwise import read_satisfaction
from audit.verbs.spending import spent_by
from audit.words.calls import Reply
from audit.words.records import BatchLine, JudgeLog
from audit.words.text import from_json

_AT_ONCE = 256


class Result(NamedTuple):
    """One line of a results file: to which question, and what the gateway said."""

    custom_id: str
    answer: Answer


@dataclass(slots=True)
class Taken:
    """What became of result lines; `passed_over` came for lines that did not wait, or not any more."""

    stored: int = 0
    failed: int = 0
    passed_over: int = 0
    unknown: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Found:
    """What a handful of result lines changes."""

    logs: list[JudgeLog] = field(default_factory=list)
    closed: list[store_batches.Closed] = field(default_factory=list)
    satisfaction: list[tuple[float | None, str]] = field(default_factory=list)
    pair_ids: set[str] = field(default_factory=set)
    batch_ids: set[str] = field(default_factory=set)


def take(live: Live, results: Sequence[Result]) -> Taken:
    """Store the results: calls, lines and counts in one transaction, so that none counts twice."""
    taken = Taken()
    with reading(live.engine) as connection:
        failures = ask_batches.failures(connection, live.run.run_id)
    for start in range(0, len(results), _AT_ONCE):
        some = results[start : start + _AT_ONCE]
        found = _Found()
        with writing(live.engine) as connection:
            named = ask_batches.lines_named(connection, [result.custom_id for result in some])
            for custom_id, answer in some:
                run_id, line = named.pop(custom_id, (None, None))
                if line is None or run_id != live.run.run_id:
                    is_repeated = any(row.custom_id == custom_id for row in found.closed)
                    taken.passed_over += is_repeated
                    taken.unknown += [] if is_repeated else [custom_id]
                elif line.state != "open":
                    taken.passed_over += 1
                else:
                    place = (line.pair_id or line.session_id, line.role, line.profile, line.presented_order)
                    _sort_in(live, line, answer, failures.get((*place, line.attempt), 0), found)
            store.add_logs(connection, found.logs)
            store_batches.close_lines(connection, found.closed)
            store_live.set_satisfaction(connection, found.satisfaction)
            store_batches.unsettle(connection, sorted(found.pair_ids))
            for batch_id in sorted(found.batch_ids):
                store_batches.count_closed(connection, batch_id)
        taken.stored += len(found.logs)
        taken.failed += len(found.closed) - len(found.logs)
        logs = [[log] for log in found.logs]
        for calls in logs + [[]] * (len(found.closed) - len(logs)):
            live.meter.count(calls)
            live.budget.count(calls)
            for log in calls:
                live.budget.add(ROLES[log.role], spent_by(log, live.config))
    return taken


def _sort_in(live: Live, line: BatchLine, answer: Answer, failures: int, found: _Found) -> None:
    """Is it an answer, or to be asked again: a part of the request refused, or a failure that may pass?"""
    endpoint = live.endpoint(line.profile)
    body: dict[str, Any] = from_json(line.request_json or "{}")
    reply = reply_in(live.models, endpoint, answer, body)
    refused = refused_part(answer, body)
    state = "stored"
    if refused is not None:
        state = "refused"
    elif not answer.is_success and is_passing(answer) and failures + 1 < endpoint.attempts:
        state = "failed"
    else:
        found.logs.append(_log(live, line, reply, found))
    error = None if state == "stored" else reply.error
    found.closed.append(store_batches.Closed(state, refused, error, None, line.custom_id))
    found.batch_ids.add(line.batch_id)


def _log(live: Live, line: BatchLine, reply: Reply, found: _Found) -> JudgeLog:
    """The call as the live judge would have logged it, and what it changes beside."""
    if line.pair_id is not None:
        read = read_verdict_in(reply, "AB" if line.presented_order == "AB" else "BA")[1]
        found.pair_ids.add(line.pair_id)
    else:
        told = read_satisfaction(reply.content, reply.status == "truncated")
        read = Read("error" if reply.status == "error" else told.status, told.parsed_json)
        found.satisfaction.append((told.value, line.session_id or ""))
    log = log_of(
        reply,
        read,
        run_id=live.run.run_id,
        endpoint=live.endpoint(line.profile),
        prompt=live.prompt("satisfaction" if line.pair_id is None else "judge_pair"),
        pair_id=line.pair_id,
        session_id=line.session_id,
        order=line.presented_order,
        attempt=line.attempt,
    )
    # Of the template that was sent: the program may have got another one since.
    return log._replace(prompt_hash=line.prompt_hash)
