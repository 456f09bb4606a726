"""Many new rows: on PostgreSQL by COPY, with every value as inserts store it, and clashes told alike."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError

from audit.doors import store
from audit.doors.copying import WORTH_IT
from audit.doors.db import open_database, writing
from audit.words.records import JudgeLog, Run, Session
from audit.words.schema import judge_logs, sessions
from audit.words.text import to_stored

RUN = Run(
    **(
        dict.fromkeys(Run._fields, "x")
        | {"run_id": "r", "kind": "import", "status": "complete", "finished_at": None, "config_json": "{}"}
        | {"swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run"}
    )
)
TEXTS = [
    "",
    "\\N",
    "a\tb\nc\rd",
    "back\\slash",
    "\x00 and \u2400",
    "half \ud83d",
    "你好 🙂",
    None,
    "x" * 20_000,
]


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    found = open_database(database_url, create=True)
    yield found
    found.dispose()


def log(number: int, **changes: Any) -> JudgeLog:
    known = {
        "run_id": "r",
        "role": "judge",
        "parse_status": "ok",
        "attempt": number,
        "raw_output": TEXTS[number % len(TEXTS)],
        "latency_ms": number / 7,
        "total_tokens": None if number % 3 else number,
        "created_at": "2026-01-01T00:00:00.000Z",
    }
    return JudgeLog(**(dict.fromkeys(JudgeLog._fields) | known | changes))


def stored(engine: Engine, count: int) -> list[tuple[Any, ...]]:
    columns = [judge_logs.columns[name] for name in JudgeLog._fields]
    with writing(engine) as connection:
        found = connection.execute(select(*columns).order_by(judge_logs.columns.attempt)).all()
        return [tuple(row) for row in found[-count:]]


def test_rows_when_many_then_they_are_stored_as_few_are(engine: Engine) -> None:
    with writing(engine) as connection:
        store.add_run(connection, RUN)
        for number in range(WORTH_IT - 1):
            store.add_logs(connection, [log(number)])
    few = stored(engine, WORTH_IT - 1)
    with writing(engine) as connection:
        store.add_logs(connection, [log(1000 + number) for number in range(2 * WORTH_IT)])
    many = stored(engine, 2 * WORTH_IT)
    place, text = JudgeLog._fields.index("attempt"), JudgeLog._fields.index("raw_output")
    assert [row[place] for row in many] == list(range(1000, 1000 + 2 * WORTH_IT))
    expected = {row[place] % len(TEXTS): row[text] for row in few}
    assert {row[place] % len(TEXTS): row[text] for row in many} == expected
    assert [type(value) for value in many[0]] == [type(value) for value in few[0]] or many[0][place] % 3


@pytest.mark.parametrize("count", [2, 2 * WORTH_IT])
def test_rows_when_one_has_no_run_then_the_clash_is_told_alike_and_nothing_is_stored(
    engine: Engine, count: int
) -> None:
    with writing(engine) as connection:
        store.add_run(connection, RUN)
    with pytest.raises(IntegrityError), writing(engine) as connection:
        store.add_logs(connection, [*map(log, range(count - 1)), log(count, run_id="none")])
    assert stored(engine, 1) == []


def test_sessions_when_many_and_some_are_stored_then_those_stay_as_they_are(engine: Engine) -> None:
    def session(number: int, **changes: Any) -> Session:
        known: dict[str, Any] = {
            "session_id": f"s{number:04d}",
            "run_id": "r",
            "task_id": "t",
            "agent": f"a{number}",
        }
        known |= {"trial": 0, "error": TEXTS[number % len(TEXTS)], "created_at": "2026-01-01T00:00:00.000Z"}
        return Session(**(dict.fromkeys(Session._fields) | known | changes))

    many = 2 * WORTH_IT
    with writing(engine) as connection:
        store.add_run(connection, RUN)
        store.add_sessions(connection, [session(number) for number in range(many)])
        # Half of them again, another twice in one batch: the first stays.
        again = [session(number, reward=0.5, error="again") for number in range(many // 2, many)]
        new = [session(number) for number in range(many, 2 * many)]
        store.add_sessions(connection, [*again, *new, new[0]._replace(reward=0.5)])
    with writing(engine) as connection:
        found = connection.execute(select(sessions.c.session_id, sessions.c.error, sessions.c.reward)).all()
    assert sorted(found) == [
        (f"s{number:04d}", _stored(TEXTS[number % len(TEXTS)]), None) for number in range(2 * many)
    ]
    # Another id for the same run, task, agent and trial is no repetition.
    other = [session(number, session_id=f"x{number}") for number in range(many)]
    with pytest.raises(IntegrityError), writing(engine) as connection:
        store.add_sessions(connection, other)


def _stored(value: str | None) -> str | None:
    return None if value is None else to_stored(value)
