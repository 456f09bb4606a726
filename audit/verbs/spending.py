"""What calls take: tokens, and money where a price is known."""

from dataclasses import dataclass
from typing import Protocol

from audit.words.config import Config
from audit.words.records import JudgeLog

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


def cost_of(log: Call, config: Config) -> float | None:
    """USD of a call; NULL where its tokens or its model's price are not known.

    A failed call whose tokens nobody told costs nothing.
    """
    price = config.price_of(log.profile or "")
    if price is None:
        return None
    if log.parse_status == "error" and log.total_tokens is None:
        return 0.0
    if log.prompt_tokens is None or log.completion_tokens is None:
        return None
    return (log.prompt_tokens * price.prompt + log.completion_tokens * price.completion) / 1e6


def spent_by(log: JudgeLog, config: Config) -> Spent:
    """What a call used. Tokens that no gateway told are guessed; a failed call without any counts nothing."""
    cost = cost_of(log, config)
    unpriced = int(cost is None)
    if log.total_tokens is not None:
        return Spent(log.total_tokens, cost or 0.0, 0, unpriced)
    if log.parse_status == "error":
        return Spent()
    chars = len(log.request_json or "") + len(log.raw_output or "")
    return Spent(chars // CHARS_A_TOKEN, cost or 0.0, 1, unpriced)
