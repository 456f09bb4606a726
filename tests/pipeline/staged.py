"""A live run whose every part is scripted over HTTP: a harbour office, two agents, a customer, a judge.

Each task gives up one berth. What a test says of a role is tried first; what it leaves is done by the usual
cast: the customer asks for its berth to be freed and then ends, the good agent frees it, the idle one only
says so, and the judge prefers the session that shows the call.
"""

import io
import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

import yaml
from server import ChatServer, Say

from audit.__main__ import main

# Names that no sentence of a prompt holds, so that one found in a prompt was let through.
GOOD, IDLE, USER, JUDGE = "heron-7", "lapwing-3", "shore-guest", "bench-9"
MODELS = {GOOD: "marsh/heron-7b", IDLE: "marsh/lapwing-3b", USER: "tide-guest-2", JUDGE: "quorum-9-large"}
ROLES = {GOOD: "agent", IDLE: "agent", USER: "simulated_user", JUDGE: "llm_judge"}
POLICY = "A berth is freed for the holder of the boat that lies in it."
Body = dict[str, Any]
Part = Callable[[str, Body], "Say | str | None"]

TOOLS = [
    {
        "name": "berth_sheet",
        "description": "One berth, with its boat and state.",
        "parameters": {"type": "object", "properties": {"berth": {"type": "string"}}, "required": ["berth"]},
        "sql": ["select * from berths where berth = :berth"],
    },
    {
        "name": "free_berth",
        "description": "Free a berth.",
        "parameters": {"type": "object", "properties": {"berth": {"type": "string"}}, "required": ["berth"]},
        "sql": ["update berths set state = 'free' where berth = :berth"],
        "must_change": "no such berth",
    },
]


def freed(berth: str) -> dict[str, Any]:
    """The check that the berth is free in the end."""
    query = f"select state from berths where berth = '{berth}'"
    return {"name": "berth is free", "sql": query, "rows": [["free"]]}


def task(berth: str, **changes: Any) -> dict[str, Any]:
    """One task, as tasks.yaml holds it."""
    usual = {
        "id": f"free-{berth}",
        "category": "berths",
        "goal": f"You want to give up berth {berth} before the winter.",
        "facts": ["Your boat is called Ibis."],
        "checks": [freed(berth)],
    }
    return usual | changes


def verdict(winner: str, first: float = 4, second: float = 1) -> str:
    """What a judge answers, in the form it is asked for."""
    side = {"evidence": "seen", "done": True}
    found = {"first": side, "second": side, "score_first": first, "score_second": second, "winner": winner}
    return json.dumps(found)


def calling(name: str, arguments: Any, content: str | None = None, call_id: str = "c1") -> Say:
    """An agent's call of a tool."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": text}}
    return Say(text=content, message={"tool_calls": [call]}, finish="tool_calls")


def text_of(body: Body) -> str:
    """All that a request says."""
    return "\n".join(str(message.get("content")) for message in body["messages"])


def blocks(body: Body) -> list[str]:
    """The sessions in a judge's prompt, in the order they stand."""
    prompt = body["messages"][-1]["content"]
    found = re.findall(r"^<<<(FIRST|SECOND|SESSION) (\w+)>>>\n(.*?)\n?^<<<END \1 \2>>>$", prompt, re.M | re.S)
    return [held for _, _, held in found]


