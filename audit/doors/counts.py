"""The door for counts: what the report needs of a run, grouped by the database as far as a task allows.

No row here is a pair, but where every pair of agents met once on a task: what comes is streamed.
"""

from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, text

from audit.doors.ask_review import BEST_SUCCESS, SAID_SUCCESS
from audit.words.names import OUTCOMES

# Both orders lean to one place: they name it, or one does and the other says tie.
_PRIMACY = "(pref_ab = 'A' and pref_ba in ('B', 'tie')) or (pref_ab = 'tie' and pref_ba = 'B')"
_RECENCY = "(pref_ab = 'B' and pref_ba in ('A', 'tie')) or (pref_ab = 'tie' and pref_ba = 'A')"
_COUNTS: dict[str, str] = {
    "pairs": "count(*)",
    "decidable": "count(*) filter (where outcome not in ('unverified', 'reward_tie'))",
    **{outcome: f"count(*) filter (where outcome = '{outcome}')" for outcome in OUTCOMES},
    "both_read": "count(is_consistent)",
    "consistent": "count(*) filter (where is_consistent = 1)",
    "both_named": "count(*) filter (where pref_ab is not null and pref_ba is not null)",
    "agree": "count(*) filter (where pref_ab = pref_ba)",
    "primacy": f"count(*) filter (where {_PRIMACY})",
    "recency": f"count(*) filter (where {_RECENCY})",
    "first_named": "count(*) filter (where pref_ab = 'A') + count(*) filter (where pref_ba = 'B')",
    "side_named": "count(*) filter (where pref_ab in ('A', 'B')) "
    "+ count(*) filter (where pref_ba in ('A', 'B'))",
}
PAIR_KEYS = ("task_id", "category", "gap_bucket")
PAIR_COUNTS = tuple(_COUNTS)


def pair_counts(connection: Connection, run_id: str, gate: str) -> Iterator[tuple[Any, ...]]:
    """PAIR_KEYS and PAIR_COUNTS of every group of pairs of one task, category and gap bucket."""
    keys = ", ".join(PAIR_KEYS)
    yield from _streamed(
        connection,
        f"select {keys}, {', '.join(_COUNTS.values())} from audit_pairs "  # noqa: S608 - our own columns
        f"where run_id = :run_id and gate = :gate group by {keys}",
        run_id=run_id,
        gate=gate,
    )


def calls_by_task(connection: Connection, run_id: str, gate: str) -> list[tuple[str, int, int]]:
    """(task_id, calls of the gate's judges, those of them that failed)."""
    # Only a judge's calls name a pair, so an index alone counts them; those that failed are few.
    made = _streamed(
        connection,
        "select audit_pairs.task_id, count(*) from audit_pairs "
        "inner join judge_logs on judge_logs.pair_id = audit_pairs.pair_id "
        "where audit_pairs.run_id = :run_id and audit_pairs.gate = :gate group by audit_pairs.task_id",
        run_id=run_id,
        gate=gate,
    )
    failed = dict(
        _streamed(
            connection,
            "select audit_pairs.task_id, count(*) from judge_logs "
            "inner join audit_pairs on audit_pairs.pair_id = judge_logs.pair_id "
            "where judge_logs.run_id = :run_id and judge_logs.role = 'judge' "
            "and judge_logs.parse_status = 'error' and audit_pairs.gate = :gate group by audit_pairs.task_id",
            run_id=run_id,
            gate=gate,
        )
    )
    return [(task, calls, failed.get(task, 0)) for task, calls in made]


def calls_by_role(connection: Connection, run_id: str) -> dict[str, int]:
    """role -> calls of the whole run."""
    return dict(
        _streamed(
            connection,
            "select role, count(*) from judge_logs where run_id = :run_id group by role",
            run_id=run_id,
        )
    )


