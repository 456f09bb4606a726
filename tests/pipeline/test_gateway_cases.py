"""Gateways that misbehave, in whole runs: each call ends in the right row, in time, and the run goes on."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from server import Say, refusing
from staged import GOOD, IDLE, JUDGE, MODELS, USER, Body, Stage, blocks, calling, in_turn, task, verdict

DRIP = Say(text=verdict("first"), drip=1.0)
HANG = Say(hang=True)


@pytest.fixture(autouse=True)
def quick_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits that no server asked for are short, so that the tests are."""
    monkeypatch.setattr("audit.doors.llm_pace._FIRST_WAIT_S", 0.02)


def per_berth(scripts: list[list[Any]]) -> Callable[[str, Body], Any]:
    """For each berth, K1 first, what is answered in turn; then the usual answers."""
    waiting = {f"K{number}": in_turn(script) for number, script in enumerate(scripts, 1)}
    return lambda berth, body: waiting[berth](berth, body) if berth in waiting else None


def used(prompt: int, completion: int, **more: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **more,
    }


THOUGHTS = {"reasoning_content": verdict("second")}
EMPTY = "empty content, finish_reason="
TIMEOUT = "timeout: no whole answer within 0.4 s"
# What the judge's first question meets -> its rows (attempt, status, choice, finish reason, error, tokens),
# and the pair's (first order, outcome, tokens of both orders).
JUDGE_MEETS: dict[str, tuple[list[Any], list[tuple[Any, ...]], tuple[Any, ...]]] = {
    "null, cut": (
        [Say(text=None, finish="length", message=THOUGHTS)],
        [(1, "error", None, "length", f"{EMPTY}length", 120)],
        (None, "incomplete", 240),
    ),
    "empty": (
        [Say(text="", message=THOUGHTS)],
        [(1, "error", None, "stop", f"{EMPTY}stop", 120)],
        (None, "incomplete", 240),
    ),
    "null, filtered": (
        [Say(text=None, finish="content_filter")],
        [(1, "error", None, "content_filter", f"{EMPTY}content_filter", 120)],
        (None, "incomplete", 240),
    ),
    "cut after the verdict": (
        [Say(text='{"winner": "first", "reason": "it asked for the mooring num', finish="length")],
        [(1, "truncated", "first", "length", None, 120)],
        ("A", "correct", 240),
    ),
    "filtered after the verdict": (
        [Say(text='{"winner": "first", "reason": "it asked', finish="content_filter")],
        [(1, "truncated", "first", "content_filter", None, 120)],
        ("A", "correct", 240),
    ),
    "cut before it, twice": (
        [Say(text='{"first": {"evidence": "it as', finish="length")] * 2,
        [(1, "truncated", None, "length", None, 120), (2, "truncated", None, "length", None, 120)],
        (None, "unreadable", 360),
    ),
    "no choices": (
        [Say(body={"choices": [], "usage": used(9, 0)})],
        [(1, "error", None, None, "empty choices", 9)],
        (None, "incomplete", 129),
    ),
    "error under 200": (
        [Say(body={"error": {"message": "model is loading", "code": "busy"}})],
        [(1, "error", None, None, "error under status 200: model is loading (busy)", None)],
        (None, "incomplete", None),
    ),
    "a web page": (
        [Say(body=b"<html>Sign in</html>", headers={"Content-Type": "text/html"})],
        [(1, "error", None, None, "answer is not JSON (text/html): <html>Sign in</html>", None)],
        (None, "incomplete", None),
    ),
    "no usage": (
        [Say(text=verdict("first"), usage=None)],
        [(1, "ok", "first", "stop", None, None)],
        ("A", "correct", None),
    ),
    "unreadable, then read": (
        [Say(text="sorry", usage=used(120, 30)), Say(text=verdict("first"), usage=used(150, 20))],
        [(1, "unreadable", None, "stop", None, 150), (2, "ok", "first", "stop", None, 170)],
        ("A", "correct", 440),
    ),
    "503 until the attempts end": (
        [refusing("down", 503)] * 2,
        [(1, "error", None, None, "HTTP 503: down", None)],
        (None, "incomplete", None),
    ),
    "502 then good": (
        [Say(status=502, body=b"bad gateway")],
        [(1, "ok", "first", "stop", None, 120)],
        ("A", "correct", 240),
    ),
    "dropped then good": (
        [Say(drop=True)],
        [(1, "ok", "first", "stop", None, 120)],
        ("A", "correct", 240),
    ),
    "a byte a second": (
        [DRIP, DRIP],
        [(1, "error", None, None, TIMEOUT, None)],
        (None, "incomplete", None),
    ),
    "nothing at all": (
        [HANG, HANG],
        [(1, "error", None, None, TIMEOUT, None)],
        (None, "incomplete", None),
    ),
    "refused for good": (
        [refusing("no such model", 404)],
        [(1, "error", None, None, None, None)],
        (None, "incomplete", None),
    ),
}  # fmt: skip


