"""The door for reads of what people are asked to look at, and of what they said."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, text

from audit.words.records import HumanLabel, ReviewItem

# An annotator's newest word on a subject counts.
NEWEST = (
    "select label_id, row_number() over (partition by annotator, kind, pair_id, session_id "
    "order by created_at desc, label_id desc) as nth from human_labels"
)
# What most people say of a session, as table `said`; and the success that counts: a rule's, else theirs, else
# the one that was given.
SAID_SUCCESS = (
    "last_labels as (select session_id, value, row_number() over (partition by annotator, session_id "
    "order by created_at desc, label_id desc) as nth from human_labels where kind = 'success'), "
    "said as (select session_id, case "
    "when 2 * count(*) filter (where value in ('1', 'true', 'yes')) > count(*) then 1 "
    "when 2 * count(*) filter (where value in ('1', 'true', 'yes')) < count(*) then 0 end as success "
    "from last_labels where nth = 1 and value not in ('cannot tell', 'withdrawn') group by session_id)"
)
BEST_SUCCESS = (
    "case when sessions.label_source = 'rule' then coalesce(sessions.success, said.success) "
    "else coalesce(said.success, sessions.success) end"
)
_ITEMS = ", ".join(f"review_items.{name}" for name in ReviewItem._fields)
_LABELS = ", ".join(f"human_labels.{name}" for name in HumanLabel._fields)


class Waiting(NamedTuple):
    """A pair or session that people may look at; `review_id` is NULL where it never went out."""

    subject: str
    reason: str
    review_id: str | None


def pair_queue(connection: Connection, run_id: str, gate: str) -> Iterator[Waiting]:
    """All pairs of a gate whose transcripts are stored, each with the reason to look at it."""
    query = "select pair_id, reason, review_id from review_queue where run_id = :run_id and gate = :gate"
    for row in connection.execute(text(query), {"run_id": run_id, "gate": gate}):
        yield Waiting(*row)


def session_queue(connection: Connection, run_id: str) -> Iterator[Waiting]:
    """The same of single sessions."""
    query = (
        "select sessions.session_id, coalesce(review_items.reason, case "
        "when sessions.satisfaction >= 0.8 - 1e-9 and sessions.success = 0 then 'satisfied_failed' "
        "when sessions.label_source = 'llm' then 'llm_labelled' else 'random' end), review_items.review_id "
        "from sessions left join review_items on review_items.session_id = sessions.session_id "
        "where sessions.run_id = :run_id and sessions.transcript_json is not null"
    )
    for row in connection.execute(text(query), {"run_id": run_id}):
        yield Waiting(*row)


def items(connection: Connection, run_id: str | None = None) -> list[ReviewItem]:
    """What was exported of a run, or of all, in a fixed order that tells nothing of the items."""
    where = "" if run_id is None else "where run_id = :run_id"
    found = connection.execute(
        text(f"select {_ITEMS} from review_items {where} order by review_id"),  # noqa: S608 - our own names
        {} if run_id is None else {"run_id": run_id},
    )
    return [ReviewItem(*row) for row in found]


def newest_run(connection: Connection) -> str | None:
    """The newest run of which something was exported."""
    found = connection.execute(text("select max(run_id) from review_items")).scalar_one()
    return None if found is None else str(found)


def contents(connection: Connection, review_ids: Sequence[str]) -> Iterator[dict[str, Any]]:
    """What each item shows: review_id, session_a, session_b, transcript_a, transcript_b, source_json.

    Of an item that is one session the columns of side B are NULL.
    """
    query = text(
        "select review_items.review_id, a.session_id as session_a, b.session_id as session_b, "
        "a.transcript_json as transcript_a, b.transcript_json as transcript_b, a.source_json as source_json "
        "from review_items "
        "left join audit_pairs on audit_pairs.pair_id = review_items.pair_id "
        "left join sessions as a "
        "on a.session_id = coalesce(review_items.session_id, audit_pairs.session_a) "
        "left join sessions as b on b.session_id = audit_pairs.session_b "
        "where review_items.review_id in :ids order by review_items.review_id"
    ).bindparams(bindparam("ids", expanding=True))
    for start in range(0, len(review_ids), 500):
        for row in connection.execute(query, {"ids": list(review_ids[start : start + 500])}).mappings():
            yield dict(row)


def sessions_of(connection: Connection, review_ids: Sequence[str]) -> dict[str, tuple[str, str | None]]:
    """review_id -> (session_a, session_b) of the item's pair, or (the session, NULL)."""
    query = text(
        "select review_items.review_id, coalesce(review_items.session_id, audit_pairs.session_a), "
        "audit_pairs.session_b from review_items "
        "left join audit_pairs on audit_pairs.pair_id = review_items.pair_id "
        "where review_items.review_id in :ids"
    ).bindparams(bindparam("ids", expanding=True))
    found: dict[str, tuple[str, str | None]] = {}
    for start in range(0, len(review_ids), 500):
        for row in connection.execute(query, {"ids": list(review_ids[start : start + 500])}):
            found[row[0]] = (row[1], row[2])
    return found


def items_named(connection: Connection, review_ids: Sequence[str]) -> dict[str, ReviewItem]:
    """review_id -> the item, of those that are there."""
    query = text(
        f"select {_ITEMS} from review_items where review_id in :ids"  # noqa: S608 - our own names
    ).bindparams(bindparam("ids", expanding=True))
    found: dict[str, ReviewItem] = {}
    for start in range(0, len(review_ids), 500):
        rows = connection.execute(query, {"ids": list(review_ids[start : start + 500])})
        found |= {row[0]: ReviewItem(*row) for row in rows}
    return found


def newest_labels(connection: Connection, run_id: str) -> list[HumanLabel]:
    """Each annotator's newest word on each pair and session of a run, the oldest first; none taken back."""
    found = connection.execute(
        text(
            f"with newest as ({NEWEST}) select {_LABELS} from newest "  # noqa: S608 - our own names
            "inner join human_labels on human_labels.label_id = newest.label_id "
            "left join audit_pairs on audit_pairs.pair_id = human_labels.pair_id "
            "left join sessions on sessions.session_id = human_labels.session_id "
            "where newest.nth = 1 and human_labels.value <> 'withdrawn' "
            "and coalesce(audit_pairs.run_id, sessions.run_id) = :run_id "
            "order by human_labels.created_at, human_labels.label_id"
        ),
        {"run_id": run_id},
    )
    return [HumanLabel(*row) for row in found]


def all_labels(connection: Connection, subjects: Sequence[str]) -> list[HumanLabel]:
    """Everything that was ever said of these pairs and sessions, in the order in which it counts."""
    query = text(
        f"select {_LABELS} from human_labels where pair_id in :ids or session_id in :ids "  # noqa: S608
        "order by created_at, label_id"
    ).bindparams(bindparam("ids", expanding=True))
    found: list[HumanLabel] = []
    for start in range(0, len(subjects), 500):
        rows = connection.execute(query, {"ids": list(subjects[start : start + 500])})
        found += [HumanLabel(*row) for row in rows]
    return found


def agents(connection: Connection, run_id: str) -> list[str]:
    """The names of the agents of a run's sessions."""
    found = connection.execute(
        text("select distinct agent from sessions where run_id = :run_id and agent is not null"),
        {"run_id": run_id},
    )
    return [str(row[0]) for row in found]
