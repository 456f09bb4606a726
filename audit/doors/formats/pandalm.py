"""PandaLM: a test set with three annotators a pair, and a judge's file that joins it on `idx`; one order.

The reward of a side is the share of the annotators who chose it, so a 2-1 vote is a gap of 1/3. Success stays
unknown: the labels are preferences. An instruction with its input is a task. Source: PandaLM,
arXiv:2306.05087, `testset-v1.json` of its repository.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from audit.doors.files import json_array, stem
from audit.doors.formats.fields import Row
from audit.words.errors import BadFile
from audit.words.names import Choice
from audit.words.records import ImportedPair, RawAnswer
from audit.words.text import as_json

_ANNOTATORS = ("annotator1", "annotator2", "annotator3")
_CHOICES: dict[str, Choice] = {"1": "first", "2": "second", "tie": "tie"}


def read(paths: Sequence[Path]) -> Iterator[ImportedPair]:
    """The pairs of a test set and one judge's file, given in either order."""
    if len(paths) != 2:
        raise BadFile(str(paths[0]), "", "pandalm needs two files: the test set and the judge's results")
    loaded = [(path, json_array(path)) for path in paths]
    loaded.sort(key=lambda item: not (item[1] and "annotator1" in item[1][0]))
    (set_path, test_set), (judge_path, judged) = loaded
    pairs, results = _by_id(set_path, test_set), _by_id(judge_path, judged)
    places = _places(pairs)
    for pair_id, row in pairs.items():
        if pair_id not in results:
            raise row.wrong("idx", f"{pair_id} is not in {judge_path}")
        yield _pair(row, pair_id, results[pair_id], stem(judge_path), places[pair_id])
    for pair_id, row in results.items():
        if pair_id not in pairs:
            raise row.wrong("idx", f"{pair_id} is not in {set_path}")


def _by_id(path: Path, items: list[dict[str, Any]]) -> dict[str, Row]:
    rows: dict[str, Row] = {}
    for index, fields in enumerate(items):
        row = Row(str(path), f"[{index}]", fields)
        pair_id = row.needed_text("idx")
        if pair_id in rows:
            raise row.wrong("idx", f"{pair_id} stands at {rows[pair_id].place} already")
        rows[pair_id] = row
    return rows


def _places(pairs: dict[str, Row]) -> dict[str, tuple[str, int]]:
    """Pair -> its task and trial. Pairs of one prompt are of one task, which has the id of the first of them,
    and each is a trial of it: by their ids, so that the order of the file changes nothing. Intervals are over
    tasks: 999 pairs of 170 prompts tell less than 999 tasks. An agent against itself is a task of its own.
    """
    same: dict[str, list[str]] = defaultdict(list)
    for pair_id, row in pairs.items():
        one, other = _agents(row)
        same[_prompt(row) if one != other else f"\0{pair_id}"].append(pair_id)
    found: dict[str, tuple[str, int]] = {}
    for ids in same.values():
        in_order = sorted(ids, key=lambda pair_id: (len(pair_id), pair_id))
        found |= {pair_id: (in_order[0], trial) for trial, pair_id in enumerate(in_order)}
    return found


def _prompt(row: Row) -> str:
    return "\n".join(filter(None, (row.needed_string("instruction"), row.string("input"))))


def _agents(row: Row) -> tuple[str, str]:
    agents = row.needed_text("cmp_key").split("_")
    if len(agents) != 2 or not all(agents):
        raise row.wrong("cmp_key", f"expected two names joined by _, found {row.text('cmp_key')!r}")
    return agents[0], agents[1]


def _pair(row: Row, pair_id: str, result: Row, gate: str, place: tuple[str, int]) -> ImportedPair:
    votes = [_vote(row, annotator) for annotator in _ANNOTATORS]
    agents, prompt = _agents(row), _prompt(row)
    task_id, trial = place
    return ImportedPair(
        place=row.place,
        source_pair_id=pair_id,
        gate=gate,
        task_id=task_id,
        answers=(_answer(result),),
        category=row.text("motivation_app"),
        trial=trial,
        agent_a=agents[0],
        agent_b=agents[1],
        reward_a=votes.count(1) / len(votes),
        reward_b=votes.count(2) / len(votes),
        transcript_a=_transcript(prompt, _response(row, "response1")),
        transcript_b=_transcript(prompt, _response(row, "response2")),
        label_source="human",
    )


def _response(row: Row, field: str) -> str:
    # The published test set holds a few responses as bare JSON values, such as true.
    value = row.fields.get(field)
    return as_json(value) if isinstance(value, bool | int | float) else row.needed_string(field)


def _vote(row: Row, field: str) -> int:
    vote = row.count(field)
    if vote not in (0, 1, 2):
        raise row.wrong(field, f"expected 0 (tie), 1 or 2, found {row.fields.get(field)!r}")
    return vote


def _answer(result: Row) -> RawAnswer:
    named = [field for field in result.fields if field.endswith("_result")]
    if len(named) != 1:
        raise result.wrong("..._result", f"expected one such field, found {len(named)}")
    decision = result.needed_text(named[0])
    return RawAnswer(
        order="AB",
        raw_output=decision,
        grammar="digit",
        is_recorded=True,
        choice=_CHOICES.get(decision.lower()),
        decision=decision,
    )


def _transcript(prompt: str, response: str) -> str:
    return as_json([{"role": "user", "content": prompt}, {"role": "assistant", "content": response}])
