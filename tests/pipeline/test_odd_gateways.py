"""Whole runs against gateways that send nonsense, and with keys where none belong: no stop, no leak."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from server import Say
from sqlalchemy import text
from staged import GOOD, IDLE, JUDGE, MODELS, Stage, task, verdict

from audit.doors import db

PLANTED = "Xq7-planted+8f3/b2c"


def odd(message: dict[str, Any], **more: Any) -> Say:
    """A completion whose other texts hold what no database takes."""
    choice = {"message": message, "finish_reason": "st\x00op \ud83d"}
    return Say(body={"choices": [choice], "model": "se\x00rved \ud83d", **more})


def malformed(_berth: str, body: dict[str, Any]) -> Say | None:
    """An agent that calls its tool in a form that is none, and is told so."""
    if body["messages"][-1]["role"] == "tool":
        return None
    return odd({"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": "free_berth"}]})


def test_run_when_gateways_send_nonsense_then_it_is_stored_and_the_run_is_complete(
    stage: Stage, database_url: str
) -> None:
    """On both databases."""
    stage.tasks = [task("K1"), task("K2")]
    stage.parts[GOOD] = malformed
    count = {"total_tokens": 2**63 - 1, "prompt_tokens": 10, "completion_tokens": -1}
    stage.parts[IDLE] = lambda _berth, _body: odd({"content": "All \x00 is \ud83d settled."}, usage=count)
    stage.parts[JUDGE] = lambda berth, _body: (
        odd({"content": verdict("first")})
        if berth == "K1"
        else Say(status=400, body={"error": "n\x00o \ud83d"})
    )
    stage.parts["satisfaction"] = lambda _berth, _body: Say(
        status=422, body={"detail": [{"loc": 5, "msg": "x"}]}
    )
    done = stage.run(env={"REWARD_AUDIT_DB": database_url})
    assert done.code == 0, done.stderr
    engine = db.open_database(database_url, create=False)
    with db.reading(engine) as connection:
        told = connection.execute(
            text("select distinct served_model, finish_reason from judge_logs where profile = :p"),
            {"p": IDLE},
        ).all()
        errors = connection.execute(
            text("select distinct error from judge_logs where error is not null order by 1")
        ).scalars()
        found = list(errors)
        results = connection.execute(
            text("select transcript_json from sessions where agent = :agent"), {"agent": GOOD}
        ).scalars()
        transcripts = [json.loads(transcript) for transcript in results]
        tokens = connection.execute(
            text("select distinct total_tokens from sessions where agent = :agent"), {"agent": IDLE}
        ).all()
    engine.dispose()
    assert [tuple(row) for row in told] == [("se␀rved ␛D83D", "st␀op ␛D83D")]
    assert found == ["HTTP 400: n␀o ␛D83D", "HTTP 422: 5: x"]
    assert [tuple(row) for row in tokens] == [(None,)]
    for transcript in transcripts:
        told_agent = next(message for message in transcript if message["role"] == "tool")
        assert "unknown tool 'malformed_call'" in json.loads(told_agent["content"])["error"]


@pytest.fixture
def held(stage: Stage) -> Callable[[Any], str]:
    """All that a command left: what it printed, and the bytes of every file but the config."""

    def all_of(done: Any) -> str:
        files = (path for path in stage.folder.glob("audit.db*"))
        logs = stage("export", "logs", "-o", str(stage.folder / "logs.jsonl"))
        assert logs.code == 0, logs.stderr
        exported = (stage.folder / "logs.jsonl").read_text(encoding="utf-8")
        return str(done.stdout + done.stderr + exported) + b"".join(
            file.read_bytes() for file in files
        ).decode("utf-8", "replace")

    return all_of


PLACES: dict[str, dict[str, Any]] = {
    "a fragment": {"base_url": f"HOST#key={PLANTED}"},
    "a query": {"base_url": "HOST?api-version=2025-06-01&key=" + PLANTED.replace("+", "%2B")},
    "a name in extra": {"extra": {"api_key": PLANTED, "seed": 7, "temperature": "hot"}},
    "a header in extra": {"extra": {"headers": {"X-Any": f"Bearer {PLANTED}"}}},
    "another name in extra, beside the variable": {"extra": {"user": PLANTED}, "api_key_env": "BENCH_KEY"},
    "another name in extra, beside the key": {"extra": {"user": [PLANTED]}, "api_key": PLANTED},
}


@pytest.mark.parametrize("place", PLACES)
def test_run_when_a_key_stands_in_an_odd_place_then_it_is_sent_and_nowhere_kept(
    place: str, stage: Stage, held: Callable[[Any], str]
) -> None:
    given = PLACES[place]
    if "base_url" in given:
        given = given | {"base_url": given["base_url"].replace("HOST", stage.server.base_url)}
    stage.profiles[JUDGE] = given
    # The judge's gateway tells what it was sent, once as it is and once escaped; a fragment is not sent.
    told = PLANTED if place != "a fragment" else "nothing"
    escaped = told.replace("+", "\\u002B")
    stage.parts[JUDGE] = lambda _berth, _body: verdict("first")[:-1] + f', "a": "{told}", "b": "{escaped}"}}'
    stage.parts["satisfaction"] = lambda _berth, _body: Say(status=404, body=f"no {told}".encode())
    done = stage.run(env={"BENCH_KEY": PLANTED})
    assert done.code == 0, done.stderr
    read = stage.rows(
        "select distinct parse_status, choice from judge_logs where presented_order is not null"
    )
    assert read == [("ok", "first")]
    sent = json.dumps(stage.asked(JUDGE)) + str(stage.server.targets) + str(stage.server.headers)
    assert (PLANTED in unquote(sent)) == (place != "a fragment")
    found = held(done)
    for part in (PLANTED, PLANTED.partition("+")[0]):
        assert part not in found


@pytest.mark.parametrize("key", ["first", "content", "winner", "true", "1234"])
def test_run_when_a_gateway_wants_no_key_and_gets_a_word_then_the_judge_is_read_as_without(
    key: str, stage: Stage
) -> None:
    stage.profiles[JUDGE] = {"api_key_env": "BENCH_KEY"}
    done = stage.run(env={"BENCH_KEY": key})
    assert done.code == 0, done.stderr
    read = stage.rows(
        "select distinct parse_status, choice from judge_logs where presented_order is not null"
    )
    assert sorted(read) == [("ok", "first"), ("ok", "second")]
    assert "[key]" not in str(stage.rows("select raw_output, request_json, parsed_json from judge_logs"))
    assert stage.rows("select pref_ab, pref_ba, outcome from audit_pairs") == [("A", "A", "correct")]


@pytest.fixture
def named(stage: Stage) -> Iterator[Callable[..., Any]]:
    """Runs with the judge's key in a place that would be shown and stored."""

    def run(args: tuple[str, ...] = (), changes: dict[str, Any] | None = None, **more: Any) -> Any:
        stage.profiles[JUDGE] = {"api_key_env": "BENCH_KEY"} | more
        stage.changes = changes or {}
        return stage.run(*args, env={"BENCH_KEY": PLANTED})

    yield run
    assert stage.server.requests == 0
    stored = Path(stage.database)
    assert not stored.exists() or PLANTED.encode() not in stored.read_bytes()


@pytest.mark.parametrize(
    ("args", "changes", "profile", "place"),
    [
        (("--name", PLANTED), {}, {}, "--name"),
        ((), {"name": f"audit {PLANTED}"}, {}, "name"),
        ((), {}, {"model": PLANTED}, f"profiles[{list(MODELS).index(JUDGE)}].model"),
        (("--dry-run",), {}, {"model": PLANTED}, f"profiles[{list(MODELS).index(JUDGE)}].model"),
    ],
)
def test_run_when_a_name_is_the_key_then_it_is_refused_unseen(
    args: tuple[str, ...],
    changes: dict[str, Any],
    profile: dict[str, Any],
    place: str,
    named: Callable[..., Any],
) -> None:
    done = named(args, changes, **profile)
    assert done.code == 1
    assert (
        done.stderr.splitlines()[-1] == f"error: {place}: it holds the key of a profile, and would be stored"
    )
    assert PLANTED not in done.stdout + done.stderr
