"""The door to files that go to people and come back: Label Studio's tasks, CSV, JSON Lines."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from audit.doors import files
from audit.doors.formats.fields import nearest
from audit.doors.tables import cell
from audit.words import clock
from audit.words.errors import BadFile
from audit.words.names import Choice
from audit.words.review import CANNOT_TELL, DONES, CannotTell, Done, Said, Shown
from audit.words.text import as_json

Form = Literal["label-studio", "csv", "jsonl"]
ENDINGS: dict[str, Form] = {".json": "label-studio", ".csv": "csv", ".jsonl": "jsonl"}
COLUMNS = (*Shown._fields, "preference", "first_done", "second_done", "note", "annotator")
# What people may write, and what they may call it: always by the place where a session is shown.
_PREFERENCES: dict[str, Choice | CannotTell] = {
    "first": "first", "a": "first", "left": "first", "1": "first",
    "second": "second", "b": "second", "right": "second", "2": "second",
    "tie": "tie", "cannot tell": CANNOT_TELL, "cannot_tell": CANNOT_TELL,
}  # fmt: skip
_ANSWERS = ("preference", "first_done", "second_done", "note")
_KNOWN = (*_ANSWERS, "annotator", "review_id", "labelled_at")
# Tags of the labeling config, which are columns in what Label Studio exports other than JSON.
_TAGS = ("better", "verdict")
# Clocks differ, and so do the zones that people believe to be in.
_AHEAD = timedelta(days=1)
_DONES: dict[str, Done] = {done.replace(" ", blank): done for done in DONES for blank in " _"}
# Label Studio's template for pairwise classification, with what its Pairwise tag cannot say beside it.
_CONFIG = """<View>
  <Header value="What the customer wants"/>
  <Text name="goal" value="$goal"/>
  <Header value="What the agent must keep to"/>
  <Text name="policy" value="$policy"/>
{question}  <View style="display: grid; grid-template-columns: {columns}; gap: 1em; white-space: pre-wrap">
{sessions}  </View>
{answers}  <TextArea name="note" toName="first" placeholder="Note" maxSubmissions="1"/>
</View>
"""
_BETTER = """  <Header value="Which session served the customer better? Choose one, or tie, or cannot tell"/>
  <Pairwise name="better" toName="first,second"/>
"""
_VERDICT = """  <Choices name="verdict" toName="first" choice="single-radio" showInline="true">
    <Choice value="tie"/>
    <Choice value="cannot tell"/>
  </Choices>
"""
_DONE = """  <Header value="{title}: was what the customer wants done?"/>
  <Choices name="{name}_done" toName="{name}" choice="single-radio" showInline="true">
    <Choice value="done"/>
    <Choice value="not done"/>
    <Choice value="cannot tell"/>
  </Choices>
"""


def form_of(path: Path, wanted: Form | None) -> Form:
    """The form that is asked for, else that of the file's ending. Raises BadFile where neither says one."""
    found = wanted or ENDINGS.get(path.suffix)
    if found is None:
        raise BadFile(
            str(path), "", "its ending says no format: use .json (Label Studio), .csv or .jsonl, or --format"
        )
    return found


def texts(path: Path, form: Form, items: Sequence[Shown]) -> dict[Path, str]:
    """Path -> text of the files that show these items; for Label Studio its labeling config beside them."""
    if form == "csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([cell(value) for value in _row(item).values()] for item in items)
        text = _utf8(buffer.getvalue())
        # Excel takes UTF-8 without a mark for something else, and people would read garbage.
        return {path: text if text.isascii() else "\ufeff" + text}
    if form == "jsonl":
        return {path: "".join(as_json(_row(item)) + "\n" for item in items)}
    tasks = [{"data": {**item._asdict(), "second": item.second or ""}} for item in items]
    is_pairs = any(item.second is not None for item in items)
    return {
        path: _utf8(json.dumps(tasks, ensure_ascii=False, indent=1)) + "\n",
        path.with_name(path.name + ".config.xml"): label_studio_config(is_pairs=is_pairs),
    }


def label_studio_config(*, is_pairs: bool) -> str:
    """The labeling config of pairs, or of single sessions."""
    names = ("first", "second") if is_pairs else ("first",)
    titles = {"first": "First session" if is_pairs else "The session", "second": "Second session"}
    return _CONFIG.format(
        question=_BETTER if is_pairs else "",
        columns="1fr 1fr" if is_pairs else "1fr",
        sessions="".join(f'    <Text name="{name}" value="${name}"/>\n' for name in names),
        answers=(_VERDICT if is_pairs else "")
        + "".join(_DONE.format(name=name, title=titles[name]) for name in names),
    )


def read(path: Path, annotator: str | None) -> Iterator[Said]:
    """What people said in a file that came back; rows that nobody filled in are passed over.

    `annotator`: whose words those are that name nobody. Raises BadFile naming line or JSON path.
    """
    kind = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    readers: dict[str, Callable[[Path, str | None], Iterator[Said]]] = {
        ".json": _label_studio,
        ".csv": _csv,
        ".jsonl": _jsonl,
    }
    if kind not in readers:
        raise BadFile(str(path), "", "its ending says no format: use .json (Label Studio), .csv or .jsonl")
    return readers[kind](path, annotator)


def _row(item: Shown) -> dict[str, str | None]:
    return {**dict.fromkeys(COLUMNS, ""), **item._asdict(), "second": item.second or ""}


