"""JudgeBench outputs: what each field becomes."""

import json
from pathlib import Path
from typing import Any

import pytest

from audit.doors.formats import judgebench
from audit.words.records import ImportedPair, RawAnswer


def judgment(decision: str | None, **fields: Any) -> dict[str, Any]:
    return {"judgment": {"judge_model": "j", "prompt": "p", "response": "r", **fields}, "decision": decision}


def record(**fields: Any) -> dict[str, Any]:
    return {
        "pair_id": "p1",
        "original_id": 7,
        "source": "mmlu-pro-law",
        "question": "q",
        "response_model": "m",
        "response_A": "a",
        "response_B": "b",
        "label": "A>B",
        "judge_name": "arena_hard",
        "judgments": [judgment("A>B"), judgment("B>A")],
        **fields,
    }


def read_one(folder: Path, **fields: Any) -> ImportedPair:
    path = folder / "outputs.jsonl"
    path.write_text(json.dumps(record(**fields)) + "\n")
    (pair,) = judgebench.read(path, None)
    return pair


def test_read_when_a_pair_is_complete_then_every_field_has_its_place(tmp_path: Path) -> None:
    pair = read_one(tmp_path)
    asked = {"raw_output": "r", "grammar": "arena_hard_5way", "is_recorded": True}
    assert pair == ImportedPair(
        place="line 1",
        source_pair_id="p1",
        gate="j",
        task_id="p1",
        answers=(
            RawAnswer("AB", **asked, choice="first", decision="A>B"),
            RawAnswer("BA", **asked, choice="second", decision="B>A"),
        ),
        category="Knowledge",
        agent_a="m",
        agent_b="m",
        success_a=1,
        success_b=0,
        reward_a=1.0,
        reward_b=0.0,
        transcript_a='[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]',
        transcript_b='[{"role":"user","content":"q"},{"role":"assistant","content":"b"}]',
        label_source="external",
    )


@pytest.mark.parametrize(
    ("decision", "choice"),
    [
        ("A>B", "first"),
        ("A>>B", "first"),
        ("B>A", "second"),
        ("B>>A", "second"),
        ("A=B", "tie"),
        (None, None),
    ],
)
def test_read_when_a_decision_is_recorded_then_it_is_a_choice_by_position_in_both_orders(
    tmp_path: Path, decision: str | None, choice: str | None
) -> None:
    answers = read_one(tmp_path, judgments=[judgment(decision), judgment(decision)]).answers
    assert [(answer.order, answer.choice, answer.decision) for answer in answers] == [
        ("AB", choice, decision),
        ("BA", choice, decision),
    ]


def test_read_when_the_label_names_b_then_b_has_the_reward(tmp_path: Path) -> None:
    pair = read_one(tmp_path, label="B>A")
    assert (pair.success_a, pair.success_b, pair.reward_a, pair.reward_b) == (0, 1, 0.0, 1.0)


@pytest.mark.parametrize(
    ("source", "group"),
    [
        ("mmlu-pro-health", "Knowledge"),
        ("livebench-reasoning", "Reasoning"),
        ("livebench-math", "Math"),
        ("livecodebench", "Coding"),
        ("another", "another"),
    ],
)
def test_read_when_the_source_is_known_then_the_category_is_the_papers_group(
    tmp_path: Path, source: str, group: str
) -> None:
    assert read_one(tmp_path, source=source).category == group


def test_read_when_the_judge_gave_scores_then_they_are_kept_by_position_and_the_reply_is_not_read(
    tmp_path: Path,
) -> None:
    scored = [judgment("B>A", scores=[1.5, 1.5], response=""), judgment("B>A", scores=[2, -1.5], response="")]
    answers = read_one(tmp_path, judge_name="reward_model", judgments=scored).answers
    assert [(a.score_first, a.score_second, a.grammar, a.raw_output) for a in answers] == [
        (1.5, 1.5, None, ""),
        (2.0, -1.5, None, ""),
    ]


def test_read_when_a_response_is_empty_then_the_side_said_nothing(tmp_path: Path) -> None:
    pair = read_one(tmp_path, response_A="")
    assert json.loads(pair.transcript_a or "")[1] == {"role": "assistant", "content": ""}
