"""Role isolation: a judge that is the simulated user's twin is no second opinion."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from audit.words.config import Config, Profile

Grade = Literal["none", "poor", "fair", "good", "full"]

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


class Isolation(NamedTuple):
    """What a judge and the simulated user share, of prompt, model, family, temperature and provider."""

    judge: str
    user: str
    shared: tuple[str, ...]
    grade: Grade


def isolation(judge: Profile, user: Profile, *, is_same_prompt: bool) -> Isolation:
    """How far apart the two are.

    `none`: one prompt, or one model at one provider with nothing to tell the two apart; `poor`: one model;
    `fair`: one family of models; `good`: one provider or temperature; `full`: nothing shared. A provider is
    known by its host; what is served inside this program has none.
    """
    is_same_model = judge.model.casefold() == user.model.casefold()
    host = urlsplit(judge.base_url).netloc
    aspects = {
        "prompt": is_same_prompt,
        "model": is_same_model,
        "family": is_same_model or family(judge.model) == family(user.model),
        "temperature": judge.temperature is not None and judge.temperature == user.temperature,
        "provider": host == urlsplit(user.base_url).netloc and not judge.base_url.startswith("offline:"),
    }
    is_twin = is_same_model and aspects["provider"] and judge.temperature == user.temperature
    grade: Grade = "full"
    if is_same_prompt or is_twin:
        grade = "none"
    elif is_same_model:
        grade = "poor"
    elif aspects["family"]:
        grade = "fair"
    elif aspects["temperature"] or aspects["provider"]:
        grade = "good"
    return Isolation(judge.name, user.name, tuple(name for name, is_so in aspects.items() if is_so), grade)


def own_kin(judge: Profile, agents: Sequence[Profile]) -> tuple[list[str], list[str]]:
    """The agents that are the judge's own model, and those that are of its family without being that."""
    same = [agent.name for agent in agents if agent.model.casefold() == judge.model.casefold()]
    kin = [agent.name for agent in agents if family(agent.model) == family(judge.model)]
    return same, [name for name in kin if name not in same]


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
