"""The door for reads of single pairs that a judge got wrong: the rows, what was done, what the judge said."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, bindparam, text

from audit.doors.ask import rows
from audit.words.text import from_stored


def worst_pairs(connection: Connection, run_id: str, gate: str, limit: int) -> list[dict[str, Any]]:
    """The misselected pairs, then the inconsistent ones; of each the largest reward gap first, of one gap
    those whose sessions lie furthest apart.
    """
    return rows(
        connection,
        """
        select
            pair_id, source_pair_id, task_id, category, trial, outcome, judge_pref, reward_gap, session_gap,
            agent_a, agent_b, session_a, session_b, reward_a, reward_b, success_a, success_b,
            judge_score_a, judge_score_b
        from audit_pairs
        where run_id = :run_id and gate = :gate and outcome in ('misselected', 'inconsistent')
        order by outcome desc, reward_gap is null, reward_gap desc, session_gap desc, pair_id
        limit :limit
        """,
        run_id=run_id,
        gate=gate,
        limit=limit,
    )


def sessions_by_id(connection: Connection, session_ids: Sequence[str]) -> dict[str, dict[str, Any]]:
    """session_id -> transcript_json and checks_json of these sessions."""
    found = connection.execute(
        text(
            "select session_id, transcript_json, checks_json from sessions where session_id in :ids"
        ).bindparams(bindparam("ids", expanding=True)),
        {"ids": list(session_ids)},
    )
    return {row["session_id"]: dict(row) for row in found.mappings()}


def last_replies(connection: Connection, pair_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """pair_id -> each judge's last call in each order, the reply as it came."""
    found = connection.execute(
        text(
            "select pair_id, presented_order, profile, preference, parse_status, parsed_json, raw_output, "
            "error from judge_logs where role = 'judge' and pair_id in :ids "
            "order by pair_id, profile, presented_order, attempt, log_id"
        ).bindparams(bindparam("ids", expanding=True)),
        {"ids": list(pair_ids)},
    )
    last = {(row["pair_id"], row["profile"], row["presented_order"]): dict(row) for row in found.mappings()}
    by_pair: dict[str, list[dict[str, Any]]] = {}
    for call in last.values():
        if call["raw_output"] is not None:
            call["raw_output"] = from_stored(call["raw_output"])
        by_pair.setdefault(call["pair_id"], []).append(call)
    return by_pair