def used(connection: Connection, run_id: str) -> list[dict[str, Any]]:
    """What the run's calls used, by role and profile; without those that failed and told no tokens.

    `guessed` calls told none, and have `chars` characters; `unsplit` ones, those among them, did not tell
    prompt and completion apart, so that their cost is not known: they told `unsplit_tokens`.
    """
    query = """
        select
            role,
            profile,
            coalesce(sum(total_tokens), 0) as total_tokens,
            coalesce(sum(prompt_tokens) filter (where completion_tokens is not null), 0) as prompt_tokens,
            coalesce(sum(completion_tokens) filter (where prompt_tokens is not null), 0) as completion_tokens,
            count(*) filter (where total_tokens is null) as guessed,
            count(*) filter (where prompt_tokens is null or completion_tokens is null) as unsplit,
            coalesce(sum(total_tokens) filter (where prompt_tokens is null or completion_tokens is null), 0)
                as unsplit_tokens,
            coalesce(sum(length(request_json)) filter (where total_tokens is null), 0)
                + coalesce(sum(length(raw_output)) filter (where total_tokens is null), 0) as chars
        from judge_logs
        where run_id = :run_id and (total_tokens is not null or parse_status <> 'error')
        group by role, profile
    """
    found = connection.execute(text(query), {"run_id": run_id}).mappings()
    # PostgreSQL gives sums of whole numbers as decimals, which no float can be multiplied with.
    texts = ("role", "profile")
    return [{name: row[name] if name in texts else int(row[name]) for name in row} for row in found]


def session_tokens(connection: Connection, run_id: str) -> int | None:
    """Tokens of the agents' calls, where any are known."""
    query = "select sum(total_tokens) from sessions where run_id = :run_id"
    found = connection.execute(text(query), {"run_id": run_id}).scalar()
    return None if found is None else int(found)


def agent_meetings(
    connection: Connection, run_id: str, gate: str
) -> Iterator[tuple[str, str, str, float | None, float | None, int, int, int, int]]:
    """(one, other, task_id, reward of one, of the other, pairs, wins of one, of the other, verdicts).

    Streamed in the order of the two agents, then the task; whichever side each stood on.
    """
    yield from _streamed(
        connection,
        """
        select
            case when agent_a < agent_b then agent_a else agent_b end as one,
            case when agent_a < agent_b then agent_b else agent_a end as other,
            task_id,
            case when agent_a < agent_b then reward_a else reward_b end as reward_one,
            case when agent_a < agent_b then reward_b else reward_a end as reward_other,
            count(*),
            count(*) filter (where judge_pref = case when agent_a < agent_b then 'A' else 'B' end),
            count(*) filter (where judge_pref = case when agent_a < agent_b then 'B' else 'A' end),
            count(judge_pref)
        from audit_pairs
        where run_id = :run_id and gate = :gate and agent_a <> agent_b
        group by 1, 2, 3, 4, 5
        order by 1, 2, 3
        """,
        run_id=run_id,
        gate=gate,
    )


def decided_by_gap(connection: Connection, run_id: str, gate: str) -> Iterator[tuple[str, float, int, int]]:
    """(task_id, reward_gap, misselected, decided) of the decided pairs that have a gap, streamed."""
    yield from _streamed(
        connection,
        "select task_id, reward_gap, count(*) filter (where outcome = 'misselected'), count(*) "
        "from audit_pairs where run_id = :run_id and gate = :gate "
        "and outcome in ('correct', 'misselected') and reward_gap is not null group by task_id, reward_gap",
        run_id=run_id,
        gate=gate,
    )


def satisfaction_groups(
    connection: Connection, run_id: str
) -> Iterator[tuple[str | None, str, float, int, int]]:
    """(task_id, agent, satisfaction, failed, sessions) of the sessions with a satisfaction and a success.

    What people say counts, but where a rule says it.
    """
    yield from _streamed(
        connection,
        f"with {SAID_SUCCESS} "  # noqa: S608 - our own text
        "select task_id, agent, satisfaction, count(*) filter (where success = 0), count(*) from ("
        "select sessions.task_id, coalesce(sessions.agent, '') as agent, sessions.satisfaction, "
        f"{BEST_SUCCESS} as success from sessions left join said on said.session_id = sessions.session_id "
        "where sessions.run_id = :run_id and sessions.satisfaction is not null) as known "
        "where success is not null group by 1, 2, 3 order by 1, 2, 3",
        run_id=run_id,
    )


def satisfactions(connection: Connection, run_id: str) -> int:
    """How many sessions have a satisfaction, verified or not."""
    query = "select count(satisfaction) from sessions where run_id = :run_id"
    return int(connection.execute(text(query), {"run_id": run_id}).scalar_one())


def _streamed(connection: Connection, query: str, **values: Any) -> Iterator[Any]:
    # For this statement alone: set on the connection, it would turn later updates into cursors.
    for row in connection.execute(text(query), values, execution_options={"yield_per": 1000}):
        yield tuple(row)
