"""What `run` takes: budgets and limits that can be gone on from, dry runs, seeds, names, trials, pairs."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_rows import every_row, final_rows, rows
from server import ChatServer, Say, refusing

from audit.offline.serve import serve

SESSIONS, PAIRS = 9, 9  # three tasks, three agents, so three pairs of agents
RUNS = "select run_id, name, status from audit_runs order by created_at"


def told(did: Any) -> dict[str, Any]:
    """The JSON that a command ended with."""
    found: dict[str, Any] = json.loads(did.stdout)
    return found


def test_run_when_a_budget_stops_it_then_exit_4_and_resuming_ends_in_the_rows_of_an_uninterrupted_run(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    file = tmp_path / "audit.db"
    assert here("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db").code == 0

    calls = stops = most = 0
    while True:
        most += 15_000
        did = here("--json", "run", "-c", config, "-j", "2", "--max-tokens", str(most))
        calls += told(did)["calls"]
        assert len(rows(file, "select 1 from judge_logs")) == calls
        if did.code == 0:
            break
        stops += 1
        assert did.code == 4
        used = rows(file, "select sum(total_tokens) from judge_logs")[0][0]
        assert told(did)["run_tokens"] == used >= most
        assert f"the budget of {most:,} tokens is used up ({used:,} used by this run)" in did.stderr
        assert "with a higher one the same command goes on" in did.stderr
        # Every call of the run counts: the same budget once more lets nothing begin.
        again = here("--json", "run", "-c", config, "-j", "2", "--max-tokens", str(most))
        assert (again.code, told(again)["calls"]) == (4, 0)
        assert [status for *_, status in rows(file, RUNS)] == ["stopped"]
    assert stops >= 3
    assert final_rows(file) == final_rows(tmp_path / "whole.db")
    assert [status for *_, status in rows(file, RUNS)] == ["complete"]


def test_run_when_a_budget_of_the_config_stopped_it_then_a_raised_one_goes_on_with_the_same_run(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "audit.db"
    assert here("run", "-c", small(budget={"max_tokens": 20_000})).code == 4
    stored = len(rows(file, "select 1 from judge_logs"))
    assert stored > 0
    did = here("--json", "run", "-c", small(max_error_rate=0.2, name="renamed"))
    assert did.code == 0, did.stderr
    assert len(rows(file, RUNS)) == 1
    assert "it is called embedded and not renamed" in did.stderr
    assert told(did)["calls"] == len(rows(file, "select 1 from judge_logs")) - stored


def test_run_when_limited_then_no_more_than_so_many_sessions_and_pairs_and_the_rest_can_follow(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    file = tmp_path / "audit.db"
    assert here("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db").code == 0

    did = here("run", "-c", config, "--limit", "4")
    assert did.code == 4
    judged = "select count(*), count(judged_at) from audit_pairs"
    assert rows(file, "select count(*), count(satisfaction) from sessions") == [(4, 4)]
    assert rows(file, judged) == [(3, 3)]
    assert here("run", "-c", config, "--limit", "4").code == 4
    assert rows(file, "select count(*), count(satisfaction) from sessions") == [(8, 8)]
    assert rows(file, judged) == [(7, 7)]
    assert here("run", "-c", config).code == 0
    assert final_rows(file) == final_rows(tmp_path / "whole.db")


def test_dry_run_when_asked_then_nothing_is_called_or_stored_and_the_counts_are_those_of_the_run(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body)))
    config = small(server)
    said = here("run", "-c", config, "--dry-run")
    expected = told(here("--json", "run", "-c", config, "--dry-run"))

    assert (said.code, server.requests) == (0, 0)
    assert not list(tmp_path.glob("*.db*"))
    assert [f"{expected['judge calls']}" in line for line in said.stdout.splitlines() if "judge" in line]

    did = told(here("--json", "run", "-c", config))
    file = tmp_path / "audit.db"
    counts = dict(rows(file, "select role, count(*) from judge_logs group by 1"))
    assert expected["sessions"] == SESSIONS == len(rows(file, "select 1 from sessions"))
    assert expected["pairs"] == PAIRS == len(rows(file, "select 1 from audit_pairs"))
    assert expected["judge calls"] == counts["judge"]
    assert expected["satisfaction calls"] == counts["satisfaction"]
    simulated = counts["agent"] + counts["user_simulator"]
    assert simulated / 2 < expected["simulation calls"] < 2 * simulated
    assert did["tokens"] / 2 < expected["tokens"] < 2 * did["tokens"]


def test_dry_run_when_limited_or_of_one_stage_then_only_that_is_counted(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    limited = told(here("--json", "run", "-c", config, "--limit", "5", "--dry-run"))
    assert here("run", "-c", config, "--limit", "5").code == 4
    file = tmp_path / "audit.db"
    assert limited["sessions"] == len(rows(file, "select 1 from sessions"))
    assert limited["pairs"] == len(rows(file, "select 1 from audit_pairs where judged_at is not null"))
    assert limited["judge calls"] == len(rows(file, "select 1 from judge_logs where role = 'judge'"))

    judged = told(here("--json", "judge", "-c", config, "--dry-run"))
    assert (judged["simulation calls"], judged["judge calls"]) == (0, 2 * PAIRS)
    held = told(here("--json", "simulate", "-c", config, "--dry-run"))
    assert held["simulation calls"] > 0 == held["judge calls"] == held["satisfaction calls"]


def test_run_when_new_or_named_then_another_run_and_resume_of_a_complete_one_calls_nothing(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    file = tmp_path / "audit.db"
    assert here("run", "-c", config, "--name", "first").code == 0
    before = every_row(file)
    resumed = here("--json", "run", "-c", config, "--resume", "latest")
    assert (resumed.code, told(resumed)["calls"]) == (0, 0)
    assert every_row(file) == before

    assert here("run", "-c", config, "--limit", "1").code == 4
    # Unfinished, it is gone on with, unless a new one or one of another name is wished for.
    assert "going on with run" in here("run", "-c", config, "--limit", "1").stderr
    assert here("run", "-c", config, "--limit", "1", "--new").code == 4
    assert here("run", "-c", config, "--limit", "1", "--name", "third").code == 4
    assert [name for _, name, _ in rows(file, RUNS)] == ["first", "embedded", "embedded", "third"]
    sessions = "select count(*) from sessions group by run_id order by run_id"
    assert rows(file, sessions) == [(SESSIONS,), (2,), (1,), (1,)]
    assert before["sessions"] == [row for row in every_row(file)["sessions"] if row in before["sessions"]]


def test_resume_when_the_run_is_of_another_config_or_other_prompts_or_imported_then_it_is_refused(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    import sqlite3

    file = tmp_path / "audit.db"
    assert here("run", "-c", small(), "--limit", "1").code == 4
    before = every_row(file)
    other = here("run", "-c", small(trials=2), "--resume", "latest")
    assert (other.code, "was made from another config" in other.stderr) == (1, True)
    assert every_row(file) == before

    with sqlite3.connect(file) as connection:
        connection.execute("update audit_runs set prompt_set_hash = 'as an older version had them'")
    connection.close()
    asked = here("run", "-c", small(), "--resume", "latest")
    assert (asked.code, "was made with other prompts" in asked.stderr) == (1, True)
    assert here("run", "-c", small(), "--limit", "1").code == 4
    assert len(rows(file, RUNS)) == 2

    pair = {"pair_id": "1", "pref_ab": "A", "pref_ba": "A", "reward_a": 1, "reward_b": 0}
    (tmp_path / "pairs.jsonl").write_text(json.dumps(pair), encoding="utf-8")
    assert here("import", "jsonl", tmp_path / "pairs.jsonl").code == 0
    imported = here("judge", "-c", small(), "--resume", "latest")
    assert (imported.code, "holds no pairs of sessions" in imported.stderr) == (1, True)
    verified = here("verify", "-c", small(), "--resume", "latest")
    assert (verified.code, "was imported" in verified.stderr) == (1, True)


def test_run_when_seeded_then_the_same_seed_gives_the_same_rows_and_another_seed_others(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    found = {}
    for name, seed in (("one", "1"), ("again", "1"), ("two", "2")):
        assert here("run", "-c", config, "--seed", seed, db=f"sqlite:///{tmp_path}/{name}.db").code == 0
        found[name] = final_rows(tmp_path / f"{name}.db")
    assert found["one"] == found["again"]
    assert found["one"]["calls"] != found["two"]["calls"]
    assert found["one"]["pairs"] != found["two"]["pairs"]
    asked = rows(
        tmp_path / "two.db", "select distinct seed, json_extract(request_json, '$.seed') from judge_logs"
    )
    assert asked == [(2, 2)]


def test_run_when_there_are_trials_then_each_is_a_session_of_its_own_and_pairs_stay_within_a_trial(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    assert here("run", "-c", small(trials=2)).code == 0
    file = tmp_path / "audit.db"
    assert rows(file, "select trial, count(*) from sessions group by 1") == [(0, SESSIONS), (1, SESSIONS)]
    assert rows(file, "select trial, count(*) from audit_pairs group by 1") == [(0, PAIRS), (1, PAIRS)]
    across = (
        "select count(*) from audit_pairs inner join sessions on session_id in (session_a, session_b) "
        "where sessions.trial <> audit_pairs.trial"
    )
    assert rows(file, across) == [(0,)]
    # A trial is drawn anew, not copied.
    said = [
        rows(
            file, f"select task_id, agent, transcript_json from sessions where trial = {trial} order by 1, 2"
        )
        for trial in (0, 1)
    ]
    assert said[0] != said[1]


WANTED: dict[str, tuple[Any, set[tuple[str, str]]]] = {
    "all": (
        "all",
        {("agent-95", "agent-80"), ("agent-95", "agent-50"), ("agent-80", "agent-50")},
    ),
    "adjacent": ("adjacent", {("agent-95", "agent-80"), ("agent-80", "agent-50")}),
    "listed": ([["agent-50", "agent-95"]], {("agent-50", "agent-95")}),
}


@pytest.mark.parametrize("wanted", WANTED)
def test_run_when_pairs_are_chosen_then_those_and_no_others_are_judged(
    wanted: str, here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    pairs, expected = WANTED[wanted]
    did = here("--json", "run", "-c", small(pairs=pairs))
    assert did.code == 0, did.stderr
    found = rows(tmp_path / "audit.db", "select agent_a, agent_b, count(*) from audit_pairs group by 1, 2")
    assert {(a, b) for a, b, _ in found} == expected
    assert {count for *_, count in found} == {3}
    judged = rows(tmp_path / "audit.db", "select count(*) from judge_logs where role = 'judge'")
    assert judged == [(2 * 3 * len(expected),)]


def test_run_when_calls_fail_then_exit_4_and_once_they_are_asked_again_the_run_is_complete(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    counts = {"judge": 0, "others": 0}
    is_broken = True

    def answer(body: dict[str, Any]) -> Say:
        who = "judge" if body["model"].startswith("judge") else "others"
        counts[who] += 1
        fails = counts[who] % {"judge": 4, "others": 25}[who] == 0
        return refusing("gone", 404) if is_broken and fails else Say(body=serve(body))

    config = small(gateway(answer), max_error_rate=0.0)
    first = here("run", "-c", config, "-j", "1")
    assert (first.code, "max_error_rate" in first.stderr) == (4, True)
    file = tmp_path / "audit.db"
    assert rows(file, "select count(*) from sessions where fault = 'gateway' and success is null") > [(0,)]
    failed_at = "select distinct role from judge_logs where parse_status = 'error' order by 1"
    assert {("judge",), ("satisfaction",)} < set(rows(file, failed_at))
    broken = rows(file, "select count(*) from judge_logs where parse_status = 'error'")[0][0]

    is_broken = False
    again = here("run", "-c", config, "--resume", "latest", "--retry-errors")
    assert again.code == 0, again.stderr
    assert [status for *_, status in rows(file, RUNS)] == ["complete"]
    assert rows(file, "select count(*) from sessions where fault is not null") == [(0,)]
    assert rows(file, "select count(*) from audit_pairs where outcome = 'incomplete'") == [(0,)]
    # What failed stays in the log.
    assert rows(file, "select count(*) from judge_logs where parse_status = 'error'") == [(broken,)]
    clean = small()
    assert here("run", "-c", clean, db=f"sqlite:///{tmp_path}/clean.db").code == 0
    assert final_rows(file)["sessions"] == final_rows(tmp_path / "clean.db")["sessions"]
    without_tokens = [row[:-1] for row in final_rows(file)["pairs"]]
    assert without_tokens == [row[:-1] for row in final_rows(tmp_path / "clean.db")["pairs"]]


@pytest.mark.parametrize("stage", ["run", "simulate", "judge"])
def test_stage_when_its_budget_is_reached_then_exit_4_whichever_command_it_was(
    stage: str, here: Any, small: Callable[..., Path]
) -> None:
    config = small()
    if stage == "judge":
        assert here("simulate", "-c", config).code == 0
    did = here(stage, "-c", config, "-j", "1", "--max-tokens", "1")
    assert (did.code, "incomplete" in did.stderr) == (4, True)
    assert here("run", "-c", config).code == 0


def test_config_when_buckets_cannot_be_read_then_one_line_and_nothing_is_begun(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    for changes, message in (
        ({"buckets": "near and far"}, "error: buckets: "),
        ({"near": 0.1}, "error: near: "),
    ):
        did = here("run", "-c", small(**changes))
        assert did.code == 1
        assert message in did.stderr
        assert "ValueError" not in did.stderr
    assert not (tmp_path / "audit.db").exists()
    config = yaml.safe_load(small(buckets="0,0.2,0.4", near=0.2).read_text(encoding="utf-8"))
    assert config["buckets"] == "0,0.2,0.4"
    assert here("run", "-c", tmp_path / "audit.yaml").code == 0


def test_dry_run_when_a_run_is_named_then_only_what_it_lacks_is_counted(
    here: Any, small: Callable[..., Path]
) -> None:
    config = small()
    assert here("run", "-c", config, "--limit", "4").code == 4
    part = json.loads(here("--json", "run", "-c", config, "--resume", "latest", "--dry-run").stdout)
    assert (part["sessions"], part["satisfaction calls"]) == (5, 5)
    judged = json.loads(here("--json", "sql", "select count(judged_at) as n from audit_pairs").stdout)
    assert part["pairs"] == 9 - judged[0]["n"]
    assert here("run", "-c", config).code == 0
    none = json.loads(here("--json", "run", "-c", config, "--resume", "latest", "--dry-run").stdout)
    assert set(none.values()) == {0}


def test_run_when_another_process_is_at_work_on_it_then_it_says_so_and_no_call_is_made_twice(
    cli: Any, here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body), delay=0.1))
    config = small(server)
    command = [sys.executable, "-m", "audit", "run", "-c", str(config), "-j", "2"]
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{tmp_path}/audit.db"}
    first = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while first.poll() is None and server.requests < 10:
        time.sleep(0.01)
    second = cli("run", "-c", config)
    assert first.wait() == 0
    assert (second.code, second.stderr.splitlines()[-1].split(" on run ")[0]) == (
        1,
        "error: another process is at work",
    )
    stored = rows(tmp_path / "audit.db", "select count(*) from judge_logs")
    assert stored == [(server.requests,)]


def test_resume_when_only_a_tasks_id_or_category_changed_then_it_is_another_run(
    here: Any, small: Callable[..., Path], few_tasks: str
) -> None:
    config = small()
    assert here("run", "-c", config, "--limit", "1").code == 4
    file = Path(few_tasks, "tasks.yaml")
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("category: ", "category: new-", 1), encoding="utf-8")
    resumed = here("run", "-c", config, "--resume", "latest")
    assert (resumed.code, "(other are the tasks)" in resumed.stderr) == (1, True)
    assert "going on" not in here("run", "-c", config, "--limit", "1").stderr


def test_sample_when_taken_then_each_category_and_pair_of_agents_has_its_share_and_no_more_is_asked(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "audit.db"
    config = small(trials=4)
    planned = json.loads(here("--json", "run", "-c", config, "--sample", "12", "--dry-run").stdout)
    did = here("--json", "run", "-c", config, "--sample", "12")
    assert did.code == 0, did.stderr
    assert [status for *_, status in rows(file, RUNS)] == ["complete"]
    strata = rows(file, "select category, agent_a, agent_b, count(*) from audit_pairs group by 1, 2, 3")
    whole = {category for category, *_ in strata}
    assert sum(count for *_, count in strata) == planned["pairs"] == 12
    assert {count for *_, count in strata} <= {12 // (3 * len(whole)), -(-12 // (3 * len(whole)))} | {1, 2, 3}
    # Nobody served whom no pair needs.
    needed = {side for pair in rows(file, "select session_a, session_b from audit_pairs") for side in pair}
    assert {name for (name,) in rows(file, "select session_id from sessions")} == needed
    assert planned["sessions"] == len(needed) < 36
    # Another sample, or all of them, is another run; the same one asks nothing more.
    again = here("--json", "run", "-c", config, "--sample", "12", "--resume", "latest")
    assert (again.code, told(again)["calls"]) == (0, 0)
    refused = here("run", "-c", config, "--sample", "13", "--resume", "latest")
    assert (refused.code, "another config (other are sample)" in refused.stderr) == (1, True)
    drawn = rows(file, "select task_id, trial, agent_a, agent_b from audit_pairs order by 1, 2, 3, 4")
    other = f"sqlite:///{tmp_path}/other.db"
    assert here("run", "-c", config, "--sample", "12", db=other).code == 0
    query = "select task_id, trial, agent_a, agent_b from audit_pairs order by 1, 2, 3, 4"
    assert rows(tmp_path / "other.db", query) == drawn


def test_sample_when_taken_of_recorded_sessions_then_the_others_wait_and_the_command_is_done(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "audit.db"
    config = small(trials=4)
    recorded = tmp_path / "recorded.jsonl"
    with recorded.open("w", encoding="utf-8") as out:
        for task in range(6):
            for agent in ("one", "two"):
                held = [
                    {"role": "user", "content": "Hello."},
                    {"role": "assistant", "content": f"I am {task}."},
                ]
                found = {"task_id": f"t{task}", "category": f"c{task % 2}", "agent": agent, "messages": held}
                out.write(json.dumps(found | {"reward": task / 10}) + "\n")
    assert here("import", "sessions", recorded).code == 0
    did = here("judge", "--run", "latest", "-c", config, "--sample", "4")
    assert did.code == 0, did.stderr
    judged = "select category, count(*) from audit_pairs where judged_at is not null group by 1 order by 1"
    assert rows(file, judged) == [("c0", 2), ("c1", 2)]
    calls = "select count(*) from judge_logs where role = 'judge'"
    assert rows(file, calls) == [(8,)]
    # A larger one asks the rest.
    assert here("judge", "--run", "latest", "-c", config, "--sample", "6").code == 0
    assert rows(file, calls) == [(12,)]
