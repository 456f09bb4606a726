"""Recorded judgments read again: every difference from the record, and why a careful reader differs."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from audit.verbs.verdict import grammar, read_verdict

pytestmark = pytest.mark.shared_data

# (pair, which of its two judgments) -> (recorded, read here, why). The recorded parser gives up at two
# different labels, whatever they say, so all of these were recorded as None.
JUDGEBENCH = {
    ("663eb019-69ba-570f-bf87-f210f58e8cec", 1): (
        None,
        "A>B",
        "[[A>>B]] under the first assistant, [[A>B]] at the end: two strengths of one verdict, no "
        "contradiction",
    ),
    ("3ca791e5-75b4-5172-bc59-14c5b21c60a1", 1): (
        None,
        "B>A",
        "[[A>B]] then [[B>A]], and the reply closes with 'Assistant B's response, I believe it to be the "
        "slightly better answer overall': the closing words confirm the last label",
    ),
    ("c2d66af7-e981-5b4f-849d-00876452ae3e", 0): (
        None,
        "A>B",
        "each assistant is first rated against the judge's own answer, then 'Final verdict: Assistant A is "
        "slightly better: [[A>B]]'",
    ),
    ("6bc9bd9d-322e-5e9d-9ef4-c949d73eeb75", 0): (
        None,
        "A>B",
        "rated 'slightly better' and 'slightly worse than my own answer' first, then 'My final verdict is "
        "that Assistant A's answer is slightly better: [[A>B]]'",
    ),
    ("e507c24c-268f-57b3-ae82-115141c2cb01", 0): (
        None,
        "A>B",
        "both 'final verdicts' name Assistant A, as slightly and as significantly better",
    ),
    ("4e42fb58-f8e7-5d33-9585-73aa84d37ba2", 0): (
        None,
        "A>B",
        "each assistant is first rated against the judge's own answer, then 'My final verdict is: "
        "Assistant A is slightly better: [[A>B]]'",
    ),
}
# (index, order) -> (recorded, read here, why); 1 and 2 = shown first and second.
LLMBAR = {
    ("Natural.Falcon.CoT.json", 7, "swap = False"): (
        "1",
        None,
        "argues for each output in turn and ends each part with 'Therefore, Output (x) is better': the "
        "record took the first, but the reply contradicts itself",
    ),
    ("Natural.Falcon.CoT.json", 74, "swap = False"): (
        "1",
        "2",
        "the record took 'In terms of the level of detail, Output (a) is better'; the reply then weighs "
        "the aspects and concludes twice 'Therefore, Output (b) is better'",
    ),
}


def _data(folder: str) -> Path:
    path = Path(__file__).resolve().parents[2].parent / "shared" / "data" / folder
    if not path.is_dir():
        pytest.skip(f"no recorded judgments at {path}")
    return path


def _without_reasons(
    argued: Mapping[Any, tuple[str | None, str | None, str]],
) -> dict[Any, tuple[str | None, str | None]]:
    return {place: (recorded, ours) for place, (recorded, ours, _) in argued.items()}


def test_read_verdict_when_judgebench_replies_are_read_again_then_only_the_argued_ones_differ() -> None:
    said = {"first": "A>B", "second": "B>A", "tie": "A=B", None: None}
    differences, count = {}, 0
    for path in sorted(_data("judgebench").glob("*.arena_hard.*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            for at, judgment in enumerate(row["judgments"]):
                verdict = read_verdict(judgment["judgment"]["response"], grammar("arena_hard_5way"))
                count += 1
                if said[verdict.choice] != judgment["decision"]:
                    differences[row["pair_id"], at] = (judgment["decision"], said[verdict.choice])
    assert count == 1240
    assert differences == _without_reasons(JUDGEBENCH)


def test_read_verdict_when_llmbar_replies_are_read_again_then_only_the_argued_ones_differ() -> None:
    said = {"first": "1", "second": "2", None: None}
    as_shown = {"swap = False": {"1": "1", "2": "2"}, "swap = True": {"1": "2", "2": "1"}}
    differences, count = {}, 0
    for path in sorted(_data("llmbar").glob("*.json")):
        for at, row in enumerate(json.loads(path.read_text(encoding="utf-8"))):
            for order, shown in as_shown.items():
                record = row["results"][-1][order]
                verdict = read_verdict(record["completion"][0], grammar("output_ab"))
                recorded = shown.get(record["winner"])
                count += 1
                if said[verdict.choice] != recorded:
                    differences[path.name, at, order] = (recorded, said[verdict.choice])
    assert count == 762
    assert differences == _without_reasons(LLMBAR)


def test_read_verdict_when_pandalm_results_are_read_again_then_none_differs() -> None:
    said = {"first": "1", "second": "2", "tie": "Tie", None: "garbage"}
    rows = json.loads((_data("pandalm") / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
    read = [said[read_verdict(row["gpt_result"], grammar("digit")).choice] for row in rows]
    assert len(rows) == 999
    assert read == [row["gpt_result"] for row in rows]
