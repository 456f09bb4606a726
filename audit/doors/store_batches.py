"""The door for writes, third part: batches of requests and their lines. Inside the caller's transaction."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

from audit.doors.store import insert, update
from audit.words import clock
from audit.words.records import BatchLine, ProviderBatch
from audit.words.text import to_stored


class Closed(NamedTuple):
    """What became of a line that waits no longer; the last field says which."""

    state: str
    refused: str | None
    error: str | None
    request_json: None
    custom_id: str


def save_batch(connection: Connection, batch: ProviderBatch, lines: Sequence[BatchLine]) -> None:
    """New lines of a batch, and the batch itself as it is now."""
    insert(connection, "provider_batches", ProviderBatch._fields, [batch], over="batch_id")
    insert(connection, "batch_lines", BatchLine._fields, lines)


def set_batch(connection: Connection, batch_id: str, **changes: Any) -> None:
    """How far a batch has come. What others wrote is made storable here."""
    found = {name: to_stored(value) if isinstance(value, str) else value for name, value in changes.items()}
    found |= {"updated_at": clock.now(), "batch_id": batch_id}
    update(connection, "provider_batches", tuple(found), [tuple(found.values())])


def close_lines(connection: Connection, rows: Sequence[Closed]) -> None:
    """These lines wait no longer."""
    stored = [row if row.error is None else row._replace(error=to_stored(row.error)) for row in rows]
    update(connection, "batch_lines", Closed._fields, stored)


def count_closed(connection: Connection, batch_id: str) -> None:
    """Bring a batch's counts to what its lines say."""
    connection.execute(
        text(
            "update provider_batches set "
            "count_stored = (select count(*) from batch_lines "
            "where batch_id = :batch_id and state = 'stored'), "
            "count_failed = (select count(*) from batch_lines "
            "where batch_id = :batch_id and state in ('failed', 'refused')), "
            "updated_at = :now where batch_id = :batch_id"
        ),
        {"batch_id": batch_id, "now": clock.now()},
    )


def drop_open(connection: Connection, batch_id: str, error: str | None) -> int:
    """Give up what of a batch still waits; how many lines that were. The batch is done."""
    dropped = connection.execute(
        text(
            "update batch_lines set state = 'dropped', request_json = null, error = :error "
            "where batch_id = :batch_id and state = 'open'"
        ),
        {"batch_id": batch_id, "error": None if error is None else to_stored(error)},
    )
    set_batch(connection, batch_id, status="done", error=error)
    return int(dropped.rowcount)


def unsettle(connection: Connection, pair_ids: Sequence[str]) -> None:
    """Answers of these pairs have come that their verdicts do not count yet."""
    update(connection, "audit_pairs", ("judged_at", "pair_id"), [(None, pair_id) for pair_id in pair_ids])
