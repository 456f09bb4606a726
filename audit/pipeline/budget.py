"""Budget: what a run has used so far, what the units under way may still use, and whether one more fits.

Counted are all calls of the run, also those of earlier commands on it. Room is kept for the units under way
(a session to simulate, a pair to judge): for each as much as such units took so far. Where that was too
little, no further call is made: what was asked is stored, and gone on with when there is a higher budget.
"""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from audit.pipeline.expected import Unit
from audit.verbs.spending import CHARS_A_TOKEN, Spent, spent_by
from audit.words.config import Config
from audit.words.errors import BadRequest
from audit.words.records import JudgeLog

# The role of a call's log -> the role of the profile that made it.
ROLES = {
    "user_simulator": "simulated_user",
    "agent": "agent",
    "judge": "llm_judge",
    "satisfaction": "llm_judge",
    "verifier": "llm_judge",
}
_OF_STAGE = {
    "simulate": ("simulated_user", "agent"),
    "judge": ("llm_judge",),
    "satisfaction": ("llm_judge",),
    "verify": ("llm_judge",),
}
_RUN = ""  # the run as a whole, beside its roles


class _Limit(NamedTuple):
    """One limit, what was used of it, and what a unit of this stage takes."""

    role: str
    what: str
    most: float
    used: float
    of_unit: float

    def __str__(self) -> str:
        whose = f" of role {self.role}" if self.role else ""
        digits = ",.0f" if self.what == "tokens" else ",.4f"
        return (
            f"the budget{whose} of {self.most:{digits}} {self.what} is used up "
            f"({self.used:{digits}} used by this run)"
        )


class UsedUp(Exception):
    """Nothing is left for one more call: what is under way is stored as far as it came."""


@dataclass(slots=True)
class Budget:
    """The limits of a run against what it uses, with so many calls at once. `expected`: by stage."""

    config: Config
    expected: dict[str, Unit]
    concurrency: int
    used: dict[str, Spent] = field(default_factory=dict)
    is_used_up: bool = False
    reached: tuple[str, str] | None = None  # (role, what) of the limit that was
    _stage: str = ""
    _under_way: int = 0
    _units: int = 0
    _of_units: dict[str, Spent] = field(default_factory=dict)
    _one_done: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, stage: str) -> None:
        """A stage begins: nothing of it is under way."""
        self._stage, self._under_way, self._units, self._of_units = stage, 0, 0, {}

    async def has_room(self) -> bool:
        """May one more unit begin? Waits until units under way have shown what they take.

        Where it may, room is kept for it; else `refusal` says why not.
        """
        while not self.fits():
            if self.is_used_up:
                return False
            await self._one_done.wait()
        self._under_way += 1
        return True

    def fits(self) -> bool:
        """Is there room for one more unit now? `is_used_up` is set where there will be none later either."""
        limits = list(self._limits(_OF_STAGE[self._stage]))
        if self._is_over(limits):
            return False
        # Alone, a unit may begin as long as anything is left: else nothing ever could.
        if not limits or not self._under_way:
            return True
        if not self._units:
            # Nothing is known of their size yet: so few that all their calls would be under way at once.
            most_calls = self.expected[self._stage].most_calls or self.concurrency
            return self._under_way < self.concurrency // max(most_calls, 1)
        return all(limit.used + limit.of_unit * (self._under_way + 1) <= limit.most for limit in limits)

    def fits_beside(self, planned: Spent) -> bool:
        """Is there room for one more call, beside calls of this stage that are planned and not made?

        The first always has it while anything is left. `is_used_up` is set where nothing is.
        """
        limits = list(self._limits(_OF_STAGE[self._stage]))
        if self._is_over(limits):
            return False
        for limit in limits:
            more = planned.tokens if limit.what == "tokens" else planned.cost
            if limit.used + more >= limit.most:
                return False
        return True

    async def refuse_call(self, role: str) -> None:
        """Raises UsedUp where nothing is left for a call of a profile of this role."""
        if self._is_over(list(self._limits((role,)))):
            raise UsedUp

    async def spend(self, role: str, spent: Spent) -> None:
        """A call of a profile of this role was made."""
        self.add(role, spent)

    def add(self, role: str, spent: Spent) -> None:
        """So much more was used by profiles of this role."""
        for name in (_RUN, role):
            self.used[name] = self.used.get(name, Spent()) + spent

    def reach(self, role: str, what: str) -> None:
        """A limit is reached, as this or another process found."""
        if not self.is_used_up:
            self.is_used_up, self.reached = True, (role, what)

    def refusal(self) -> str | None:
        """Which limit was reached, and how much the run has used by now; NULL where none was."""
        if self.reached is None:
            return None
        role, what = self.reached
        limits = self._limits((role,) if role else ())
        return next(str(limit) for limit in limits if (limit.role, limit.what) == (role, what))

    def count(self, logs: Sequence[JudgeLog]) -> None:
        """One unit is done, with these calls: so much takes such a unit."""
        self._one_done.set()
        self._one_done = asyncio.Event()
        self._under_way = max(0, self._under_way - 1)
        self._units += 1
        for log in logs:
            spent = spent_by(log, self.config)
            for role in (_RUN, ROLES[log.role]):
                self._of_units[role] = self._of_units.get(role, Spent()) + spent

    def count_before(self, used: Iterable[dict[str, Any]]) -> None:
        """What earlier commands on the run used: rows of `counts.used`."""
        for row in used:
            price = self.config.price_of(row["profile"] or "")
            guessed = row["chars"] // CHARS_A_TOKEN
            prompt = row["prompt_tokens"] + row["unsplit_tokens"] + guessed
            spent = Spent(
                row["total_tokens"] + guessed,
                0.0 if price is None else price.usd(prompt, row["completion_tokens"]),
                row["guessed"],
                1 if price is None else row["unsplit"],
            )
            self.add(ROLES[row["role"]], spent)

    def total(self) -> Spent:
        """All that the run has used."""
        return self.used.get(_RUN, Spent())

    def _is_over(self, limits: Sequence[_Limit]) -> bool:
        reached = next((limit for limit in limits if limit.used >= limit.most), None)
        if reached is not None:
            self.reach(reached.role, reached.what)
        return reached is not None

    def _limits(self, of_roles: Sequence[str]) -> Iterator[_Limit]:
        """All that hold for calls of these roles."""
        budget = self.config.budget
        roles = [role for role in of_roles if role in budget.roles]
        for role, allowance in [(_RUN, budget), *((role, budget.roles[role]) for role in roles)]:
            used, units = self.used.get(role, Spent()), self._of_units.get(role, Spent())
            done = max(self._units, 1)
            if allowance.max_tokens is not None:
                yield _Limit(role, "tokens", allowance.max_tokens, used.tokens, units.tokens / done)
            if allowance.max_cost is not None:
                yield _Limit(role, "USD", allowance.max_cost, used.cost, units.cost / done)


def refuse_unknown_prices(config: Config, profiles: Iterable[str]) -> None:
    """Raises BadRequest where a limit of costs stands against a model whose price nobody wrote down."""
    budget = config.budget
    limited = {role for role, one in budget.roles.items() if one.max_cost is not None}
    for name in profiles:
        profile = config.profile(name)
        is_limited = budget.max_cost is not None or profile.role in limited
        if is_limited and not budget.allow_unknown_cost and config.price_of(name) is None:
            raise BadRequest(
                f"max_cost: the price of model {profile.model!r} (profile {name!r}) is not known: write it "
                f"under prices: {{{profile.model}: {{prompt: ..., completion: ...}}}}, in USD a million "
                "tokens, or go on with --allow-unknown-cost"
            )
