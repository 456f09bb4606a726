"""A dry run: how many calls a run would make, and about how many tokens they would take."""

from pathlib import Path

from audit.doors.prompts import prompt
from audit.doors.tasks import load_tasks
from audit.pipeline.run import Order
from audit.words.config import Config

# A session of a few turns, as the embedded one has them; only a live run tells the truth.
_USER_CALLS, _AGENT_CALLS = 3, 6
_SESSION_CHARS, _ANSWER_CHARS, _CHARS_A_TOKEN = 4000, 500, 4


def estimate(order: Order) -> dict[str, int]:
    """Sessions, pairs, calls by role, and tokens in all, for a run from its start, within `--limit`.

    The calls of a simulation are a guess. Later members of a panel that escalates are counted as if every
    pair were contested; stages that were not asked for make no calls.
    """
    config = order.config
    tasks = load_tasks([Path(path) for path in config.tasks])
    places = len(tasks) * config.trials
    sessions = _within(order.limit, places * len(config.agents))
    held = sessions if "simulate" in order.stages else places * len(config.agents)
    pairs = _within(order.limit, _pairs_of(held, config) * len(config.judges))
    members = sum(len(panel.members) for panel in config.judges)
    simulation = sessions * (_USER_CALLS + _AGENT_CALLS) * ("simulate" in order.stages)
    judge_calls = pairs * 2 * members // len(config.judges) * ("judge" in order.stages)
    satisfaction = _within(order.limit, held) * ("judge" in order.stages)
    criteria = [item for task in tasks for item in task.checks if item.kind == "llm"]
    verifier_calls = len(criteria) * held // len(tasks) * ("verify" in order.stages)
    policy = max((len(task.domain.policy) for task in tasks), default=0)
    chars = (
        simulation * (policy + _SESSION_CHARS // 2)
        + judge_calls * (_prompt_chars(config, "judge_pair") + policy + 2 * _SESSION_CHARS + _ANSWER_CHARS)
        + verifier_calls * (_prompt_chars(config, "check") + policy + _SESSION_CHARS + _ANSWER_CHARS)
        + satisfaction * (_prompt_chars(config, "satisfaction") + policy + _SESSION_CHARS + _ANSWER_CHARS)
    )
    return {
        "sessions": sessions,
        "pairs": pairs,
        "simulation calls": simulation,
        "judge calls": judge_calls,
        "satisfaction calls": satisfaction,
        "verifier calls": verifier_calls,
        "tokens": chars // _CHARS_A_TOKEN,
    }


def _pairs_of(sessions: int, config: Config) -> int:
    """How many pairs the first so many sessions make: they are held task by task, agent by agent."""
    whole, more = divmod(sessions, len(config.agents))
    pairs, there = config.agent_pairs(), config.agents[:more]
    return whole * len(pairs) + sum(a in there and b in there for a, b in pairs)


def _within(limit: int | None, count: int) -> int:
    return count if limit is None else min(limit, count)


def _prompt_chars(config: Config, name: str) -> int:
    return len(prompt(name, config.language).text)
