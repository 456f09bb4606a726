"""A dry run over recorded sessions: they are there, so their characters are counted and not guessed."""

import json
from collections.abc import Iterator

from sqlalchemy import Connection

from audit.doors import ask, waiting
from audit.pipeline import recorded
from audit.pipeline.expected import ANSWER_CHARS, prompt_chars
from audit.pipeline.run import Order
from audit.pipeline.sampled import in_sample
from audit.pipeline.workplace import gates_of
from audit.verbs.render import Hidden, render_session
from audit.verbs.shorten import shorten
from audit.verbs.spending import CHARS_A_TOKEN
from audit.words.config import Config
from audit.words.records import Run


def estimate_recorded(connection: Connection, run: Run, order: Order) -> dict[str, int]:
    """What judging the run's sessions by the order's config would take; keys as in `estimate.estimate`.

    Later members of a panel that escalates are counted as if every pair were contested.
    """
    recorded.refuse_embedded(run.run_id, is_named=order.is_named)
    config = order.config
    shown, told = {}, {}
    for session_id, rendered, source in _sessions(connection, run, config):
        shown[session_id], told[session_id] = rendered, source
    pairs = [
        (gate, session_a, session_b)
        for gate in gates_of(config)
        for session_a, session_b in _pairs_left(connection, run, config, gate)
    ][: order.limit]
    members = {gate: len(panel.members) for gate, panel in gates_of(config).items()}
    asked = waiting.unasked_satisfaction(connection, run.run_id, False)[: order.limit]
    calls = {gate: 2 * count for gate, count in members.items()}
    each = prompt_chars(config, "judge_pair") + ANSWER_CHARS
    chars = sum(calls[gate] * (each + told[a] + shown[a] + shown[b]) for gate, a, b in pairs)
    of_session = prompt_chars(config, "satisfaction") + ANSWER_CHARS
    chars += sum(of_session + told[session] + shown[session] for session in asked)
    return {
        "sessions": 0,
        "pairs": len(pairs),
        "simulation calls": 0,
        "judge calls": sum(calls[gate] for gate, _, _ in pairs),
        "satisfaction calls": len(asked),
        "verifier calls": 0,
        "tokens": chars // CHARS_A_TOKEN,
    }


def _pairs_left(connection: Connection, run: Run, config: Config, gate: str) -> list[tuple[str, str]]:
    """The sessions of each pair that the gate would be asked about; all, where it is not there yet."""
    held = ask.gates(connection, run.run_id)
    is_begun = gate in held and gate not in recorded.to_take_over(connection, run, config)
    named = gate if gate in held else held[0]
    found = waiting.paired_sessions(connection, run.run_id, named, not is_begun)
    within = in_sample(connection, run, list(found), config.sample, config.seed)
    return [found[pair_id] for pair_id in within]


def _sessions(connection: Connection, run: Run, config: Config) -> Iterator[tuple[str, int, int]]:
    """(session_id, characters that a judge is shown of it, those of its task) of every session."""
    hidden = Hidden((), config.stop_tokens)
    for session in waiting.transcripts(connection, run.run_id):
        messages = json.loads(session["transcript_json"] or "[]")
        rendered = render_session(shorten(messages, config.transcript_tokens).messages, hidden)
        source = json.loads(session["source_json"] or "{}")
        told = sum(len(str(source.get(key, ""))) for key in ("goal", "policy"))
        yield session["session_id"], len(rendered), told
