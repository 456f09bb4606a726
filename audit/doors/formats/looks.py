"""What a file looks like: which of the formats its first record has the fields of."""

from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any

from audit.doors.files import csv_rows, json_document, json_lines
from audit.words.errors import BadFile

# Format -> fields that its records have and no other's; the first that fits.
_MARKS = {
    "judgebench": {"pair_id", "response_model", "judgments"},
    "rewards": {"source_pair_id", "reward_a", "reward_b"},
    "gauge-csv": {"agent_model", "task_success"},
    "sessions": {"task_id", "messages"},
    "tau2": {"simulations", "tasks"},
    "tau": {"task_id", "traj"},
    "llmbar": {"input", "output_1", "output_2", "label"},
}
_OURS = {"raw_ab", "raw_ba", "pref_ab", "pref_ba"}
_LARGEST = 50_000_000  # no larger document is read whole for a hint


def looks_like(path: Path) -> str | None:
    """The format whose records the file holds, as `import` calls it; NULL where that is not plain."""
    with suppress(BadFile, OSError, StopIteration):
        with path.open("rb") as file:
            if file.read(2) == b"PK":
                return "inspect" if path.suffix == ".eval" else None
        fields = set(_first(path))
        named = next((name for name, marks in _MARKS.items() if marks <= fields), None)
        if named is None and "pair_id" in fields and fields & _OURS:
            return "csv" if ".csv" in path.suffixes else "jsonl"
        return named
    return None


def _first(path: Path) -> dict[str, Any]:
    if ".csv" in path.suffixes:
        return next(csv_rows(path))[1]
    with suppress(BadFile):
        for _, row in islice(json_lines(path), 1):
            return row
    if path.stat().st_size > _LARGEST:
        return {}
    found = json_document(path)
    first = found[0] if isinstance(found, list) and found else found
    return first if isinstance(first, dict) else {}
