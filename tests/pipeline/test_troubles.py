"""When a run goes wrong: the user is told how often and why, it ends with the code of an incomplete run, and
once mended it can be gone on with."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from server import ChatServer, Say, refusing
from staged import GOOD, IDLE, JUDGE, USER, Stage, task

from audit.offline.serve import serve


def test_run_when_the_simulated_user_breaks_all_sessions_then_it_says_why_and_can_be_mended(
    stage: Stage,
) -> None:
    stage.changes["max_error_rate"] = 0.05
    stage.parts[USER] = lambda *_: "You want to give up berth K1 before the winter."
    broken = stage.run()
    assert broken.code == 4
    assert "problem: 2 of 2 sessions are of no use, fault simulator, simulator_fault: " in broken.stderr
    assert "more sessions are of no use than max_error_rate allows: --retry-errors" in broken.stderr
    del stage.parts[USER]
    assert stage.run("--resume", "latest").code == 4
    mended = stage.run("--resume", "latest", "--retry-errors")
    assert mended.code == 0, mended.stderr
    assert "problem:" not in mended.stderr
    assert stage.rows("select count(*), count(fault), count(reward) from sessions") == [(2, 0, 2)]


@pytest.mark.parametrize(("broken", "code"), [(1, 0), (2, 4)])
def test_run_when_the_gateway_breaks_sessions_for_good_then_no_more_than_max_error_rate_may_be(
    stage: Stage, broken: int, code: int
) -> None:
    """1 and 2 of 20 sessions: a larger share is incomplete, a smaller one is told and the night is done."""
    stage.changes["max_error_rate"] = 0.05
    stage.tasks = [task(f"K{number}") for number in range(1, 11)]
    stage.parts[GOOD] = lambda berth, _body: (
        refusing("content_filter", 400) if int(berth[1:]) <= broken else None
    )
    done = stage.run()
    assert done.code == code, done.stderr
    assert f"problem: {broken} of 20 sessions are of no use, fault gateway, gateway_error" in done.stderr
    told = "more sessions are of no use than max_error_rate allows"
    assert (told in done.stderr) is (code == 4)
    assert stage.rows("select status from audit_runs") == [("complete" if code == 0 else "stopped",)]
    # Mended, and asked for, those are held again; nothing is told of them any more.
    del stage.parts[GOOD]
    mended = stage.run("--resume", "latest", "--retry-errors")
    assert mended.code == 0, mended.stderr
    assert "problem:" not in mended.stderr
    assert stage.rows("select count(*), count(fault) from sessions") == [(20, 0)]


def test_run_when_calls_fail_for_many_reasons_then_all_of_them_are_counted(stage: Stage) -> None:
    stage.tasks = [task(f"K{number}") for number in range(1, 7)]
    stage.parts["satisfaction"] = lambda berth, _body: refusing(f"reason of {berth}", 422)
    done = stage.run()
    told = [line for line in done.stderr.splitlines() if line.startswith("problem:")]
    assert [line.split(": HTTP")[0] for line in told] == [
        *["problem: 2 failed calls of bench-9"] * 3, "problem: 6 failed calls more, of other causes"
    ]  # fmt: skip


def test_run_when_a_check_cannot_run_then_it_says_which_and_retrying_checks_again_without_a_call(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.changes["max_error_rate"] = 0.05
    module = stage.folder / "harbour_checks.py"
    module.write_text("def fine(evidence):\n    raise KeyError('berth')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(stage.folder))
    stage.tasks = [task("K1", checks=[{"name": "mine", "python": "harbour_checks:fine"}])]
    broken = stage.run()
    assert broken.code == 4
    assert "2 of 2 sessions are of no use, fault verifier: check 'mine' cannot run: 'berth'" in broken.stderr
    calls = stage.server.requests
    monkeypatch.setattr(sys.modules["harbour_checks"], "fine", lambda _: True)
    mended = stage.run("--resume", "latest", "--retry-errors")
    assert mended.code == 0, mended.stderr
    assert stage.server.requests == calls
    assert stage.rows("select distinct reward, fault from sessions") == [(1.0, None)]


@pytest.mark.parametrize("name", [IDLE, JUDGE])
def test_run_when_a_model_refuses_every_call_then_it_stops_soon_and_names_it(stage: Stage, name: str) -> None:
    stage.tasks = [task(f"K{number}") for number in range(1, 31)]
    stage.parts[name] = lambda *_: refusing("no such model", 404)
    stage.changes["max_error_rate"] = 1.0
    ran = stage.run()
    assert ran.code == 4
    assert f"incomplete: {name} refuses every call" in ran.stderr
    calls = len(stage.asked(name))
    assert 10 <= calls <= 16
    assert f"problem: {calls} failed calls of {name}: HTTP 404" in ran.stderr


def test_run_when_a_key_is_refused_then_address_and_variable_are_named_and_retrying_is_advised(
    stage: Stage,
) -> None:
    stage.changes["max_error_rate"] = 0.05
    stage.profiles[USER] = {"api_key_env": "GUEST_KEY"}
    stage.parts[USER] = lambda *_: refusing("bad key", 401)
    ran = stage.run(env={"GUEST_KEY": "sk-guest-0123456789"})
    assert ran.code == 4
    url = f"{stage.server.base_url}/chat/completions"
    lines = ran.stderr.splitlines()
    assert f"problem: 2 failed calls of {USER}: HTTP 401 at {url} (key: GUEST_KEY): bad key" in lines
    assert lines[-1] == (
        "incomplete: more calls failed than max_error_rate allows: --retry-errors asks them again"
    )
    assert "sk-guest" not in ran.stderr + ran.stdout


def test_run_when_a_model_is_not_there_then_a_corrected_config_is_told_to_begin_another_run(
    stage: Stage,
) -> None:
    stage.changes["max_error_rate"] = 0.05
    stage.parts[IDLE] = lambda *_: refusing("no such model", 404)
    advice = (
        f"incomplete: more calls failed than max_error_rate allows: if model or base_url of {IDLE} is wrong, "
        "correct it in the config, which then begins another run; if not, --retry-errors asks again"
    )
    for _ in range(2):  # the second time without a call
        ran = stage.run("--resume", "latest") if stage.database.exists() else stage.run()
        assert (ran.code, ran.stderr.splitlines()[-1]) == (4, advice)
    del stage.parts[IDLE]
    assert stage.run("--resume", "latest", "--retry-errors").code == 0
    stage.profiles[IDLE] = {"max_tokens": 99}
    assert stage.run().code == 0
    assert stage.rows("select count(*) from audit_runs") == [(2,)]


def test_run_when_a_model_refuses_some_calls_then_it_goes_on(stage: Stage) -> None:
    stage.tasks = [task(f"K{number}") for number in range(1, 13)]
    seen: list[int] = []

    def now_and_then(*_: Any) -> Any:
        seen.append(1)
        return refusing("no", 403) if len(seen) > 1 else None

    stage.parts[GOOD] = now_and_then
    stage.changes["max_error_rate"] = 1.0
    assert "refuses every call" not in stage.run().stderr
    assert len(seen) >= 12


def test_run_when_the_budget_is_used_up_then_it_says_that_it_was_the_budget(stage: Stage) -> None:
    stage.tasks = [task(f"K{number}") for number in range(1, 6)]
    ran = stage.run("--max-tokens", "500")
    assert ran.code == 4
    used = sum(total or 0 for (total,) in stage.rows("select total_tokens from judge_logs"))
    assert used >= 500
    assert (
        f"incomplete: the budget of 500 tokens is used up ({used:,} used by this run): "
        "with a higher one the same command goes on, --new begins another run" in ran.stderr
    )


def test_stages_when_done_one_by_one_then_each_says_which_comes_next(stage: Stage) -> None:
    config = str(stage.written())
    for name, follows in (("simulate", "judge"), ("judge", "verify"), ("verify", "score")):
        assert stage(name, "-c", config).stderr.splitlines()[-1] == f"next: reward-audit {follows}"


def test_retry_when_the_run_is_complete_then_it_is_that_run_and_no_new_one(stage: Stage) -> None:
    assert stage.run().code == 0
    calls = stage.server.requests
    assert stage.run("--retry-errors").code == 0
    assert stage.server.requests == calls
    assert stage.rows("select count(*) from audit_runs") == [(1,)]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"changes": {"swap_rule": "net_vote"}}, "other are swap_rule"),
        ({"profiles": {JUDGE: {"model": "quorum-10"}}}, f"other are profile {JUDGE}: model"),
        ({"tasks": [task("K2")]}, "other are the tasks"),
    ],
)
def test_resume_when_the_config_is_another_then_it_says_what_differs(
    stage: Stage, change: dict[str, Any], what: str
) -> None:
    assert stage.run().code == 0
    for name, value in change.items():
        setattr(stage, name, value)
    ran = stage.run("--resume", "latest")
    assert ran.code == 1
    assert f"was made from another config ({what})" in ran.stderr


def test_check_when_it_prints_then_nothing_gets_among_the_results(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    (stage.folder / "loud_checks.py").write_text("def fine(_):\n    print('hello')\n    return True\n")
    monkeypatch.syspath_prepend(str(stage.folder))
    stage.tasks = [task("K1", checks=[{"python": "loud_checks:fine"}])]
    ran = stage.run("--json")
    assert json.loads(ran.stdout)["status"] == "complete"
    assert "hello" in ran.stderr


@pytest.mark.parametrize("in_background", [False, True])
def test_run_when_terminated_then_it_stops_as_if_interrupted_and_is_gone_on_with(
    in_background: bool,
    small: Callable[..., Path],
    gateway: Callable[..., ChatServer],
    cli: Callable[..., Any],
    tmp_path: Path,
) -> None:
    server = gateway(lambda body: Say(body=serve(body), delay=0.02))
    config = small(server)
    command = [sys.executable, "-m", "audit", "run", "-c", str(config), "-j", "2"]
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{tmp_path}/audit.db"}
    # A shell starts what it runs with `&` so that it passes Ctrl-C over.
    before = (
        signal.signal(signal.SIGINT, signal.SIG_IGN) if in_background else signal.getsignal(signal.SIGINT)
    )
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    signal.signal(signal.SIGINT, before)
    while process.poll() is None and server.requests < 20:
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert told.splitlines()[-1] == "stopped: what was done is stored; the same command goes on from there"
    assert cli("run", "-c", config).code == 0
