"""The real command that serves a page, in a process of its own, and plain requests to it."""

import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parents[1]


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    text: str


class Served:
    """A command at work. `url` is what it printed, `end()` presses Ctrl-C."""

    def __init__(self, db: str, *args: str, cwd: Path) -> None:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("REWARD_AUDIT_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "audit", "--db", db, "--json", *args, "--port", "0", "--no-open"],
            cwd=cwd,
            env={**inherited, "PYTHONPATH": str(CHECKOUT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        said = ""
        while not said.endswith("}\n"):
            line = self.process.stdout.readline()
            assert line, self.process.communicate()
            said += line
        self.url = json.loads(said)["url"]
        self.port = urllib.parse.urlsplit(self.url).port
        self.token = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.url).query)).get("token", "")

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        """One request; nothing is followed, and no header is added but Host and the length."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            answer = connection.getresponse()
            told = {name.lower(): value for name, value in answer.getheaders()}
            return Answered(answer.status, told, answer.read().decode())
        finally:
            connection.close()

    def end(self) -> tuple[int, str, str]:
        """Exit code, and what else it wrote."""
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        return self.process.returncode, out, err


@contextmanager
def served(db: str, *args: str, cwd: Path) -> Iterator[Served]:
    """The command until the block ends; killed where the test failed."""
    one = Served(db, *args, cwd=cwd)
    try:
        yield one
        if one.process.poll() is None:
            code, _, err = one.end()
            assert (code, err) == (0, "")
    finally:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()
