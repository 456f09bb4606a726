"""Logs of Inspect, written by its own library and read by it; without it the command says what to install."""

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import import_file
from audit.pipeline.wishes import Wish
from audit.words.errors import BadFile, MissingExtra

IS_HERE = importlib.util.find_spec("inspect_ai") is not None
needs_inspect = pytest.mark.skipif(not IS_HERE, reason="needs the extra `inspect`, which is large")
SECRET = "sk-not-to-be-kept"  # noqa: S105 - what must not be found in any table


@pytest.fixture
def engine(sqlite_url: str) -> Iterator[Engine]:
    engine = open_database(sqlite_url, create=True)
    yield engine
    engine.dispose()


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(text(query)).mappings()]


@pytest.mark.skipif(IS_HERE, reason="the extra `inspect` is installed")
def test_import_when_the_extra_is_not_installed_then_it_is_named(engine: Engine, tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    path.write_bytes(b"")
    with pytest.raises(MissingExtra) as caught:
        import_file(engine, Wish("inspect", (path,)))
    assert str(caught.value) == (
        "reading logs of Inspect needs inspect_ai, which is not installed: "
        "pip install 'reward-audit[inspect]'"
    )
    assert rows(engine, "select * from audit_runs") == []


def log(folder: Path, name: str, model: str, *samples: Any) -> Path:
    """A log as Inspect itself writes it."""
    from inspect_ai.log import EvalConfig, EvalDataset, EvalLog, EvalSpec, write_eval_log
    from inspect_ai.model import GenerateConfig

    spec = EvalSpec(
        created="2026-01-01T00:00:00+00:00",
        task="refunds",
        dataset=EvalDataset(),
        model=model,
        model_generate_config=GenerateConfig(system_message=SECRET),
        config=EvalConfig(),
    )
    path = folder / name
    write_eval_log(EvalLog(status="success", eval=spec, samples=list(samples)), path)
    return path


def sample(number: int, value: Any = None, epoch: int = 1, model: str = "mock/a", **more: Any) -> Any:
    from inspect_ai.log import EvalSample
    from inspect_ai.model import (
        ChatMessageAssistant,
        ChatMessageSystem,
        ChatMessageTool,
        ChatMessageUser,
        ModelUsage,
    )
    from inspect_ai.scorer import Score
    from inspect_ai.tool import ToolCall

    call = ToolCall(id="toolu_9", function="find", arguments={"order": 17})
    messages = [
        ChatMessageSystem(content="Be fair."),
        ChatMessageUser(content=f"Refund order {number}"),
        ChatMessageAssistant(content="", tool_calls=[call], model=model),
        ChatMessageTool(content="found", tool_call_id="toolu_9", function="find"),
        ChatMessageAssistant(content="Done."),
    ]
    return EvalSample(
        id=number,
        epoch=epoch,
        input=f"Refund order {number}",
        target="refunded",
        messages=messages,
        scores=None if value is None else {"match": Score(value=value, metadata={"key": SECRET})},
        model_usage={
            model: ModelUsage(input_tokens=70, output_tokens=20, total_tokens=100, input_tokens_cache_read=10)
        },
        store={"key": SECRET},
        **more,
    )


@needs_inspect
@pytest.mark.parametrize("ending", ["json", "eval"])
def test_import_when_two_logs_are_given_then_their_models_meet(
    engine: Engine, tmp_path: Path, ending: str
) -> None:
    first = log(tmp_path, f"a.{ending}", "mock/a", *(sample(n, "C", e) for n in (1, 2) for e in (1, 2)))
    second = log(
        tmp_path, f"b.{ending}", "mock/b", *(sample(n, "I", e, "mock/b") for n in (1, 2) for e in (1, 2))
    )

    found = import_file(engine, Wish("inspect", (first, second)))

    assert (found.sessions, found.pairs) == (8, 4)
    assert rows(engine, "select distinct agent_a, agent_b, agent_gap, category from audit_pairs") == [
        {"agent_a": "mock/a", "agent_b": "mock/b", "agent_gap": 1.0, "category": "refunds"}
    ]
    stored = rows(engine, "select * from sessions where agent = 'mock/a' and task_id = '1' and trial = 0")[0]
    assert (stored["prompt_tokens"], stored["completion_tokens"], stored["total_tokens"]) == (80, 20, 100)
    assert json.loads(stored["source_json"]) == {"goal": "Refund order 1", "policy": "Be fair."}
    messages = json.loads(stored["transcript_json"])
    assert messages[2]["tool_calls"] == [
        {"id": "call_1", "type": "function", "function": {"name": "find", "arguments": {"order": 17}}}
    ]
    assert messages[3] == {"role": "tool", "content": "found", "tool_call_id": "call_1"}
    assert SECRET not in str(rows(engine, "select * from sessions")) + str(
        rows(engine, "select * from audit_runs")
    )


@needs_inspect
@pytest.mark.parametrize("ending", ["json", "eval"])
def test_import_when_scores_are_of_every_kind_then_they_are_counted_as_inspect_does(
    engine: Engine, tmp_path: Path, ending: str
) -> None:
    from inspect_ai.log import EvalError, EvalSampleLimit
    from inspect_ai.scorer import value_to_float

    values = ["C", "I", "P", "N", 0.25, 3, True, False, "yes", "0.5"]
    error = EvalError(message=f"401 {SECRET}", traceback=SECRET, traceback_ansi=SECRET)
    odd = [
        sample(90, float("nan")),
        sample(91),
        sample(92, "C", error=error),
        sample(93, "P", limit=EvalSampleLimit(type="message", limit=30)),
    ]
    path = log(tmp_path, f"log.{ending}", "mock/a", *(sample(i, v) for i, v in enumerate(values)), *odd)

    import_file(engine, Wish("inspect", (path,)))

    read = rows(engine, "select task_id, reward, success, end_reason, fault from sessions")
    found = {row["task_id"]: row for row in read}
    to_float = value_to_float()
    assert [found[str(i)]["reward"] for i in range(len(values))] == [to_float(value) for value in values]
    assert [found[str(i)]["success"] for i in (0, 1, 2, 3, 5)] == [1, 0, 0, 0, 1]
    assert [tuple(found[str(i)].values())[1:] for i in range(90, 94)] == [
        (None, None, "completed", None),
        (None, None, "completed", None),
        (None, None, "error", "gateway"),
        (0.5, 0, "message_limit", None),
    ]
    assert SECRET not in str(rows(engine, "select * from sessions"))


@needs_inspect
def test_import_when_a_log_is_damaged_then_the_place_is_named_and_nothing_is_stored(
    engine: Engine, tmp_path: Path
) -> None:
    whole = log(tmp_path, "whole.json", "mock/a", sample(1, "C"), sample(2, "C")).read_bytes()
    archive = log(tmp_path, "whole.eval", "mock/a", sample(1, "C")).read_bytes()
    several = log(tmp_path, "several.json", "mock/a", sample(1, "C"), sample(2, {"a": 1})).read_bytes()
    parsed = json.loads(whole)
    no_id = json.loads(whole)
    del no_id["samples"][1]["id"]
    wrong = json.loads(whole)
    wrong["samples"][1]["epoch"] = "first"
    parsed["samples"] = []
    cases = {
        "cut.json": (whole[: len(whole) // 2], "line "),
        "half.json": (whole.replace(b"Done.", b"Done\xc3"), "not UTF-8: byte 0xc3"),
        "missing.json": (json.dumps(no_id).encode(), "samples[1].id: not a log of Inspect: Field required"),
        "wrong.json": (
            json.dumps(wrong).encode(),
            "samples[1].epoch: not a log of Inspect: Input should be a valid",
        ),
        "several.json": (
            several,
            "samples[1], scores, match: value: expected C, I, P, N or a finite number, found several values",
        ),
        "none.json": (json.dumps(parsed).encode(), "holds no sessions"),
        "cut.eval": (archive[: len(archive) // 2], "not a whole log of Inspect"),
        "log.txt": (whole, "its ending says no log of Inspect: expected .json or .eval"),
    }
    for name, (content, problem) in cases.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(BadFile) as caught:
            import_file(engine, Wish("inspect", (path,)))
        assert str(caught.value).startswith(str(path)), name
        assert problem in str(caught.value), name
    assert rows(engine, "select * from audit_runs") == []
