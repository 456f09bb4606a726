"""What the live stages share: the run, its config, its tasks, the models, and what was used up so far."""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import Engine

from audit.doors.llm_secrets import Secrets
from audit.doors.llm_url import keys_of_query, shown_url
from audit.pipeline.budget import Budget, UsedUp
from audit.pipeline.named_buckets import named_buckets
from audit.pipeline.work import Work
from audit.pipeline.workplace import Workplace
from audit.verbs.gaps import GAUGE, SCORES, BucketSet
from audit.verbs.spending import Spent
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.keys import keys_in, without_keys
from audit.words.records import JudgeLog

# So many calls of a profile, all refused in one of these ways, and none answered: it will not get better.
_HOPELESS = 10
_REFUSALS = ("HTTP 401", "HTTP 403", "HTTP 404")


Item = TypeVar("Item")


class _Done(Protocol):
    """A unit that is done, with its calls."""

    @property
    def logs(self) -> list[JudgeLog]: ...


Done = TypeVar("Done", bound=_Done)


@dataclass(slots=True)
class Meter:
    """Counts of this process: calls, tokens where they are known, failed calls; and who wants to know."""

    calls: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    errors: int = 0
    stage: str = ""
    done: int = 0
    total: int = 0
    notes: list[str] = field(default_factory=list)
    stopped_by: str | None = None
    over_budget: str | None = None
    used: Spent | None = None  # by the run, earlier commands on it included
    refused: Counter[str] = field(default_factory=Counter)
    answering: set[str] = field(default_factory=set)
    tell: Callable[["Meter"], None] = lambda _meter: None

    def begin(self, stage: str, total: int) -> None:
        """A stage begins with so many units to do."""
        self.stage, self.total, self.done = stage, total, 0
        self.tell(self)

    def note(self, text: str) -> None:
        """Something the user should be told at the end; the first few are enough."""
        if len(self.notes) < 20:
            self.notes.append(text)

    def count(self, logs: list[JudgeLog]) -> None:
        """One unit is done, with these calls."""
        self.done += 1
        self.calls += len(logs)
        for log in logs:
            self.errors += log.parse_status == "error"
            if log.parse_status != "error":
                self.answering.add(log.profile or "")
            elif (log.error or "").startswith(_REFUSALS):
                self.refused[log.profile or ""] += 1
            if log.total_tokens is None:
                self.unknown_tokens += 1
            else:
                self.tokens += log.total_tokens
        self.tell(self)

    def hopeless(self) -> str | None:
        """A profile that refuses every call for good, such as for a wrong key: to ask on is of no use."""
        refusing = (name for name, calls in self.refused.items() if calls >= _HOPELESS)
        return next((name for name in refusing if name not in self.answering), None)


@dataclass(slots=True, kw_only=True)
class Live(Workplace):
    """One live run under way: the workplace of its units in this process, and what drives them."""

    engine: Engine
    concurrency: int
    budget: Budget
    meter: Meter
    limit: int | None = None
    retry_errors: bool = False

    def begin(self, stage: str, total: int) -> None:
        """A stage begins with so many units to do."""
        self.meter.begin(stage, total)
        self.budget.begin(stage)

    def is_answered(self) -> bool:
        """Does every model answer? Says which one does not in `meter.stopped_by`."""
        profile = self.meter.hopeless()
        if profile is not None:
            self.meter.stopped_by = f"{profile} refuses every call"
        return profile is None

    async def may_go_on(self) -> bool:
        """May one more unit begin: does every model answer, and does it fit in the budget?"""
        return self.is_answered() and await self.budget.has_room()

    def work(
        self,
        do: Callable[[Item], Awaitable[Done]],
        keep: Callable[[list[Done]], None],
        may_go_on: Callable[[], Awaitable[bool]] | None = None,
    ) -> Work[Item, Done]:
        """Many units at once; what one used is counted against the budget as soon as it is done."""

        async def unit(item: Item) -> Done | None:
            try:
                done = await do(item)
            except UsedUp:
                return None
            self.budget.count(done.logs)
            return done

        return Work(unit, keep, concurrency=self.concurrency, may_go_on=may_go_on or self.may_go_on)


def buckets_of(config: Config) -> BucketSet:
    """The bucket set that the config names; `gap_source: judge` implies `scores`. Raises BadRequest."""
    if config.buckets is None and config.near is not None:
        raise BadRequest("near: it needs buckets, because a preset says itself what is near")
    if config.buckets is not None:
        try:
            return named_buckets(config.buckets, config.near)
        except ValueError as error:
            raise BadRequest(f"buckets: {error}") from error
    return SCORES if config.gap_source == "judge" else GAUGE


def public_config(config: Config) -> dict[str, Any]:
    """The config without secrets, as it is stored and hashed. Raises BadRequest where a name holds one."""
    refuse_keys(config)
    found = config.model_dump(mode="json", exclude={"profiles": {"__all__": {"api_key"}}})
    for profile in found["profiles"]:
        profile["base_url"] = shown_url(profile["base_url"])
        profile["extra"] = without_keys(profile["extra"])
    stored: dict[str, Any] = _secrets_of(config).out_of(found)
    return stored


def refuse_keys(config: Config, run_name: str | None = None) -> None:
    """Raises BadRequest where a key stands in what is shown and stored as it is: names and models."""
    secrets = _secrets_of(config)
    kept = {"--name": run_name or "", "name": config.name}
    for index, profile in enumerate(config.profiles):
        kept |= {f"profiles[{index}].name": profile.name, f"profiles[{index}].model": profile.model}
    for place, text in kept.items():
        if secrets.are_in(text):
            raise BadRequest(f"{place}: it holds the key of a profile, and would be stored")


def _secrets_of(config: Config) -> Secrets:
    """What no part of the config may be stored with: keys, its own and those of its variables."""
    secrets = Secrets()
    for profile in config.profiles:
        secrets.add(keys_in(profile.extra))
        secrets.add({profile.api_key.get_secret_value()} if profile.api_key else ())
        secrets.add(keys_of_query(dict(parse_qsl(urlsplit(profile.base_url).query))))
    return secrets
