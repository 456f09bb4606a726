"""The result of reading a reply, and the few ways to make one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Choice = Literal["first", "second", "tie"]
Status = Literal["ok", "repaired", "unreadable", "truncated"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge said, by position on its screen.

    choice        None when the reply holds no single readable conclusion; never a tie by default
    status        `repaired` = the form was mended or a plain form stood in for the one asked for;
                  `truncated` = the provider cut the reply, whatever could be read of it
    score_first, score_second   on the judge's own scale; None = absent or invalid
    parsed        what was read, JSON-safe: {"label": "A>>B"}, {"scores": [9, 8.5]} or the JSON object itself
    why           one short phrase: why nothing could be read, or what was odd about what was
    """

    choice: Choice | None
    status: Status
    score_first: float | None
    score_second: float | None
    parsed: dict[str, object] | None
    why: str | None


def unreadable(why: str, parsed: dict[str, object] | None = None) -> Verdict:
    return Verdict(None, "unreadable", None, None, parsed, why)


def labelled(choice: Choice, label: str, status: Status = "ok", why: str | None = None) -> Verdict:
    return Verdict(choice, status, None, None, {"label": label}, why)


def mirrored(choice: Choice) -> Choice:
    """The choice with the two positions exchanged."""
    if choice == "tie":
        return "tie"
    return "second" if choice == "first" else "first"