def _csv(path: Path, annotator: str | None) -> Iterator[Said]:
    yield from _rows(path, files.csv_rows(path), annotator)


def _jsonl(path: Path, annotator: str | None) -> Iterator[Said]:
    yield from _rows(path, files.json_lines(path), annotator)


def _rows(path: Path, rows: Iterator[tuple[int, dict[str, Any]]], annotator: str | None) -> Iterator[Said]:
    passed: set[str] = set()
    for number, row in rows:
        for column in sorted(row.keys() - {*COLUMNS, "labelled_at"} - passed):
            _refuse_slip(path, f"line {number}", column)
            passed.add(column)
        yield from _said(path, f"line {number}", row, annotator)


def _refuse_slip(path: Path, place: str, column: str) -> None:
    """Raises BadFile for a column that looks like one of ours: what it holds would be lost without a word."""
    if column in _TAGS:
        raise BadFile(str(path), place, f"column {column!r} is Label Studio's: export from there as JSON")
    near = nearest(column, _KNOWN)
    if near:
        problem = f"{column[:40]!r} is not a known column; did you mean {' or '.join(near)}?"
        raise BadFile(str(path), place, problem)


def _label_studio(path: Path, annotator: str | None) -> Iterator[Said]:
    for index, task in enumerate(files.json_array(path)):
        data, annotations = task.get("data"), task.get("annotations")
        if not isinstance(data, dict) or not isinstance(annotations, list):
            problem = "expected a task with data and annotations: export it as JSON, not as JSON-MIN"
            raise BadFile(str(path), f"[{index}]", problem)
        for at, annotation in enumerate(annotations):
            place = f"[{index}].annotations[{at}]"
            if not isinstance(annotation, dict) or not isinstance(annotation.get("result"), list):
                raise BadFile(str(path), place, "expected an annotation with a result")
            if annotation.get("was_cancelled"):
                continue
            row = _answers(path, place, annotation["result"])
            row["review_id"] = data.get("review_id")
            row["annotator"] = _annotator(annotation.get("completed_by"))
            row["labelled_at"] = annotation.get("updated_at") or annotation.get("created_at")
            yield from _said(path, place, row, annotator)


def _answers(path: Path, place: str, result: Sequence[Any]) -> dict[str, Any]:
    """The answers of an annotation by our names; Label Studio's `left` is what stands first."""
    found: dict[str, Any] = {}
    verdicts: set[str] = set()
    for part in result:
        value = part.get("value") if isinstance(part, dict) else None
        if not isinstance(value, dict):
            raise BadFile(str(path), f"{place}.result", "expected objects with a value")
        said = value.get("selected") or value.get("choices") or value.get("text")
        text = "\n".join(map(str, said)) if isinstance(said, list) else said
        if part.get("type") == "pairwise" or part.get("from_name") in _TAGS:
            verdicts |= {str(text)} if text else set()
        else:
            found[str(part.get("from_name"))] = text
    if len(verdicts) > 1:
        raise BadFile(str(path), place, "names a side and says tie or cannot tell as well: keep one of them")
    return found | {"preference": next(iter(verdicts), None)}


def _annotator(completed_by: Any) -> str | None:
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("email") or completed_by.get("id")
    return None if completed_by is None else str(completed_by)


def _said(path: Path, place: str, row: Mapping[str, Any], annotator: str | None) -> Iterator[Said]:
    texts = {name: _text(path, place, row, name) for name in _ANSWERS}
    if not any(texts.values()):
        return
    # One blank is like another, such as the line end that a spreadsheet's cell may hold.
    who = " ".join((_text(path, place, row, "annotator") or annotator or "").split())
    if not who:
        raise BadFile(str(path), place, "no annotator: fill in that column, or name one with --annotator")
    review_id = _text(path, place, row, "review_id")
    if not review_id:
        raise BadFile(str(path), place, "no review_id: keep that column as it was exported")
    yield Said(
        review_id,
        who,
        _one_of(path, place, "preference", texts["preference"], _PREFERENCES),
        _one_of(path, place, "first_done", texts["first_done"], _DONES),
        _one_of(path, place, "second_done", texts["second_done"], _DONES),
        texts["note"],
        _time(path, place, row),
        place,
    )


def _text(path: Path, place: str, row: Mapping[str, Any], name: str) -> str | None:
    found = row.get(name)
    if found is None or isinstance(found, str):
        return (found or "").strip() or None
    if isinstance(found, bool) or not isinstance(found, int):
        raise BadFile(str(path), place, f"{name}: expected text, found {json.dumps(found)[:40]}")
    return str(found)


def _one_of(path: Path, place: str, name: str, said: str | None, known: Mapping[str, Any]) -> Any:
    if said is None:
        return None
    if said.casefold() not in known:
        words = ", ".join(dict.fromkeys(known.values()))
        raise BadFile(str(path), place, f"{name}: expected one of {words}, found {said[:40]!r}")
    return known[said.casefold()]


def _time(path: Path, place: str, row: Mapping[str, Any]) -> str | None:
    text = _text(path, place, row, "labelled_at")
    try:
        at = None if text is None else clock.from_text(text)
    except ValueError as error:
        raise BadFile(str(path), place, f"labelled_at: {error}") from error
    if at is not None and at > clock.stamp(datetime.now(UTC) + _AHEAD):
        # It would be the newest word, whatever its annotator says from now on.
        raise BadFile(str(path), place, f"labelled_at: {text} is still to come")
    return at


def _utf8(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
