"""JudgeBench outputs: both orders of each pair, objective labels, one response model on both sides.

`judgments[0]` was shown (A, B), `judgments[1]` (B, A); each `decision` is as displayed. Source: JudgeBench,
arXiv:2410.12784, and its repository's `outputs/`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, json_lines
from audit.doors.formats.fields import Row
from audit.words.names import Choice, Order
from audit.words.records import ImportedPair, RawAnswer
from audit.words.text import as_json

_LABEL_REWARDS = {"A>B": (1, 0), "B>A": (0, 1)}
_CHOICES: dict[str | None, Choice | None] = {
    "A>B": "first",
    "A>>B": "first",
    "B>A": "second",
    "B>>A": "second",
    "A=B": "tie",
    None: None,
}
_ORDERS: tuple[Order, Order] = ("AB", "BA")
_GRAMMARS = {"arena_hard": "arena_hard_5way"}
# The four groups of the paper's Table 2.
_GROUPS = {"livebench-reasoning": "Reasoning", "livebench-math": "Math", "livecodebench": "Coding"}


def read(path: Path, progress: Progress | None) -> Iterator[ImportedPair]:
    """The pairs of one outputs file; `gate` is the judge model, `category` the paper's group."""
    for number, fields in json_lines(path, progress):
        yield _pair(Row(str(path), f"line {number}", fields))


def _pair(row: Row) -> ImportedPair:
    pair_id = row.needed_text("pair_id")
    label = row.needed_text("label")
    if label not in _LABEL_REWARDS:
        raise row.wrong("label", f"expected A>B or B>A, found {label!r}")
    success_a, success_b = _LABEL_REWARDS[label]
    judgments = row.items("judgments")
    if len(judgments) != 2:
        raise row.wrong("judgments", f"expected two, one for each order, found {len(judgments)}")
    answers = tuple(_answer(row, i, judgments[i]) for i in (0, 1))
    agent = row.needed_text("response_model")
    question = row.needed_string("question")
    return ImportedPair(
        place=row.place,
        source_pair_id=pair_id,
        gate=_judge(row, judgments),
        task_id=pair_id,
        answers=answers,
        category=_group(row.needed_text("source")),
        agent_a=agent,
        agent_b=agent,
        success_a=success_a,
        success_b=success_b,
        reward_a=float(success_a),
        reward_b=float(success_b),
        transcript_a=_transcript(question, row.needed_string("response_A")),
        transcript_b=_transcript(question, row.needed_string("response_B")),
        label_source="external",
    )


def _answer(row: Row, index: int, item: Any) -> RawAnswer:
    outer = Row(row.file, f"{row.place}, judgments[{index}]", item if isinstance(item, dict) else {})
    judgment = outer.inner("judgment")
    decision = outer.text("decision")
    # A null decision is a reply without a verdict; no decision at all is another kind of file.
    if "decision" not in outer.fields:
        raise outer.wrong("decision", "is missing")
    if decision not in _CHOICES:
        raise outer.wrong("decision", f"expected A>B, A=B or B>A, found {decision!r}")
    if "response" not in judgment.fields:
        raise judgment.wrong("response", "is missing")
    scores = Row(judgment.file, judgment.place, {})
    if judgment.fields.get("scores") is not None:
        listed = judgment.items("scores")
        if len(listed) != 2:
            raise judgment.wrong("scores", f"expected two, found {len(listed)}")
        scores.fields = {"scores[0]": listed[0], "scores[1]": listed[1]}
    return RawAnswer(
        order=_ORDERS[index],
        raw_output=judgment.string("response"),
        grammar=None if scores.fields else _GRAMMARS.get(row.text("judge_name") or ""),
        is_recorded=True,
        choice=_CHOICES[decision],
        decision=decision,
        score_first=scores.number("scores[0]"),
        score_second=scores.number("scores[1]"),
    )


def _judge(row: Row, judgments: list[Any]) -> str:
    names = {
        Row(row.file, row.place, item).inner("judgment").needed_text("judge_model") for item in judgments
    }
    if len(names) != 1:
        raise row.wrong("judgments", f"two judges in one pair: {' and '.join(sorted(names))}")
    return names.pop()


def _group(source: str) -> str:
    return "Knowledge" if source.startswith("mmlu-pro-") else _GROUPS.get(source, source)


def _transcript(question: str, response: str) -> str:
    return as_json([{"role": "user", "content": question}, {"role": "assistant", "content": response}])
