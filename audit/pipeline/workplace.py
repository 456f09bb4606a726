"""Workplace: what one unit of work is done with, in this process or in a worker elsewhere.

A unit is a session to simulate, a pair to judge, a satisfaction question, or a session to check.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from audit.doors.config import keys_of
from audit.doors.llm import Models, held_keys, reached_at
from audit.doors.prompts import Prompt, prompt
from audit.verbs.isolation import self_names
from audit.verbs.render import Hidden
from audit.verbs.shorten import Shortened, shorten
from audit.verbs.spending import Spent, spent_on
from audit.words.calls import Message, Reply
from audit.words.config import Config, Panel, Profile
from audit.words.profiles import Endpoint
from audit.words.records import Run
from audit.words.tasks import Task

# As a profile's name such a word tells nothing of who is meant, and every transcript is full of them.
_ROLE_WORDS = {"agent", "assistant", "customer", "judge", "user", "客服", "助手", "顾客", "用户", "裁判"}


class Allowance(Protocol):
    """What may still be asked of models. `refuse_call` raises UsedUp where nothing is left for one more."""

    async def refuse_call(self, role: str) -> None: ...

    async def spend(self, role: str, spent: Spent) -> None: ...


@dataclass(slots=True, kw_only=True)
class Workplace:
    """The run, its config and tasks, its models, and what may still be asked of them."""

    run: Run
    config: Config
    tasks: list[Task]
    models: Models
    allowance: Allowance
    note: Callable[[str], None]
    recorded_agents: frozenset[str] = frozenset()

    def endpoint(self, name: str) -> Endpoint:
        """The endpoint of a profile."""
        return endpoint_of(self.config.profile(name))

    async def chat(self, endpoint: Endpoint, messages: Sequence[Message], **more: Any) -> Reply:
        """Ask a model, and count what that took. Raises UsedUp where the budget leaves no call."""
        await self.allowance.refuse_call(endpoint.role)
        reply = await self.models.chat(endpoint, messages, **more)
        await self.allowance.spend(endpoint.role, spent_on(reply, endpoint.name, self.config))
        return reply

    def prompt(self, name: str) -> Prompt:
        """A template in the run's language."""
        return prompt(name, self.config.language)

    def hidden(self) -> Hidden:
        """What a judge must not see."""
        profiles = ((profile.name, profile.model) for profile in self.config.profiles)
        return hidden_names(profiles, self.recorded_agents, self.config.stop_tokens)

    def shown(self, transcript_json: str | None) -> Shortened:
        """What of a session a judge is shown: all, unless it is too long."""
        return shorten(json.loads(transcript_json or "[]"), self.config.transcript_tokens)

    def id_tail(self) -> str:
        """What the ids of the run's sessions and pairs begin with."""
        return self.run.run_id[-8:]


def hidden_names(
    profiles: Iterable[tuple[str, str]], recorded_agents: Iterable[str], stop_tokens: Iterable[str]
) -> Hidden:
    """What tells who is who: of profiles (name, model), and recorded agents."""
    names = {word for name, model in profiles for word in {name} | self_names(model)}
    # A recorded agent may be called anything, such as `new`: what is a plain word tells nobody.
    names |= {name for name in recorded_agents if not name.isalpha()}
    return Hidden(names - _ROLE_WORDS, stop_tokens)


def keys_for(config: Config) -> dict[str, str | None]:
    """Key name -> key of every profile in use. Raises AuditError where one cannot be reached as written."""
    by_profile = keys_of(config)
    used = [profile for profile in config.profiles if profile.name in by_profile]
    keys = {key_name(profile) or profile.name: by_profile[profile.name] for profile in used}
    # Now, and not when a judge's turn comes after hours of paid simulation.
    for profile in used:
        reached_at(endpoint_of(profile), held_keys(keys))
    return keys


def transports() -> dict[str, Any]:
    """What answers in this process: the synthetic models."""
    from audit.offline.transport import OfflineTransport

    return {"offline://": OfflineTransport()}


def endpoint_of(profile: Profile) -> Endpoint:
    """A profile of the config as the door to models takes it."""
    return Endpoint(
        name=profile.name,
        base_url=profile.base_url,
        api_key_env=key_name(profile),
        model=profile.model,
        role=profile.role,
        temperature=profile.temperature,
        max_tokens=profile.max_tokens,
        seed=profile.seed,
        timeout_s=profile.timeout_s,
        attempts=profile.attempts,
        rpm=profile.rpm,
        tpm=profile.tpm,
        concurrency=profile.concurrency,
        extra=dict(profile.extra),
    )


def key_name(profile: Profile) -> str | None:
    """Under which name the profile's key is handed to the door: its variable, or a name of its own."""
    return profile.api_key_env or (f"key of {profile.name}" if profile.api_key is not None else None)


def gates_of(config: Config) -> dict[str, Panel]:
    """Gate -> its panel."""
    return {panel.gate: panel for panel in config.judges}
