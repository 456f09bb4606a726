"""Worst: the pairs a judge got most wrong, each with both sessions and the judge's reasons, for the page."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_worst
from audit.doors.db import reading
from audit.pipeline.reporting import report_of
from audit.verbs.render import Hidden, render_session
from audit.verbs.settle import preference_of
from audit.verbs.shorten import shorten
from audit.words.names import Choice

AT_MOST = 20
# About how many tokens of a session are shown, and how many characters of one text at most.
_TOKENS = 1500
_CHARACTERS = 8000
_REASONS = ("evidence", "reason", "reasons", "reasoning", "explanation", "rationale")
_NOTHING_HIDDEN = Hidden((), ())


def report_with_worst(
    engine: Engine, wanted: str, gate: str | None = None
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The mapping of `report`, and the worst pairs of the same moment. Raises BadRequest as `report` does."""
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        found = report_of(connection, run, gate)
        return found, worst(connection, run.run_id, found["run"]["gate"])


def worst(connection: Connection, run_id: str, gate: str | None) -> list[dict[str, Any]]:
    """At most 20 pairs: the misselected ones, then the inconsistent, each by the largest reward gap.

    Each has its columns, `sides` (A, then B: agent, reward, score, what was done, checks that failed) and
    `replies` (each judge's last one in each order: preference, reasons as (side, text), the reply).
    """
    pairs = ask_worst.worst_pairs(connection, run_id, gate, AT_MOST) if gate is not None else []
    if not pairs:
        return []
    ids = {pair[side] for pair in pairs for side in ("session_a", "session_b")} - {None}
    sessions = ask_worst.sessions_by_id(connection, sorted(ids)) if ids else {}
    replies = ask_worst.last_replies(connection, [pair["pair_id"] for pair in pairs])
    return [
        pair
        | {
            "sides": [_side(pair, side, sessions) for side in ("a", "b")],
            "replies": [_reply(call) for call in replies.get(pair["pair_id"], ())],
        }
        for pair in pairs
    ]


def _side(pair: Mapping[str, Any], side: str, sessions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    session = sessions.get(pair[f"session_{side}"], {})
    checks = json.loads(session.get("checks_json") or "[]")
    return {
        "side": side.upper(),
        "agent": pair[f"agent_{side}"],
        "reward": pair[f"reward_{side}"],
        "success": pair[f"success_{side}"],
        "score": pair[f"judge_score_{side}"],
        "said": _said(session.get("transcript_json")),
        "failed_checks": [
            (str(check.get("name")), cut(_plain(check.get("evidence")), 300))
            for check in checks
            if isinstance(check, dict) and check.get("passed") is False
        ],
    }


def _said(transcript_json: str | None) -> str | None:
    """What was said and done, cut; NULL where nobody stored it."""
    if transcript_json is None:
        return None
    shown = shorten(json.loads(transcript_json), _TOKENS)
    return cut(render_session(shown.messages, _NOTHING_HIDDEN), _CHARACTERS)


def _reply(call: Mapping[str, Any]) -> dict[str, Any]:
    parsed = json.loads(call["parsed_json"] or "null")
    raw = call["raw_output"]
    return {
        "order": call["presented_order"],
        "judge": call["profile"],
        "preference": call["preference"],
        "parse_status": call["parse_status"],
        "reasons": [(side, cut(text, 2000)) for side, text in _reasons(parsed, call["presented_order"])],
        "raw": None if raw is None else cut(raw, _CHARACTERS // 2),
        "error": call["error"],
    }


def _reasons(parsed: Any, order: Any) -> Iterator[tuple[str | None, str]]:
    """(side, why) for each reason that the judge gave: of a place on its screen, or of the whole."""
    if not isinstance(parsed, dict):
        return
    choices: tuple[Choice, ...] = ("first", "second")
    for choice in choices:
        said = parsed.get(choice)
        if isinstance(said, dict):
            side = preference_of(choice, order)
            yield from ((side, _plain(said[name])) for name in _REASONS if said.get(name))
    yield from ((None, _plain(parsed[name])) for name in _REASONS if parsed.get(name))


def cut(text: str, limit: int) -> str:
    """The text, or its beginning and end with how much is left out between them."""
    if len(text) <= limit:
        return text
    head = 2 * limit // 3
    left_out = f" […{len(text) - limit:,} characters left out…] "
    return text[:head] + left_out + text[head - limit :]


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)