def test_judge_when_its_gateway_misbehaves_then_calls_and_pairs_are_stored_as_what_they_are(
    stage: Stage,
) -> None:
    """Cases GW-01, GW-03, GW-09, a pair each in one run; what failed is then asked again, and only that."""
    stage.tasks = [task(f"K{number}") for number in range(1, len(JUDGE_MEETS) + 1)]
    stage.parts[JUDGE] = per_berth([script for script, _, _ in JUDGE_MEETS.values()])
    stage.profiles[JUDGE] = {"timeout_s": 0.4}
    # A pair's id decides when it is asked: the first question is the one in the first order.
    began = time.monotonic()
    done = stage.run()

    assert done.code == 0, done.stderr
    assert time.monotonic() - began < 15
    for number, (name, (_, logged, (pref_ab, outcome, tokens))) in enumerate(JUDGE_MEETS.items(), 1):
        pair = f"(select pair_id from audit_pairs where task_id = 'free-K{number}')"
        first, second = (
            stage.rows(
                "select attempt, parse_status, choice, finish_reason, error, total_tokens, preference "
                f"from judge_logs where pair_id = {pair} and presented_order = '{order}' order by log_id"
            )
            for order in ("AB", "BA")
        )
        if name == "refused for good":
            url = f"{stage.server.base_url}/chat/completions"
            assert first[0][4] == f"HTTP 404 at {url}: no such model"
            logged = [(*logged[0][:4], first[0][4], None)]
        assert [row[:6] for row in first] == logged, name
        assert [row[6] for row in first] == ["A" if row[2] == "first" else None for row in first], name
        assert second == [(1, "ok", "second", "stop", None, 120, "A")], name
        is_settled = pref_ab is not None
        assert stage.rows(
            "select pref_ab, pref_ba, judge_pref, is_consistent, outcome, misselected, total_tokens "
            f"from audit_pairs where pair_id = {pair}"
        ) == [
            (
                pref_ab,
                "A",
                "A" if is_settled else None,
                1 if is_settled else None,
                outcome,
                0 if is_settled else None,
                tokens,
            )
        ], name
    # Not a token of what was thought is a verdict, and every reply is kept byte for byte.
    assert stage.rows("select count(*) from judge_logs where preference = 'B'") == [(0,)]
    assert stage.rows("select count(*) from judge_logs where raw_output = 'sorry'") == [(1,)]

    failed = sum(logged[-1][1] == "error" for _, logged, _ in JUDGE_MEETS.values())
    before = stage.server.requests
    again = stage("run", "-c", str(stage.written()), "--resume", "latest", "--retry-errors")
    assert again.code == 0, again.stderr
    assert stage.server.requests == before + failed
    assert stage.rows("select outcome, count(*) from audit_pairs group by 1 order by 1") == [
        ("correct", len(JUDGE_MEETS) - 1),
        ("unreadable", 1),
    ]


def test_call_when_reasoning_is_counted_then_it_is_part_of_what_was_completed(stage: Stage) -> None:
    """Case GW-03 b: nothing is added on top; what a gateway does not tell is not known, and never 0."""
    usage = used(100, 60, completion_tokens_details={"reasoning_tokens": 45})
    stage.parts[JUDGE] = lambda _berth, _body: Say(text=verdict("tie"), usage=usage)
    stage.parts["satisfaction"] = lambda _berth, _body: Say(
        text='{"satisfaction": 1}', usage={"prompt_tokens": 7, "completion_tokens": None, "total_tokens": "8"}
    )
    stage.parts[GOOD] = lambda _berth, _body: Say(text="Well.", usage=None)
    assert stage.run().code == 0
    counts = "prompt_tokens, completion_tokens, reasoning_tokens, total_tokens"
    found = (
        f"select distinct role, {counts} from judge_logs where profile in ('{JUDGE}', '{GOOD}') order by 1"
    )
    assert stage.rows(found) == [
        ("agent", None, None, None, None),
        ("judge", 100, 60, 45, 160),
        ("satisfaction", 7, None, None, None),
    ]
    assert stage.rows("select prompt_tokens, completion_tokens, total_tokens from audit_pairs") == [
        (200, 120, 320)
    ]
    tokens = "select agent, prompt_tokens, completion_tokens, total_tokens from sessions order by 1"
    assert stage.rows(tokens) == [(GOOD, None, None, None), (IDLE, 100, 20, 120)]