class Stage:
    """The run, the server behind it, and what came of it."""

    def __init__(self, folder: Path, start: Callable[..., ChatServer]) -> None:
        self.folder = folder
        self.database = folder / "audit.db"
        self.parts: dict[str, Part] = {}
        self.profiles: dict[str, dict[str, Any]] = {}
        self.tasks = [task("K1")]
        self.tools = list(TOOLS)
        self.more_sql = ""
        self.changes: dict[str, Any] = {}
        self.server = start(self._answer)

    def __call__(self, *args: str, env: Mapping[str, str] | None = None, db: Path | None = None) -> Any:
        """Runs the command; what it printed, and its exit code."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
        kept = {name: value for name, value in os.environ.items() if not name.startswith("REWARD_AUDIT_")}
        kept |= {"REWARD_AUDIT_DB": f"sqlite:///{db or self.database}", **(env or {})}
        code: Any = 0
        with (
            mock.patch.dict(os.environ, kept, clear=True),
            mock.patch.object(sys, "argv", ["reward-audit", *args]),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                main()
            except SystemExit as ended:
                code = ended.code or 0
        printed, told = (stream.buffer.getvalue().decode() for stream in (out, err))
        return Ended(code, printed, told)

    def run(self, *args: str, **more: Any) -> Any:
        """`reward-audit run` on this stage's config, one call at a time."""
        return self("run", "-c", str(self.written()), "-j", "1", *args, **more)

    def rows(self, query: str, db: Path | None = None) -> list[tuple[Any, ...]]:
        """What the database holds."""
        with closing(sqlite3.connect(db or self.database)) as connection:
            return connection.execute(query).fetchall()

    def asked(self, *names: str) -> list[Body]:
        """The requests that came for these profiles."""
        models = {MODELS[name] for name in names}
        return [body for body in self.server.bodies if body["model"] in models]

    def written(self) -> Path:
        """The config and its tasks, as files."""
        folder = self.folder / "harbour"
        folder.mkdir(exist_ok=True)
        domain = {"name": "harbour", "world": "world.sql", "policy": POLICY, "tools": self.tools}
        berths = ", ".join(f"('K{number}', 'Ibis', 'held')" for number in range(1, 30))
        (folder / "world.sql").write_text(
            "create table berths (berth text primary key, boat text not null, state text not null);\n"
            f"insert into berths values {berths};\n{self.more_sql}",
            encoding="utf-8",
        )
        self._write(folder / "domain.yaml", domain)
        self._write(folder / "tasks.yaml", self.tasks)
        config = {
            "name": "harbour",
            "profiles": [self.profile(name) for name in MODELS],
            "agents": [GOOD, IDLE],
            "user": USER,
            "judges": JUDGE,
            "tasks": [str(folder)],
            "max_error_rate": 1.0,
        }
        file = self.folder / "audit.yaml"
        self._write(file, config | self.changes)
        return file

    def profile(self, name: str) -> dict[str, Any]:
        """A profile, with what the test changes in it."""
        usual = {"name": name, "base_url": self.server.base_url, "model": MODELS[name], "role": ROLES[name]}
        return usual | {"timeout_s": 5.0, "attempts": 2} | self.profiles.get(name, {})

    def _write(self, file: Path, value: Any) -> None:
        file.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True), encoding="utf-8")

    def _answer(self, body: Body) -> Say:
        name = next(name for name, model in MODELS.items() if model == body["model"])
        role = name
        if name == JUDGE:
            prompt = body["messages"][-1]["content"]
            role = (
                "check" if "## Criterion" in prompt else "satisfaction" if "<<<SESSION" in prompt else JUDGE
            )
        found = re.search(r"\bK\d+\b", text_of(body))
        berth = found[0] if found else "K1"
        part = self.parts.get(role)
        said = part(berth, body) if part is not None else None
        if said is None:
            said = USUAL[role](berth, body)
        assert said is not None
        return Say(text=said) if isinstance(said, str) else said


class Ended:
    """How a command ended."""

    def __init__(self, code: Any, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr


def _customer(berth: str, body: Body) -> str:
    is_first = not any(message["role"] == "assistant" for message in body["messages"])
    return f"Please free berth {berth}. My boat is the Ibis." if is_first else "<finished>"


def _good(berth: str, body: Body) -> Say | str:
    if body["messages"][-1]["role"] == "tool":
        return f"Berth {berth} is free now."
    return calling("free_berth", {"berth": berth})


def _idle(berth: str, body: Body) -> str:
    return f"All is settled, {berth} has been freed."


def _fair(berth: str, body: Body) -> str:
    shown = [re.search("^agent calls free_berth", block, re.M) is not None for block in blocks(body)]
    if shown[0] == shown[1]:
        return verdict("tie", 3, 3)
    return verdict("first", 5, 1) if shown[0] else verdict("second", 1, 5)


def _pleased(berth: str, body: Body) -> str:
    return json.dumps({"evidence": "seen", "done": True, "satisfaction": 0.5})


USUAL: dict[str, Part] = {
    GOOD: _good,
    IDLE: _idle,
    USER: _customer,
    JUDGE: _fair,
    "satisfaction": _pleased,
    "check": lambda _berth, _body: '{"evidence": "seen", "met": true}',
}


def in_turn(script: Iterable["Say | str"]) -> Part:
    """Says one after the other, then leaves it to the usual cast."""
    waiting = list(script)
    return lambda _berth, _body: waiting.pop(0) if waiting else None
