"""A planted key is in nothing that is kept or shown: after success, a refusal, an echo of it, and a crash."""

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import yaml
from server import ChatServer, Say

from audit.offline.serve import serve

KEY = "sk-planted/7Qx+40=vT"
# As it stands in JSON, a URL, a header of basic authentication.
FORMS = [KEY, json.dumps(KEY)[1:-1], quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode()]
ECHO = {"error": {"message": f"wrong key {KEY}", "param": {"Authorization": f"Bearer {KEY}"}}}
AFTER = (
    ("report",),
    ("report", "--json", "-v"),
    ("report", "--html", "page.html"),
    ("export", "logs", "-o", "logs.jsonl"),
    ("export", "logs", "-o", "logs.csv"),
    ("export", "pairs", "-o", "pairs.csv"),
    ("export", "dpo", "-o", "clean.jsonl", "--card"),
    ("sql", "select * from judge_logs limit 50"),
    ("runs", "--json"),
    ("show", "latest", "--json"),
    ("doctor", "--live", "-v"),
    ("doctor", "--live", "--json"),
    ("batch", "export", "lines.jsonl"),
    ("db", "check", "-v"),
)


COMMAND = [sys.executable, "-m", "audit", "--env-file", "keys.env", "run", "-v", "-j", "2"]


def answers(kind: str) -> Callable[[dict[str, Any]], Say]:
    def answer(body: dict[str, Any]) -> Say:
        if kind == "401":
            return Say(status=401, body=ECHO, headers={"x-echo": KEY})
        if kind == "500":
            return Say(status=500, body=f"<pre>Traceback: key={quote(KEY, safe='')} {KEY}</pre>".encode())
        said = serve(body)
        message = said["choices"][0]["message"]
        if message.get("content"):
            message["content"] += f"\n\nMy key is {KEY}."
        return Say(body=said | {"model": f"served-{KEY}"}, headers={"x-request-id": KEY})

    return answer


def kept(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file, the database, its log and the config's folder among them, but the env file itself."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "keys.env":
            yield str(path), path.read_bytes().decode("latin-1")


def told(here: Any, *args: str) -> Iterator[tuple[str, str]]:
    did = here("--env-file", "keys.env", *args)
    yield f"stdout of {args}", did.stdout
    yield f"stderr of {args}", did.stderr


@pytest.fixture
def set_up(
    small: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> Callable[..., ChatServer]:
    """A run whose judge is behind a gateway that answers so; the key is in an env file."""

    def write(kind: str, **changes: Any) -> ChatServer:
        server = gateway(answers(kind))
        changes |= {"gate": {"error_calls": {"max": 0.5}}}
        path = small(agents=["agent-95", "agent-50"], **changes)
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        for profile in config["profiles"]:
            if profile["role"] == "llm_judge":
                profile |= {"base_url": server.base_url, "api_key_env": "JUDGE_KEY", "attempts": 1}
                profile |= {"extra": {"metadata": {"api_key": KEY}}}
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        (tmp_path / "keys.env").write_text(f"JUDGE_KEY={KEY}\n", encoding="utf-8")
        return server

    return write


def held_in(found: Iterator[tuple[str, str]]) -> list[str]:
    # The config is the user's own file, in which this test has written the key as `extra`.
    return [
        where
        for where, text in found
        if not where.endswith("audit.yaml") and any(form in text for form in FORMS)
    ]


@pytest.mark.parametrize("kind", ["success", "401", "500"])
def test_key_when_the_gateway_answers_so_then_it_is_nowhere(
    kind: str, set_up: Callable[..., ChatServer], here: Any, tmp_path: Path
) -> None:
    server = set_up(kind)
    found = held_in(told(here, "run", "-v", "--log-file", "night.jsonl", "--then", "gate"))
    assert f"Bearer {KEY}" in {headers.get("authorization") for headers in server.headers}
    for args in AFTER:
        found += held_in(told(here, *args))
    assert found + held_in(kept(tmp_path)) == []
    names = {path.name for path in tmp_path.iterdir()}
    assert {"audit.db", "night.jsonl", "logs.jsonl", "logs.csv", "pairs.csv", "page.html"} <= names


def test_key_when_the_program_is_killed_or_fails_then_it_is_nowhere(
    set_up: Callable[..., ChatServer], here: Any, tmp_path: Path
) -> None:
    server = set_up("success", trials=3)
    environ = {"PATH": os.environ["PATH"], "REWARD_AUDIT_DB": "sqlite:///audit.db"}
    with (tmp_path / "stdout").open("wb") as out, (tmp_path / "stderr").open("wb") as err:
        process = subprocess.Popen(COMMAND, cwd=tmp_path, env=environ, stdout=out, stderr=err)
    deadline = time.monotonic() + 60
    while server.requests < 10 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert server.requests >= 10
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    assert (tmp_path / "audit.db-wal").exists()
    assert held_in(kept(tmp_path)) == []
    # A fault in the middle of it: the database is taken away, and -v shows the traceback.
    (tmp_path / "audit.db").write_bytes(b"no database" * 1000)
    assert held_in(told(here, "run", "-v")) + held_in(kept(tmp_path)) == []