def test_gateway_when_it_is_down_for_one_role_then_the_attempts_are_exactly_those_of_the_profile(
    stage: Stage,
) -> None:
    """Case GW-03 d: one layer retries. And more failures than allowed end the run with code 4, resumable."""
    stage.changes = {"max_error_rate": 0.05}
    stage.profiles[JUDGE] = {"attempts": 3}
    down = [True]
    stage.parts[JUDGE] = stage.parts["satisfaction"] = lambda _berth, _body: (
        refusing("down", 503) if down else None
    )
    done = stage.run()
    assert done.code == 4
    assert "--retry-errors" in done.stderr
    assert len(stage.asked(JUDGE)) == 3 * 4  # two orders, two sessions
    assert stage.rows("select status from audit_runs") == [("stopped",)]

    down.clear()
    again = stage("run", "-c", str(stage.written()), "--retry-errors")
    assert again.code == 0, again.stderr
    assert stage.rows("select status from audit_runs") == [("complete",)]
    assert stage.rows("select outcome, judge_pref from audit_pairs") == [("correct", "A")]
    assert stage.rows("select count(*) from sessions where satisfaction = 0.5") == [(2,)]


def retry_after(form: str) -> tuple[Callable[[str, Body], Say | None], list[float], list[float]]:
    """A part that refuses the first request for a while; until when that is, and when requests came."""
    asked: list[float] = []
    until: list[float] = []

    def part(_berth: str, _body: Body) -> Say | None:
        asked.append(time.time())
        if len(asked) > 1:
            return None
        date = (datetime.now(UTC) + timedelta(seconds=1.5)).replace(microsecond=0)
        until.append(date.timestamp() if form == "date" else asked[0] + 0.7)
        value = format_datetime(date, usegmt=True) if form == "date" else "0.7"
        return (
            refusing("slow down", 429)
            if form == "none"
            else Say(status=429, body={"error": {"message": "slow down"}}, headers={"Retry-After": value})
        )

    return part, until, asked


@pytest.mark.parametrize("role", [JUDGE, GOOD, USER])
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_call_when_429_says_until_when_then_it_is_asked_again_after_that_and_is_no_failure(
    role: str, form: str, stage: Stage
) -> None:
    stage.parts[role], until, asked = retry_after(form)
    done = stage.run()
    assert done.code == 0, done.stderr
    assert asked[1] >= until[0] - 0.01
    assert asked[1] - asked[0] < 4
    assert stage.rows("select distinct parse_status, attempt, error from judge_logs") == [("ok", 1, None)]
    assert stage.rows("select outcome from audit_pairs") == [("correct",)]
    assert stage.rows("select distinct fault from sessions") == [(None,)]


CUT_CALL = calling("free_berth", '{"berth": "K')
# What the first request of a session meets -> the session's error where that breaks it. `None`: it does not.
SESSION_MEETS: dict[str, tuple[list[Any], str | None]] = {
    "no choices": ([Say(body={"choices": []})], "empty choices"),
    "error under 200": ([Say(body={"error": {"message": "no"}})], "error under status 200: no"),
    "503 until the attempts end": ([refusing("down", 503)] * 2, "HTTP 503: down"),
    "refused key": ([refusing("bad key", 401)], "HTTP 401 at http://127.0.0.1:"),
    "a byte a second": ([DRIP, DRIP], TIMEOUT),
    "nothing at all": ([HANG, HANG], TIMEOUT),
    "500 then good": ([refusing("boom", 500)], None),
    "hangs then good": ([HANG], None),
}
AGENT_MEETS = SESSION_MEETS | {
    "null, cut": ([Say(text=None, finish="length")], f"{EMPTY}length"),
    "null, filtered": ([Say(text=None, finish="content_filter")], f"{EMPTY}content_filter"),
    "a call cut short": ([Say(text=None, message=CUT_CALL.message, finish="length")], None),
}
USER_MEETS = SESSION_MEETS | {
    "null, cut": ([Say(text=None, finish="length")], None),
    "words cut short": ([Say(text="Please free K10, my", finish="length")], None),
}


