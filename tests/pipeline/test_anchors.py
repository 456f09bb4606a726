"""A live run's anchors under another judge: the pairs that people compared, as a run of their own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import text

from audit.doors.db import open_database, reading

KEPT = "task_id, task_fingerprint, agent, trial, transcript_json, final_state_json, reward, success"


def asked(url: str, query: str) -> list[tuple[Any, ...]]:
    engine = open_database(url, create=False)
    with reading(engine) as connection:
        found = [tuple(row) for row in connection.execute(text(query))]
    engine.dispose()
    return found


def test_anchors_when_a_live_run_was_reviewed_then_another_judge_answers_to_them(
    here: Callable[..., Any], small: Callable[..., Path], tmp_path: Path, database_url: str
) -> None:
    def did(*args: str | Path) -> Any:
        done = here(*args, db=database_url)
        assert done.code == 0, done.stderr
        return done

    config = small(name="nightly")
    did("run", "-c", config)
    (live,) = asked(database_url, "select run_id from audit_runs")[0]
    did("review", "export", "-o", tmp_path / "look.jsonl", "--n", "6")
    lines = [json.loads(line) for line in (tmp_path / "look.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(lines):
        line |= {"preference": ("first", "second", "tie")[number % 3], "annotator": "ann"}
    lines[0]["preference"] = "cannot tell"  # no word on which is better, and so nothing to hold a judge to
    (tmp_path / "said.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    did("review", "import", tmp_path / "said.jsonl")
    before = asked(database_url, "select * from audit_pairs order by pair_id")

    made = json.loads(did("--json", "review", "anchors").stdout)

    assert (made["of_run_id"], made["is_new"], made["pairs"]) == (live, True, len(lines) - 1)
    run_id = made["run_id"]
    copied = asked(database_url, f"select {KEPT} from sessions where run_id = '{run_id}' order by 1, 3, 4")
    assert len(copied) == made["sessions"]
    assert set(copied) <= set(asked(database_url, f"select {KEPT} from sessions where run_id = '{live}'"))
    assert (
        asked(database_url, f"select * from audit_pairs where run_id = '{live}' order by pair_id") == before
    )
    again = json.loads(did("--json", "review", "anchors").stdout)
    assert again == made | {"is_new": False}

    listed = yaml.safe_load(config.read_text(encoding="utf-8"))
    judge = next(profile for profile in listed["profiles"] if profile["role"] == "llm_judge")
    other = {"profiles": [judge | {"name": "other", "model": "judge-100"}], "judges": "other"}
    (tmp_path / "other.yaml").write_text(yaml.safe_dump(other), encoding="utf-8")
    refused = here("judge", "--run", live, "-c", tmp_path / "other.yaml", db=database_url)
    assert refused.code == 1
    assert f"`reward-audit review anchors {live}`" in refused.stderr
    did("judge", "--run", run_id, "-c", tmp_path / "other.yaml")

    found = json.loads(did("--json", "review", "calibrate").stdout)
    assert found["anchors"] == found["common"] == len(lines) - 1
    assert found["undecided"] == 1
    shown = " ".join(did("review", "calibrate").stdout.split())
    assert "1 pair more that people saw is none: they cannot tell, or are divided" in shown
    told = {(one["run_id"], one["gate"]): one["anchors"] for one in found["judges"]}
    assert told == dict.fromkeys([(live, "judge"), (run_id, "other")], len(lines) - 1)
    # A pair is in the bucket that it had, whatever agents the sample holds.
    buckets = "select task_id, agent_a, agent_b, trial, gap_bucket from audit_pairs where run_id = "
    assert set(asked(database_url, f"{buckets}'{run_id}'")) <= set(asked(database_url, f"{buckets}'{live}'"))


def test_anchors_when_nobody_compared_a_pair_then_it_says_so(
    here: Callable[..., Any], small: Callable[..., Path]
) -> None:
    assert here("run", "-c", small(name="nightly")).code == 0
    done = here("review", "anchors")
    assert done.code == 1
    assert "people compared no pair of run" in done.stderr
    assert here("review", "anchors", "nothing-such").code == 1


@pytest.mark.parametrize("command", [("review", "anchors", "--help")])
def test_anchors_when_asked_for_help_then_it_shows_how_to_go_on(
    here: Callable[..., Any], command: tuple[str, ...]
) -> None:
    assert "review calibrate" in here(*command).stdout
