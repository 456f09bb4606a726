"""A nightly job left alone: what follows a run, its log file, the drift watch, and old runs that go."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_rows import rows
from server import ChatServer, Say
from sqlalchemy import create_engine, text

from audit.offline.serve import serve
from audit.pipeline.advice import weight_advice
from audit.words.schema import metadata

CHECKOUT = Path(__file__).parents[2]
DRIFT = {"drift": {"max": 0.02, "by": "lower", "on_unknown": "pass"}}
STEPS = "gate,report=out.html,export=clean.jsonl"


def night(folder: Path, skill: int) -> Path:
    """The embedded default on the web shop with six of its agents, and a judge of such a skill."""
    config = yaml.safe_load((CHECKOUT / "data" / "embedded.yaml").read_text(encoding="utf-8"))
    config |= {"tasks": [str(CHECKOUT / "data" / "tasks" / "shop")], "agents": config["agents"][:6]}
    config |= {"name": "nightly", "gate": DRIFT}
    for profile in config["profiles"]:
        if profile["role"] == "llm_judge":
            profile["model"] = f"judge-{skill}"
    path = folder / "audit.yaml"
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def as_cron(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: no terminal, hardly any environment."""
    return subprocess.run(
        [sys.executable, "-m", "audit", *args],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def test_three_nights_when_the_judge_gets_worse_on_the_third_then_the_gate_says_so_and_why(
    tmp_path: Path,
) -> None:
    codes = []
    for skill in (90, 90, 30):
        night(tmp_path, skill)
        ran = as_cron(tmp_path, "run", "--then", STEPS, "--log-file", "night.jsonl")
        codes.append(ran.returncode)
    assert codes == [0, 0, 3], ran.stderr
    assert "crossed  drift: " in ran.stdout
    assert "advice   Judge 'judge' errs more often in near ties" in ran.stdout
    assert "clean.jsonl is not written, what is there is older: the gate failed" in ran.stdout
    assert "\x1b" not in ran.stdout + ran.stderr
    assert "judge: 360/360" in ran.stderr

    told = json.loads(as_cron(tmp_path, "compare", "--last", "3", "--json").stdout)
    assert [run["changed"] and run["changed"]["moved"] for run in told["runs"]] == [None, [], ["judge"]]
    assert [run["advice"] is None for run in told["runs"]] == [True, True, False]
    trend = as_cron(tmp_path, "compare", "--last", "3").stdout
    assert "model of judge judge: judge-90 (served" in " ".join(trend.split())
    # The set of the second night is still there, whole.
    manifest = json.loads((tmp_path / "clean.jsonl.manifest.json").read_text(encoding="utf-8"))
    assert manifest["run"]["run_id"] == told["runs"][1]["run_id"]
    assert told["runs"][2]["run_id"] in (tmp_path / "out.html").read_text(encoding="utf-8")

    events = [json.loads(line) for line in (tmp_path / "night.jsonl").read_text("utf-8").splitlines()]
    assert [event["exit_code"] for event in events if event["event"] == "end"] == codes
    assert [event["passed"] for event in events if event["event"] == "then"] == [True, True, False]
    stages = [event["stage"] for event in events if event["event"] == "stage"]
    assert list(dict.fromkeys(stages)) == ["simulate", "judge", "satisfaction", "verify"]
    assert all(event["at"].endswith("Z") for event in events)
    assert {event["run_id"] for event in events} == {run["run_id"] for run in told["runs"]}

    gone = told["runs"][0]["run_id"]
    before = rows(tmp_path / "reward_audit.db", "select count(*) from judge_logs")[0][0]
    pruned = as_cron(tmp_path, "prune", "--keep-runs", "2", "-o", "old")
    assert pruned.returncode == 0, pruned.stderr
    kept = (tmp_path / "old" / f"{gone}.logs.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["run_id"] for line in kept} == {gone}
    assert rows(tmp_path / "reward_audit.db", "select count(*) from judge_logs") == [(before - len(kept),)]
    assert json.loads(as_cron(tmp_path, "db", "check", "--json").stdout)["faults"] == []

    # As bad a night again is no change, and yet no good news: it is held to the last night that passed.
    again = as_cron(tmp_path, "run", "--then", "gate")
    assert (again.returncode, "crossed  drift: " in again.stdout) == (3, True)
    held = json.loads(as_cron(tmp_path, "gate", "--json").stdout)
    assert held["checks"][0]["figure"]["against"] == told["runs"][1]["run_id"]


@pytest.mark.parametrize(
    ("steps", "why"),
    [
        ("gat", "'gat': expected gate, report=FILE or export=FILE"),
        ("report", "'report': write report=out.html"),
        ("gate=x", "'gate=x': write gate"),
        ("export=", "'export=': write export=clean.jsonl"),
        ("gate,report=out.pdf", "'report=out.pdf': the file ends in .html or .htm"),
        ("export=clean.csv", "'export=clean.csv': the file ends in .jsonl or .parquet"),
    ],
)
def test_then_when_a_step_is_none_then_nothing_is_begun(
    steps: str, why: str, here: Any, tmp_path: Path
) -> None:
    did = here("run", "--then", steps)
    assert (did.code, why in did.stderr) == (2, True), did.stderr
    assert not (tmp_path / "audit.db").exists()


def test_then_when_the_config_has_no_thresholds_then_a_gate_is_refused_before_anything_is_asked(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    did = here("run", "-c", small(), "--then", "gate")
    assert (did.code, did.stderr.startswith("error: --then gate: the config has no thresholds")) == (1, True)
    assert not (tmp_path / "audit.db").exists()


def test_then_when_the_run_is_not_complete_then_nothing_follows(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    did = here("run", "-c", small(), "--limit", "3", "--then", "export=clean.jsonl")
    assert did.code == 4
    assert not (tmp_path / "clean.jsonl").exists()


def test_then_when_asked_for_json_then_all_of_it_is_one_object(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    limits = {"misselected_of_decided": {"max": 0.0, "by": "upper"}}
    judges = ["judge", {"name": "panel", "members": ["judge"]}]
    did = here("--json", "run", "-c", small(gate=limits, judges=judges), "--then", STEPS)
    found = json.loads(did.stdout)["then"]
    assert did.code == 3
    assert [held["gate"] for held in found["gate"]["gates"]] == ["judge", "panel"]
    assert (found["gate"]["passed"], found["report"], found["export"]) == (
        False,
        {"file": "out.html"},
        None,
    )


def test_log_file_when_it_cannot_be_written_or_the_command_fails_then_it_is_told(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    did = here("run", "-c", small(), "--log-file", tmp_path)
    assert (did.code, did.stderr.startswith(f"error: --log-file {tmp_path}: cannot be written")) == (1, True)
    did = here("run", "-c", tmp_path / "none.yaml", "--log-file", tmp_path / "log")
    assert did.code == 1
    event, end = [json.loads(line) for line in (tmp_path / "log").read_text("utf-8").splitlines()]
    assert (event["event"], "no such file" in event["message"]) == ("error", True)
    assert (end["event"], end["exit_code"]) == ("end", 1)


def test_night_when_the_judge_was_out_then_the_same_command_asks_again_the_next_one(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    is_out = [True]
    server = gateway(lambda body: Say(status=500) if is_out[0] else Say(body=serve(body)))
    config = small(agents=["agent-95", "agent-50"])
    changed = yaml.safe_load(config.read_text(encoding="utf-8"))
    for profile in changed["profiles"]:
        if profile["role"] == "llm_judge":
            profile |= {"base_url": server.base_url, "attempts": 1}
    config.write_text(yaml.safe_dump(changed), encoding="utf-8")
    assert here("run", "-c", config).code == 4
    assert here("run", "-c", config).code == 4
    is_out[0] = False
    did = here("run", "-c", config, "--then", "export=clean.jsonl")
    assert did.code == 0, did.stderr
    assert len(rows(tmp_path / "audit.db", "select 1 from audit_runs")) == 1
    assert (tmp_path / "clean.jsonl").exists()


@pytest.mark.parametrize(
    ("steps", "more", "why"),
    [
        ("report=none/out.html", (), "there is no folder none: make it first"),
        ("report=folder.html", (), "folder.html: cannot be written: Is a directory"),
        ("gate,gate", (), "gate stands twice"),
        ("export=night.jsonl", ("--log-file", "night.jsonl"), "is the log file as well"),
    ],
)
def test_then_when_a_file_cannot_be_written_then_that_is_told_before_anything_is_paid_for(
    steps: str, more: tuple[str, ...], why: str, here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    (tmp_path / "folder.html").mkdir()
    did = here("run", "-c", small(), "--then", steps, *more)
    assert did.code in (1, 2)
    assert why in did.stderr
    assert not (tmp_path / "audit.db").exists()


def rate(k: int, n: int) -> dict[str, Any]:
    return {"k": k, "n": n, "value": k / n}


@pytest.mark.parametrize(
    ("before", "after", "low", "weight"),
    [
        (rate(10, 100), rate(30, 100), 0.1, 0.5),
        (rate(10, 100), rate(60, 100), 0.4, 0.0),
        (rate(60, 100), rate(70, 100), 0.01, 0.0),
        (rate(10, 100), rate(30, 100), -0.01, None),
        (rate(10, 100), rate(30, 100), None, None),
    ],
)
def test_advice_when_near_ties_got_worse_beyond_chance_then_it_names_the_weight_that_is_left(
    before: dict[str, Any], after: dict[str, Any], low: float | None, weight: float | None
) -> None:
    change = {
        "before": before,
        "after": after,
        "low": low,
        "high": 0.5,
        "change": after["value"] - before["value"],
    }
    found = weight_advice("judge", change)
    assert (found and found["weight"]) == weight


def test_prune_when_runs_are_old_then_they_go_whole_but_for_those_with_labels_by_people(
    here: Any, small: Callable[..., Path], database_url: str, tmp_path: Path
) -> None:
    config = small(agents=["agent-95", "agent-50"])
    for name in ("one", "one", "one", "other"):
        assert here("run", "-c", config, "--new", "--name", name, db=database_url).code == 0
    engine = create_engine(database_url)
    with engine.begin() as connection:
        ids = list(
            connection.execute(text("select run_id from audit_runs order by created_at, run_id")).scalars()
        )
        # A label keeps the oldest one.
        connection.execute(
            text(
                "insert into human_labels (pair_id, annotator, kind, value, created_at) "
                "select min(pair_id), 'ann', 'preference', 'A', '2026-01-01T00:00:00.000Z' from audit_pairs "
                "where run_id = :run"
            ),
            {"run": ids[0]},
        )
    would = here("prune", "--keep-runs", "1", "--dry-run", "--json", db=database_url)
    assert [run["run_id"] for run in json.loads(would.stdout)["runs"]] == [ids[1]]
    did = here("prune", "--keep-runs", "1", db=database_url)
    assert (did.code, f"run {ids[1]} (one) is deleted; its " in did.stdout) == (0, True), did.stderr
    with engine.connect() as connection:
        for table in metadata.sorted_tables:
            if "run_id" in table.columns:
                held = set(connection.execute(text(f"select distinct run_id from {table.name}")).scalars())
                assert ids[1] not in held
                assert held <= {ids[0], ids[2], ids[3]}
    engine.dispose()
    assert (tmp_path / "pruned" / f"{ids[1]}.logs.jsonl").stat().st_size > 0
    # What is not complete counts for nothing: it is no baseline for the nights to come.
    for _ in range(2):
        assert here("run", "-c", config, "--new", "--name", "one", "--limit", "1", db=database_url).code == 4
    again = here("prune", "--keep-runs", "1", db=database_url)
    assert (again.code, again.stdout) == (0, "no run is older than that\n")
    unknown = here("prune", "--keep-runs", "1", "--name", "non", db=database_url)
    assert (unknown.code, "there is no run named 'non'" in unknown.stderr) == (1, True)


def test_prompts_when_listed_then_each_can_be_shown(here: Any, small: Callable[..., Path]) -> None:
    assert here("run", "-c", small(agents=["agent-95", "agent-50"])).code == 0
    listed = json.loads(here("--json", "prompts").stdout)
    assert {row["role"] for row in listed} == {"judge", "satisfaction", "agent", "user_simulator"}
    judge = next(row for row in listed if row["role"] == "judge")
    shown = here("prompts", judge["prompt_hash"][:6])
    template = CHECKOUT / "audit" / "prompts" / "judge_pair.en.jinja"
    assert shown.stdout.split() == template.read_text(encoding="utf-8").split()
    assert "prompts have a hash that begins with 'zz'" in here("prompts", "zz").stderr
