"""A chat server beside the benchmark: the C one where its source and gcc are there, else tests/server.py."""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import ProxyHandler, build_opener

import measure

C_SOURCE = measure.ROOT.parent / "shared" / "tools" / "fakeoai.c"


class Running(NamedTuple):
    """`name` says which server it is."""

    name: str
    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, int]:
        """The server's own counts: `requests` and `refused`."""
        with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{self.port}/stats", timeout=5) as answer:
            found = json.load(answer)
        if self.name == "fakeoai":
            return {"requests": found["req"], "refused": found["e429"]}
        return {"requests": found.get("requests", 0), "refused": found.get("429", 0)}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server-source", type=Path, default=C_SOURCE, metavar="C", help="%(default)s")
    parser.add_argument("--python-server", action="store_true", help="use tests/server.py in any case")


@contextmanager
def running(
    options: argparse.Namespace, folder: Path, *, latency_ms: float = 0, rps: float = 0, text: str = "fine"
) -> Iterator[Running]:
    """A server that says `text` after `latency_ms`, and refuses beyond `rps` a second. Stopped at the end."""
    has_c = options.server_source.is_file() and shutil.which("gcc") and not options.python_server
    start = _c_server if has_c else _python_server
    name, command, port = start(options, folder, latency_ms, rps, text)
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = port or int(process.stdout.readline())
        _wait_for(port)
        yield Running(name, port)
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def _c_server(
    options: argparse.Namespace, folder: Path, latency_ms: float, rps: float, text: str
) -> tuple[str, list[Any], int]:
    program, said = folder / "fakeoai", folder / "said.txt"
    if not program.exists():
        subprocess.run(["gcc", "-O2", "-w", "-o", program, options.server_source], check=True)
    said.write_text(text, encoding="utf-8")
    port = _free_port()
    return "fakeoai", [program, "-p", port, "-l", latency_ms, "-R", rps, "-c", said], port


def _python_server(
    _options: argparse.Namespace, _folder: Path, latency_ms: float, rps: float, text: str
) -> tuple[str, list[Any], int]:
    server = measure.ROOT / "tests" / "server.py"
    load = ["--latency-ms", latency_ms, "--rps", rps, "--text", text]
    return "tests/server.py", [sys.executable, server, *load], 0


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise SystemExit(f"no server came up on port {port}")
