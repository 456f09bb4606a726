"""Role isolation: a judge that is the simulated user's twin is no second opinion."""

import re

from audit.words.config import Config, Profile

# What models of one line are called, and who makes them. Words that an errand may be about are left out.
_LINES = (
    ("gpt", "chatgpt", "openai"),
    ("claude", "anthropic"),
    ("gemini", "gemma", "deepmind"),
    ("qwen", "tongyi", "通义千问"),
    ("llama",),
    ("mistral", "mixtral"),
    ("deepseek", "深度求索"),
    ("grok",),
    ("glm", "chatglm", "zhipu", "智谱"),
    ("kimi", "moonshot"),
)


def role_isolation(config: Config) -> list[str]:
    """A sentence for each thing that a judge shares with the simulated user, or with an agent it judges."""
    if not config.user:
        return []
    user = config.profile(config.user)
    warnings = []
    for judge in map(config.profile, dict.fromkeys(config.judge_names())):
        if judge.model == user.model:
            warnings.append(
                f"judge {judge.name} and simulated user {user.name} are the same model {judge.model}"
            )
        elif family(judge.model) == family(user.model):
            warnings.append(
                f"judge {judge.name} and simulated user {user.name} are of one family, {family(judge.model)}"
            )
        if judge.temperature is not None and judge.temperature == user.temperature:
            warnings.append(
                f"judge {judge.name} and simulated user {user.name} have the same temperature "
                f"{judge.temperature:g}: one wants to be steady, the other varied"
            )
        warnings += [_own_judge(judge, config.profile(agent)) for agent in config.agents if
                     config.profile(agent).model == judge.model]  # fmt: skip
    return warnings


def family(model: str) -> str:
    """The vendor's line of a model, from its name: its first letters, after a vendor's prefix.

    `openai/gpt-4o-mini` and `gpt-5` are `gpt`; `claude-3-haiku` is `claude`; `Qwen2.5-7B` is `qwen`.
    """
    name = model.rpartition("/")[2].lower()
    found = re.match(r"[a-z]+", name)
    return found[0] if found else name


def self_names(model: str) -> set[str]:
    """By which names a model may speak of itself: its own, without its vendor's prefix too, and its line's.

    `openai/gpt-4o` gives `openai/gpt-4o`, `gpt-4o`, `gpt`, `chatgpt` and `openai`.
    """
    name = model.rpartition("/")[2]
    lines = [line for line in _LINES if any(word in model.casefold() for word in line)]
    return {model, name, *(word for line in lines for word in line)}


def _own_judge(judge: Profile, agent: Profile) -> str:
    return f"judge {judge.name} judges agent {agent.name}, which is the same model {judge.model}"
