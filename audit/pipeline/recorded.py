"""Recorded sessions under live judges: the run they were imported as, made ready to be judged."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_batches, store, store_live
from audit.doors.db import writing
from audit.doors.prompts import prompt
from audit.pipeline.gating import give_gates
from audit.pipeline.importing import import_file
from audit.pipeline.live import buckets_of, public_config
from audit.pipeline.wishes import Wish
from audit.pipeline.workplace import gates_of
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.records import Run
from audit.words.text import as_json

PROMPTS = ("judge_pair", "satisfaction")
# What of a judge's profile decides what it answers.
_ANSWERS = ("base_url", "model", "temperature", "max_tokens", "seed", "extra")


def import_of(engine: Engine, config: Config, name: str | None) -> tuple[str, bool]:
    """The run of the config's `sessions`, imported now or before, and whether it is new."""
    if config.sessions is None:
        raise BadRequest("the config names no sessions")
    wish = Wish(
        format=config.sessions.format,
        paths=tuple(map(Path, config.sessions.files)),
        name=name or config.name,
        swap_rule=config.swap_rule,
        gap_source=config.gap_source,
        gap_scope=config.gap_scope,
        buckets=buckets_of(config),
        agents=tuple(config.sessions.agents),
        success_at=config.success_at,
    )
    found = import_file(engine, wish)
    return found.run_id, found.is_new


def refuse_embedded(wanted: str, *, is_named: bool) -> None:
    """Raises BadRequest where nobody said who judges: real sessions are none for the synthetic judge."""
    if not is_named:
        raise BadRequest(
            f"run {wanted} was imported: who is to judge it? Name a config with -c FILE, or write audit.yaml "
            "with `profiles` and `judges` here"
        )


def ready(connection: Connection, run: Run, config: Config) -> Run:
    """Give each of the config's gates its pairs, and write down who judges them.

    A gate whose judge never answered is given to the config's judge of that name. Raises BadRequest where
    the run holds no pairs of sessions, and where a gate's pairs were judged by another judge: answers of both
    must not be mixed under one name.
    """
    held = ask.gates(connection, run.run_id)
    if not held or not ask.has_transcripts(connection, run.run_id):
        raise BadRequest(
            f"run {run.run_id} holds no pairs of sessions with transcripts: a judge has nothing to read"
        )
    stored = json.loads(run.config_json)
    judging = {gate: _digest(config, gate) for gate in gates_of(config)}
    before = stored.get("judging", {})
    others = to_take_over(connection, run, config)
    since = stored.get("judged_since", {})
    newest = ask_batches.last_log_id(connection)
    since |= {gate: newest for gate in judging if gate in others or gate not in held}
    prompts = [prompt(name, config.language) for name in PROMPTS]
    store_live.add_prompts(connection, prompts)
    for gate in others:
        store_live.unjudge(connection, run.run_id, gate)
    give_gates(connection, run, list(judging))
    stored |= {
        "config": _merged(stored.get("config"), public_config(config)),
        "judging": before | judging,
        "judged_since": since,
        "in_hand": list(judging),
    }
    run = run._replace(config_json=as_json(stored))
    store.set_config(connection, run.run_id, run.config_json)
    return run


def to_take_over(connection: Connection, run: Run, config: Config) -> list[str]:
    """The config's gates that the run has of another judge, none of which ever answered.

    Raises BadRequest where one did.
    """
    held = ask.gates(connection, run.run_id)
    before = json.loads(run.config_json).get("judging", {})
    named = [gate for gate in gates_of(config) if gate in held and before.get(gate) != _digest(config, gate)]
    answered = ask.answered_gates(connection, run.run_id) if named else set()
    for gate in named:
        if gate in answered:
            raise BadRequest(
                f"the pairs of gate {gate!r} in run {run.run_id} were judged by another judge or with other "
                f"prompts: give this one a name of its own, judges: [{{name: ..., members: [...]}}]"
            )
    return named


def _digest(config: Config, gate: str) -> str:
    """What decides a gate's answers: its panel, the models in it, the prompts, how transcripts are cut."""
    panel = gates_of(config)[gate]
    profiles = [config.profile(name).model_dump(mode="json", include=set(_ANSWERS)) for name in panel.members]
    hashes = [prompt(name, config.language).prompt_hash for name in PROMPTS]
    held = [panel.model_dump(mode="json"), profiles, hashes, config.transcript_tokens]
    return hashlib.sha256(as_json(held).encode()).hexdigest()[:16]


def _merged(before: dict[str, Any] | None, now: dict[str, Any]) -> dict[str, Any]:
    """The config as it is now, with the judges and profiles of earlier ones beside its own."""
    if before is None:
        return now
    names = {profile["name"] for profile in now["profiles"]}
    gates = {gate["name"] or as_json(gate["members"]) for gate in now["judges"]}
    kept = [gate for gate in before["judges"] if (gate["name"] or as_json(gate["members"])) not in gates]
    profiles = [profile for profile in before["profiles"] if profile["name"] not in names]
    return now | {"judges": [*kept, *now["judges"]], "profiles": [*profiles, *now["profiles"]]}


def judge_now(engine: Engine, wanted: str, config: Config) -> Run:
    """The imported run `wanted`, ready for the config's judges."""
    with writing(engine) as connection:
        return ready(connection, ask.run_named(connection, wanted), config)
