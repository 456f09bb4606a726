"""The stages one by one, again, and on both databases; what a run does with what an agent sends."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from live_rows import CALLS, PAIRS, SESSIONS, every_row, final_rows, rows, synthetic_profile
from server import ChatServer, Say
from sqlalchemy import create_engine, text

from audit.offline.serve import serve

STAGES = ("simulate", "judge", "verify", "score")


def calls_of(did: Any) -> int:
    return int(json.loads(did.stdout)["calls"])


def test_stages_when_done_one_by_one_and_each_twice_then_the_rows_are_those_of_one_run(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    file = tmp_path / "audit.db"
    assert here("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db").code == 0

    for stage in STAGES:
        options = () if stage == "score" else ("-c", config)
        first = here("--json", stage, *options)
        assert first.code == 0, first.stderr
        held = every_row(file)
        again = here("--json", stage, *options)
        assert again.code == 0, again.stderr
        assert json.loads(again.stdout).get("calls", 0) == json.loads(again.stdout).get("changed", 0) == 0
        assert every_row(file) == held, stage
    assert final_rows(file) == final_rows(tmp_path / "whole.db")
    statuses = "select status, finished_at is not null from audit_runs"
    assert rows(file, statuses) == rows(tmp_path / "whole.db", statuses) == [("complete", 1)]

    # Complete, each stage still means this run, and finds nothing to do.
    held = every_row(file)
    for stage in ("judge", "verify"):
        assert calls_of(here("--json", stage, "-c", config)) == 0
    assert every_row(file) == held


def test_stage_when_it_comes_before_its_run_then_it_is_told_which_command_begins_one(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    for stage in ("judge", "verify"):
        did = here(stage, "-c", small())
        assert did.code == 1
        assert "error: there is no run of this config to go on with: `reward-audit simulate`" in did.stderr
        assert "leave --new out" in here(stage, "-c", small(), "--new").stderr
    assert rows(tmp_path / "audit.db", "select * from audit_runs") == []


def test_stages_when_half_done_then_run_does_the_rest_of_the_same_run(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    config = small()
    file = tmp_path / "audit.db"
    assert here("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db").code == 0
    assert here("simulate", "-c", config, "--limit", "5").code == 4
    assert here("judge", "-c", config).code == 0
    # Scored though not done: the run is not complete for it.
    assert here("verify", "-c", config).code == 0
    assert here("score").code == 0
    assert rows(file, "select status from audit_runs") == [("stopped",)]
    # Nor when every session is there, and the judge has not seen the last ones.
    assert here("simulate", "-c", config).code == here("verify", "-c", config).code == here("score").code == 0
    assert rows(file, "select status from audit_runs") == [("stopped",)]
    did = here("run", "-c", config)
    assert did.code == 0, did.stderr
    assert "going on with run" in did.stderr
    assert final_rows(file) == final_rows(tmp_path / "whole.db")


def test_verify_when_done_again_from_nothing_then_the_same_findings_and_no_byte_of_a_world_changed(
    here: Any, small: Callable[..., Path], tmp_path: Path
) -> None:
    import sqlite3

    config = small()
    file = tmp_path / "audit.db"
    for stage in ("simulate", "judge", "verify"):
        assert here(stage, "-c", config).code == 0
    first = final_rows(file)
    assert {row[7] for row in first["sessions"]} > {1.0}
    connection = sqlite3.connect(file)
    with connection:
        connection.execute(
            "update sessions set reward = null, success = null, checks_json = null, verified_at = null"
        )
        connection.execute("update audit_pairs set reward_a = null, reward_b = null, success_a = null")
    connection.close()
    assert final_rows(file) != first
    assert here("verify", "-c", config).code == 0
    assert final_rows(file) == first


def test_run_when_on_sqlite_and_on_postgresql_then_the_rows_are_equal(
    here: Any, small: Callable[..., Path], sqlite_url: str, postgres_url: str
) -> None:
    config = small(trials=2)
    found = []
    for url in (sqlite_url, postgres_url):
        stopped = here("run", "-c", config, "--max-tokens", "40000", db=url)
        assert stopped.code == 4, stopped.stderr
        did = here("run", "-c", config, db=url)
        assert did.code == 0, did.stderr
        again = here("--json", "run", "-c", config, "--resume", "latest", db=url)
        assert calls_of(again) == 0
        report = json.loads(here("--json", "report", db=url).stdout)
        engine = create_engine(url)
        with engine.connect() as connection:
            # Sorted here, because the databases sort text each in their own way.
            held = [
                sorted(map(tuple, connection.execute(text(query.partition(" order by ")[0]))), key=repr)
                for query in (SESSIONS, PAIRS, CALLS)
            ]
        engine.dispose()
        found.append((held, {key: value for key, value in report.items() if key != "run"}))
    assert found[0] == found[1]
    assert [len(held) > 0 for held in found[0][0]] == [True] * 3


def with_judge(config: Path, **changes: Any) -> Path:
    """The same config with changes to its judge."""
    found = yaml.safe_load(config.read_text(encoding="utf-8"))
    found["profiles"] = [
        profile | changes if profile["role"] == "llm_judge" else profile for profile in found["profiles"]
    ]
    config.write_text(yaml.safe_dump(found), encoding="utf-8")
    return config


def brief(body: dict[str, Any], verdicts: list[str]) -> Say:
    """A customer content with one answer, agents that give one, a judge that never says the same twice."""
    if body["model"] == "customer":
        return Say(text="Please look into it. <finished>")
    if body["model"].startswith("agent"):
        return Say(text=f"It is done, says {body['model'][-2:]}.")
    verdicts.append(f"judgment {len(verdicts)}")
    side = {"evidence": verdicts[-1], "done": True}
    if "<<<FIRST" not in body["messages"][-1]["content"]:
        return Say(text=json.dumps(side | {"satisfaction": 0.5}))
    return Say(
        text=json.dumps({"first": side, "second": side, "score_first": 3, "score_second": 3, "winner": "tie"})
    )


def test_repeats_at_a_temperature_when_asked_then_each_is_a_call_and_a_row_and_asked_no_second_time(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    """ST-05: thirty repeats make thirty calls, and a second run makes none."""
    verdicts: list[str] = []
    server = gateway(lambda body: brief(body, verdicts))
    config = with_judge(small(server, trials=10, agents=["agent-95", "agent-50"]), temperature=0.7)
    assert here("run", "-c", config).code == 0

    file = tmp_path / "audit.db"
    answers = (
        "select count(*), count(distinct raw_output) from judge_logs "
        "where role = 'judge' and presented_order = 'AB'"
    )
    assert rows(file, answers) == [(30, 30)]
    assert rows(file, "select count(distinct raw_output) from judge_logs where role = 'judge'") == [(60,)]
    held, asked = every_row(file), server.requests
    again = here("--json", "run", "-c", config, "--resume", "latest")
    assert (calls_of(again), server.requests, every_row(file) == held) == (0, asked, True)


CHANGES: list[dict[str, Any]] = [
    {"model": "judge-70"},
    {"temperature": 0.7},
    {"temperature": None},
    {"max_tokens": 512},
    {"base_url": "/other/v1"},
]


def test_settings_of_a_judge_when_changed_then_no_answer_to_the_old_ones_is_taken_for_one_to_the_new(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    """ST-05: model, temperature, token limit and gateway belong to what an answer is an answer to."""
    verdicts: list[str] = []
    server = gateway(lambda body: brief(body, verdicts))
    base = {"temperature": 0, "max_tokens": 256}
    file = tmp_path / "audit.db"

    def config(**changes: Any) -> Path:
        if "base_url" in changes:
            changes["base_url"] = server.base_url.removesuffix("/v1") + changes["base_url"]
        return with_judge(small(server, agents=["agent-95", "agent-50"]), **base | changes)

    assert here("run", "-c", config(), "--limit", "2").code == 4
    for number, changes in enumerate(CHANGES, start=2):
        server.reset()
        # Not even the unfinished run of the other settings is gone on with.
        assert here("run", "-c", config(**changes), "--limit", "2").code == 4
        assert server.requests > 0
        assert rows(file, "select count(*) from audit_runs") == [(number,)], changes
    asked = "select distinct model, temperature, base_url, json_extract(request_json, '$.max_tokens') "
    assert len(rows(file, asked + "from judge_logs where role = 'judge'")) == 1 + len(CHANGES)
    # How fast and how patiently it is asked is another thing.
    faster = {"timeout_s": 3.0, "rpm": 60000.0, "concurrency": 2, "attempts": 2}
    same = here("run", "-c", config(**faster), "--limit", "2")
    assert "going on with run" in same.stderr
    assert rows(file, "select count(*) from audit_runs") == [(1 + len(CHANGES),)]


TOOL_CALLS = [
    {
        "id": "c1",
        "type": "function",
        "function": {"name": "get_customer", "arguments": '{"customer_id": "C101"}'},
    },
    {"id": "c2", "type": "function", "function": {"name": "get_order", "arguments": '{"order_id": '}},
    {"id": "c3", "type": "function", "function": {"name": "get_order", "arguments": '{"order": 7}'}},
    {"id": "c4", "type": "function", "function": {"name": "open_door", "arguments": "{}"}},
    {
        "id": "c5",
        "type": "function",
        "function": {"name": "list_orders", "arguments": {"customer_id": "C101"}},
    },
]


def test_agent_when_it_calls_several_tools_at_once_and_some_wrongly_then_each_is_answered_and_the_run_goes_on(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    results: list[list[dict[str, Any]]] = []

    def answer(body: dict[str, Any]) -> Say:
        if not body["model"].startswith("agent"):
            return Say(body=serve(body))
        since = [message for message in body["messages"] if message["role"] == "tool"]
        if not since:
            return Say(text=None, finish="tool_calls", message={"tool_calls": TOOL_CALLS})
        results.append(since)
        return Say(text="I have looked, and cannot do more.")

    did = here("run", "-c", small(gateway(answer), agents=["agent-95", "agent-50"]))
    assert did.code == 0, did.stderr
    assert len(results) >= 6
    for since in results:
        assert [message["tool_call_id"] for message in since] == ["c1", "c2", "c3", "c4", "c5"]
        good, cut, wrong, unknown, listed = [json.loads(message["content"]) for message in since]
        assert good[0]["customer_id"] == "C101"
        assert [set(bad) for bad in (cut, wrong, unknown)] == [{"error"}] * 3
        assert "JSON" in cut["error"]
        assert "order_id" in wrong["error"]
        assert "open_door" in unknown["error"]
        assert listed[0]["order_id"]
    file = tmp_path / "audit.db"
    assert rows(file, "select distinct fault, error from sessions") == [(None, None)]
    assert rows(file, "select count(*) from sessions where reward is null") == [(0,)]
    assert rows(file, "select status from audit_runs") == [("complete",)]


def test_judge_when_it_is_the_users_and_an_agents_twin_then_it_is_warned_of_and_stored(
    here: Any,
    small: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    tmp_path: Path,
    monkeypatch: Any,
) -> None:
    server = gateway(lambda body: brief(body, []))
    monkeypatch.setenv("TWIN_KEY", "sk-planted-4711")
    one = {"base_url": server.base_url + "/?tenant=7", "api_key_env": "TWIN_KEY", "temperature": 0.5}
    profiles = [
        synthetic_profile("u", "simulated_user", "vendor/gpt-4o") | one,
        synthetic_profile("a", "agent", "agent-95") | {"base_url": server.base_url},
        synthetic_profile("b", "agent", "gpt-5") | one,
        synthetic_profile("twin", "llm_judge", "gpt-5") | one,
        synthetic_profile("cousin", "llm_judge", "gpt-4.1-mini") | one | {"temperature": 0.0},
        synthetic_profile("other", "llm_judge", "judge-80"),
    ]
    config = small(profiles=profiles, agents=["a", "b"], user="u", judges=["twin", "cousin", "other"])
    did = here("run", "-c", config)

    start = did.stderr.partition("\nrun ")[0].splitlines()
    assert [line for line in start if not line.startswith("warning")] == [
        f"user   u: vendor/gpt-4o at {server.base_url}/, TWIN_KEY",
        f"agent  a: agent-95 at {server.base_url}, no key",
        f"agent  b: gpt-5 at {server.base_url}/, TWIN_KEY",
        f"judge  twin: gpt-5 at {server.base_url}/, TWIN_KEY",
        f"judge  cousin: gpt-4.1-mini at {server.base_url}/, TWIN_KEY",
        "judge  other: judge-80 at offline://synthetic, no key",
    ]
    warned = [line.removeprefix("warning: ") for line in start if line.startswith("warning")]
    assert [
        (line.split()[1], word)
        for line in warned
        for word in ("family", "temperature", "judges agent")
        if word in line
    ] == [
        ("twin", "family"),
        ("twin", "temperature"),
        ("twin", "judges agent"),
        ("cousin", "family"),
    ]
    (stored,) = rows(tmp_path / "audit.db", "select config_json from audit_runs")
    assert json.loads(stored[0])["role_isolation"] == warned
    assert "sk-planted-4711" not in did.stderr + did.stdout + stored[0]
    assert {
        header.get("authorization")
        for header, body in zip(server.headers, server.bodies, strict=True)
        if body["model"] == "agent-95"
    } <= {"Bearer none", None}
