"""What the calls of a stage are expected to take, before any was made. Guesses, in characters and tokens."""

from collections.abc import Sequence
from typing import NamedTuple

from audit.doors.prompts import prompt
from audit.verbs.spending import CHARS_A_TOKEN
from audit.words.config import Config
from audit.words.tasks import Task

# A session of a few turns, as the embedded one has them; only a live run tells the truth.
USER_CALLS, AGENT_CALLS = 3, 6
ATTEMPTS = 2  # a reply that cannot be read is asked for once more
_SESSION_CHARS, ANSWER_CHARS = 4000, 500


def call_chars(config: Config, tasks: Sequence[Task]) -> dict[str, int]:
    """Characters of one call, prompt and answer: of a simulation, of a judge, of satisfaction, of a check."""
    policy = max((len(task.domain.policy) for task in tasks), default=0)
    asked = {name: prompt_chars(config, name) for name in ("judge_pair", "satisfaction", "check")}
    return {
        "simulate": policy + _SESSION_CHARS // 2,
        "judge": asked["judge_pair"] + policy + 2 * _SESSION_CHARS + ANSWER_CHARS,
        "satisfaction": asked["satisfaction"] + policy + _SESSION_CHARS + ANSWER_CHARS,
        "verify": asked["check"] + policy + _SESSION_CHARS + ANSWER_CHARS,
    }


class Unit(NamedTuple):
    """What one unit of a stage takes: tokens as a guess, and the most calls; NULL where that has no limit."""

    tokens: int
    most_calls: int | None


def units(config: Config, tasks: Sequence[Task]) -> dict[str, Unit]:
    """By stage: a session to simulate, a pair to judge, a session to ask of or to check."""
    members = max(len(panel.members) for panel in config.judges)
    criteria = max((sum(item.kind == "llm" for item in task.checks) for task in tasks), default=0)
    calls = {
        "simulate": (USER_CALLS + AGENT_CALLS, None),
        "judge": (2 * members, 2 * members * ATTEMPTS),
        "satisfaction": (1, ATTEMPTS),
        "verify": (criteria, criteria * ATTEMPTS),
    }
    chars = call_chars(config, tasks)
    return {
        stage: Unit(usual * chars[stage] // CHARS_A_TOKEN, most) for stage, (usual, most) in calls.items()
    }


def prompt_chars(config: Config, name: str) -> int:
    """Characters of a template, before anything is filled in."""
    return len(prompt(name, config.language).text)
