"""Files of sessions that are broken: each is refused whole, and the place is named."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sessions_made import tau2_results, tau2_run, tau_run
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import import_file
from audit.pipeline.wishes import Wish
from audit.words.errors import BadFile
from audit.words.schema import metadata

NEWLINE = b"\n"
MESSAGES = [{"role": "user", "content": "hi"}]
SESSION: dict[str, Any] = {"task_id": "t", "agent": "x", "reward": 1, "messages": MESSAGES}


class Case(NamedTuple):
    """A file that is refused with `error`."""

    format: str
    content: bytes
    error: str


def without(record: dict[str, Any], field: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != field}


def tau(error: str, run: Any) -> Case:
    return Case("tau", json.dumps([tau_run(0), run, tau_run(2)]).encode(), error)


def tau2(error: str, run: Any) -> Case:
    return Case(
        "tau2",
        json.dumps(tau2_results("a", tau2_run("t")) | {"simulations": [tau2_run("t"), run]}).encode(),
        error,
    )


def lines(error: str, *rows: Any) -> Case:
    found = [SESSION, *rows, SESSION | {"task_id": "last"}]
    return Case("sessions", "\n".join(json.dumps(row, ensure_ascii=False) for row in found).encode(), error)


def cut(format_name: str, content: bytes, length: int) -> Case:
    """The file's beginning, which ends within a string: the place is that of the string's quote."""
    kept = content[:length]
    quote = kept.rindex(b'"')
    line, column = kept.count(NEWLINE, 0, quote) + 1, quote - kept.rfind(NEWLINE, 0, quote)
    problem = "not valid JSON: Unterminated string starting at"
    return Case(format_name, kept, f"FILE, line {line} column {column}: {problem}")


TAU = (
    json.dumps([tau_run(0), tau_run(1)], indent=1, ensure_ascii=False)
    .replace("order 17?", "örder 17?")
    .encode()
)
TAU2 = json.dumps(tau2_results("ä", tau2_run("t"))).encode()
UMLAUT = json.dumps(tau2_results("ä", tau2_run("t")), ensure_ascii=False).encode()
HALF = lines("FILE, line 2: not UTF-8: byte 0xc3", SESSION | {"task_id": "ü"})
CASES = {
    "tau cut": cut("tau", TAU, TAU.index(b"call_Zx9")),
    "tau half a character": Case(
        "tau",
        TAU.replace("ö".encode(), b"\xc3"),
        f"FILE, line {TAU.count(NEWLINE, 0, TAU.index('ö'.encode())) + 1}: not UTF-8: byte 0xc3",
    ),
    "tau no reward": tau("FILE, [1]: reward: is missing", without(tau_run(1), "reward")),
    "tau no trajectory": tau("FILE, [1]: traj: expected an array, found None", without(tau_run(1), "traj")),
    "tau no trial": tau("FILE, [1]: trial: is missing", without(tau_run(1), "trial")),
    "tau no task": tau("FILE, [1]: task_id: is missing", without(tau_run(1), "task_id")),
    "tau no reward_info": tau(
        "FILE, [1], info: reward_info: is missing", tau_run(1, info={"source": "user"})
    ),
    "tau wrong reward": tau(
        "FILE, [1]: reward: expected a finite number, found 'high'", tau_run(1, reward="high")
    ),
    "tau NaN": tau("FILE, [1]: reward: expected a finite number, found nan", tau_run(1, reward=float("nan"))),
    "tau wrong run": tau("FILE, [1]: expected a JSON object, found a number", 5),
    "tau wrong message": tau("FILE, [1], traj[0]: expected an object, found 'hi'", tau_run(1, traj=["hi"])),
    "tau wrong content": tau(
        "FILE, [1], traj[0]: content: expected text, found 5",
        tau_run(1, traj=[{"role": "user", "content": 5}]),
    ),
    "tau text": Case("tau", b'"x"', "FILE: expected a JSON array or object, found a string"),
    "tau empty": Case("tau", b"", "FILE, line 1 column 1: not valid JSON: Expecting value"),
    "tau no runs": Case("tau", b"[]", "FILE: holds no sessions"),
    "tau twice": tau(
        "FILE, [1]: task '0', agent 'file', trial 0 did something else at [0]: "
        "give each session its own trial, or each file its own --agent",
        tau_run(0, reward=0.0),
    ),
    "tau2 cut": cut("tau2", TAU2, TAU2.rindex(b"requestor") + 4),
    "tau2 half a character": Case(
        "tau2", UMLAUT.replace("ä".encode(), b"\xc3"), "FILE, line 1: not UTF-8: byte 0xc3"
    ),
    "tau2 no simulations": Case(
        "tau2",
        json.dumps(without(tau2_results("a"), "simulations")).encode(),
        "FILE: simulations: expected an array, found None",
    ),
    "tau2 no reward_info": tau2(
        "FILE, simulations[1]: reward_info: is missing", without(tau2_run("t"), "reward_info")
    ),
    "tau2 no reward": tau2(
        "FILE, simulations[1], reward_info: reward: is missing",
        tau2_run("t", reward_info={"reward_basis": ["DB"]}),
    ),
    "tau2 no messages": tau2(
        "FILE, simulations[1]: messages: is missing", without(tau2_run("t"), "messages")
    ),
    "tau2 no end": tau2(
        "FILE, simulations[1]: termination_reason: is missing", without(tau2_run("t"), "termination_reason")
    ),
    "tau2 no trial": tau2("FILE, simulations[1]: trial: is missing", without(tau2_run("t"), "trial")),
    "tau2 no name": tau2(
        "FILE, simulations[1], messages[0], tool_calls[0]: name: is missing",
        tau2_run("t", messages=[{"role": "assistant", "tool_calls": [{"id": "1", "arguments": {}}]}]),
    ),
    "tau2 wrong breakdown": tau2(
        "FILE, simulations[1], reward_info, reward_breakdown: DB: expected a finite number, found 'all'",
        tau2_run("t", reward_info={"reward": 1, "reward_breakdown": {"DB": "all"}}),
    ),
    "tau2 wrong arguments": tau2(
        "FILE, simulations[1], messages[0], tool_calls[0]: "
        "arguments: expected an object or its JSON text, found [1]",
        tau2_run("t", messages=[{"role": "user", "tool_calls": [{"name": "x", "arguments": [1]}]}]),
    ),
    "tau2 wrong simulation": tau2("FILE, simulations[1]: expected an object, found 'x'", "x"),
    "tau2 list of text": Case("tau2", b'["x"]', "FILE, [0]: expected an object: a simulation, or results"),
    "sessions cut": cut("sessions", lines("", SESSION).content, 2 * len(json.dumps(SESSION)) - 30),
    "sessions half a character": HALF._replace(content=HALF.content.replace("ü".encode(), b"\xc3")),
    "sessions no task": lines("FILE, line 2: task_id: is missing", without(SESSION, "task_id")),
    "sessions no agent": lines(
        "FILE, line 2: agent: is missing: name it here, or for the whole file by --agent",
        without(SESSION, "agent"),
    ),
    "sessions no messages": lines(
        "FILE, line 2: messages: expected an array, found None", without(SESSION, "messages")
    ),
    "sessions no role": lines(
        "FILE, line 2, messages[0]: role: is missing", SESSION | {"messages": [{"content": "x"}]}
    ),
    "sessions wrong reward": lines(
        "FILE, line 2: reward: expected a finite number, found 'good'", SESSION | {"reward": "good"}
    ),
    "sessions wrong success": lines(
        "FILE, line 2: success: expected true or false, found 'mostly'", SESSION | {"success": "mostly"}
    ),
    "sessions wrong satisfaction": lines(
        "FILE, line 2: satisfaction: expected a number from 0 to 1, found 5", SESSION | {"satisfaction": 5}
    ),
    "sessions wrong check": lines(
        "FILE, line 2, checks[0]: name: is missing", SESSION | {"checks": [{"passed": True}]}
    ),
    "sessions slip": lines(
        "FILE, line 2: task_finger_print: is not a known column; did you mean task_fingerprint?",
        SESSION | {"task_finger_print": "x"},
    ),
    "sessions empty": Case("sessions", b"\n", "FILE: holds no sessions"),
    "sessions of another kind": Case(
        "sessions", b"[]", "FILE, line 1: expected a JSON object, found an array"
    ),
    "too deep": Case(
        "tau2", b'[{"a":' + b"[" * 100_000, "FILE, line 1: JSON that is nested too deep to be read"
    ),
}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def outcome_of(engine: Engine, tmp_path: Path) -> Callable[[str, Case], str | None]:
    """Imports a case: its whole error, or None."""

    def run(name: str, case: Case) -> str | None:
        path = tmp_path / "file.json"
        path.write_bytes(case.content)
        try:
            import_file(engine, Wish(case.format, (path,), name=name))
        except BadFile as error:
            return str(error).replace(str(path), "FILE")
        return None

    return run


def test_import_when_sessions_are_damaged_then_the_place_is_named_and_no_table_has_a_row(
    engine: Engine, outcome_of: Callable[[str, Case], str | None]
) -> None:
    found = {name: outcome_of(name, case) for name, case in CASES.items()}
    assert found == {name: case.error for name, case in CASES.items()}
    with reading(engine) as connection:
        for table in metadata.tables.keys() - {"view_digest"}:
            assert connection.execute(text(f"select count(*) from {table}")).scalar_one() == 0


def test_import_when_the_second_of_two_files_is_damaged_then_the_first_is_not_kept_either(
    engine: Engine, tmp_path: Path
) -> None:
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps(tau2_results("a", tau2_run("t"))))
    wrong.write_text(json.dumps(tau2_results("b", tau2_run("t"), without(tau2_run("u"), "trial"))))
    with pytest.raises(BadFile) as caught:
        import_file(engine, Wish("tau2", (right, wrong)))
    assert str(caught.value) == f"{wrong}, simulations[1]: trial: is missing"
    with reading(engine) as connection:
        assert connection.execute(text("select count(*) from sessions")).scalar_one() == 0


def test_import_when_a_file_is_not_there_then_it_is_named(engine: Engine, tmp_path: Path) -> None:
    for name in ("tau", "tau2", "sessions", "inspect"):
        with pytest.raises(BadFile) as caught:
            import_file(engine, Wish(name, (tmp_path / "none.json",)))
        assert str(caught.value) == f"{tmp_path / 'none.json'}: no such file"
