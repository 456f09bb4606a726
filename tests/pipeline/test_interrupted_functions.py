"""Ctrl-C while a user's own tool or check is at work: the program ends at once, not when that does."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from staged import TOOLS, Stage, task


@pytest.mark.parametrize("kind", ["tool", "check"])
def test_interrupt_when_a_function_of_the_user_hangs_then_the_run_ends_at_once(
    stage: Stage, tmp_path: Path, kind: str
) -> None:
    begun = tmp_path / "begun"
    function = "hanging:hang"
    (tmp_path / "hanging.py").write_text(
        "import pathlib, time\n"
        f"def hang(*_):\n    pathlib.Path({str(begun)!r}).touch()\n    time.sleep(1000)\n",
        encoding="utf-8",
    )
    more: dict[str, Any] = {}
    if kind == "tool":
        shape = {name: TOOLS[1][name] for name in ("name", "description", "parameters")}
        stage.tools = [shape | {"function": function}]
    else:
        more["checks"] = [{"name": f"hangs {number}", "python": function} for number in range(3)]
    stage.tasks = [task(f"K{number}", **more) for number in range(1, 5)]
    config = stage.written()

    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{stage.database}", "PYTHONPATH": str(tmp_path)}
    run = subprocess.Popen(
        [sys.executable, "-m", "audit", "run", "-c", str(config), "-j", "8"],
        cwd=tmp_path, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        waited = time.monotonic()
        while not begun.exists() and run.poll() is None and time.monotonic() < waited + 60:
            time.sleep(0.05)
        assert begun.exists()
        run.send_signal(signal.SIGINT)
        told = run.communicate(timeout=30)[1]
    finally:
        run.kill()
    assert run.returncode == 130, told
    assert "the same command goes on from there" in told
