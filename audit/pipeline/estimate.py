"""A dry run: how many calls a run would make, and about how many tokens they would take."""

from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection

from audit.doors import ask, waiting
from audit.doors.tasks import load_tasks
from audit.pipeline.estimate_recorded import estimate_recorded
from audit.pipeline.expected import AGENT_CALLS, USER_CALLS, call_chars
from audit.pipeline.run import Order
from audit.pipeline.sampled import planned_sessions
from audit.pipeline.workplace import gates_of
from audit.verbs.spending import CHARS_A_TOKEN
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.tasks import Task


def estimate(order: Order) -> dict[str, int]:
    """Sessions, pairs, calls by role, and tokens in all, for a run from its start, within `--limit`.

    The calls of a simulation are a guess. Later members of a panel that escalates are counted as if every
    pair were contested; stages that were not asked for make no calls.
    """
    config = order.config
    if not config.agents:
        raise BadRequest("--dry-run counts what is to be judged of a run: name it by --run")
    tasks = _tasks(config)
    places = len(tasks) * config.trials
    planned = planned_sessions(config, tasks)
    sessions = _within(order.limit, planned)
    held = sessions if "simulate" in order.stages else planned
    every = _pairs_of(held if config.sample is None else places * len(config.agents), config)
    pairs = _within(order.limit, _within(config.sample, every) * len(config.judges))
    criteria = sum(item.kind == "llm" for task in tasks for item in task.checks)
    work = Work(
        sessions=sessions,
        pairs=pairs,
        judge_calls=pairs * 2 * len(config.judge_names()) // len(config.judges),
        satisfaction_calls=_within(order.limit, held),
        verifier_calls=criteria * held // len(tasks),
    )
    return _told(order, work, tasks)


def estimate_left(connection: Connection, order: Order) -> dict[str, int]:
    """As `estimate`, of what the run `order.resume` has not stored yet; failed calls count as done."""
    config = order.config
    run = ask.run_named(connection, str(order.resume))
    if run.kind == "import":
        return estimate_recorded(connection, run, order)
    by_gate = waiting.judged_by_gate(connection, run.run_id)
    tasks = _tasks(config)
    planned = planned_sessions(config, tasks)
    sessions = _within(order.limit, planned - waiting.count_held(connection, run.run_id))
    whole = _within(config.sample, _pairs_of(len(tasks) * config.trials * len(config.agents), config))
    left = {gate: whole - by_gate.get(gate, (0, 0))[1] for gate in gates_of(config)}
    unasked = len(waiting.unasked_satisfaction(connection, run.run_id, False)) + sessions
    criteria = sum(item.kind == "llm" for task in tasks for item in task.checks)
    unverified = waiting.count_unverified(connection, run.run_id, False) + sessions
    work = Work(
        sessions=sessions,
        pairs=_within(order.limit, sum(left.values())),
        judge_calls=sum(2 * len(panel.members) * left[gate] for gate, panel in gates_of(config).items()),
        satisfaction_calls=_within(order.limit, unasked),
        verifier_calls=criteria * unverified // max(len(tasks), 1),
    )
    return _told(order, work, tasks)


class Work(NamedTuple):
    """What is to be done by all stages together."""

    sessions: int
    pairs: int
    judge_calls: int
    satisfaction_calls: int
    verifier_calls: int


def _told(order: Order, work: Work, tasks: list[Task]) -> dict[str, int]:
    """The work of the stages that were asked for, and about how many tokens it takes."""
    config = order.config
    simulation = work.sessions * (USER_CALLS + AGENT_CALLS) * ("simulate" in order.stages)
    judge_calls = work.judge_calls * ("judge" in order.stages)
    satisfaction = work.satisfaction_calls * ("judge" in order.stages)
    verifier_calls = work.verifier_calls * ("verify" in order.stages)
    each = call_chars(config, tasks)
    chars = (
        simulation * each["simulate"]
        + judge_calls * each["judge"]
        + satisfaction * each["satisfaction"]
        + verifier_calls * each["verify"]
    )
    return {
        "sessions": work.sessions,
        "pairs": work.pairs,
        "simulation calls": simulation,
        "judge calls": judge_calls,
        "satisfaction calls": satisfaction,
        "verifier calls": verifier_calls,
        "tokens": chars // CHARS_A_TOKEN,
    }


def _tasks(config: Config) -> list[Task]:
    return load_tasks([Path(path) for path in config.tasks])


def _pairs_of(sessions: int, config: Config) -> int:
    """How many pairs the first so many sessions make: they are held task by task, agent by agent."""
    whole, more = divmod(sessions, len(config.agents))
    pairs, there = config.agent_pairs(), config.agents[:more]
    return whole * len(pairs) + sum(a in there and b in there for a, b in pairs)


def _within(limit: int | None, count: int) -> int:
    return count if limit is None else min(limit, count)
