"""Planning: the run that a config begins or goes on with, and the pairs that its sessions make."""

import hashlib
import json
from collections import defaultdict
from typing import Any

from sqlalchemy import Connection

from audit.doors import ask, store, store_live, waiting
from audit.doors.prompts import Prompt, prompt
from audit.pipeline.live import buckets_of, gates_of, public_config
from audit.verbs.isolation import role_isolation
from audit.words import clock
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.names import UNKNOWN_BUCKET
from audit.words.records import Pair, Run
from audit.words.tasks import Task
from audit.words.text import as_json

PROMPTS = ("simulated_user", "agent", "judge_pair", "satisfaction", "check")


def begin(
    connection: Connection, config: Config, tasks: list[Task], *, resume: str | None, new: bool
) -> tuple[Run, bool]:
    """The run to work on, and whether it is a new one.

    `resume` names it; without, it is the newest run of the same config that is not complete, unless `new`.
    Raises BadRequest where a resumed run was made from another config.
    """
    prompts = [prompt(name, config.language) for name in PROMPTS]
    fresh = _fresh(config, tasks, prompts)
    if resume is not None:
        run = ask.run_named(connection, resume)
        if run.kind == "live" and run.config_hash != fresh.config_hash:
            raise BadRequest(
                f"run {run.run_id} was made from another config: give that one with --config, "
                "or start a run of this one with --new"
            )
        return run, False
    if not new:
        unfinished = waiting.unfinished_run(connection, fresh.config_hash)
        if unfinished is not None:
            return ask.run_named(connection, unfinished), False
    chosen = buckets_of(config)
    store.add_run(connection, fresh)
    store.add_buckets(connection, chosen.name, chosen.with_unknown())
    store_live.add_prompts(connection, prompts)
    return fresh, True


def _fresh(config: Config, tasks: list[Task], prompts: list[Prompt]) -> Run:
    public = public_config(config)
    stored = {"config": public, "role_isolation": role_isolation(config)}
    return Run(
        run_id=store.new_run_id(),
        name=config.name,
        kind="live",
        config_json=as_json(stored),
        config_hash=_hash([public | {"tasks": None}, sorted(task.fingerprint for task in tasks)]),
        task_set_hash=_hash(sorted([task.task_id, task.fingerprint] for task in tasks)),
        prompt_set_hash=_hash(sorted(item.prompt_hash for item in prompts)),
        swap_rule=config.swap_rule,
        gap_source=config.gap_source,
        gap_scope=config.gap_scope,
        bucket_set=buckets_of(config).name,
        status="running",
        created_at=clock.now(),
        finished_at=None,
    )


def plan_pairs(connection: Connection, run: Run, config: Config) -> None:
    """A row for every pair of agents that the config asks for, on each task and trial both served."""
    by_place: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = defaultdict(dict)
    for session in waiting.sessions_to_pair(connection, run.run_id):
        place = (session["task_id"], session["task_fingerprint"], session["trial"])
        by_place[place][session["agent"]] = session
    rows = [
        _pair(run, gate, agents[a], agents[b])
        for gate in gates_of(config)
        for agents in by_place.values()
        for a, b in config.agent_pairs()
        if a in agents and b in agents
    ]
    store_live.plan_pairs(connection, rows)


def _pair(run: Run, gate: str, a: dict[str, Any], b: dict[str, Any]) -> Pair:
    held = json.dumps([gate, a["session_id"], b["session_id"]])
    digest = hashlib.blake2b(held.encode(), digest_size=8).hexdigest()
    blank: dict[str, Any] = dict.fromkeys(Pair._fields)
    blank |= {
        "pair_id": f"{run.run_id[-8:]}-p{digest}",
        "run_id": run.run_id,
        "gate": gate,
        "task_id": a["task_id"],
        "category": a["category"],
        "trial": a["trial"],
        "agent_a": a["agent"],
        "agent_b": b["agent"],
        "session_a": a["session_id"],
        "session_b": b["session_id"],
        "gap_bucket": UNKNOWN_BUCKET,
        "created_at": clock.now(),
    }
    return Pair(**blank)


def _hash(value: object) -> str:
    return hashlib.sha256(as_json(value).encode()).hexdigest()[:16]