def again_after_an_error(berth: str, body: Body) -> Say | None:
    last = body["messages"][-1]
    is_error = last["role"] == "tool" and "error" in last["content"]
    return calling("free_berth", {"berth": berth}) if is_error else None


@pytest.mark.parametrize(("role", "meets"), [(GOOD, AGENT_MEETS), (USER, USER_MEETS)], ids=["agent", "user"])
def test_session_when_a_gateway_breaks_it_then_it_is_nobodys_failure_and_is_held_again(
    role: str, meets: dict[str, tuple[list[Any], str | None]], stage: Stage
) -> None:
    stage.tasks = [task(f"K{number}") for number in range(1, len(meets) + 1)]
    scripted = per_berth([script for script, _ in meets.values()])
    stage.parts[GOOD] = again_after_an_error
    stage.parts[role] = lambda berth, body: (
        scripted(berth, body) or (again_after_an_error(berth, body) if role == GOOD else None)
    )
    stage.profiles[role] = {"timeout_s": 0.4}
    stage.changes = {"max_error_rate": 0.05}
    done = stage.run()

    assert done.code == 4, done.stderr
    assert "incomplete" in done.stderr
    broken = {f"free-K{number}": why for number, (_, why) in enumerate(meets.values(), 1) if why}
    found = stage.rows(
        "select task_id, agent, fault, end_reason, success, reward, satisfaction, error from sessions"
    )
    assert len(found) == 2 * len(meets)
    for task_id, agent, fault, end_reason, success, reward, satisfaction, error in found:
        if agent == GOOD and task_id in broken:
            expected = ("gateway", "gateway_error", None, None, None)
            assert (fault, end_reason, success, reward, satisfaction) == expected, task_id
            assert error.startswith(broken[task_id]), task_id
        else:
            assert (fault, error, success) == (None, None, int(agent == GOOD)), (task_id, agent)
    pairs = stage.rows("select task_id, outcome, judge_pref, success_a, misselected from audit_pairs")
    for task_id, *pair in pairs:
        whole = ["correct", "A", 1, 0]
        assert pair == (["unverified", None, None, None] if task_id in broken else whole), task_id
    # The judge was asked of no broken session.
    assert len([body for body in stage.asked(JUDGE) if len(blocks(body)) == 2]) == 2 * (
        len(meets) - len(broken)
    )

    held = stage.rows("select count(*) from judge_logs")[0][0]
    again = stage("run", "-c", str(stage.written()), "-j", "1")
    assert again.code == 0, again.stderr
    assert "going on with run" in again.stderr
    assert stage.rows("select distinct fault, error, success from sessions where agent = '" + GOOD + "'") == [
        (None, None, 1)
    ]
    assert stage.rows("select outcome, count(*) from audit_pairs group by 1") == [("correct", len(meets))]
    # Per broken session: four calls, its satisfaction, and both orders. Nothing else was asked again.
    assert stage.rows("select count(*) from judge_logs")[0][0] == held + 7 * len(broken)
    assert stage.rows("select status from audit_runs") == [("complete",)]


REFUSALS: dict[str, tuple[Callable[[Body], bool], str]] = {
    "temperature": (lambda body: "temperature" in body, "Unsupported parameter: 'temperature'"),
    "max_tokens": (
        lambda body: "max_tokens" in body,
        "Unsupported parameter: use max_completion_tokens, not max_tokens",
    ),
    "system role": (
        lambda body: any(message["role"] == "system" for message in body["messages"]),
        "System role not supported",
    ),
    "json_schema": (
        lambda body: body.get("response_format", {}).get("type") == "json_schema",
        "response_format of type json_schema is not supported",
    ),
    "any format": (lambda body: "response_format" in body, "response_format is not supported"),
}


