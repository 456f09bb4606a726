"""`judge --batch`, a real process killed at each of its steps: in the end every row is there, once."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from batch_server import BatchServer, question
from server import ChatServer, Say, refusing
from sqlalchemy import Engine, text

from audit.doors import db

CHECKOUT = Path(__file__).parents[2]
TASKS, AGENTS = 63, ("a-1", "a-2", "a-3", "a-4")
PAIRS, SESSIONS = TASKS * 6, TASKS * len(AGENTS)
LINES = 2 * PAIRS + SESSIONS  # 1,008
SIDE = {"evidence": "e", "done": True}


class Judge:
    """Answers by what is asked. Of one question in twenty the first answer is an error of some kind."""

    def __init__(self) -> None:
        self.failed: Counter[str] = Counter()

    def __call__(self, body: dict[str, Any]) -> Say:
        key = question(body)
        number = int(key, 16)
        if number % 20 == 0 and not self.failed[key]:
            self.failed[key] += 1
            return (refusing("oops", 500), refusing("slow down", 429), Say(drop=True))[number // 20 % 3]
        found: dict[str, Any] = SIDE | {"satisfaction": number % 11 / 10}
        if "<<<FIRST" in body["messages"][-1]["content"]:
            winner = ("first", "second", "tie")[number % 3]
            scores = {"score_first": number % 5, "score_second": number % 4}
            found = {"first": SIDE, "second": SIDE, "winner": winner} | scores
        return Say(text=json.dumps(found))


class Process:
    """The real command, that can be killed from the server's side."""

    def __init__(self, folder: Path, url: str) -> None:
        self.folder = folder
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith("REWARD_AUDIT_")}
        self.environ |= {"PYTHONPATH": str(CHECKOUT), "REWARD_AUDIT_DB": url}

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [sys.executable, "-m", "audit", *arguments]
        error = (self.folder / "stderr").open("wb")
        self.running = subprocess.Popen(
            command, cwd=self.folder, env=self.environ, stdout=subprocess.DEVNULL, stderr=error
        )
        error.close()
        return self.running

    def run(self, *arguments: str) -> tuple[int, str]:
        code = self.start(*arguments).wait(60)
        return code, (self.folder / "stderr").read_text(encoding="utf-8")

    def judge(self) -> tuple[int, str]:
        return self.run("judge", "--run", "latest", "-c", "judges.yaml", "--batch")

    def kill(self) -> None:
        self.running.send_signal(signal.SIGKILL)


def imported(folder: Path, url: str, tasks: int) -> Process:
    """The command in a folder with recorded sessions of four agents, imported."""
    with (folder / "sessions.jsonl").open("w", encoding="utf-8") as file:
        for task in range(tasks):
            for agent in AGENTS:
                messages = [
                    {"role": "user", "content": f"Please do errand {task}."},
                    {"role": "assistant", "content": f"It is done, in the manner {agent[-1] * 3}."},
                ]
                line = {"task_id": f"t{task}", "agent": agent, "messages": messages, "reward": task % 2}
                file.write(json.dumps(line) + "\n")
    process = Process(folder, url)
    assert process.run("import", "sessions", "sessions.jsonl")[0] == 0
    return process


