"""What an examination found: how bad it is, where, what is the matter, what to do."""

from dataclasses import asdict, dataclass
from typing import Literal

Level = Literal["error", "warning", "ok"]
LEVELS: tuple[Level, ...] = ("error", "warning", "ok")


@dataclass(frozen=True, slots=True)
class Finding:
    """`code` is for scripts and stays. `where`: a profile, a variable, or a file with its key path.

    `error`: it fails, or measures something else than is meant. `do` is empty where nothing is to be done.
    """

    level: Level
    code: str
    where: str
    what: str
    do: str = ""

    def as_row(self) -> dict[str, str]:
        """As JSON holds it."""
        return asdict(self)


def error(code: str, where: str, what: str, do: str) -> Finding:
    """It fails as it is."""
    return Finding("error", code, where, what, do)


def warning(code: str, where: str, what: str, do: str) -> Finding:
    """It works, and may not be meant."""
    return Finding("warning", code, where, what, do)


def fine(code: str, where: str, what: str, do: str = "") -> Finding:
    """It is as it should be, or good to know."""
    return Finding("ok", code, where, what, do)
