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
    """Sessions, pairs, calls by role, and tokens in all; the calls of a simulation are a guess."""
    config = order.config
    tasks = load_tasks([Path(path) for path in config.tasks])
    sessions = len(tasks) * config.trials * len(config.agents)
    pairs = len(tasks) * config.trials * len(config.agent_pairs()) * len(config.judges)
    members = sum(len(panel.members) for panel in config.judges)
    judge_calls = len(tasks) * config.trials * len(config.agent_pairs()) * 2 * members
    criteria = [item for task in tasks for item in task.checks if item.kind == "llm"]
    verifier_calls = len(criteria) * config.trials * len(config.agents)
    policy = max((len(task.domain.policy) for task in tasks), default=0)
    simulation = sessions * (_USER_CALLS + _AGENT_CALLS)
    chars = (
        simulation * (policy + _SESSION_CHARS // 2)
        + judge_calls * (_prompt_chars(config, "judge_pair") + policy + 2 * _SESSION_CHARS + _ANSWER_CHARS)
        + verifier_calls * (_prompt_chars(config, "check") + policy + _SESSION_CHARS + _ANSWER_CHARS)
        + sessions * (_prompt_chars(config, "satisfaction") + policy + _SESSION_CHARS + _ANSWER_CHARS)
    )
    return {
        "sessions": sessions,
        "pairs": pairs,
        "simulation calls": simulation,
        "judge calls": judge_calls,
        "satisfaction calls": sessions,
        "verifier calls": verifier_calls,
        "tokens": chars // _CHARS_A_TOKEN,
    }


def _prompt_chars(config: Config, name: str) -> int:
    return len(prompt(name, config.language).text)