@pytest.fixture
def server(gateway: Callable[..., ChatServer], tmp_path: Path) -> BatchServer:
    """The provider of the process's judge."""
    server: Any = gateway(Judge(), BatchServer)
    profile = {"name": "j", "role": "llm_judge", "model": "m", "base_url": server.base_url}
    config = {"profiles": [profile], "judges": "j"}
    (tmp_path / "judges.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    found: BatchServer = server
    return found


@pytest.fixture
def engine(database_url: str) -> Any:
    engine = db.connect(database_url)
    yield engine
    engine.dispose()


def one(engine: Engine, query: str) -> Any:
    with db.reading(engine) as connection:
        return connection.execute(text(query)).scalar_one()


def killed_at(process: Process, hooks: list[Any], step: tuple[str, str]) -> None:
    """Run the command until it does this step; it ends there."""
    done: list[bool] = []

    def hook(method: str, path: str) -> Say | None:
        if done or method != step[0] or not path.startswith(step[1]):
            return None
        done.append(True)
        process.kill()
        return Say(hang=True)

    hooks.append(hook)
    code, said = process.judge()
    hooks.remove(hook)
    assert (code, done) == (-signal.SIGKILL, [True]), said


def killed_while_storing(process: Process, server: BatchServer, engine: Engine) -> int:
    """Run the command until it has stored some answers; half a results file is all that it was given."""

    def hook(method: str, path: str) -> Say | None:
        if not path.endswith("/content"):
            return None
        whole = server.files[path.split("/")[3]]
        return Say(body=whole[: len(whole) // 2], headers={"Content-Length": str(len(whole))})

    server.hooks.append(hook)
    running = process.start("judge", "--run", "latest", "-c", "judges.yaml", "--batch")
    deadline = time.monotonic() + 30
    while one(engine, "select count(*) from judge_logs") == 0:
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.01)
    process.kill()
    running.wait(10)
    server.hooks.remove(hook)
    return int(one(engine, "select count(*) from judge_logs"))


def test_batch_when_killed_at_each_step_then_all_rows_are_there_and_no_line_was_submitted_twice(
    tmp_path: Path, database_url: str, server: BatchServer, engine: Engine
) -> None:
    process, before, after = imported(tmp_path, database_url, TASKS), server.hooks, server.after
    if engine.dialect.name == "sqlite":  # what is stored when is the same on both
        killed_at(process, before, ("POST", "/v1/files"))
        assert one(engine, "select count(*) from batch_lines where state = 'open'") == LINES
        killed_at(process, after, ("POST", "/v1/files"))
        killed_at(process, before, ("POST", "/v1/batches"))
        assert server.submitted.total() == 0
    killed_at(process, after, ("POST", "/v1/batches"))
    assert one(engine, "select provider_batch_id is null from provider_batches")
    assert server.submitted.total() == LINES
    if engine.dialect.name == "sqlite":
        killed_at(process, after, ("GET", "/v1/batches/"))
    assert 0 < killed_while_storing(process, server, engine) < LINES
    code, said = process.judge()
    assert code == 0, said

    failed = sum(server.answer.failed.values())
    assert LINES // 25 < failed < LINES // 15
    assert set(server.submitted.values()) == {1}
    assert server.submitted.total() == LINES + failed
    assert all(count == 1 + server.answer.failed[key] for key, count in server.questions.items())
    assert len(server.batches) == 2
    assert one(engine, "select count(*) from judge_logs") == LINES
    places = "select distinct pair_id, session_id, presented_order from judge_logs where parse_status = 'ok'"
    assert one(engine, f"select count(*) from ({places}) as places") == LINES
    assert one(engine, "select count(*) from audit_pairs where judged_at is not null") == PAIRS
    assert one(engine, "select count(*) from sessions where satisfaction is not null") == SESSIONS
    assert one(engine, "select count(*) from batch_lines where state = 'open'") == 0
    assert one(engine, "select count(*) from batch_lines where request_json is not null") == 0
    assert one(engine, "select status from audit_runs") == "complete"
    assert one(engine, "select count(*) from audit_pairs where total_tokens = 240") == PAIRS


def test_batch_when_terminated_while_it_waits_then_says_how_to_go_on_and_does(
    tmp_path: Path, sqlite_url: str, server: BatchServer
) -> None:
    process = imported(tmp_path, sqlite_url, 2)
    server.polls = 1_000_000
    running = process.start("judge", "--run", "latest", "-c", "judges.yaml", "--batch")
    said = tmp_path / "stderr"
    deadline = time.monotonic() + 30
    while "batch in_progress: 0/32" not in said.read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        assert running.poll() is None
        time.sleep(0.02)
    running.send_signal(signal.SIGTERM)
    assert running.wait(10) == 130
    last = said.read_text(encoding="utf-8").splitlines()[-1]
    assert last == "stopped: what was done is stored; the same command goes on from there"
    server.polls = 0
    code, told = process.judge()
    assert code == 0, told
    assert set(server.submitted.values()) == {1}
