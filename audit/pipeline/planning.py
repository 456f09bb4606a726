"""Planning: the run that a config begins or goes on with, and the pairs that its sessions make."""

import hashlib
import json
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import ask, store, store_live, waiting
from audit.doors.prompts import Prompt, prompt
from audit.pipeline.live import buckets_of, public_config
from audit.pipeline.sampled import PairPlan, place_of, planned_sessions
from audit.pipeline.workplace import gates_of
from audit.verbs.isolation import role_isolation
from audit.words import clock
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.names import UNKNOWN_BUCKET
from audit.words.records import Pair, Run
from audit.words.tasks import Task
from audit.words.text import as_json

PROMPTS = ("simulated_user", "agent", "judge_pair", "satisfaction", "check")


# What decides how fast, how long and under which name a run goes, and nothing of what it finds.
_NO_FINDING = {"name", "budget", "prices", "gate", "max_error_rate", "tasks"}
_NO_ANSWER = {"api_key_env", "timeout_s", "attempts", "rpm", "tpm", "concurrency"}


class Wish(NamedTuple):
    """Which run is meant: `resume` names it, `new` wants another one, `name` is what a new one is called.

    `may_begin`: could these stages begin one; `retry_errors`: to mend one, it may be complete.
    """

    resume: str | None = None
    new: bool = False
    name: str | None = None
    may_begin: bool = True
    retry_errors: bool = False


def begin(connection: Connection, config: Config, tasks: list[Task], wish: Wish) -> tuple[Run, bool]:
    """The run to work on, and whether it is a new one.

    Without a wish it is the newest run of the same config and prompts that is not complete. Stages that can
    begin none, and those that are to mend one, take the newest, complete or not. Raises BadRequest where
    there is none, and where a resumed run was made from another config or with other prompts.
    """
    prompts = [prompt(name, config.language) for name in PROMPTS]
    fresh = _fresh(config, tasks, prompts)
    if wish.name is not None:
        fresh = fresh._replace(name=wish.name)
    if wish.resume is not None:
        return _resumed(ask.run_named(connection, wish.resume), fresh, wish.may_begin), False
    newest = waiting.newest_run(connection, fresh.config_hash, fresh.prompt_set_hash, wish.name)
    may_be_complete = wish.retry_errors or not wish.may_begin
    if newest is not None and not wish.new and (newest[1] != "complete" or may_be_complete):
        return ask.run_named(connection, newest[0]), False
    if not wish.may_begin:
        raise BadRequest(
            "only `run` and `simulate` begin a run: leave --new out"
            if wish.new
            else "there is no run of this config to go on with: `reward-audit simulate` begins one; an "
            "imported run is judged by `reward-audit judge --run latest -c FILE`"
        )
    chosen = buckets_of(config)
    store.add_run(connection, fresh)
    store.add_buckets(connection, chosen.name, chosen.with_unknown())
    store_live.add_prompts(connection, prompts)
    return fresh, True


def _resumed(run: Run, fresh: Run, may_begin: bool) -> Run:
    if run.kind != "live":
        raise BadRequest(
            f"run {run.run_id} was imported: `reward-audit judge --run {run.run_id}` judges its sessions"
        )
    if run.config_hash != fresh.config_hash:
        raise BadRequest(
            f"run {run.run_id} was made from another config ({_differing(run, fresh)}): give that one with "
            "--config, or "
            + (
                "start a run of this one with --new"
                if may_begin
                else f"copy what people labelled by `reward-audit review anchors {run.run_id}`, which any "
                "judge may judge"
            )
        )
    if run.prompt_set_hash != fresh.prompt_set_hash:
        raise BadRequest(
            f"run {run.run_id} was made with other prompts, and answers to both must not be mixed: "
            "start a run with these by --new"
        )
    return run


def _differing(run: Run, fresh: Run) -> str:
    """What a run's config and this one do not have in common: key paths, or the tasks."""
    before, now = (_deciding(json.loads(one.config_json)["config"]) for one in (run, fresh))
    keys = [key for key in {**now, **before} if key != "profiles" and before.get(key) != now.get(key)]
    known = {profile["name"]: profile for profile in before["profiles"]}
    for profile in now["profiles"]:
        earlier = known.get(profile["name"], {})
        keys += [f"profile {profile['name']}: {key}" for key in profile if earlier.get(key) != profile[key]]
    if len(now["profiles"]) != len(before["profiles"]):
        keys.append("profiles")
    return f"other are {', '.join(keys[:4])}" if keys else "other are the tasks"


def _fresh(config: Config, tasks: list[Task], prompts: list[Prompt]) -> Run:
    public = public_config(config)
    stored = {
        "config": public,
        "role_isolation": role_isolation(config),
        "planned": {"sessions": planned_sessions(config, tasks)},
    }
    return Run(
        run_id=store.new_run_id(),
        name=config.name,
        kind="live",
        config_json=as_json(stored),
        config_hash=_hash([_deciding(public), sorted(map(_identity, tasks))]),
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


def _identity(task: Task) -> list[Any]:
    """What makes sessions of a task belong together: they are stored under these, and end by these."""
    return [task.fingerprint, task.task_id, task.category, task.max_turns or 0]


def _deciding(public: dict[str, Any]) -> dict[str, Any]:
    """The part of a config that decides what a run finds: of the same, a run can be gone on with."""
    profiles = [
        {key: value for key, value in profile.items() if key not in _NO_ANSWER}
        for profile in public["profiles"]
    ]
    found = {key: value for key, value in public.items() if key not in _NO_FINDING}
    if found.get("sample") is None:  # so that runs of versions that knew no sample are still the same
        found.pop("sample", None)
    return found | {"profiles": profiles}


def plan_pairs(connection: Connection, run: Run, config: Config, tasks: list[Task]) -> None:
    """A row for every pair of agents that the config asks for, on each task and trial both served."""
    wanted = PairPlan(config, tasks)
    sessions = waiting.sessions_to_pair(connection, run.run_id)
    for _, together in groupby(sessions, itemgetter("task_id", "task_fingerprint", "trial")):
        by_agent = {session["agent"]: session for session in together}
        rows = [
            _pair(run, gate, by_agent[a], by_agent[b])
            for gate in gates_of(config)
            for a, b in config.agent_pairs()
            if a in by_agent and b in by_agent and wanted.holds(place_of(by_agent[a]), place_of(by_agent[b]))
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