@pytest.mark.parametrize("part", REFUSALS)
def test_run_when_the_gateway_refuses_a_part_then_every_role_learns_it_once_and_rows_tell_what_was_sent(
    part: str, stage: Stage
) -> None:
    holds, complaint = REFUSALS[part]
    refused: list[str] = []

    def refuse(_berth: str, body: Body) -> Say | None:
        if not holds(body):
            return None
        refused.append(body["model"])
        return refusing(complaint)

    stage.tasks = [task("K1"), task("K2")]
    for role in (*MODELS, "satisfaction"):
        stage.profiles[role] = {"temperature": 0.3, "max_tokens": 300}
        stage.parts[role] = refuse
    done = stage.run()

    assert done.code == 0, done.stderr
    times = 2 if part == "any format" else 1
    asked = [MODELS[JUDGE]] if "format" in part or part == "json_schema" else list(MODELS.values())
    assert sorted(refused) == sorted(asked * times)
    assert stage.rows("select distinct parse_status, attempt, error from judge_logs") == [("ok", 1, None)]
    assert stage.rows("select outcome from audit_pairs") == [("correct",)] * 2
    for request, temperature in stage.rows("select request_json, temperature from judge_logs"):
        body = json.loads(request)
        assert not holds(body)
        assert temperature == body.get("temperature") == (None if part == "temperature" else 0.3)
        assert (body.get("max_tokens") or body.get("max_completion_tokens")) == 300
    if part == "system role":
        # The instructions are still there, before the data.
        prompts = [body["messages"][0]["content"] for body in stage.asked(JUDGE) if not holds(body)]
        assert all(0 <= text.index("Judge only three things") < text.index("<<<") for text in prompts)


