"""The door for reads of what people looked at, beside what judge and verifier say of the same rows."""

from typing import NamedTuple

from sqlalchemy import Connection, text

from audit.words.records import Run


class ReviewedPair(NamedTuple):
    """A pair that went out, under the gate that is asked for. `weight` and `reason` as in `review_items`.

    `item` is the pair's id under the gate under which it went out: people's labels are on that.
    """

    item: str
    pair_id: str
    task_id: str
    gap_bucket: str
    outcome: str | None
    misselected: int | None
    judge_pref: str | None
    session_a: str
    session_b: str
    reason: str
    weight: float


class ReviewedSession(NamedTuple):
    """A session that went out, by itself or in pairs; `pairs`: how many pairs of its run and gate hold it."""

    session_id: str
    task_id: str
    satisfaction: float | None
    success: int | None
    label_source: str | None
    pairs: int


_COLUMNS = (
    "{pair}.pair_id, {pair}.task_id, {pair}.gap_bucket, {pair}.outcome, {pair}.misselected, "
    "{pair}.judge_pref, {pair}.session_a, {pair}.session_b, review_items.reason, review_items.weight"
)


_OUT = (
    "out_pairs as (select audit_pairs.session_a, audit_pairs.session_b, audit_pairs.gate "
    "from review_items inner join audit_pairs on audit_pairs.pair_id = review_items.pair_id "
    "where review_items.run_id = :run_id), "
    "out_sessions as (select session_a as session_id from out_pairs union "
    "select session_b from out_pairs union select session_id from review_items "
    "where run_id = :run_id and session_id is not null)"
)


def reviewed_pairs(connection: Connection, run_id: str, gate: str) -> list[ReviewedPair]:
    """What went out of a run, as the pairs of `gate`: the sessions of its other gates are the same."""
    same = connection.execute(
        text(
            f"select review_items.pair_id, {_COLUMNS.format(pair='audit_pairs')} "  # noqa: S608 - our own names
            "from review_items inner join audit_pairs on audit_pairs.pair_id = review_items.pair_id "
            "where review_items.run_id = :run_id and audit_pairs.gate = :gate order by review_items.review_id"
        ),
        {"run_id": run_id, "gate": gate},
    )
    found = [ReviewedPair(*row) for row in same]
    other = connection.execute(
        text(
            f"select review_items.pair_id, {_COLUMNS.format(pair='mine')} "  # noqa: S608 - our own names
            "from review_items inner join audit_pairs as shown on shown.pair_id = review_items.pair_id "
            "inner join audit_pairs as mine on mine.run_id = shown.run_id and mine.gate = :gate "
            "and mine.session_a = shown.session_a and mine.session_b = shown.session_b "
            "where review_items.run_id = :run_id and shown.gate <> :gate order by review_items.review_id"
        ),
        {"run_id": run_id, "gate": gate},
    )
    known = {pair.pair_id for pair in found}
    # Only where nothing went out under this gate: two samples of the same pairs have no common weight.
    return found if known else [ReviewedPair(*row) for row in other]


def reviewed_sessions(connection: Connection, run_id: str) -> list[ReviewedSession]:
    """The sessions of all that went out of a run."""
    found = connection.execute(
        text(
            f"with {_OUT} "  # noqa: S608 - our own text
            "select sessions.session_id, sessions.task_id, sessions.satisfaction, sessions.success, "
            "sessions.label_source "
            "from out_sessions inner join sessions on sessions.session_id = out_sessions.session_id "
            "order by sessions.session_id"
        ),
        {"run_id": run_id},
    ).all()
    held = _pairs_of_sessions(connection, run_id) if found else {}
    return [ReviewedSession(row[0], row[1], row[2], row[3], row[4], held.get(row[0], 1)) for row in found]


def _pairs_of_sessions(connection: Connection, run_id: str) -> dict[str, int]:
    """session_id -> how many pairs of one gate, under which anything went out, hold it; of what went out."""
    rows = connection.execute(
        text(
            f"with {_OUT} "  # noqa: S608 - our own text
            "select session_id, count(*) from (select session_a as session_id, gate from audit_pairs "
            "where run_id = :run_id union all select session_b, gate from audit_pairs "
            "where run_id = :run_id) as sides where gate = (select min(out_pairs.gate) from out_pairs) "
            "and session_id in (select out_sessions.session_id from out_sessions) group by session_id"
        ),
        {"run_id": run_id},
    )
    return {row[0]: int(row[1]) for row in rows}


class Count(NamedTuple):
    """Rows of one task and gap bucket (of sessions `""`, which are in none), and how many are counted."""

    gap_bucket: str
    task_id: str
    rows: int
    flagged: int


def satisfied_sides(connection: Connection, run: Run, gate: str, cut: float) -> list[Count]:
    """Satisfied sides of pairs with a success, and those of them that failed."""
    found = connection.execute(
        text(
            "select audit_pairs.gap_bucket, audit_pairs.task_id, count(*), "
            "count(*) filter (where sessions.success = 0) "
            "from audit_pairs inner join sessions "
            "on sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b) "
            "where audit_pairs.run_id = :run_id and audit_pairs.gate = :gate "
            "and sessions.satisfaction >= :cut and sessions.success is not null "
            "group by audit_pairs.gap_bucket, audit_pairs.task_id"
        ),
        {"run_id": run.run_id, "gate": gate, "cut": cut},
    )
    return [Count(*row) for row in found]


def satisfied_sessions(connection: Connection, run_id: str, cut: float) -> list[Count]:
    """Sessions that are satisfied and have a success, and those of them that failed, people not heard."""
    found = connection.execute(
        text(
            "select '', task_id, count(*), count(*) filter (where success = 0) from sessions "
            "where run_id = :run_id and satisfaction >= :cut and success is not null group by task_id"
        ),
        {"run_id": run_id, "cut": cut},
    )
    return [Count(*row) for row in found]


def decided_pairs(connection: Connection, run_id: str, gate: str) -> list[Count]:
    """Decided pairs, and those of them that are misselected."""
    found = connection.execute(
        text(
            "select gap_bucket, task_id, count(*), count(*) filter (where outcome = 'misselected') "
            "from audit_pairs where run_id = :run_id and gate = :gate "
            "and outcome in ('correct', 'misselected') group by gap_bucket, task_id"
        ),
        {"run_id": run_id, "gate": gate},
    )
    return [Count(*row) for row in found]


def sided_pairs(connection: Connection, run_id: str, gate: str) -> list[Count]:
    """Pairs in which the judge names a side, whatever is known of the rewards; none of them is counted."""
    found = connection.execute(
        text(
            "select gap_bucket, task_id, count(*), 0 from audit_pairs where run_id = :run_id "
            "and gate = :gate and judge_pref in ('A', 'B') group by gap_bucket, task_id"
        ),
        {"run_id": run_id, "gate": gate},
    )
    return [Count(*row) for row in found]
