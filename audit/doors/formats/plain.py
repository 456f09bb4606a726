"""Our own formats `jsonl` and `csv`: one judged pair a line, in documented columns.

    pair_id        required; kept as text, unique per judge
    task_id        default: the pair_id
    category, trial (default 0), judge (the gate; default "judge"), judged_at (ISO 8601 with a zone)
    agent_a, agent_b
    success_a, success_b    true/false, 1/0, yes/no: what a verifier found; the reward where none is given
    reward_a, reward_b      finite numbers
    label          A, B or tie: whom a person prefers; gives rewards 1/0 or 0.5/0.5, success unknown
    raw_ab, raw_ba          the judge's reply when A, or B, was shown first; read by `grammar`
    grammar        how to read the replies, e.g. json, arena_hard_5way, mtbench_3way, score_pair:0-5
    pref_ab, pref_ba        the decision, by side: A, B, tie, or unreadable, or failed; wins over the reply
    judge_score_a, judge_score_b    the judge's own scores, by side
    gap            a gap from elsewhere, from 0 up
    prompt, response_a, response_b  text, or (JSON Lines) a list of chat messages

An order whose reply and decision are both empty was not asked.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, csv_rows, json_lines
from audit.doors.formats.fields import Row, strange_columns
from audit.words.errors import BadFile
from audit.words.names import Order
from audit.words.records import ImportedPair, RawAnswer
from audit.words.text import as_json

COLUMNS = (
    "pair_id",
    "task_id",
    "category",
    "trial",
    "judge",
    "judged_at",
    "agent_a",
    "agent_b",
    "success_a",
    "success_b",
    "reward_a",
    "reward_b",
    "label",
    "raw_ab",
    "raw_ba",
    "grammar",
    "pref_ab",
    "pref_ba",
    "judge_score_a",
    "judge_score_b",
    "gap",
    "prompt",
    "response_a",
    "response_b",
)
_LABELS = {"a": "A", "b": "B", "tie": "tie"}
_LABEL_REWARDS = {"A": (1.0, 0.0), "B": (0.0, 1.0), "tie": (0.5, 0.5), None: (None, None)}
_PREFERENCES = {"a": "A", "b": "B", "tie": "tie", "unreadable": "unreadable", "failed": "failed"}


def read_jsonl(
    path: Path, grammar: str | None, progress: Progress | None, passed_over: set[str]
) -> Iterator[ImportedPair]:
    """The pairs of a JSON Lines file; columns that are not ours are added to `passed_over`."""
    yield from _pairs(str(path), json_lines(path, progress), grammar, passed_over)


def read_csv(
    path: Path, grammar: str | None, progress: Progress | None, passed_over: set[str]
) -> Iterator[ImportedPair]:
    """The pairs of a CSV file, an empty cell an absent value; `passed_over` as for JSON Lines."""
    yield from _pairs(str(path), _known_rows(path, progress), grammar, passed_over)


def _known_rows(path: Path, progress: Progress | None) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, fields in csv_rows(path, progress):
        if "pair_id" not in fields:
            named = ", ".join(fields)
            raise BadFile(
                str(path),
                "line 1",
                f"the header names no pair_id, only {named[:60]}{'...' if len(named) > 60 else ''}: "
                "name the columns as `reward-audit import --help` lists them, with commas between them",
            )
        yield number, {column: cell or None for column, cell in fields.items()}


def _pairs(
    file: str, rows: Iterator[tuple[int, dict[str, Any]]], grammar: str | None, passed_over: set[str]
) -> Iterator[ImportedPair]:
    seen = set(COLUMNS)
    for number, fields in rows:
        row = Row(file, f"line {number}", fields)
        if not fields.keys() <= seen:
            strange = strange_columns(row, COLUMNS)
            seen |= strange
            passed_over |= strange
        yield _pair(row, grammar)


def _pair(row: Row, grammar: str | None) -> ImportedPair:
    pair_id = row.needed_text("pair_id")
    success_a, success_b = row.flag("success_a"), row.flag("success_b")
    reward_a, reward_b = _rewards(row, success_a, success_b)
    fields = row.fields
    return ImportedPair(
        place=row.place,
        source_pair_id=pair_id,
        gate=row.text("judge") or "judge",
        task_id=row.text("task_id") or pair_id,
        answers=_answers(row, row.text("grammar") or grammar),
        category=row.text("category"),
        trial=row.count("trial") or 0,
        agent_a=row.text("agent_a"),
        agent_b=row.text("agent_b"),
        success_a=success_a,
        success_b=success_b,
        reward_a=reward_a,
        reward_b=reward_b,
        external_gap=row.number("gap", low=0),
        transcript_a=_transcript(row, "response_a") if "response_a" in fields else None,
        transcript_b=_transcript(row, "response_b") if "response_b" in fields else None,
        label_source="human" if row.has("label") else "external",
        judged_at=row.moment("judged_at"),
    )


def _rewards(row: Row, success_a: int | None, success_b: int | None) -> tuple[float | None, float | None]:
    reward_a, reward_b = row.number("reward_a"), row.number("reward_b")
    if row.has("label"):
        if reward_a is not None or reward_b is not None or success_a is not None or success_b is not None:
            raise row.wrong("label", "give either a label, or rewards and successes")
        return _LABEL_REWARDS[row.one_of("label", _LABELS)]
    return (
        success_a if reward_a is None else reward_a,
        success_b if reward_b is None else reward_b,
    )


def _answers(row: Row, grammar: str | None) -> tuple[RawAnswer, ...]:
    fields = row.fields
    score_a, score_b = row.number("judge_score_a"), row.number("judge_score_b")
    found = []
    if "raw_ab" in fields or "pref_ab" in fields:
        found.append(_answer(row, "AB", "raw_ab", "pref_ab", grammar, score_a, score_b))
    if "raw_ba" in fields or "pref_ba" in fields:
        found.append(_answer(row, "BA", "raw_ba", "pref_ba", grammar, score_b, score_a))
    return tuple(found)


def _answer(
    row: Row,
    order: Order,
    raw_field: str,
    pref_field: str,
    grammar: str | None,
    score_first: float | None,
    score_second: float | None,
) -> RawAnswer:
    raw = row.string(raw_field)
    recorded = row.one_of(pref_field, _PREFERENCES)
    if raw is not None and recorded is None and grammar is None:
        raise row.wrong(raw_field, "needs a grammar to be read: a column `grammar`, or --grammar")
    return RawAnswer(
        order=order,
        raw_output=raw,
        grammar=grammar,
        is_recorded=recorded is not None,
        preference=recorded if recorded in ("A", "B", "tie") else None,  # type: ignore[arg-type]
        decision=recorded,
        score_first=score_first,
        score_second=score_second,
        error="recorded as failed" if recorded == "failed" else None,
    )


def _transcript(row: Row, field: str) -> str | None:
    response = _messages(row, field, "assistant")
    if not response:
        return None
    try:
        return as_json(_messages(row, "prompt", "user") + response)
    except RecursionError as error:
        raise row.wrong(field, "is nested too deep") from error


def _messages(row: Row, field: str, role: str) -> list[dict[str, Any]]:
    value = row.fields.get(field)
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    if isinstance(value, list) and all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in value):
        return value
    raise row.wrong(field, "expected text or a list of chat messages, each with a role")