def test_run_when_killed_while_a_call_stalls_then_what_was_answered_before_is_stored(stage: Stage) -> None:
    """Case GW-09: the row before the stall is in the database though the process never came to its end."""
    stage.tasks = [task("K1"), task("K2"), task("K3")]
    answered = count()
    stage.parts[JUDGE] = lambda _berth, _body: HANG if next(answered) >= 2 else None
    stage.profiles[JUDGE] = {"timeout_s": 60.0}
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{stage.database}"}
    command = [sys.executable, "-m", "audit", "run", "-c", str(stage.written()), "-j", "1"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 30
        while len(stage.asked(JUDGE)) < 3 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        time.sleep(0.3)  # the writer's turn
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert stage.rows("select count(*) from sessions") == [(6,)]
    assert stage.rows("select pref_ab, pref_ba from audit_pairs where judged_at is not null") == [("A", "A")]
    assert stage.rows("select count(*), sum(parse_status = 'ok') from judge_logs where role = 'judge'") == [
        (2, 2)
    ]


def address(stage: Stage, form: str) -> str:
    return form.replace("HOST", f"127.0.0.1:{stage.server.port}")


@pytest.mark.parametrize(
    ("form", "target"),
    [
        ("http://HOST/v1", "/v1/chat/completions"),
        ("http://HOST/v1/", "/v1/chat/completions"),
        ("http://HOST/openai?api-version=2025-06-01", "/openai/chat/completions?api-version=2025-06-01"),
        ("http://HOST/v1/chat/completions", "/v1/chat/completions"),
        ("http://HOST", "/chat/completions"),
    ],
)
def test_run_when_base_url_is_as_pasted_then_every_role_calls_the_right_target(
    form: str, target: str, stage: Stage
) -> None:
    """Case GW-05; what is stored and shown is the address without its query."""
    for name in MODELS:
        stage.profiles[name] = {"base_url": address(stage, form)}
    done = stage.run()
    assert done.code == 0, done.stderr
    assert set(stage.server.targets) == {target}
    stored = {row[0] for row in stage.rows("select distinct base_url from judge_logs")}
    assert stored == {address(stage, form).partition("?")[0]}
    assert "api-version" not in done.stderr


@pytest.mark.parametrize("role", [JUDGE, GOOD, USER])
def test_run_when_base_url_carries_a_links_left_overs_then_it_is_refused_before_any_call(
    role: str, stage: Stage
) -> None:
    stage.profiles[role] = {"base_url": address(stage, "http://HOST/v1?utm_source=mail&gclid=1")}
    done = stage.run()
    assert done.code == 1
    assert "utm_source" in done.stderr
    assert address(stage, "write http://HOST/v1") in done.stderr
    assert role in done.stderr.splitlines()[-1]
    assert stage.server.requests == 0


def test_run_when_a_judge_far_away_names_no_key_then_it_is_refused_before_any_session_is_held(
    stage: Stage,
) -> None:
    stage.profiles[JUDGE] = {"base_url": "https://judge.invalid/v1"}
    done = stage.run(env={"OPENAI_API_KEY": COMPANY})
    assert done.code == 1
    assert f"profile {JUDGE!r} names no key for https://judge.invalid/v1" in done.stderr
    assert stage.server.requests == 0
    assert stage.rows("select count(*) from audit_runs") == [(0,)]


def test_run_when_the_address_is_not_there_then_the_rows_show_the_url_that_was_called(stage: Stage) -> None:
    for name in MODELS:
        stage.profiles[name] = {"base_url": address(stage, "http://HOST")}
        stage.parts[name] = lambda _berth, _body: Say(status=404, body={"error": "not found"})
    done = stage.run()
    assert done.code == 0, done.stderr  # as many may break as will
    wanted = address(
        stage, "HTTP 404 at http://HOST/chat/completions (is /v1 missing in base_url?): not found"
    )
    assert stage.rows("select distinct error, fault from sessions") == [(wanted, "gateway")]
    assert stage.rows("select distinct error from judge_logs") == [(wanted,)]


COMPANY = "sk-company-4711-secret"
OWN = {
    GOOD: "sk-own-agent-0815+x/y",
    IDLE: "sk-own-idle-1234",
    USER: "sk-own-user-5678",
    JUDGE: "sk-own-judge-9012",
}
VARIABLES = {name: f"{name.upper().replace('-', '_')}_KEY" for name in MODELS}


@pytest.mark.parametrize("role", MODELS)
@pytest.mark.parametrize("value", [None, ""])
def test_run_when_a_roles_own_key_is_not_set_then_nothing_is_sent_and_no_other_key_is_taken(
    role: str, value: str | None, stage: Stage
) -> None:
    """Case GW-07."""
    for name in MODELS:
        stage.profiles[name] = {"api_key_env": VARIABLES[name]}
    env = {VARIABLES[name]: OWN[name] for name in MODELS if name != role} | {"OPENAI_API_KEY": COMPANY}
    env |= {} if value is None else {VARIABLES[role]: value}
    done = stage.run(env=env)
    assert done.code == 1
    assert VARIABLES[role] in done.stderr.splitlines()[-1]
    assert role in done.stderr.splitlines()[-1]
    assert stage.server.requests == 0
    assert COMPANY not in everything(stage, done)


def test_run_when_gateways_tell_the_key_then_it_goes_to_its_own_gateway_and_is_nowhere_kept(
    stage: Stage,
) -> None:
    """Each role sends its own key; one that comes back in an answer or an error is stored without."""
    stage.tasks = [task("K1"), task("K2")]
    for name in (GOOD, USER, JUDGE):
        stage.profiles[name] = {"api_key_env": VARIABLES[name]}
    stage.profiles[IDLE] = {"api_key": OWN[IDLE]}
    stage.parts[GOOD] = lambda berth, _body: (
        refusing(f"Incorrect API key provided: {OWN[GOOD]}", 401) if berth == "K2" else f"I hold {OWN[GOOD]}"
    )
    stage.parts[IDLE] = lambda _berth, _body: f"My key is {OWN[IDLE]}"
    stage.parts["satisfaction"] = lambda _berth, _body: refusing(f"quota of {OWN[JUDGE]}", 403)
    env = {VARIABLES[name]: OWN[name] for name in MODELS} | {"OPENAI_API_KEY": COMPANY}
    done = stage.run(env=env)
    assert done.code == 0, done.stderr  # as many may break as will
    sent = {
        (body["model"], headers["authorization"])
        for body, headers in zip(stage.server.bodies, stage.server.headers, strict=True)
    }
    assert sent == {(MODELS[name], f"Bearer {OWN[name]}") for name in MODELS}
    held = everything(stage, done)
    assert [key for key in (*OWN.values(), COMPANY) if key in held] == []
    assert "I hold [key]" in held
    assert "Incorrect API key provided: [key]" in held
    shown = stage("--json", "show", stage.rows("select run_id from audit_runs")[0][0])
    assert shown.code == 0, shown.stderr
    assert not any(key in shown.stdout for key in OWN.values())


def everything(stage: Stage, done: Any) -> str:
    """All that was printed and stored, as the bytes of the database's files have it."""
    files = [Path(f"{stage.database}{end}") for end in ("", "-wal", "-journal")]
    stored = b"".join(file.read_bytes() for file in files if file.exists())
    return str(done.stdout + done.stderr + stored.decode("utf-8", "replace"))
