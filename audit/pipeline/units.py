"""Units of work by name: what the live stages hand out, and what a worker does with it."""

from functools import cached_property
from typing import Any, Literal, Protocol

from audit.pipeline.asking import Asking
from audit.pipeline.checking import Checking
from audit.pipeline.simulating import Simulating
from audit.pipeline.workplace import Workplace

Kind = Literal["session", "pair", "satisfaction", "check"]


class Workers(Protocol):
    """Where units of work are done: in this process (Units), or in others (pipeline.ray_workers)."""

    async def do(self, kind: Kind, item: Any) -> Any:
        """What became of the item, with its calls. Raises UsedUp where the budget left none."""


class Units:
    """Every unit of work of one run, done at this workplace."""

    def __init__(self, workplace: Workplace) -> None:
        self.workplace = workplace

    async def do(self, kind: Kind, item: Any) -> Any:
        """Simulate a session, judge a pair, ask for a session's satisfaction, or check one."""
        if kind == "session":
            return await self._simulating.session(item)
        if kind == "pair":
            return await self._asking.pair(item)
        if kind == "satisfaction":
            return await self._asking.session(item)
        return await self._checking.session(item)

    @cached_property
    def _simulating(self) -> Simulating:
        return Simulating(self.workplace)

    @cached_property
    def _asking(self) -> Asking:
        return Asking(self.workplace)

    @cached_property
    def _checking(self) -> Checking:
        return Checking(self.workplace)
