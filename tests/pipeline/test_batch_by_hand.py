"""`batch export` and `batch ingest`: the lines go and come as files, and end as rows of a live judge's."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_rows import final_rows, rows, synthetic_profile

from audit.doors import db
from audit.offline.serve import serve
from audit.pipeline.batch_by_hand import export_requests

PAIRS, SESSIONS = 9, 9  # three agents on three tasks
LINES = 2 * PAIRS + SESSIONS


@pytest.fixture
def simulated(here: Any, small: Callable[..., Path], tmp_path: Path) -> Path:
    """A run whose sessions are held and not judged; its database."""
    assert here("simulate", "-c", small()).code == 0
    return tmp_path / "audit.db"


def requests_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def results_of(requests: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What a provider makes of requests, in no order."""
    found = [
        {
            "id": "x",
            "custom_id": request["custom_id"],
            "response": {"status_code": 200, "request_id": "r", "body": serve(request["body"])},
            "error": None,
        }
        for request in requests
    ]
    random.Random(3).shuffle(found)
    return found


def write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_lines_when_carried_by_hand_then_the_rows_are_those_of_a_live_judge(
    simulated: Path, here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    wrote = here("batch", "export", "ask.jsonl")
    run_id = rows(simulated, "select run_id from audit_runs")[0][0]
    assert (wrote.code, wrote.stdout) == (0, f"wrote {LINES} lines of run {run_id} for judge to ask.jsonl\n")
    requests = requests_in(tmp_path / "ask.jsonl")
    assert {(one["method"], one["url"]) for one in requests} == {("POST", "/v1/chat/completions")}
    answers = write(tmp_path / "answers.jsonl", results_of(requests))

    took = here("--json", "batch", "ingest", answers)
    counts = {"run_id": run_id, "stored": LINES, "failed": 0, "passed_over": 0, "left": 0, "status": "done"}
    assert json.loads(took.stdout) == [counts]
    before = final_rows(simulated)
    again = json.loads(here("--json", "batch", "ingest", answers).stdout)
    assert again == [counts | {"stored": 0, "passed_over": LINES}]
    assert final_rows(simulated) == before
    nothing = here("batch", "export", "more.jsonl")
    assert nothing.stdout == f"run {run_id} has nothing to ask by hand\n"
    assert not (tmp_path / "more.jsonl").exists()

    assert here("verify", "-c", small()).code == 0
    assert here("score").code == 0
    assert here("run", "-c", small(), db=f"sqlite:///{tmp_path / 'live.db'}").code == 0
    assert final_rows(simulated) == final_rows(tmp_path / "live.db")


def test_results_when_some_fail_or_are_missing_then_the_next_export_holds_just_those(
    simulated: Path, here: Any, tmp_path: Path
) -> None:
    assert here("batch", "export", "ask.jsonl").code == 0
    requests = requests_in(tmp_path / "ask.jsonl")
    results = results_of(requests)
    missing, expired, vllm, unreadable = results.pop(), results[0], results[1], results[2]
    expired |= {"response": None, "error": {"code": "batch_expired", "message": "too late"}}
    vllm |= {"response": {"status_code": 500, "request_id": "v"}, "error": "engine died"}
    message = unreadable["response"]["body"]["choices"][0]["message"]
    message["content"] = "I cannot tell."
    twice = [*results, results[5], {**results[6], "response": vllm["response"]}]
    took = json.loads(here("--json", "batch", "ingest", write(tmp_path / "a.jsonl", twice)).stdout)[0]
    assert {name: took[name] for name in ("stored", "failed", "passed_over", "status")} == {
        "stored": LINES - 3,
        "failed": 2,
        "passed_over": 2,
        "status": "stopped",
    }
    errors = "select error from batch_lines where state = 'failed' order by 1"
    assert rows(simulated, errors) == [("HTTP 500: engine died",), ("batch: too late (batch_expired)",)]

    assert here("batch", "export", "ask.jsonl").code == 0
    again = requests_in(tmp_path / "ask.jsonl")
    bodies = {one["custom_id"]: one["body"] for one in requests}
    wanted = [bodies[one["custom_id"]] for one in (missing, expired, vllm, unreadable)]
    assert sorted(map(json.dumps, wanted)) == sorted(json.dumps(one["body"]) for one in again)
    # The line that waits keeps its id, the others get new ones.
    assert {one["custom_id"] for one in again} & bodies.keys() == {missing["custom_id"]}
    took = json.loads(
        here("--json", "batch", "ingest", write(tmp_path / "b.jsonl", results_of(again))).stdout
    )
    assert (took[0]["left"], took[0]["status"]) == (0, "done")
    assert rows(simulated, "select count(*) from audit_pairs where judged_at is not null") == [(PAIRS,)]
    logged = "select count(*) from judge_logs where role in ('judge', 'satisfaction')"
    assert rows(simulated, logged) == [(LINES + 1,)]


REFUSED = {
    "of an id that nobody was given": (
        {"custom_id": "b0-1", "response": None, "error": "x"},
        "custom_id 'b0-1' is no line of this database: nothing is taken",
    ),
    "without an id": ({"response": None}, "no custom_id: expected the results of a batch"),
    "that is a request": (
        {"custom_id": "b0-1", "body": {}},
        "no response and no error: expected results, not the requests",
    ),
}


@pytest.mark.parametrize(("line", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_result_when_it_belongs_nowhere_then_its_line_is_named_and_nothing_taken(
    simulated: Path, here: Any, tmp_path: Path, line: dict[str, Any], problem: str
) -> None:
    assert here("batch", "export", "ask.jsonl").code == 0
    results = results_of(requests_in(tmp_path / "ask.jsonl"))
    path = write(tmp_path / "answers.jsonl", [*results[:4], line, *results[4:]])
    refused = here("batch", "ingest", path)
    assert (refused.code, refused.stderr) == (1, f"error: {path}, line 5: {problem}\n")
    assert rows(simulated, "select count(*) from batch_lines where state <> 'open'") == [(0,)]


def test_export_when_there_are_several_profiles_then_each_has_files_of_its_own_and_lines_name_their_run(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    embedded = yaml.safe_load(small().read_text(encoding="utf-8"))["profiles"]
    two = [synthetic_profile(name, "llm_judge", "judge-80") for name in ("one", "an/other")]
    profiles = [profile for profile in embedded if profile["role"] != "llm_judge"] + two
    config = small(profiles=profiles, judges=["one", "an/other"])
    assert here("simulate", "-c", config).code == 0
    wrote = json.loads(here("--json", "batch", "export", "ask.jsonl").stdout)
    told = {(one["file"], one["profile"], one["lines"]) for one in wrote["files"]}
    assert {(profile, count) for _, profile, count in told} == {("one", 27), ("an/other", 18)}
    assert {name.partition("-")[2] for name, _, _ in told} == {"one.jsonl", "an_other.jsonl"}
    assert not (tmp_path / "ask.jsonl").exists()

    assert here("simulate", "-c", config, "--new").code == 0
    assert here("batch", "export", "newer.jsonl").code == 0
    first, second = rows(tmp_path / "audit.db", "select run_id from audit_runs order by created_at")
    path = write(tmp_path / "a.jsonl", results_of(requests_in(tmp_path / wrote["files"][0]["file"])))
    refused = here("batch", "ingest", path, "--run", "latest")
    assert (refused.code, f"is a line of run {first[0]}: nothing is taken" in refused.stderr) == (1, True)
    took = json.loads(here("--json", "batch", "ingest", path).stdout)
    assert [one["run_id"] for one in took] == [first[0]] != [second[0]]


def test_imported_run_when_its_judge_is_named_then_its_lines_come_and_answers_are_scored(
    here: Any, tmp_path: Path
) -> None:
    sessions = [
        {"task_id": f"t{task}", "agent": agent, "reward": reward, "messages": [
            {"role": "user", "content": "Do it."}, {"role": "assistant", "content": f"Done by {agent}."}]}
        for task in range(2) for agent, reward in (("a-1", 1), ("a-2", 0))
    ]  # fmt: skip
    write(tmp_path / "s.jsonl", sessions)
    assert here("import", "sessions", tmp_path / "s.jsonl").code == 0
    run_id = rows(tmp_path / "audit.db", "select run_id from audit_runs")[0][0]
    nobody = here("batch", "export", "ask.jsonl")
    assert nobody.stderr == (
        f"error: run {run_id} was imported and has no judge: name one by -c FILE (profiles, judges)\n"
    )
    judge = synthetic_profile("j", "llm_judge", "judge-80")
    (tmp_path / "judges.yaml").write_text(yaml.safe_dump({"profiles": [judge], "judges": "j"}))
    assert here("batch", "export", "ask.jsonl", "-c", "judges.yaml").code == 0
    path = write(tmp_path / "a.jsonl", results_of(requests_in(tmp_path / "ask.jsonl")))
    took = here("batch", "ingest", path)
    assert took.code == 0, took.stderr
    assert took.stdout == (
        f"run {run_id}: 8 answers stored, 0 lines failed and may be asked again, 0 passed over; complete\n"
    )
    assert rows(tmp_path / "audit.db", "select count(*) from audit_pairs where scored_at > judged_at") == [
        (2,)
    ]


def test_export_when_a_judge_is_sent_a_key_in_its_body_then_no_file_is_written(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    text = yaml.safe_load(config.read_text(encoding="utf-8"))
    for profile in text["profiles"]:
        profile |= {"extra": {"api_key": "k-0123456789-abcdef"}} if profile["name"] == "judge" else {}
    config.write_text(yaml.safe_dump(text), encoding="utf-8")
    assert here("simulate", "-c", config).code == 0
    refused = here("batch", "export", "ask.jsonl")
    assert (refused.code, refused.stderr) == (
        1,
        "error: profile 'judge' sends a key in `extra`, which no file may hold: use `judge --batch`\n",
    )
    assert not (tmp_path / "ask.jsonl").exists()


def test_lines_when_too_many_fail_for_good_then_ingest_ends_with_4(
    simulated: Path, here: Any, tmp_path: Path
) -> None:
    assert here("batch", "export", "ask.jsonl").code == 0
    results = results_of(requests_in(tmp_path / "ask.jsonl"))
    for result in results:
        result["response"] = {"status_code": 404, "body": {"error": {"message": "no such model"}}}
    took = here("batch", "ingest", write(tmp_path / "a.jsonl", results))
    assert took.code == 4
    assert took.stderr == "incomplete: more calls failed than max_error_rate allows\n"
    kept = "select distinct parse_status, error from judge_logs where role in ('judge', 'satisfaction')"
    assert rows(simulated, kept) == [
        (
            "error",
            "HTTP 404 at offline://synthetic/chat/completions (is /v1 missing in base_url?): no such model",
        )
    ]
    assert here("batch", "export", "ask.jsonl", "--retry-errors").code == 0
    assert len(requests_in(tmp_path / "ask.jsonl")) == LINES


def test_lines_when_there_are_more_than_a_file_takes_then_there_are_more_files(
    simulated: Path, tmp_path: Path
) -> None:
    engine = db.connect(f"sqlite:///{simulated}")
    found = export_requests(engine, "latest", tmp_path / "ask.jsonl", None, {}, most_lines=10)
    engine.dispose()
    assert [(path.name, count) for path, _, count in found.files] == [
        ("ask.1-judge.jsonl", 10),
        ("ask.2-judge.jsonl", 10),
        ("ask.3-judge.jsonl", 7),
    ]
    written = [one["custom_id"] for path, _, _ in found.files for one in requests_in(path)]
    stored = rows(simulated, "select custom_id from batch_lines")
    assert sorted(written) == sorted(custom_id for (custom_id,) in stored)
    assert rows(simulated, "select count_lines from provider_batches order by 1") == [(7,), (10,), (10,)]


def test_lines_when_taken_and_dropped_then_both_databases_hold_the_same(
    here: Any, small: Callable[..., Path], database_url: str, tmp_path: Path
) -> None:
    assert here("simulate", "-c", small(), db=database_url).code == 0
    assert here("batch", "export", "ask.jsonl", db=database_url).code == 0
    results = results_of(requests_in(tmp_path / "ask.jsonl"))
    results[0] |= {"response": None, "error": {"message": "late"}}
    path = write(tmp_path / "a.jsonl", results[:20])
    assert here("batch", "ingest", path, db=database_url).code == 0
    listed = json.loads(here("--json", "batch", "status", db=database_url).stdout)
    counts = ("status", "count_lines", "count_stored", "count_failed")
    assert [[one[name] for name in counts] for one in listed] == [["exported", LINES, 19, 1]]
    dropped = json.loads(here("--json", "batch", "drop", db=database_url).stdout)
    assert dropped["dropped"] == LINES - 20
    late = here("--json", "batch", "ingest", write(tmp_path / "b.jsonl", results), db=database_url)
    assert [json.loads(late.stdout)[0][name] for name in ("stored", "passed_over")] == [0, LINES]
    assert here("batch", "export", "ask.jsonl", db=database_url).code == 0
    again = write(tmp_path / "c.jsonl", results_of(requests_in(tmp_path / "ask.jsonl")))
    took = json.loads(here("--json", "batch", "ingest", again, db=database_url).stdout)[0]
    assert (took["stored"], took["status"]) == (LINES - 19, "done")
