"""The door for two runs side by side: the pairs that both have, counted by task; what each was made with."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

from audit.words.records import Run

# A pair is the same in two runs by its task (the fingerprint, where there is one), its trial and its agents;
# one whose agents are unnamed, by its own id. Equal ones, which an import may have, meet in their order.
_SIDE = """
    select
        coalesce(sessions.task_fingerprint, audit_pairs.task_id) as task,
        audit_pairs.trial,
        {one} as one,
        {other} as other,
        case when {is_unnamed} then coalesce(audit_pairs.source_pair_id, '') else '' end as own_id,
        row_number() over (
            partition by
                coalesce(sessions.task_fingerprint, audit_pairs.task_id), audit_pairs.trial, {one}, {other},
                case when {is_unnamed} then coalesce(audit_pairs.source_pair_id, '') else '' end
            order by audit_pairs.pair_id
        ) as nth,
        case when {is_turned} then reward_b else reward_a end as reward_one,
        case when {is_turned} then reward_a else reward_b end as reward_other,
        outcome,
        misselected,
        is_consistent,
        gap_buckets.is_near
    from audit_pairs
    left join sessions on sessions.session_id = audit_pairs.session_a
    left join gap_buckets
        on gap_buckets.bucket_set = :buckets_{run} and gap_buckets.label = audit_pairs.gap_bucket
    where audit_pairs.run_id = :run_{run} and audit_pairs.gate = :gate_{run}
"""
_TURNED = "coalesce(audit_pairs.agent_a, '') > coalesce(audit_pairs.agent_b, '')"
_UNNAMED = "audit_pairs.agent_a is null or audit_pairs.agent_b is null"
_ONE = (
    f"case when {_TURNED} then coalesce(audit_pairs.agent_b, '') else coalesce(audit_pairs.agent_a, '') end"
)
_OTHER = (
    f"case when {_TURNED} then coalesce(audit_pairs.agent_a, '') else coalesce(audit_pairs.agent_b, '') end"
)
_DECIDED = "{run}.outcome in ('correct', 'misselected')"
_BOTH_DECIDED = f"{_DECIDED.format(run='before')} and {_DECIDED.format(run='after')}"
_OF_EACH = {
    "decidable": "{run}.outcome not in ('unverified', 'reward_tie')",
    "correct": "{run}.outcome = 'correct'",
    "misselected": "{run}.outcome = 'misselected'",
    "decided": _DECIDED,
    "near_misselected": "{run}.outcome = 'misselected' and {run}.is_near = 1",
    "near_decided": _DECIDED + " and {run}.is_near = 1",
    "wide_misselected": "{run}.outcome = 'misselected' and {run}.is_near = 0",
    "wide_decided": _DECIDED + " and {run}.is_near = 0",
    "both_read": "{run}.is_consistent is not null",
    "consistent": "{run}.is_consistent = 1",
}
_OF_BOTH = {
    "matched": "1 = 1",
    "same_rewards": "before.reward_one = after.reward_one and before.reward_other = after.reward_other",
    "counted": "before.misselected is not null and after.misselected is not null",
    "both_misselected": "before.misselected = 1 and after.misselected = 1",
    "misselected_before": "before.misselected = 1 and after.misselected = 0",
    "misselected_after": "before.misselected = 0 and after.misselected = 1",
    "decided_twice": _BOTH_DECIDED,
    "flipped": _BOTH_DECIDED + " and before.outcome <> after.outcome",
    "near_decided_twice": _BOTH_DECIDED + " and after.is_near = 1",
    "near_flipped": _BOTH_DECIDED + " and after.is_near = 1 and before.outcome <> after.outcome",
}


def matched(
    connection: Connection, before: tuple[Run, str], after: tuple[Run, str]
) -> Iterator[dict[str, Any]]:
    """Counts by task over the pairs that both (run, gate) have; `before_` and `after_` are those of each."""
    counts = {
        f"{run}_{name}": condition.format(run=run)
        for run in ("before", "after")
        for name, condition in _OF_EACH.items()
    } | _OF_BOTH
    sides = ",\n".join(
        f"{run} as ({_SIDE.format(run=run, one=_ONE, other=_OTHER, is_turned=_TURNED, is_unnamed=_UNNAMED)})"
        for run in ("before", "after")
    )
    selected = ", ".join(
        f"count(*) filter (where {condition}) as {name}" for name, condition in counts.items()
    )
    query = (
        f"with {sides} select before.task, {selected} from before "  # noqa: S608 - our own names
        "inner join after on after.task = before.task and after.trial = before.trial "
        "and after.one = before.one and after.other = before.other and after.own_id = before.own_id "
        "and after.nth = before.nth group by before.task"
    )
    values = {
        f"{name}_{which}": value
        for which, (run, gate) in (("before", before), ("after", after))
        for name, value in (("run", run.run_id), ("gate", gate), ("buckets", run.bucket_set))
    }
    for row in connection.execute(text(query), values).mappings():
        yield dict(row)


def count_pairs(connection: Connection, run_id: str, gate: str) -> int:
    """All pairs of the gate."""
    query = "select count(*) from audit_pairs where run_id = :r and gate = :g"
    return int(connection.execute(text(query), {"r": run_id, "g": gate}).scalar_one())


def tasks(connection: Connection, run_id: str) -> dict[str, str]:
    """Task (the fingerprint, where there is one) -> its id, of the run's sessions and pairs."""
    found = connection.execute(
        text(
            "select coalesce(task_fingerprint, task_id), task_id from sessions "
            "where run_id = :run_id and task_id is not null union "
            "select task_id, task_id from audit_pairs where run_id = :run_id and session_a is null"
        ),
        {"run_id": run_id},
    )
    return {row[0]: row[1] for row in found}


def asked_with(
    connection: Connection, run_id: str
) -> list[tuple[str, str | None, str | None, str | None, str | None]]:
    """(role, profile, model, served_model, prompt_hash), each that the run's calls have, in order."""
    found = connection.execute(
        text(
            "select role, profile, model, served_model, prompt_hash from judge_logs where run_id = :run_id "
            "and parse_status <> 'error' group by role, profile, model, served_model, prompt_hash "
            "order by role, profile, model, served_model, prompt_hash"
        ),
        {"run_id": run_id},
    )
    return [(row[0], row[1], row[2], row[3], row[4]) for row in found]


def complete_runs(connection: Connection, name: str, most: int, before: Run | None = None) -> list[str]:
    """The newest complete runs of a name, at most so many, the oldest first; those older than `before`."""
    found = connection.execute(
        text(
            "select run_id from audit_runs where name = :name and status = 'complete' "
            "and (created_at < :created_at or (created_at = :created_at and run_id < :run_id)) "
            "order by created_at desc, run_id desc limit :most"
        ),
        {
            "name": name,
            "most": most,
            "created_at": before.created_at if before else "9999",
            "run_id": before.run_id if before else "",
        },
    )
    return [str(row[0]) for row in found][::-1]
