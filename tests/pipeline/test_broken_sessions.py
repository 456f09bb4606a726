"""What an agent sends or a tool's function does breaks its own session at most, and never the run."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from server import Say
from staged import GOOD, IDLE, TOOLS, Stage, task

TOOL = {
    "name": "odd_tool",
    "description": "Does something odd.",
    "parameters": {"type": "object", "properties": {}},
    "function": "odd_tools:act",
}


def calling(*calls: tuple[str, Any, Any]) -> Say:
    """An agent's calls (name, arguments, id) in one message."""
    listed = [
        {
            "id": call_id,
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for name, arguments, call_id in calls
    ]
    return Say(text=None, message={"tool_calls": listed}, finish="tool_calls")


def once(say: Say) -> Any:
    """An agent that makes these calls, and then is done."""
    return lambda _berth, body: "Done." if body["messages"][-1]["role"] == "tool" else say


@pytest.mark.parametrize("ids", [("x", "y"), ("x", "x"), (None, None), ("", ""), (5, {"a": 1}), ("x", None)])
def test_reward_when_ids_of_calls_are_missing_or_repeated_then_it_is_that_of_good_ids(
    stage: Stage, ids: tuple[Any, Any]
) -> None:
    stage.tasks = [
        task(
            "K1",
            checks=[
                {"name": "freed", "tool_called": {"name": "free_berth"}},
                {"name": "looked", "tool_called": {"name": "berth_sheet", "arguments": {"berth": "K1"}}},
                {"name": "seen", "json": {"of": "tool:berth_sheet", "path": "$[0].boat", "equals": "Ibis"}},
            ],
        )
    ]
    # The first call fails, the second works.
    calls = calling(("free_berth", {"berth": "K99"}, ids[0]), ("berth_sheet", {"berth": "K1"}, ids[1]))
    stage.parts[GOOD] = once(calls)
    done = stage.run()
    assert done.code == 0, done.stderr
    ((checks, transcript),) = stage.rows(
        f"select checks_json, transcript_json from sessions where agent = '{GOOD}'"
    )
    assert [one["passed"] for one in json.loads(checks)] == [False, True, True]
    messages = json.loads(transcript)
    given = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(set(given)) == len(given) == 2
    assert [message["tool_call_id"] for message in messages if message["role"] == "tool"] == given
    sent = stage.asked(GOOD)[-1]["messages"]
    assert [message["tool_call_id"] for message in sent if message["role"] == "tool"] == given


@pytest.mark.parametrize(
    ("call_id", "arguments"),
    [({"x": 1}, {"berth": "K1"}), ("a", '{"berth":' + "[" * 2000 + "]" * 2000 + "}"), ("a", "[" * 100_000)],
    ids=["an id that is an object", "arguments nested deep", "arguments without end"],
)
def test_run_when_a_call_is_poisonous_then_its_session_is_verified_like_the_others(
    stage: Stage, call_id: Any, arguments: Any
) -> None:
    stage.parts[IDLE] = once(calling(("berth_sheet", arguments, call_id)))
    done = stage.run()
    assert done.code == 0, done.stderr
    rewards = stage.rows("select agent, reward, fault from sessions order by agent")
    assert rewards == [(GOOD, 1.0, None), (IDLE, 0.0, None)]


def test_verify_when_a_stored_session_cannot_be_read_then_it_is_at_fault_and_the_others_are_checked(
    stage: Stage,
) -> None:
    config = str(stage.written())
    assert stage("simulate", "-c", config).code == 0
    with closing(sqlite3.connect(stage.database)) as connection:
        connection.execute(f"update sessions set transcript_json = '[' where agent = '{IDLE}'")
        connection.commit()
    done = stage("verify", "-c", config)
    assert done.code == 0, done.stderr
    assert "cannot be checked: JSONDecodeError" in done.stderr
    found = stage.rows("select agent, reward, success, fault from sessions order by agent")
    assert found == [(GOOD, 1.0, 1, None), (IDLE, None, None, "verifier")]


@pytest.fixture
def odd(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Gives the harbour a tool whose function does what the test says; the idle agent calls it."""
    import sys

    def write(body: str) -> None:
        (stage.folder / "harbour").mkdir(exist_ok=True)
        text = (
            "import asyncio\n\n\ndef act(connection, arguments, context):\n    " + body + "\n    return 1\n"
        )
        (stage.folder / "harbour" / "odd_tools.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, "odd_tools", raising=False)

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    stage.tools = [*TOOLS, TOOL]
    stage.parts[IDLE] = once(calling(("odd_tool", {}, "a")))
    yield write
    sys.modules.pop("odd_tools", None)


BREAKS = {
    "closes the database": ("connection.close()", "the tool odd_tool broke the world: ProgrammingError"),
    "records a circle": ("a = {}; a['a'] = a; context.http.append(a)", "context.http cannot be written"),
    "records odd keys": ("context.http.append({(1, 2): 3})", "context.http cannot be written as JSON"),
    "records text": ("context.http.append('nothing')", "context.http holds something else"),
}


@pytest.mark.parametrize("case", BREAKS)
def test_run_when_a_tool_breaks_the_world_then_its_session_has_a_fault_and_the_run_goes_on(
    stage: Stage, odd: Any, case: str
) -> None:
    body, why = BREAKS[case]
    odd(body)
    done = stage.run()
    assert done.code == 0, done.stderr
    found = stage.rows("select agent, end_reason, fault, reward, success, error from sessions order by agent")
    assert found[0][:5] == (GOOD, "user_stop", None, 1.0, 1)
    assert found[1][:5] == (IDLE, "tool_error", "verifier", None, None)
    assert why in found[1][5]
    assert f"1 of 2 sessions are of no use, fault verifier, tool_error: {found[1][5][:60]}" in done.stderr
    assert stage.rows("select outcome from audit_pairs") == [("unverified",)]


def test_run_when_the_broken_tool_is_mended_then_retry_errors_holds_its_session_again(
    stage: Stage, odd: Any
) -> None:
    odd("connection.close()")
    assert stage.run().code == 0
    odd("pass")
    done = stage.run("--resume", "latest", "--retry-errors")
    assert done.code == 0, done.stderr
    found = stage.rows("select agent, end_reason, fault, reward from sessions order by agent")
    assert found == [(GOOD, "user_stop", None, 1.0), (IDLE, "user_stop", None, 0.0)]


@pytest.mark.parametrize(
    "kind", ["KeyboardInterrupt", "GeneratorExit", "asyncio.CancelledError", "SystemExit"]
)
def test_run_when_a_tool_raises_what_ends_programs_then_the_agent_is_told_and_the_run_goes_on(
    stage: Stage, odd: Any, kind: str
) -> None:
    odd(f"raise {kind}")
    done = stage.run()
    assert done.code == 0, done.stderr
    ((transcript, fault),) = stage.rows(f"select transcript_json, fault from sessions where agent = '{IDLE}'")
    assert fault is None
    assert "RuntimeError: odd_tools:act" in transcript


def test_run_when_a_tools_module_exits_on_import_then_it_is_an_error_that_names_the_tool(
    stage: Stage, odd: Any
) -> None:
    odd("pass")
    (stage.folder / "harbour" / "odd_tools.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    done = stage.run()
    assert done.code == 1
    assert "tools[2].function: 'odd_tools:act' cannot be loaded: SystemExit: 0" in done.stderr
    assert stage.server.requests == 0


def test_simulate_when_millions_are_planned_then_they_are_planned_one_by_one(stage: Stage) -> None:
    stage.changes["trials"] = 3_000_000
    began = time.monotonic()
    done = stage("simulate", "-c", str(stage.written()), "--limit", "2")
    # A list of all six million takes half a minute.
    assert time.monotonic() - began < 10
    assert done.code == 4, done.stderr
    assert stage.rows("select count(*) from sessions") == [(2,)]


def test_simulate_when_more_are_planned_than_can_be_held_then_it_says_so_before_any_call(
    stage: Stage,
) -> None:
    stage.changes["trials"] = 6_000_000
    done = stage("simulate", "-c", str(stage.written()))
    assert done.code == 1
    assert "12,000,000 sessions are planned, at most 10,000,000 can be: lower trials" in done.stderr
    assert stage.server.requests == 0


def test_options_when_a_seed_or_a_config_cannot_be_meant_then_nothing_is_begun(
    stage: Stage, tmp_path: Path
) -> None:
    config = str(stage.written())
    for words, code, message in (
        (("-c", config, "--seed", str(2**70)), 2, "expected a whole number of 64 bits"),
        (("-c", str(tmp_path)), 1, f"error: {tmp_path}: is a folder: name the file"),
    ):
        done = stage("simulate", *words)
        assert (done.code, message in done.stderr) == (code, True), done.stderr
    stage.changes["tasks"] = ["libary"]
    done = stage("simulate", "-c", str(stage.written()))
    assert done.code == 1
    assert f"audit.yaml: tasks[0]: no such file or folder: {tmp_path / 'libary'}" in done.stderr
