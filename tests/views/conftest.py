"""Given rows, expected rows: a view is tested on as few rows as show what it does."""

from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, insert, text

from audit.doors import db
from audit.words import schema
from audit.words.records import JudgeLog, Pair, Session

T = "2026-03-05T17:15:00.000Z"
# label, lower, upper, closed, is_near
BUCKETS = [
    ("near", 0.0, 0.1, "left", 1),
    ("middle", 0.1, 0.3, "left", 0),
    ("far", 0.3, None, "left", 0),
    ("unknown", None, None, None, None),
]


class Given:
    """Puts rows with everything but the given columns at a default, and reads a view back."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._made = 0

    def buckets(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        names = ("label", "lower", "upper", "closed", "is_near")
        self._put(
            schema.gap_buckets, *({"bucket_set": name, **dict(zip(names, row, strict=True))} for row in rows)
        )

    def run(self, run_id: str = "r1", **columns: Any) -> None:
        self._put(
            schema.audit_runs,
            {
                "run_id": run_id, "name": run_id, "kind": "live", "config_json": "{}", "config_hash": run_id,
                "swap_rule": "both_agree", "gap_source": "session", "gap_scope": "run", "bucket_set": "four",
                "status": "complete", "created_at": T, **columns,
            },
        )  # fmt: skip

    def session(self, session_id: str, run_id: str = "r1", **columns: Any) -> None:
        fixed = {"session_id": session_id, "run_id": run_id, "trial": 0, "created_at": T}
        self._put(schema.sessions, _record(Session, {**fixed, "agent": session_id, **columns}))

    def pairs(self, count: int, outcome: str | None, gap_bucket: str = "near", **columns: Any) -> None:
        """`count` equal pairs of run r1 and gate g1, unless `columns` name others."""
        fixed = {"run_id": "r1", "gate": "g1", "task_id": "t1", "trial": 0, "created_at": T}
        rows = []
        for _ in range(count):
            self._made += 1
            given = {"pair_id": f"p{self._made}", "outcome": outcome, "gap_bucket": gap_bucket, **columns}
            rows.append(_record(Pair, {**fixed, **given}))
        self._put(schema.audit_pairs, *rows)

    def call(self, run_id: str = "r1", **columns: Any) -> None:
        fixed = {"run_id": run_id, "role": "judge", "attempt": 1, "parse_status": "ok", "created_at": T}
        self._put(schema.judge_logs, _record(JudgeLog, {**fixed, **columns}))

    def label(self, value: str, kind: str = "preference", **columns: Any) -> None:
        """What a person said, of a pair or of a session; the newest comes last."""
        fixed = {"annotator": "ann", "kind": kind, "value": value, "created_at": T}
        self._put(schema.human_labels, {**fixed, **columns})

    def rows(self, select: str) -> list[tuple[Any, ...]]:
        """What a select gives, as plain tuples."""
        with db.reading(self.engine) as connection:
            return [tuple(row) for row in connection.execute(text(select))]

    def writing(self) -> Any:
        return db.writing(self.engine)

    def _put(self, table: Any, *rows: dict[str, Any]) -> None:
        connection: Connection
        with db.writing(self.engine) as connection:
            connection.execute(insert(table), list(rows))


def _record(kind: Any, given: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = kind(**{**dict.fromkeys(kind._fields), **given})._asdict()
    return made


@pytest.fixture
def given(database_url: str) -> Iterator[Given]:
    """An empty database with the bucket set `four`: near, middle, far, unknown."""
    engine = db.open_database(database_url, create=True)
    given = Given(engine)
    given.buckets("four", BUCKETS)
    yield given
    engine.dispose()
