"""What a live run left in a SQLite file, as tests compare it; and a judge's profile."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


SESSIONS = (
    "select task_id, category, agent, trial, transcript_json, end_reason, final_state_json, reward, success, "
    "checks_json, label_source, satisfaction, fault, error, total_tokens from sessions order by 1, 3, 4"
)
PAIRS = (
    "select gate, task_id, trial, agent_a, agent_b, success_a, success_b, reward_a, reward_b, pref_ab, "
    "pref_ba, judge_pref, is_consistent, judge_score_a, judge_score_b, reward_gap, session_gap, agent_gap, "
    "judge_gap, gap_bucket, outcome, misselected, total_tokens from audit_pairs order by 1, 2, 3, 4, 5"
)
CALLS = (
    "select role, profile, model, served_model, presented_order, attempt, prompt_hash, request_json, "
    "raw_output, parsed_json, choice, preference, parse_status, finish_reason, total_tokens, temperature, "
    "seed, error from judge_logs order by 1, 2, 5, 6, 8"
)


def final_rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a run found, without ids and times."""
    return {"sessions": rows(file, SESSIONS), "pairs": rows(file, PAIRS), "calls": rows(file, CALLS)}


def every_row(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every column of every row, ids and times too."""
    tables = ("audit_runs", "sessions", "audit_pairs", "judge_logs", "prompts", "gap_buckets")
    return {table: rows(file, f"select * from {table} order by 1, 2") for table in tables}


def synthetic_profile(name: str, role: str, model: str, **more: Any) -> dict[str, Any]:
    """A profile whose model the program serves itself."""
    return {"name": name, "role": role, "base_url": "offline://synthetic", "model": model, "seed": 0} | more
