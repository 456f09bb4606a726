"""The example that ships is the one its program writes, and shows what the tool is for."""

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from audit.doors import db
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.reporting import report

SHIPPED = Path(__file__).parents[1] / "data" / "judged_pairs.jsonl"


def test_example_when_made_again_then_it_is_the_shipped_file_byte_for_byte(tmp_path: Path) -> None:
    make: Callable[[Path], None] = runpy.run_path(str(Path(__file__).parent / "make_example_data.py"))["main"]
    make(tmp_path / "again.jsonl")

    assert (tmp_path / "again.jsonl").read_bytes() == SHIPPED.read_bytes()


def test_example_when_imported_then_the_judge_fails_where_agents_are_close(sqlite_url: str) -> None:
    engine = db.open_database(sqlite_url, create=True)
    try:
        imported = import_file(engine, Wish("jsonl", (SHIPPED,)))
        found: dict[str, Any] = report(engine, imported.run_id)
    finally:
        engine.dispose()

    near, wide = (found["near_vs_wide"][kind]["misselected_of_decided"]["value"] for kind in ("near", "wide"))
    assert near > 3 * wide > 0
    assert found["run"]["gap_source"] == "agent"
    # Every kind of outcome but those of a failed call and of an unknown reward.
    assert {outcome for outcome, count in found["pairs"].items() if not count} == {"incomplete", "unverified"}
    assert found["answers"]["unreadable"] > 0
