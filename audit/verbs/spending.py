"""What calls take: tokens, and money where a price is known."""

from dataclasses import dataclass
from typing import Protocol

from audit.words.calls import Reply, Usage
from audit.words.config import Config
from audit.words.records import JudgeLog
from audit.words.text import as_json

CHARS_A_TOKEN = 4


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens and USD. `guessed`: so many calls told no tokens; `unpriced`: of so many no cost is known."""

    tokens: int = 0
    cost: float = 0.0
    guessed: int = 0
    unpriced: int = 0

    def __add__(self, other: "Spent") -> "Spent":
        """Of both together."""
        return Spent(
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.guessed + other.guessed,
            self.unpriced + other.unpriced,
        )


class Call(Protocol):
    """What is known of a call that was made; NULL where nobody told."""

    @property
    def profile(self) -> str | None: ...

    @property
    def parse_status(self) -> str: ...

    @property
    def prompt_tokens(self) -> int | None: ...

    @property
    def completion_tokens(self) -> int | None: ...

    @property
    def total_tokens(self) -> int | None: ...


def cost_of(log: JudgeLog, config: Config) -> float | None:
    """USD of a call; NULL where its tokens or its model's price are not known.

    A failed call whose tokens nobody told costs nothing.
    """
    usage = Usage(log.prompt_tokens, log.completion_tokens, None, log.total_tokens)
    return _cost(config, log.profile or "", usage, is_error=log.parse_status == "error")


def spent_by(log: JudgeLog, config: Config) -> Spent:
    """What a call used. Tokens that no gateway told are guessed; a failed call without any counts nothing."""
    usage = Usage(log.prompt_tokens, log.completion_tokens, None, log.total_tokens)
    chars = len(log.request_json or "") + len(log.raw_output or "")
    return _spent(config, log.profile or "", usage, chars, is_error=log.parse_status == "error")


def spent_on(reply: Reply, profile: str, config: Config) -> Spent:
    """The same of a call that a profile's model has just answered."""
    unknown = reply.usage.total_tokens is None and reply.status != "error"
    chars = len(as_json(reply.request)) + len(reply.content or "") if unknown else 0
    return _spent(config, profile, reply.usage, chars, is_error=reply.status == "error")


def _spent(config: Config, profile: str, usage: Usage, chars: int, *, is_error: bool) -> Spent:
    cost = _cost(config, profile, usage, is_error=is_error)
    unpriced = int(cost is None)
    if usage.total_tokens is None and is_error:
        return Spent()
    tokens = chars // CHARS_A_TOKEN if usage.total_tokens is None else usage.total_tokens
    price = config.price_of(profile)
    if cost is None and price is not None:
        # So that a limit of costs holds all the same: most of a judge's tokens are the prompt's.
        cost = price.usd(tokens, 0)
    return Spent(tokens, cost or 0.0, int(usage.total_tokens is None), unpriced)


def _cost(config: Config, profile: str, usage: Usage, *, is_error: bool) -> float | None:
    price = config.price_of(profile)
    if price is None:
        return None
    if is_error and usage.total_tokens is None:
        return 0.0
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    return price.usd(usage.prompt_tokens, usage.completion_tokens)
