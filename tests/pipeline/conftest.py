"""A live run's surroundings: a small config, its tasks, and a gateway in a thread of its own."""

import asyncio
import io
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from examined import Doctor, Examined, clear_variables
from server import ChatServer, Say
from staged import Stage

from audit.faces.cli import main

CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[..., Path]:
    """Writes the embedded config, its tasks by their whole path, with `changes` to its top keys."""

    def write(**changes: Any) -> Path:
        embedded = CHECKOUT / "data" / "embedded.yaml"
        config = yaml.safe_load(embedded.read_text(encoding="utf-8"))
        config |= {"tasks": [str(embedded.parent / task) for task in config["tasks"]]} | changes
        path = tmp_path / "audit.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    return write


@pytest.fixture
def few_tasks(tmp_path: Path) -> str:
    """A task folder with the first three tasks of the web shop."""
    source = CHECKOUT / "data" / "tasks" / "shop"
    folder = tmp_path / "few"
    folder.mkdir()
    for name in ("domain.yaml", "world.sql"):
        (folder / name).write_text((source / name).read_text(encoding="utf-8"), encoding="utf-8")
    listed = yaml.safe_load((source / "tasks.yaml").read_text(encoding="utf-8"))
    text = yaml.safe_dump([task for task in listed if task["category"] != "query"][:3], allow_unicode=True)
    (folder / "tasks.yaml").write_text(text, encoding="utf-8")
    return str(folder)


@pytest.fixture
def gateway() -> Iterator[Callable[..., ChatServer]]:
    """Starts a server in a thread, which answers each request's body as it is told."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    started: list[ChatServer] = []

    def start(answer: Callable[[dict[str, Any]], Say], kind: type[ChatServer] = ChatServer) -> ChatServer:
        server = kind(answer=answer)
        asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result(10)
        started.append(server)
        return server

    yield start
    for server in started:
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
    loop.close()


class Did(NamedTuple):
    """What a command printed and how it ended."""

    stdout: str
    stderr: str
    code: int


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Did]:
    """The real command as `cli` runs it, but in this process: no second to start it each time."""
    for name in [name for name in os.environ if name.startswith("REWARD_AUDIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*args: str | Path, db: str = f"sqlite:///{tmp_path / 'audit.db'}") -> Did:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        monkeypatch.setattr(sys, "argv", ["reward-audit", "--db", db, *map(str, args)])
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            main()
        said = [stream.buffer.getvalue().decode() for stream in (out, err)]
        return Did(*said, int(ended.value.code or 0))

    return run


@pytest.fixture
def small(config_file: Callable[..., Path], few_tasks: str) -> Callable[..., Path]:
    """Writes a config of three agents on three tasks; their models behind `server` where one is given."""

    def write(server: ChatServer | None = None, **changes: Any) -> Path:
        path = config_file(**{"tasks": few_tasks, "agents": ["agent-95", "agent-80", "agent-50"]} | changes)
        if server is not None:
            config = yaml.safe_load(path.read_text(encoding="utf-8"))
            behind = {"base_url": server.base_url, "timeout_s": 5}
            config["profiles"] = [profile | behind for profile in config["profiles"]]
            path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return path

    return write


@pytest.fixture
def stage(tmp_path: Path, gateway: Callable[..., ChatServer]) -> Stage:
    """A run of two agents at a harbour office, scripted over HTTP."""
    return Stage(tmp_path, gateway)


@pytest.fixture
def doctor(here: Callable[..., Did], monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """`doctor --json` with these arguments, in an environment without keys and proxies."""
    clear_variables(monkeypatch)
    return lambda *args, **more: Examined(here("doctor", "--json", *args, **more))
