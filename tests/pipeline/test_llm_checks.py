"""Checks of kind `llm` and functions that hang, through the real command against a real gateway."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from server import ChatServer, Say, refusing

from audit.offline.serve import serve

CRITERION = "The assistant names the rule that forbids the wish"


def rows(file: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def is_criterion(body: dict[str, Any]) -> bool:
    return "## Criterion" in body["messages"][-1]["content"]


class Answering:
    """The synthetic models, and for a criterion what the test wants to be said."""

    def __init__(self, criterion: Say) -> None:
        self.criterion = criterion
        self.asked: list[dict[str, Any]] = []

    def __call__(self, body: dict[str, Any]) -> Say:
        if not is_criterion(body):
            return Say(body=serve(body))
        self.asked.append(body)
        return self.criterion


@pytest.fixture
def run_with(
    config_file: Callable[..., Path],
    few_tasks: str,
    gateway: Callable[..., ChatServer],
    cli: Callable[..., Any],
) -> Callable[..., Any]:
    """Runs the command on tasks with a criterion for a model, and nothing else with `only`."""

    servers: list[ChatServer] = []

    def run(answering: Answering, *arguments: str, only: bool = False, **changes: Any) -> Any:
        file = Path(few_tasks, "tasks.yaml")
        tasks = yaml.safe_load(file.read_text(encoding="utf-8"))
        for task in tasks:
            kept = [] if only else [check for check in task["checks"] if "llm" not in check]
            task["checks"] = [*kept, {"name": "names the rule", "llm": CRITERION}]
        file.write_text(yaml.safe_dump(tasks), encoding="utf-8")
        server = servers[0] if servers else gateway(answering)
        servers.append(server)
        path = config_file(tasks=few_tasks, agents=["agent-95", "agent-50"], **changes)
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        for profile in config["profiles"]:
            profile |= {"base_url": server.base_url, "timeout_s": 5, "attempts": 1}
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return cli("run", "-c", str(path), *arguments)

    return run


MET = Say(text='{"evidence": "refused under the rule", "met": true}')
NOT_MET = Say(text='{"evidence": "no rule is named", "met": false}')


def test_criterion_when_asked_then_each_session_has_the_answer_as_a_candidate_only(
    run_with: Callable[..., Any], tmp_path: Path
) -> None:
    answering = Answering(NOT_MET)
    result = run_with(answering)
    assert result.code == 0, result.stderr
    assert len(answering.asked) == 6
    assert all(CRITERION in body["messages"][-1]["content"] for body in answering.asked)
    sessions = rows(tmp_path / "audit.db", "select reward, label_source, checks_json from sessions")
    found = [check for _, _, checks in sessions for check in json.loads(checks) if check["kind"] == "llm"]
    assert [(check["passed"], check["evidence"]) for check in found] == [(False, "no rule is named")] * 6
    assert all(reward is not None and source == "rule" for reward, source, _ in sessions)
    assert max(reward for reward, *_ in sessions) == 1.0  # the no of a model takes nothing off
    logged = rows(
        tmp_path / "audit.db",
        "select role, parse_status, count(distinct session_id) from judge_logs where role = 'verifier'",
    )
    assert logged == [("verifier", "ok", 6)]


def test_criterion_when_the_config_lets_it_count_then_it_does_and_the_label_says_so(
    run_with: Callable[..., Any], tmp_path: Path
) -> None:
    assert run_with(Answering(NOT_MET), llm_labels_count=True).code == 0
    sessions = rows(tmp_path / "audit.db", "select reward, success, label_source from sessions")
    assert all(reward < 1 and success == 0 and source == "llm" for reward, success, source in sessions)


def test_criterion_when_it_is_all_there_is_then_nothing_is_verified(
    run_with: Callable[..., Any], tmp_path: Path
) -> None:
    assert run_with(Answering(MET), only=True).code == 0
    assert rows(
        tmp_path / "audit.db", "select distinct reward, success, label_source, fault from sessions"
    ) == [(None, None, "llm", None)]
    assert rows(tmp_path / "audit.db", "select distinct outcome from audit_pairs") == [("unverified",)]


@pytest.mark.parametrize("trouble", [Say(text="I think so"), Say(text='{"met": "yes"}')])
def test_criterion_when_the_reply_cannot_be_read_then_it_is_asked_once_more_and_stays_unknown(
    run_with: Callable[..., Any], tmp_path: Path, trouble: Say
) -> None:
    answering = Answering(trouble)
    assert run_with(answering).code == 0
    assert len(answering.asked) == 12
    checks = rows(tmp_path / "audit.db", "select checks_json from sessions")
    assert all('"passed":null' in row[0] for row in checks)
    assert rows(tmp_path / "audit.db", "select count(reward) from sessions") == [(6,)]


def test_criterion_when_its_calls_failed_then_retry_asks_those_again_and_no_other(
    run_with: Callable[..., Any], tmp_path: Path
) -> None:
    answering = Answering(refusing("down", 503))
    assert run_with(answering, llm_labels_count=True, max_error_rate=1.0).code == 0
    assert len(answering.asked) == 6
    assert rows(tmp_path / "audit.db", "select count(reward), count(fault) from sessions") == [(0, 0)]
    answering.criterion, answering.asked = MET, []
    again = ("--resume", "latest")
    assert run_with(answering, *again, llm_labels_count=True, max_error_rate=1.0).code == 0
    assert answering.asked == []
    mended = run_with(answering, *again, "--retry-errors", llm_labels_count=True, max_error_rate=1.0)
    assert mended.code == 0, mended.stderr
    assert len(answering.asked) == 6
    assert rows(tmp_path / "audit.db", "select count(reward) from sessions") == [(6,)]
    answering.asked = []
    run_with(answering, *again, "--retry-errors", llm_labels_count=True, max_error_rate=1.0)
    assert answering.asked == []


def test_dry_run_when_tasks_have_criteria_then_their_calls_are_counted(
    run_with: Callable[..., Any],
) -> None:
    result = run_with(Answering(MET), "--dry-run", "--json")
    assert json.loads(result.stdout)["verifier calls"] == 6
