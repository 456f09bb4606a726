"""Published sessions: what `expected.json` says of tau-bench and tau2-bench comes out of the database."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import import_file
from audit.pipeline.reporting import report
from audit.pipeline.wishes import Wish


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def expected(shared: Path, source: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "data/expected.json").read_text())["sources"][source]
    return found


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(text(query)).mappings()]


def test_tau_when_the_airline_file_is_read_then_mean_and_pass_hat_k_are_the_published_ones(
    engine: Engine, shared: Path
) -> None:
    right = expected(shared, "tau-bench/gpt-4o-airline")

    found = import_file(engine, Wish("tau", (shared / "data/tau/gpt-4o-airline.json",)))

    assert (found.sessions, found.pairs, found.odd_rewards, found.clashing_ids) == (
        right["sessions"],
        0,
        0,
        0,
    )
    (agent,) = report(engine, "latest")["agents"]
    assert (agent["agent"], agent["sessions"], agent["tasks"]) == ("gpt-4o-airline", 200, right["tasks"])
    assert agent["mean_reward"] == right["mean_reward"]
    assert {k: round(value, 3) for k, value in agent["pass_hat_k"].items()} == right["pass_hat_k"]
    assert agent["low"] < agent["mean_reward"] < agent["high"]
    ends = Counter(row["end_reason"] for row in rows(engine, "select end_reason from sessions"))
    assert ends == {
        "max_steps": right["reward_info_null"],
        "user_stop": 147,
        "agent_stop: transfer_to_human_agents": 48,
    }
    capped = rows(engine, "select reward, success, fault from sessions where end_reason = 'max_steps'")
    assert capped == [{"reward": 0.0, "success": 0, "fault": None}] * 5
    assert rows(engine, "select distinct category from sessions") == [{"category": "airline"}]


@pytest.mark.parametrize("domain", ["airline", "retail", "telecom"])
def test_tau2_when_two_agents_are_read_then_gap_and_decisive_tasks_are_exact(
    engine: Engine, shared: Path, domain: str
) -> None:
    right = expected(shared, "tau2/pairs")[f"{domain} gpt-4.1 vs gpt-4.1-ft"]
    paths = tuple(shared / f"data/tau2/{domain}.{name}.json" for name in ("gpt-4.1", "gpt-4.1-ft"))

    found = import_file(engine, Wish("tau2", paths))

    assert (found.pairs, found.sessions) == (right["n"], 2 * right["n"])
    assert (found.clashing_ids, found.odd_rewards, found.unknown_rewards) == (0, 0, 0)
    pairs = rows(engine, "select * from audit_pairs")
    assert {pair["agent_gap"] for pair in pairs} == {pair["reward_gap"] for pair in pairs} == {right["gap"]}
    assert {pair["category"] for pair in pairs} == {domain}
    # Not a tie and not unverified: as soon as a judge has spoken, each is correct or misselected.
    decisive = [pair for pair in pairs if pair["outcome"] == "incomplete"]
    assert len(decisive) == right["decisive"]
    assert all(pair["success_a"] != pair["success_b"] for pair in decisive)
    first = sum(pair["reward_a"] > pair["reward_b"] for pair in decisive)
    second = len(decisive) - first
    means = [agent["mean_reward"] for agent in report(engine, "latest")["agents"]]
    assert sorted(means) == pytest.approx(sorted(right["mean"]))
    # won: by the agent of the higher mean, then by the other; in retail the means are equal.
    assert [second, first] == right["won"]
    assert pairs[0]["agent_a"] == "gpt-4.1"


def test_tau2_when_the_user_calls_tools_then_they_stay_on_the_users_side(
    engine: Engine, shared: Path
) -> None:
    path = shared / "data/tau2/telecom.gpt-4.1.json"
    recorded = json.loads(path.read_text())["simulations"]
    import_file(engine, Wish("tau2", (path,)))

    stored = [
        json.loads(row["transcript_json"]) for row in rows(engine, "select transcript_json from sessions")
    ]

    calls = Counter(
        (message["role"], type(call["function"]["arguments"]).__name__)
        for messages in stored
        for message in messages
        for call in message.get("tool_calls", [])
    )
    assert calls == {("user", "dict"): 482, ("assistant", "dict"): 207}
    assert sum(map(len, stored)) == sum(len(simulation["messages"]) for simulation in recorded)
    for messages in stored:
        made = [call["id"] for message in messages for call in message.get("tool_calls", [])]
        answered = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
        assert made == [f"call_{number}" for number in range(1, len(made) + 1)]
        assert sorted(answered) == sorted(made)


def test_tau2_when_all_domains_are_one_run_then_each_category_has_the_gap_it_has_alone(
    engine: Engine, shared: Path
) -> None:
    paths = tuple(sorted((shared / "data/tau2").glob("*.json")))
    import_file(engine, Wish("tau2", paths, gap_scope="category"))
    found = rows(engine, "select distinct category, agent_gap from audit_pairs order by category")
    assert [(row["category"], row["agent_gap"]) for row in found] == [
        ("airline", 0.15),
        ("retail", 0.0),
        ("telecom", 0.3),
    ]
