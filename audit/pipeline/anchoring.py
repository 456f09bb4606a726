"""Anchoring: the pairs of a run that people compared, as a run of recorded sessions for other judges.

A live run has the judges of its config, and its sessions are never the same again. So those that people
looked at are copied to the letter into an import, whose pairs wait under the gate `unjudged`.
"""

import hashlib
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_anchors, store
from audit.doors.db import writing
from audit.words import clock
from audit.words.errors import BadRequest
from audit.words.names import UNJUDGED
from audit.words.records import JUDGED, Pair, Run, Session
from audit.words.review import CANNOT_TELL
from audit.words.text import as_json


class Anchored(NamedTuple):
    """The run of anchors, whether it was made now, and what it holds."""

    run_id: str
    of_run_id: str
    is_new: bool
    pairs: int
    sessions: int


def anchor(engine: Engine, wanted: str | None, name: str | None = None) -> Anchored:
    """Make the run of anchors of `wanted` (the newest in which people compared), or find it.

    Rewards, labels and gaps are those of that run; its gap is the new run's external gap, so that
    each pair stays in its bucket. Raises BadRequest where people compared no pair with transcripts.
    """
    with writing(engine) as connection:
        if wanted is None:
            wanted = next(reversed(ask_anchors.compared_runs(connection)), "latest")
        of = ask.run_named(connection, wanted)
        pairs = _compared(connection, of)
        needed = sorted({side for pair in pairs for side in (pair.session_a, pair.session_b) if side})
        sessions = {one.session_id: one for one in ask_anchors.sessions(connection, needed)}
        pairs = [pair for pair in pairs if {pair.session_a, pair.session_b} <= sessions.keys()]
        if not pairs:
            raise BadRequest(
                f"people compared no pair of run {of.run_id} whose transcripts are stored: `reward-audit "
                "review export` picks some for them"
            )
        held = {side for pair in pairs for side in (pair.session_a, pair.session_b)}
        run = _run(of, pairs, name)
        before = ask.imported_before(connection, run.name, run.config_hash)
        if before is None:
            _store(connection, run, pairs, [session for key, session in sessions.items() if key in held])
    return Anchored(before or run.run_id, of.run_id, before is None, len(pairs), len(held))


def _compared(connection: Connection, run: Run) -> list[Pair]:
    """Each pair that people compared, once, whatever the gates that they were shown under."""
    said = ask_anchors.preferences(connection, run.run_id)
    compared = {pair_id for pair_id, _, value in said if value != CANNOT_TELL}
    found: dict[tuple[str | None, str | None], Pair] = {}
    for batch in ask.pairs(connection, run.run_id):
        for pair in batch:
            if pair.pair_id in compared:
                found.setdefault((pair.session_a, pair.session_b), pair)
    return list(found.values())


def _run(of: Run, pairs: list[Pair], name: str | None) -> Run:
    told = {"format": "anchors", "of_run_id": of.run_id, "files": []}
    sameness = as_json([told, sorted(pair.pair_id for pair in pairs)])
    return of._replace(
        run_id=store.new_run_id(),
        name=name or f"{of.name} anchors",
        kind="import",
        config_json=as_json(told),
        config_hash=hashlib.sha256(sameness.encode()).hexdigest()[:16],
        task_set_hash=None,
        prompt_set_hash=None,
        gap_source="external",
        status="running",
        created_at=clock.now(),
        finished_at=None,
    )


def _store(connection: Connection, run: Run, pairs: list[Pair], sessions: list[Session]) -> None:
    ids = {session.session_id: _new_id(run, "s", session.session_id) for session in sessions}
    blank = dict.fromkeys(JUDGED)
    store.add_run(connection, run)
    store.add_sessions(
        connection,
        [
            session._replace(
                session_id=ids[session.session_id],
                run_id=run.run_id,
                satisfaction=None,
                judge_flip=None,
                created_at=run.created_at,
            )
            for session in sessions
        ],
    )
    store.add_pairs(
        connection,
        [
            pair._replace(
                pair_id=_new_id(run, "p", pair.pair_id),
                run_id=run.run_id,
                gate=UNJUDGED,
                session_a=ids[pair.session_a or ""],
                session_b=ids[pair.session_b or ""],
                external_gap=pair.reward_gap,
                created_at=run.created_at,
                **blank,  # type: ignore[arg-type]
            )
            for pair in pairs
        ],
    )
    store.finish_run(connection, run.run_id, "complete")


def _new_id(run: Run, kind: str, old: str) -> str:
    digest = hashlib.blake2b(old.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{run.run_id[-8:]}-{kind}{digest}"
