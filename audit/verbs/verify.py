"""Verifying one session: every check is asked of the evidence it left, and nothing is done to the evidence.

How things compare, the same on every run:

- SQL values: numbers as numbers, 1 is 1.0, a difference up to 1e-9 is none; text exactly; NULL only NULL.
- JSON values (arguments, `json`): as JSON, so 17 is 17.0, but neither "17" nor true is a number.
- Text in a transcript: whole words in any case, numbers as amounts: see `says`.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple, Protocol

from audit.verbs.same import has_arguments, same_json, same_rows
from audit.verbs.says import says
from audit.words.tasks import Check, CheckKind

Finding = tuple[bool, str]

PENDING = "pending: a model has not been asked"
_SHOWN = 300
_TABLES = "select name from sqlite_schema where type = 'table' and name not glob 'sqlite_*'"
_STEP = re.compile(r"""\.([^.\[\]"]+)|\[(\d+)\]|\["([^"]*)"\]""")


class Evidence(Protocol):
    """What a session left behind. Reading it changes nothing; what cannot be read raises."""

    @property
    def messages(self) -> Sequence[Mapping[str, Any]]:
        """The transcript as chat messages."""

    @property
    def tool_calls(self) -> Sequence[Mapping[str, Any]]:
        """{name, arguments (object), result (JSON text), index}, in order, the refused ones too."""

    @property
    def files(self) -> Mapping[str, Mapping[str, Any]]:
        """Relative path -> {sha256, text}, text NULL where it is not UTF-8."""

    @property
    def http(self) -> Sequence[Mapping[str, Any]]:
        """{method, url, status, body}: what was asked for, and the response."""

    def query(self, sql: str, /) -> Sequence[Sequence[Any]]:
        """Rows of the final world."""

    def initial_query(self, sql: str, /) -> Sequence[Sequence[Any]]:
        """Rows of the world before the session."""

    def tables(self) -> Mapping[str, Sequence[str]]:
        """Table name -> columns, in the final world."""

    def run_python(self, function: str, /) -> Any:
        """What the check function `module:function` says: true or false."""


class CheckResult(NamedTuple):
    """`passed` is NULL where the check could not run, or waits for a model; `evidence` says what was seen."""

    name: str
    kind: CheckKind
    passed: bool | None
    weight: float
    required: bool
    evidence: str


class Answered(NamedTuple):
    """What a model said of a check of kind `llm`: NULL where it cannot be read, and the quote it gave."""

    met: bool | None
    evidence: str


class Verified(NamedTuple):
    """`reward` 0..1, `success` and `fault` as columns of `sessions`; NULL = could not tell."""

    reward: float | None
    success: bool | None
    fault: str | None
    checks: tuple[CheckResult, ...]


def verify(
    checks: Sequence[Check],
    evidence: Evidence,
    *,
    llm_counts: bool = False,
    llm_answers: Mapping[str, Answered] | None = None,
) -> Verified:
    """reward = weight of the checks met / weight of all; success = every required check met.

    One check that could not run makes both NULL, with fault `verifier`: never false. A check of kind `llm` is
    a candidate label: its answer (`llm_answers`, by the check's name) is recorded, and counts with
    `llm_counts` only. Without any check that counts, or while one that counts waits for its answer, both are
    NULL without a fault; without any check at all the verifier is at fault.
    """
    answers = llm_answers or {}
    results = tuple(
        _asked(check, answers.get(check.name)) if check.kind == "llm" else _looked(check, evidence)
        for check in checks
    )
    counted = [result for result in results if result.kind != "llm" or llm_counts]
    if not results or any(result.passed is None and result.kind != "llm" for result in counted):
        return Verified(None, None, "verifier", results)
    if not counted or any(result.passed is None for result in counted):
        return Verified(None, None, None, results)
    reward = fsum(result.weight for result in counted if result.passed) / fsum(
        result.weight for result in counted
    )
    required = [bool(result.passed) for result in counted if result.required]
    return Verified(reward, all(required) if required else None, None, results)


def _asked(check: Check, answer: Answered | None) -> CheckResult:
    met, said = answer or (None, PENDING)
    return CheckResult(check.name, check.kind, met, check.weight, check.required, _cut(said))


def _looked(check: Check, evidence: Evidence) -> CheckResult:
    passed: bool | None
    try:
        passed, seen = _KINDS[check.kind](check.spec, evidence)
    except Exception as error:  # a check may run a user's own function, which may raise anything
        passed, seen = None, f"cannot run: {error or type(error).__name__}"
    return CheckResult(check.name, check.kind, passed, check.weight, check.required, _cut(seen))


def _sql(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    found = [tuple(row) for row in evidence.query(spec["sql"])]
    wanted = [tuple(row) for row in spec["rows"]]
    same = same_rows(found, wanted, any_order=spec.get("any_order", False))
    return same, f"rows {_shown(found)}" + ("" if same else f", expected {_shown(wanted)}")


def _unchanged(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    before = {str(row[0]) for row in evidence.initial_query(_TABLES)}
    after = set(evidence.tables())
    named = before | after if spec["tables"] == "all" else set(spec["tables"])
    changed = []
    for table in sorted(named - set(spec.get("except", ()))):
        if (table in before) != (table in after):
            changed.append(f"{table} is {'new' if table in after else 'gone'}")
        elif note := _difference(table, evidence):
            changed.append(f"{table}: {note}")
    return not changed, "; ".join(changed) or "as before"


def _difference(table: str, evidence: Evidence) -> str:
    before, after = (
        Counter(map(tuple, ask(_rows_of(table)))) for ask in (evidence.initial_query, evidence.query)
    )
    if before == after:
        return ""
    gone, new = list((before - after).elements()), list((after - before).elements())
    return f"was {_shown(gone)}, is {_shown(new)}"


def _rows_of(table: str) -> str:
    return 'select * from "' + table.replace('"', '""') + '"'  # noqa: S608 - quoted


def _tool_called(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    """A call that the world answered with an error, or not at all, did nothing, so it earns nothing."""
    calls = [
        call
        for call in _calls(spec, evidence)
        if call["result"] is not None and not _is_error(call["result"])
    ]
    times = spec.get("times")
    passed = bool(calls) if times is None else len(calls) == times
    return passed, f"{len(calls)} such calls: {_shown([call['index'] for call in calls])}"


def _tool_not_called(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    """An attempt that failed is an attempt all the same."""
    calls = _calls(spec, evidence)
    return not calls, f"{len(calls)} such calls: {_shown([call['index'] for call in calls])}"


def _calls(spec: Mapping[str, Any], evidence: Evidence) -> list[Mapping[str, Any]]:
    wanted = spec.get("arguments", {})
    return [
        call
        for call in evidence.tool_calls
        if call["name"] == spec["name"] and has_arguments(call["arguments"], wanted)
    ]


def _is_error(result: Any) -> bool:
    """Our worlds answer {"error": why}; a recorded tool may answer in plain text, `Error: ...`."""
    try:
        found = json.loads(result) if isinstance(result, str) else result
    except (ValueError, RecursionError):
        return bool(re.match(r"\s*error\b", result, re.IGNORECASE))
    return isinstance(found, dict) and "error" in found


def _loaded(text: Any) -> Any:
    """What the JSON text holds; an error of its own where it holds none."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except (ValueError, RecursionError):
        return {"error": "no JSON"}


def _file(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    held = evidence.files.get(spec["path"])
    if "exists" in spec:
        return (held is not None) == spec["exists"], "there" if held else "not there"
    if held is None:
        return False, "not there"
    if "sha256" in spec:
        return held["sha256"] == spec["sha256"], f"sha256 {held['sha256']}"
    text = held["text"]
    return text is not None and spec["contains"] in text, "not UTF-8" if text is None else _shown(text)


def _json(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    holders = _holders(spec["of"], evidence)
    if not holders:
        return False, f"no {spec['of']}"
    found = holders[-1]
    for step in json_steps(spec["path"]):
        is_there = (isinstance(found, dict) and step in found) or (
            isinstance(found, list) and isinstance(step, int) and step < len(found)
        )
        if not is_there:
            return False, f"nothing at {spec['path']}"
        found = found[step]
    return same_json(found, spec["equals"]), _shown(found)


def _holders(of: str, evidence: Evidence) -> list[Any]:
    """`tool:NAME`: its results; `file:PATH`: the file; `state`: {world: {table: [row]}, files, http}."""
    kind, _, name = of.partition(":")
    if kind == "tool":
        return [_loaded(call["result"]) for call in evidence.tool_calls if call["name"] == name]
    if kind == "file":
        return [_loaded(evidence.files[name]["text"])] if name in evidence.files else []
    world = {
        table: [dict(zip(columns, row, strict=True)) for row in evidence.query(_rows_of(table))]
        for table, columns in evidence.tables().items()
    }
    return [{"world": world, "files": dict(evidence.files), "http": list(evidence.http)}]


def json_steps(path: str) -> Iterator[str | int]:
    """The steps of `$.a.b[0]["c d"]`: names and indexes. Raises ValueError for what is no such path."""
    place = 1
    if not path.startswith("$"):
        raise ValueError(f"{path!r} is no path: it begins with $")
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            raise ValueError(f"{path!r} is no path: cannot read {path[place:]!r}")
        place = step.end()
        yield int(step[2]) if step[2] is not None else step[1] if step[1] is not None else step[3]


def _transcript(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    role = spec.get("role", "assistant")
    for place, message in enumerate(evidence.messages):
        if message.get("role") == role and says(_text(message.get("content")), spec["contains"]):
            return True, f"in message {place}"
    return False, f"in no message of the {role}"


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _http(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    for place, exchange in enumerate(evidence.http):
        if (
            str(exchange.get("method", "")).upper() == spec["method"].upper()
            and exchange.get("url") == spec["url"]
            and spec.get("status") in (None, exchange.get("status"))
            and spec.get("body_contains", "") in str(exchange.get("body") or "")
        ):
            return True, f"exchange {place}"
    return False, f"none of {len(evidence.http)} exchanges"


def _python(spec: Mapping[str, Any], evidence: Evidence) -> Finding:
    said = evidence.run_python(spec["python"])
    if not isinstance(said, bool):
        raise TypeError(f"{spec['python']} said {_shown(said)}, expected true or false")
    return said, f"{spec['python']} said {str(said).lower()}"


_KINDS: dict[CheckKind, Callable[[Mapping[str, Any], Evidence], Finding]] = {
    "sql": _sql,
    "unchanged": _unchanged,
    "tool_called": _tool_called,
    "tool_not_called": _tool_not_called,
    "file": _file,
    "json": _json,
    "transcript": _transcript,
    "http": _http,
    "python": _python,
}


def _shown(value: Any) -> str:
    try:
        return _cut(repr(value))
    except RecursionError:
        return "something nested too deep"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
