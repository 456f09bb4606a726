"""LLMBar evaluator results: both orders, a human preference as label, a reply and the winner read from it.

`results[-1]` holds the judgments; under `swap = True` output 2 was shown first, and the recorded `winner` is
already mapped back to the outputs. Source: LLMBar, arXiv:2310.07641, and the `result.json` files of its
repository.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import json_array, stem
from audit.doors.formats.fields import Row
from audit.words.names import Order
from audit.words.records import ImportedPair, RawAnswer
from audit.words.text import as_json

_SWAPS: tuple[tuple[str, Order], ...] = (("swap = False", "AB"), ("swap = True", "BA"))
_REWARDS = {"1": (1.0, 0.0), "2": (0.0, 1.0)}
_WINNERS = {"1": "A", "2": "B"}


def read(path: Path) -> Iterator[ImportedPair]:
    """The pairs of one result file: A is `output_1`; ids are positions in the file, from 0."""
    for index, fields in enumerate(json_array(path)):
        yield _pair(Row(str(path), f"[{index}]", fields), index, stem(path))


def _pair(row: Row, index: int, gate: str) -> ImportedPair:
    label = row.needed_text("label")
    if label not in _REWARDS:
        raise row.wrong("label", f"expected 1 or 2, found {label!r}")
    reward_a, reward_b = _REWARDS[label]
    results = row.items("results")
    last = results[-1] if results else None
    if not isinstance(last, dict):
        raise row.wrong("results", "expected the judgments of both orders in the last item")
    judgments = Row(row.file, f"{row.place}.results[-1]", last)
    question = row.needed_string("input")
    return ImportedPair(
        place=row.place,
        source_pair_id=str(index),
        gate=gate,
        task_id=str(index),
        answers=tuple(_answer(judgments.inner(key), order) for key, order in _SWAPS),
        reward_a=reward_a,
        reward_b=reward_b,
        transcript_a=_transcript(question, row.needed_string("output_1")),
        transcript_b=_transcript(question, row.needed_string("output_2")),
        label_source="human",
    )


def _answer(row: Row, order: Order) -> RawAnswer:
    completion = row.items("completion")
    if not completion:
        raise row.wrong("completion", "expected the reply and why it ended")
    parts: dict[str, Any] = {"completion[0]": completion[0]}
    if len(completion) > 1:
        parts["completion[1]"] = completion[1]
    reply = Row(row.file, row.place, parts)
    # Any other winner, such as null, says that the published reader found none.
    if "winner" not in row.fields:
        raise row.wrong("winner", "is missing")
    winner = row.text("winner")
    return RawAnswer(
        order=order,
        raw_output=reply.string("completion[0]"),
        grammar="output_ab",
        is_recorded=True,
        preference=_WINNERS.get(winner or ""),  # type: ignore[arg-type]
        decision=winner,
        finish_reason=reply.text("completion[1]"),
    )


def _transcript(question: str, response: str) -> str:
    return as_json([{"role": "user", "content": question}, {"role": "assistant", "content": response}])
