"""The door for reads of batches: which are under way, and which lines of a run still wait."""

from collections.abc import Iterator, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, text

from audit.words.records import BatchLine, ProviderBatch

# (pair_id or session_id, role, profile, presented_order): what a line asks.
Place = tuple[str, str, str, str | None]
_PLACE = (
    "coalesce(batch_lines.pair_id, batch_lines.session_id), batch_lines.role, batch_lines.profile, "
    "batch_lines.presented_order"
)
_OF_RUN = (
    "from batch_lines inner join provider_batches on provider_batches.batch_id = batch_lines.batch_id "
    "where provider_batches.run_id = :run_id"
)


def batches(connection: Connection, run_id: str, statuses: Sequence[str]) -> list[ProviderBatch]:
    """The run's batches with one of these statuses, the oldest first."""
    query = text(
        f"select {', '.join(ProviderBatch._fields)} from provider_batches "  # noqa: S608 - our own names
        "where run_id = :run_id and status in :statuses order by created_at, batch_id"
    ).bindparams(bindparam("statuses", expanding=True))
    found = connection.execute(query, {"run_id": run_id, "statuses": list(statuses)})
    return [ProviderBatch(*row) for row in found]


def open_requests(connection: Connection, batch_id: str, size: int = 500) -> Iterator[tuple[str, str]]:
    """(custom_id, request_json) of the lines of a batch that wait, in the order they were made."""
    query = text(
        "select custom_id, request_json from batch_lines where batch_id = :batch_id and state = 'open' "
        "and custom_id > :after order by custom_id limit :size"
    )
    after = ""
    while True:
        values = {"batch_id": batch_id, "after": after, "size": size}
        found = connection.execute(query, values).all()
        if not found:
            return
        yield from ((row[0], row[1]) for row in found)
        after = found[-1][0]


def lines_named(connection: Connection, custom_ids: Sequence[str]) -> dict[str, tuple[str, BatchLine]]:
    """custom_id -> (run_id, line), of those that there are."""
    query = text(
        f"select provider_batches.run_id, {', '.join(f'batch_lines.{name}' for name in BatchLine._fields)} "  # noqa: S608
        "from batch_lines inner join provider_batches on provider_batches.batch_id = batch_lines.batch_id "
        "where custom_id in :ids"
    ).bindparams(bindparam("ids", expanding=True))
    found = connection.execute(query, {"ids": list(custom_ids)})
    return {row[1]: (row[0], BatchLine(*row[1:])) for row in found}


def open_places(connection: Connection, run_id: str) -> set[Place]:
    """What the run's open lines ask: none of it is asked once more meanwhile."""
    query = f"select {_PLACE} {_OF_RUN} and state = 'open'"
    return {(row[0], row[1], row[2], row[3]) for row in connection.execute(text(query), {"run_id": run_id})}


def count_open(connection: Connection, run_id: str) -> dict[str, int]:
    """status of a batch -> how many lines of such batches wait, of one run."""
    query = f"select status, count(*) {_OF_RUN} and state = 'open' group by status"
    return {row[0]: int(row[1]) for row in connection.execute(text(query), {"run_id": run_id})}


def failures(connection: Connection, run_id: str) -> dict[tuple[Any, ...], int]:
    """(place..., attempt) -> how many lines with just this question have failed before."""
    query = f"select {_PLACE}, attempt, count(*) {_OF_RUN} and state = 'failed' group by 1, 2, 3, 4, 5"
    return {tuple(row[:5]): int(row[5]) for row in connection.execute(text(query), {"run_id": run_id})}


def refusals(connection: Connection, run_id: str) -> dict[str, tuple[str, ...]]:
    """profile -> what of a request its gateway refused in this run, in the order it did."""
    query = (
        f"select batch_lines.profile, refused, min(custom_id) {_OF_RUN} and refused is not null "
        "group by 1, 2 order by min(provider_batches.created_at), 3"
    )
    found: dict[str, tuple[str, ...]] = {}
    for profile, refused, _ in connection.execute(text(query), {"run_id": run_id}):
        found[profile] = (*found.get(profile, ()), refused)
    return found


def last_log_id(connection: Connection) -> int:
    """The newest call of all: those that come later have a higher number."""
    return int(connection.execute(text("select coalesce(max(log_id), 0) from judge_logs")).scalar_one())
