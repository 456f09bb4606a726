"""Budgets: of tokens and of money, of the run and of a role; what is under way is counted too."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from live_rows import final_rows, rows
from server import ChatServer, Say

from audit.offline.serve import serve
from audit.pipeline.budget import Budget
from audit.pipeline.conversation import Conversation
from audit.pipeline.expected import Unit
from audit.verbs.spending import Spent, cost_of
from audit.words.config import Config, check_config
from audit.words.records import JudgeLog

PRICES = {"judge-70": {"prompt": 2.0, "completion": 8.0}}


def behind(path: Path, server: ChatServer, role: str = "llm_judge", **changes: Any) -> Path:
    config = yaml.safe_load(path.read_text(encoding="utf-8"))
    for profile in config["profiles"]:
        if profile["role"] == role:
            profile |= {"base_url": server.base_url} | changes
    path.write_text(yaml.safe_dump(config), encoding="utf-8")
    return path


def used(file: Path, roles: str = "('judge', 'satisfaction')") -> int:
    query = f"select coalesce(sum(total_tokens), 0) from judge_logs where role in {roles}"
    return int(rows(file, query)[0][0])


@pytest.mark.parametrize("tokens", [40, 40_000])
def test_judge_when_its_budget_ends_with_many_at_once_then_no_more_than_the_calls_under_way_are_over(
    tokens: int, here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    """Also where a call takes ten times of what was expected, or a hundredth."""

    def answer(body: dict[str, Any]) -> Say:
        said = serve(body)
        said["usage"] = {"prompt_tokens": tokens - 10, "completion_tokens": 10, "total_tokens": tokens}
        return Say(body=said, delay=0.02)

    file = tmp_path / "audit.db"
    most = 61 * tokens
    config = small(trials=8, budget={"roles": {"llm_judge": {"max_tokens": most}}})
    server = gateway(answer)
    behind(config, server)
    did = here("--json", "run", "-c", config, "-j", "64")
    assert did.code == 4, did.stderr
    over = used(file) - most
    assert most <= used(file) + 2 * tokens  # no room was left for one more pair
    assert over <= 64 * tokens
    assert f"the budget of role llm_judge of {most:,} tokens is used up ({used(file):,} used" in did.stderr
    # Stored is each call that was made; a pair of which one order was asked is asked the other one later.
    assert here("run", "-c", behind(small(trials=8), server), "-j", "64").code == 0
    calls = "select count(*) from judge_logs where role = 'judge' group by pair_id"
    assert {count for (count,) in rows(file, calls)} == {2}
    if tokens == 40:
        assert over <= 2 * tokens  # what was expected is more: pairs began one by one


@pytest.mark.parametrize("concurrency", [1, 8])
def test_simulation_when_its_budget_ends_in_sessions_then_they_are_gone_on_with_and_no_call_is_made_twice(
    concurrency: int,
    here: Any,
    small: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    tmp_path: Path,
) -> None:
    """Calls of the agents take a hundred times of what was expected: so sessions are cut, again and again."""

    def answer(body: dict[str, Any]) -> Say:
        said = serve(body)
        said["usage"] = {"prompt_tokens": 39_990, "completion_tokens": 10, "total_tokens": 40_000}
        return Say(body=said)

    file = tmp_path / "audit.db"
    server = gateway(answer)
    config = behind(small(), server, role="agent")
    assert here("run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db").code == 0
    most = cuts = 0
    while True:
        most += 410_000
        did = here("--json", "run", "-c", config, "-j", str(concurrency), "--max-tokens", str(most))
        if did.code == 0:
            break
        assert did.code == 4, did.stderr
        of_run = used(file, "('agent', 'user_simulator', 'judge', 'satisfaction')")
        assert most <= of_run <= most + concurrency * 40_000
        assert f"({of_run:,} used by this run)" in did.stderr
        assert "are of no use" not in did.stderr  # they are gone on with
        cuts += len(rows(file, "select 1 from sessions where end_reason like 'budget_%'"))
    assert cuts > 3
    assert final_rows(file) == final_rows(tmp_path / "whole.db")
    calls = "select role, count(*) from judge_logs group by role order by role"
    assert rows(file, calls) == rows(tmp_path / "whole.db", calls)


def test_run_when_a_price_is_unknown_then_it_is_refused_before_anything_is_asked_or_goes_on_where_allowed(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    file = tmp_path / "audit.db"
    server = gateway(lambda body: Say(body=serve(body)))
    config = behind(small(budget={"max_cost": 100}), server)
    did = here("run", "-c", config)
    model = next(
        p["model"] for p in yaml.safe_load(config.read_text())["profiles"] if p["role"] == "llm_judge"
    )
    assert did.code == 1
    assert (
        f"error: max_cost: the price of model {model!r} (profile 'judge') is not known: write it under "
        in did.stderr
    )
    assert (server.requests, file.exists() and rows(file, "select * from audit_runs")) in (
        (0, []),
        (0, False),
    )
    did = here("--json", "run", "-c", config, "--allow-unknown-cost")
    assert did.code == 0, did.stderr
    assert json.loads(did.stdout)["run_cost_usd"] is None  # unknown is not 0
    assert rows(file, "select distinct cost_usd from audit_pairs") == [(None,)]


def test_run_when_prices_are_known_then_pairs_have_their_cost_and_a_limit_of_it_stops_the_run(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    file = tmp_path / "audit.db"
    server = gateway(lambda body: Say(body=serve(body)))
    config = behind(small(prices=PRICES), server, model="judge-70")
    whole = here("--json", "run", "-c", config, db=f"sqlite:///{tmp_path}/whole.db")
    assert whole.code == 0, whole.stderr
    calls = rows(
        tmp_path / "whole.db",
        "select pair_id, prompt_tokens, completion_tokens from judge_logs where profile = 'judge'",
    )
    cost = sum(prompt * 2 + completion * 8 for _, prompt, completion in calls) / 1e6
    of_pairs = sum(prompt * 2 + completion * 8 for pair, prompt, completion in calls if pair) / 1e6
    assert json.loads(whole.stdout)["run_cost_usd"] == pytest.approx(cost)
    report = json.loads(here("--json", "report", db=f"sqlite:///{tmp_path}/whole.db").stdout)
    assert report["cost"]["usd"] == pytest.approx(of_pairs)

    did = here("--json", "run", "-c", config, "--max-cost", str(cost / 2))
    assert did.code == 4, did.stderr
    assert f"the budget of {cost / 2:,.4f} USD is used up" in did.stderr
    assert json.loads(did.stdout)["run_cost_usd"] == pytest.approx(cost / 2, rel=0.2)
    # The same one once more lets nothing begin; a higher one ends in the rows of the whole run.
    before = server.requests
    assert here("run", "-c", config, "--max-cost", str(cost / 2)).code == 4
    assert server.requests - before <= 2
    assert here("run", "-c", config, "--max-cost", str(cost * 2)).code == 0
    costs = "select round(cost_usd, 9) from audit_pairs order by task_id, trial, agent_a, agent_b"
    assert rows(file, costs) == rows(tmp_path / "whole.db", costs)


def test_budget_when_a_gateway_tells_no_tokens_then_they_are_guessed_and_told_to_be_unknown(
    here: Any, small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    def answer(body: dict[str, Any]) -> Say:
        said = serve(body)
        del said["usage"]
        return Say(body=said)

    server = gateway(answer)
    config = behind(small(budget={"roles": {"llm_judge": {"max_tokens": 10_000}}}), server)
    did = here("run", "-c", config, "-j", "1")
    assert did.code == 4
    assert "the budget of role llm_judge of 10,000 tokens is used up" in did.stderr
    # Nor is the cost of what earlier commands asked known, though there is a price.
    priced = behind(small(prices=PRICES), server, model="judge-70")
    for args in (("--new",), ("--resume", "latest", "--retry-errors")):
        again = here("--json", "run", "-c", priced, *args)
        assert again.code == 0, again.stderr
        assert json.loads(again.stdout)["run_cost_usd"] is None
    assert json.loads(here("--json", "report").stdout)["cost"]["usd"] is None
    assert "unknown for" in did.stderr
    assert rows(tmp_path / "audit.db", "select sum(total_tokens) from judge_logs where role = 'judge'") == [
        (None,)
    ]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"budget": {"roles": {"judge": {"max_tokens": 5}}}}, "budget.roles.judge"),
        ({"budget": {"max_cost": 0}}, "budget.max_cost: expected greater than 0"),
        ({"prices": {"m": {"prompt": -1, "completion": 1}}}, "prices.m.prompt"),
        ({"prices": {"m": {"prompt": 1}}}, "prices.m.completion: is missing"),
        ({"budget": {"max_tokns": 5}}, "budget.max_tokns: unknown key (did you mean max_tokens?)"),
    ],
)
def test_config_when_a_budget_or_price_is_none_then_its_place_is_named(
    changes: dict[str, Any], fault: str, here: Any, small: Callable[..., Path]
) -> None:
    did = here("run", "-c", small(**changes))
    assert (did.code, fault in did.stderr) == (1, True), did.stderr


def config_of(**changes: Any) -> Config:
    profiles = [
        {"name": name, "role": role, "base_url": "http://127.0.0.1:1/v1", "model": "judge-70"}
        for name, role in (("u", "simulated_user"), ("a", "agent"), ("b", "agent"), ("j", "llm_judge"))
    ]
    found = {"profiles": profiles, "agents": ["a", "b"], "user": "u", "judges": "j", "prices": PRICES}
    return check_config(found | changes, "a test")


def call(tokens: int | None, role: str = "judge") -> JudgeLog:
    known = {
        "role": role,
        "profile": "j",
        "total_tokens": tokens,
        "prompt_tokens": tokens,
        "completion_tokens": 0,
    }
    return JudgeLog(**(dict.fromkeys(JudgeLog._fields) | known))


@given(
    st.integers(1, 5000),
    st.lists(st.tuples(st.booleans(), st.integers(0, 300)), max_size=80),
    st.sampled_from([1, 4, 64]),
)
def test_room_when_units_begin_and_end_in_any_order_then_it_is_kept_for_those_under_way(
    most: int, steps: list[tuple[bool, int]], concurrency: int
) -> None:
    budget = Budget(config_of(budget={"max_tokens": most}), {"judge": Unit(100, 4)}, concurrency)
    budget.begin("judge")
    under_way = 0
    done: list[int] = []
    for begins, tokens in steps:
        if begins and sum(done) < most:
            each = sum(done) / len(done) if done else 0.0
            first = not done and under_way < concurrency // 4
            fits = not under_way or first or (bool(done) and sum(done) + each * (under_way + 1) <= most)
            assert budget.fits() is fits
            if fits:
                assert asyncio.run(budget.has_room())
            under_way += fits
        elif begins:
            assert not asyncio.run(budget.has_room())
            assert str(most) in (budget.refusal() or "").replace(",", "")
        elif under_way:
            under_way -= 1
            done.append(tokens)
            budget.add("llm_judge", Spent(tokens))
            budget.count([call(tokens)])
    assert budget.total().tokens == sum(done)


def test_cost_when_computed_then_unknown_is_never_nothing() -> None:
    config = config_of()
    assert cost_of(call(1_000_000), config) == 2.0
    assert cost_of(call(None), config) is None
    assert cost_of(call(None)._replace(parse_status="error"), config) == 0.0
    assert cost_of(call(5), config_of(prices={})) is None
    assert cost_of(call(5)._replace(profile="gone"), config) is None
    assert Spent(1, 2.0, 0, 1) + Spent(2, 0.5) == Spent(3, 2.5, 0, 1)


class Broken:
    """A world that does not do again what it did before."""

    def call(self, name: str, _arguments: str | dict[str, Any]) -> str:
        raise RuntimeError(f"no more {name}")


def test_session_when_it_cannot_be_gone_on_with_then_it_is_over_by_the_tools_fault_and_the_run_is_not() -> (
    None
):
    function = {"name": "cancel", "arguments": "{}"}
    said = [
        {"role": "user", "content": "Cancel it."},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": function}]},
    ]
    cut: Any = Conversation(None, None, Broken())  # type: ignore[arg-type] # nobody is asked
    assert asyncio.run(cut.go_on_from(said, "budget_")) is False
    assert (cut.end_reason, cut.fault) == ("tool_error", "verifier")
    assert "no more cancel" in (cut.error or "")
