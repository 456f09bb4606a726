"""`export dpo` of a live run: its agents had tools, and the rows say which."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from audit.words.flags import ROWLESS


def test_live_run_when_exported_then_each_row_has_the_tools_of_its_task(
    small: Callable[..., Path], here: Callable[..., Any], tmp_path: Path
) -> None:
    assert here("run", "-c", small()).code == 0
    done = here("export", "dpo", "-o", "live.jsonl", "--prefer", "reward", "--keep", "both_failed")
    assert done.code == 0, done.stderr
    assert done.stdout.startswith("exported ")
    rows = read(tmp_path / "live.jsonl")

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


def test_live_run_when_exported_then_the_set_is_the_view_but_for_pairs_of_which_no_row_can_be_made(
    small: Callable[..., Path], here: Callable[..., Any], tmp_path: Path
) -> None:
    assert here("run", "-c", small(agents=["agent-95", "agent-80", "agent-70", "agent-50"])).code == 0
    done = here("--json", "export", "dpo", "-o", "live.jsonl")
    found = json.loads(done.stdout)
    exported = {row["pair_id"] for row in read(tmp_path / "live.jsonl")}
    rowless = {
        row["pair_id"]
        for row in read(tmp_path / "live.jsonl.dropped.jsonl")
        if set(row["reasons"]) <= set(ROWLESS)
    }
    view = json.loads(here("--json", "sql", "select pair_id from clean_pairs").stdout)
    assert {row["pair_id"] for row in view} == exported | rowless
    assert found["counts"]["exported"] == len(exported) > 1
    assert found["counts"]["dropped"] > len(rowless)


def read(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


def test_near_ties_when_the_curve_only_continues_what_was_seen_then_they_are_those_in_near_buckets(
    here: Any, shared: Path, tmp_path: Path
) -> None:
    """All gaps are 1: the gap of ten per cent, far beyond, would call every pair a near tie."""
    file = next((shared / "data" / "judgebench").glob("*o1-mini*"))
    assert here("import", "judgebench", file).code == 0
    did = here(
        "--json",
        "export",
        "dpo",
        "-o",
        tmp_path / "clean.jsonl",
        "--drop",
        "near_tie",
        "--split",
        "train=.5,test=.5",
    )
    assert did.code == 0, did.stderr
    found = json.loads(did.stdout)
    assert found["counts"]["exported"] > 100
    assert "near_tie" not in found["reasons"]
    plain = here("export", "dpo", "-o", tmp_path / "other.jsonl", "--split", "train=.5,test=.5")
    rows = [file["rows"] for file in found["files"] if file["holds"] == "rows"]
    assert f"other.train.jsonl ({rows[0]:,} rows), other.test.jsonl ({rows[1]:,} rows)" in " ".join(
        plain.stdout.split()
    )
