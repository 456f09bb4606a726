"""The door for writes, second part: what the stages of a live run store. Inside the caller's transaction."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, text

from audit.doors.store import insert, storable_sessions, update
from audit.words.records import JUDGED, Pair, Session

if TYPE_CHECKING:  # brings the template library along
    from audit.doors.prompts import Prompt


class JudgmentUpdate(NamedTuple):
    """What judging found of one pair; the last field says which."""

    pref_ab: str | None
    pref_ba: str | None
    judge_score_a: float | None
    judge_score_b: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cost_usd: float | None
    judged_at: str
    pair_id: str


class Finding(NamedTuple):
    """What the verifier found of one session; the last field says which."""

    reward: float | None
    success: int | None
    checks_json: str
    label_source: str
    fault: str | None
    verified_at: str
    session_id: str


def save_sessions(connection: Connection, rows: Sequence[Session]) -> None:
    """New sessions, or anew those that were broken: the later one of the same id stands."""
    insert(connection, "sessions", Session._fields, storable_sessions(rows), over="session_id")


def plan_pairs(connection: Connection, rows: Sequence[Pair]) -> None:
    """Pairs to be judged; one that is planned already is left as it is."""
    insert(connection, "audit_pairs", Pair._fields, rows, once="pair_id")


def add_prompts(connection: Connection, prompts: Sequence["Prompt"]) -> None:
    """The templates of a run, each once."""
    rows = [(p.prompt_hash, p.role, p.name, p.version, p.text) for p in prompts]
    insert(
        connection, "prompts", ("prompt_hash", "role", "name", "version", "text"), rows, once="prompt_hash"
    )


def unjudge(connection: Connection, run_id: str, gate: str) -> None:
    """Let the pairs of a gate wait for its judge again; what they hold of an earlier one goes."""
    blank = ", ".join(f"{column} = null" for column in JUDGED)
    connection.execute(
        text(f"update audit_pairs set {blank} where run_id = :run_id and gate = :gate"),  # noqa: S608
        {"run_id": run_id, "gate": gate},
    )


def set_judgments(connection: Connection, rows: Sequence[JudgmentUpdate]) -> None:
    """Store what the judge said of pairs."""
    update(connection, "audit_pairs", JudgmentUpdate._fields, rows)


def set_satisfaction(connection: Connection, rows: Sequence[tuple[float | None, str]]) -> None:
    """(satisfaction, session_id) of asked sessions."""
    update(connection, "sessions", ("satisfaction", "session_id"), rows)


def set_source(connection: Connection, rows: Sequence[tuple[str, str]]) -> None:
    """(source_json, session_id) of sessions of which more is known than before."""
    update(connection, "sessions", ("source_json", "session_id"), rows)


def set_findings(connection: Connection, rows: Sequence[Finding]) -> None:
    """Store what the verifier found."""
    update(connection, "sessions", Finding._fields, rows)


def copy_findings(connection: Connection, run_id: str) -> None:
    """Bring rewards and successes of the run's sessions to its pairs."""
    side = "(select {what} from sessions where sessions.session_id = audit_pairs.session_{side})"
    changes = ", ".join(
        f"{what}_{name} = {side.format(what=what, side=name)}"
        for what in ("reward", "success")
        for name in "ab"
    )
    verified = (
        "(select case when count(verified_at) = 2 then max(verified_at) end from sessions "
        "where sessions.session_id in (audit_pairs.session_a, audit_pairs.session_b))"
    )
    connection.execute(
        text(f"update audit_pairs set {changes}, verified_at = {verified} where run_id = :run_id"),  # noqa: S608
        {"run_id": run_id},
    )


def set_status(connection: Connection, run_id: str, status: str) -> None:
    """Where the run stands while it is not finished."""
    connection.execute(
        text("update audit_runs set status = :status, finished_at = null where run_id = :run_id"),
        {"status": status, "run_id": run_id},
    )
