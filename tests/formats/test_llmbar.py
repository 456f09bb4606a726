"""LLMBar results: what each field becomes."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from audit.doors.formats import llmbar
from audit.words.records import ImportedPair, RawAnswer


def record(**fields: Any) -> dict[str, Any]:
    judged = {
        "swap = False": {"completion": ["Output (a)", "stop"], "winner": "1"},
        "swap = True": {"completion": ["Output (a)", "stop"], "winner": "2"},
    }
    return {
        "input": "q",
        "output_1": "one",
        "output_2": "two",
        "label": 1,
        "results": [["an earlier step"], judged],
        **fields,
    }


def read(folder: Path, *records: dict[str, Any], name: str = "Natural.GPT-4.json") -> list[ImportedPair]:
    path = folder / name
    data = json.dumps(records).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return list(llmbar.read(path))


def test_read_when_a_pair_is_complete_then_every_field_has_its_place(tmp_path: Path) -> None:
    (pair,) = read(tmp_path, record())
    asked = {"raw_output": "Output (a)", "grammar": "output_ab", "is_recorded": True, "finish_reason": "stop"}
    assert pair == ImportedPair(
        place="[0]",
        source_pair_id="0",
        gate="Natural.GPT-4",
        task_id="0",
        # The winner is recorded by output, mapped back already: it is a preference, not a choice.
        answers=(
            RawAnswer("AB", **asked, preference="A", decision="1"),
            RawAnswer("BA", **asked, preference="B", decision="2"),
        ),
        reward_a=1.0,
        reward_b=0.0,
        transcript_a='[{"role":"user","content":"q"},{"role":"assistant","content":"one"}]',
        transcript_b='[{"role":"user","content":"q"},{"role":"assistant","content":"two"}]',
        label_source="human",
    )


def test_read_when_the_label_is_a_preference_then_success_stays_unknown(tmp_path: Path) -> None:
    pairs = read(tmp_path, record(label=1), record(label=2))
    assert [(p.reward_a, p.reward_b, p.success_a, p.success_b) for p in pairs] == [
        (1.0, 0.0, None, None),
        (0.0, 1.0, None, None),
    ]
    assert [p.source_pair_id for p in pairs] == ["0", "1"]


@pytest.mark.parametrize("winner", [None, "None", "3", ""])
def test_read_when_no_winner_was_found_then_there_is_no_preference(tmp_path: Path, winner: object) -> None:
    judged = {key: {"completion": ["?"], "winner": winner} for key in ("swap = False", "swap = True")}
    (pair,) = read(tmp_path, record(results=[judged]))
    assert [(a.preference, a.is_recorded, a.finish_reason) for a in pair.answers] == [(None, True, None)] * 2


def test_read_when_the_file_is_packed_then_the_gate_has_the_same_name(tmp_path: Path) -> None:
    assert read(tmp_path, record(), name="Natural.GPT-4.json.gz") == read(tmp_path, record())
