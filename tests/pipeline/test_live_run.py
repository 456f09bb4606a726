"""The live pipeline whole: through the real command, over real HTTP, stopped and killed, and gone on with."""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from server import ChatServer, Say, refusing

from audit.offline.serve import serve

AGENTS = ["agent-95", "agent-80", "agent-50"]
SESSIONS, PAIRS = 9, 9  # three tasks, three agents, so three pairs of agents


def synthetic(body: dict[str, Any]) -> Say:
    """What the embedded models answer, over HTTP."""
    return Say(body=serve(body))


def is_pair_question(body: dict[str, Any]) -> bool:
    return "<<<FIRST" in body["messages"][-1]["content"]


def over(server: ChatServer, profiles: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same profiles behind a gateway."""
    return [profile | {"base_url": server.base_url, "timeout_s": 5} for profile in profiles]


@pytest.fixture
def small(config_file: Callable[..., Path], few_tasks: str) -> Callable[..., Path]:
    def write(server: ChatServer | None = None, **changes: Any) -> Path:
        import yaml

        path = config_file(tasks=few_tasks, agents=AGENTS, **changes)
        if server is not None:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
            config["profiles"] = over(server, config["profiles"])
            path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    return write


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def final_rows(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a run found, without ids and times."""
    return {
        "sessions": rows(
            file,
            "select task_id, agent, trial, transcript_json, end_reason, reward, success, checks_json, "
            "satisfaction, fault from sessions order by 1, 2, 3",
        ),
        "pairs": rows(
            file,
            "select task_id, agent_a, agent_b, reward_a, reward_b, pref_ab, pref_ba, judge_score_a, "
            "judge_score_b, reward_gap, gap_bucket, outcome, misselected, total_tokens "
            "from audit_pairs order by 1, 2, 3",
        ),
        "calls": rows(
            file,
            "select role, profile, presented_order, attempt, prompt_hash, request_json, raw_output, "
            "parse_status from judge_logs order by 1, 2, 3, 4, 5, 6, 7",
        ),
    }


def test_run_when_embedded_then_four_stages_then_the_report_and_resuming_calls_nothing(
    cli: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    done = cli("run", "-c", config)

    assert done.code == 0, done.stderr
    assert [line.split(":")[0] for line in done.stderr.splitlines() if ": 0/" in line] == [
        "simulate",
        "judge",
        "satisfaction",
        "verify",
    ]
    assert f"{PAIRS} pairs" in done.stdout
    assert "Misselection by reward gap" in done.stdout
    found = final_rows(tmp_path / "audit.db")
    assert (len(found["sessions"]), len(found["pairs"])) == (SESSIONS, PAIRS)
    assert all(row[5] is not None for row in found["sessions"])
    assert rows(tmp_path / "audit.db", "select distinct outcome is null from audit_pairs") == [(0,)]

    again = cli("--json", "run", "-c", config, "--resume", "latest")
    assert again.code == 0, again.stderr
    assert json.loads(again.stdout)["calls"] == 0
    assert final_rows(tmp_path / "audit.db") == found


def test_judge_when_it_is_asked_then_no_message_names_an_agent_or_a_model(
    cli: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    assert cli("run", "-c", small()).code == 0
    asked = rows(
        tmp_path / "audit.db", "select request_json from judge_logs where role in ('judge', 'satisfaction')"
    )
    assert len(asked) == 2 * PAIRS + SESSIONS
    for (request,) in asked:
        text = json.dumps(json.loads(request)["messages"]).lower()
        assert [name for name in (*AGENTS, "customer-", "judge-") if name in text] == []
    hashes = rows(
        tmp_path / "audit.db", "select role, count(distinct prompt_hash) from judge_logs group by 1"
    )
    assert hashes == [("agent", 1), ("judge", 1), ("satisfaction", 1), ("user_simulator", 1)]
    assert len(rows(tmp_path / "audit.db", "select 1 from prompts")) == 5


def test_run_when_killed_at_ten_moments_then_the_rows_are_those_of_an_uninterrupted_run(
    cli: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body), delay=0.01))
    config = small(server)
    whole = cli("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db")
    assert whole.code == 0, whole.stderr
    server.reset()

    jobs = 4
    command = [sys.executable, "-m", "audit", "run", "-c", str(config), "-j", str(jobs)]
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{tmp_path}/audit.db"}
    moments = random.Random(7)
    kills = 0
    for _ in range(10):
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        asked = server.requests + moments.randint(1, 14)
        while process.poll() is None and server.requests < asked:
            time.sleep(0.002)
        kills += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert kills >= 3
    last = cli("run", "-c", config, "-j", str(jobs))

    assert last.code == 0, last.stderr
    assert final_rows(tmp_path / "audit.db") == final_rows(tmp_path / "whole.db")
    stored = len(final_rows(tmp_path / "audit.db")["calls"])
    # Lost are only the calls of sessions and pairs that were not finished when the kill came.
    units = "select count(*) from judge_logs group by session_id, pair_id"
    longest = max(count for (count,) in rows(tmp_path / "audit.db", units))
    assert stored <= server.requests <= stored + kills * jobs * (longest + 2)


def test_run_when_interrupted_then_what_is_done_is_stored_and_the_same_command_goes_on(
    cli: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body), delay=0.02))
    config = small(server)
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{tmp_path}/audit.db"}
    command = [sys.executable, "-m", "audit", "run", "-c", str(config), "-j", "2"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and server.requests < 25:
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 130, said
    assert "the same command goes on from there" in said
    assert "Traceback" not in said
    assert rows(tmp_path / "audit.db", "select status from audit_runs") == [("stopped",)]
    before = len(final_rows(tmp_path / "audit.db")["calls"])
    assert before > 0
    done = cli("run", "-c", config)
    assert done.code == 0, done.stderr
    assert "going on with run" in done.stderr
    assert len(rows(tmp_path / "audit.db", "select 1 from audit_runs")) == 1
    assert len(final_rows(tmp_path / "audit.db")["pairs"]) == PAIRS


VERDICT = (
    '{"first": {"evidence": "e", "done": true}, "second": {"evidence": "e", "done": false}, '
    '"score_first": 4, "score_second": 1, "winner": "first"}'
)
# What the gateway does at the judge's first question, and what rows come of it: (attempt, status, choice).
MISDEEDS: dict[str, tuple[list[Say], list[tuple[int, str, str | None]]]] = {
    "fenced": ([Say(text=f"```json\n{VERDICT}\n```")], [(1, "ok", "first")]),
    "truncated": ([Say(text=VERDICT[:-3], finish="length")], [(1, "truncated", None), (2, "ok", "first")]),
    "null": ([Say(text=None, finish="length")], [(1, "error", None)]),
    "empty choices": ([Say(body={"choices": []})], [(1, "error", None)]),
    "200 with error": ([Say(body={"error": {"message": "no"}})], [(1, "error", None)]),
    "429 in seconds": ([refusing("slow", 429), Say(text=VERDICT)], [(1, "ok", "first")]),
    "500 then good": ([refusing("boom", 500), Say(text=VERDICT)], [(1, "ok", "first")]),
    "garbage twice": (
        [Say(text="sorry"), Say(text="sorry")],
        [(1, "unreadable", None), (2, "unreadable", None)],
    ),
    "json_schema refused": (
        [refusing("response_format of type json_schema is not supported"), Say(text=VERDICT)],
        [(1, "ok", "first")],
    ),
}


@pytest.mark.parametrize("misdeed", MISDEEDS)
def test_judge_when_the_gateway_misbehaves_once_then_the_right_row_and_the_run_goes_on(
    misdeed: str, cli: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    script, expected = MISDEEDS[misdeed]
    waiting = list(script)

    def answer(body: dict[str, Any]) -> Say:
        if not is_pair_question(body):
            return synthetic(body)
        return waiting.pop(0) if waiting else Say(text=VERDICT)

    config = small(gateway(answer), max_error_rate=1.0)
    done = cli("run", "-c", config, "-j", "1")
    assert done.code == 0, done.stderr
    found = rows(
        tmp_path / "audit.db",
        "select attempt, parse_status, choice from judge_logs where role = 'judge' order by log_id",
    )
    assert found[: len(expected)] == expected
    assert len(found) == 2 * PAIRS + len(expected) - 1
    outcomes = rows(
        tmp_path / "audit.db",
        "select outcome from audit_pairs order by judged_at, pair_id",
    )
    assert len(outcomes) == PAIRS
    if expected[-1][1] == "error":
        # What failed is asked again, and nothing else.
        again = cli("run", "-c", config, "--resume", "latest", "--retry-errors")
        assert again.code == 0, again.stderr
        repaired = rows(
            tmp_path / "audit.db",
            "select attempt, parse_status from judge_logs where role = 'judge' order by log_id desc limit 1",
        )
        assert repaired == [(2, "ok")]
