"""Logs of Inspect, `.json` and `.eval`, read by Inspect's own library: one session a sample and epoch.

The reward is the sample's first score: C, P, I and N are 1, 0.5, 0 and 0, as Inspect counts them, yes/no and
true/false 1 and 0, numbers as they are; NaN, which Inspect writes where a scorer found nothing, is unknown. A
sample that ended in an error has no reward; one that reached a limit keeps its own.
Source: `inspect_ai.log.read_eval_log` and `inspect_ai.scorer.value_to_float`.
"""

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from audit.doors.files import Progress, json_document
from audit.doors.formats.chat import Chat, fingerprint
from audit.doors.formats.tau import check, told
from audit.words.errors import BadFile, MissingExtra
from audit.words.records import ImportedSession
from audit.words.text import as_json

_WORDS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def read(path: Path, agent: str | None, _progress: Progress | None = None) -> Iterator[ImportedSession]:
    """The sessions of one log; the agent's name is the model's where none is given."""
    log = _log(path)
    for index, sample in enumerate(log.samples or ()):
        yield _session(path, f"samples[{index}]", sample, log.eval, agent or log.eval.model)


def _log(path: Path) -> Any:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise MissingExtra("inspect_ai", "inspect", "reading logs of Inspect") from error
    if path.suffix == ".eval":
        _whole_archive(path)
    elif path.suffix == ".json":
        # Its own reader names neither line nor column.
        json_document(path)
    else:
        raise BadFile(str(path), "", "its ending says no log of Inspect: expected .json or .eval")
    try:
        return read_eval_log(path, resolve_attachments=True)
    except Exception as error:
        raise BadFile(str(path), _place(error), f"not a log of Inspect: {_reason(error)}") from error


def _whole_archive(path: Path) -> None:
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except FileNotFoundError as error:
        raise BadFile(str(path), "", "no such file") from error
    except (OSError, zipfile.BadZipFile) as error:
        raise BadFile(str(path), "", f"not a whole log of Inspect: {error}") from error
    if not any(name in names for name in ("header.json", "_journal/start.json")):
        raise BadFile(str(path), "", "not a log of Inspect: the archive holds no header.json")


def _place(error: Exception) -> str:
    """The JSON path of the first fault that pydantic found."""
    try:
        path = error.errors()[0]["loc"]  # type: ignore[attr-defined]
    except (AttributeError, LookupError, TypeError):
        return ""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")


def _reason(error: Exception) -> str:
    try:
        return str(error.errors()[0]["msg"])  # type: ignore[attr-defined]
    except (AttributeError, LookupError, TypeError):
        return (str(error).splitlines() or [type(error).__name__])[0][:200]


def _session(path: Path, place: str, sample: Any, spec: Any, agent: str) -> ImportedSession:
    broke = sample.error is not None
    scores = [(name, score.value) for name, score in (sample.scores or {}).items()]
    reward = _reward(path, place, *scores[0]) if scores and not broke else None
    usage = (sample.model_usage or {}).get(spec.model)
    asked = sample.input if isinstance(sample.input, str) else _first_words(sample.input)
    messages = _messages(sample.messages)
    policy = next((said["content"] for said in messages if said["role"] == "system"), None)
    return ImportedSession(
        place=place,
        task_id=str(sample.id),
        agent=agent,
        success=None,
        satisfaction=None,
        judge_flip=None,
        prompt_tokens=_prompt_tokens(usage),
        completion_tokens=None if usage is None else usage.output_tokens,
        total_tokens=None if usage is None else usage.total_tokens,
        source_json=as_json(told(goal=asked, policy=policy)),
        trial=sample.epoch - 1,
        category=_category(sample, spec),
        task_fingerprint=fingerprint(spec.task, asked, sample.target, sample.choices),
        transcript_json=as_json(messages),
        end_reason="error" if broke else f"{sample.limit.type}_limit" if sample.limit else "completed",
        reward=reward,
        checks_json=as_json([_check(path, place, *score) for score in scores]) if scores else None,
        label_source="llm" if scores and scores[0][0].startswith("model_graded") else "external",
        fault="gateway" if broke else None,
        # Not the error's text, which a gateway wrote and which may hold a key.
        error="the sample ended in an error before it was scored" if broke else None,
    )


def _reward(path: Path, place: str, name: str, value: Any) -> float | None:
    """A score as Inspect counts it. Raises BadFile for one that is no single value."""
    found = _WORDS.get(value, _WORDS.get(value.lower())) if isinstance(value, str) else None
    if found is not None:
        return found
    try:
        number = math.nan if isinstance(value, dict | list) else float(value)
        is_unscored = isinstance(value, float) and math.isnan(value)
    except ValueError:
        number, is_unscored = math.nan, False
    if is_unscored:
        return None
    if not math.isfinite(number):
        shown = "several values" if isinstance(value, dict | list) else repr(value)
        problem = f"expected C, I, P, N or a finite number, found {shown:.60}"
        raise BadFile(str(path), f"{place}, scores, {name}", f"value: {problem}")
    return number


def _check(path: Path, place: str, name: str, value: Any) -> dict[str, Any]:
    try:
        reward = _reward(path, place, name, value)
    except BadFile:
        # It is not the reward, and kept as it is.
        reward = None
    passed = None if reward is None else reward >= 1
    return check(name, "score", passed, required=True, evidence=f"{value}"[:200])


def _category(sample: Any, spec: Any) -> str:
    found = (sample.metadata or {}).get("category")
    return found if isinstance(found, str) and found else str(spec.task)


def _prompt_tokens(usage: Any) -> int | None:
    if usage is None:
        return None
    cached = (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return int(usage.input_tokens + cached)


def _first_words(messages: Any) -> str:
    return next((message.text for message in messages if message.role == "user"), "")


def _messages(messages: Any) -> list[dict[str, Any]]:
    chat = Chat()
    for message in messages:
        if message.role == "tool":
            failed = message.error.message if message.error is not None else ""
            chat.result(message.tool_call_id or "", message.text or failed, message.function)
            continue
        calls = [
            (call.id, call.function, call.arguments) for call in getattr(message, "tool_calls", None) or ()
        ]
        chat.say(message.role, message.text, calls)
    return chat.messages
