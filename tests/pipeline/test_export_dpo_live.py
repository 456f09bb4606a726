"""`export dpo` of a live run: its agents had tools, and the rows say which."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


def test_live_run_when_exported_then_each_row_has_the_tools_of_its_task(
    small: Callable[..., Path], here: Callable[..., Any], tmp_path: Path
) -> None:
    assert here("run", "-c", small()).code == 0
    done = here("export", "dpo", "-o", "live.jsonl", "--prefer", "reward", "--keep", "both_failed")
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("exported ")
    rows = [
        json.loads(line) for line in (tmp_path / "live.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    ]

    calls = []
    for row in rows:
        tools = {tool["function"]["name"] for tool in json.loads(row["tools"])}
        assert len(tools) > 5
        used = [
            call["function"]
            for part in ("prompt", "chosen", "rejected")
            for message in row[part]
            for call in message.get("tool_calls", ())
        ]
        assert {call["name"] for call in used} <= tools
        calls += used
    # The agents' gateway gives arguments as text.
    assert calls
    assert all(isinstance(call["arguments"], dict) for call in calls)
