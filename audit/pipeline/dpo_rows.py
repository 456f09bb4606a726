"""One pair as one row of a training set, or the reasons why it gives none."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from audit.doors.ask_dpo import Candidate
from audit.doors.dataset import Field
from audit.pipeline.dpo_noise import UNSURE, Backing, Measured, backing, better_side, chosen_side
from audit.pipeline.dpo_sessions import Sessions
from audit.verbs.dpo import Parted, cut_at, length, parted
from audit.verbs.dpo_text import as_strings
from audit.words.flags import FLAGS, Cut, Form, Prefer
from audit.words.names import TOLERANCE

_RIDING = (
    Field("pair_id", "text"),
    Field("run_id", "text"),
    Field("reward_gap", "real"),
    Field("gap_bucket", "text"),
    Field("margin", "real"),
    Field("flip_rate", "real"),
    Field("weight", "real"),
)


class Made(NamedTuple):
    """What became of a pair: `rows` is empty where one of its `flags` drops it.

    `kinds`: for each row a bit for every thing that not all rows have (see doors.dataset).
    """

    rows: list[dict[str, Any]]
    kinds: list[int]
    reasons: tuple[str, ...]
    told: tuple[str, ...]
    backing: Backing | None


class Rules(NamedTuple):
    """How rows are made; `tools`: task_id -> the JSON of its tools, empty where none are known."""

    run_id: str
    prefer: Prefer
    cut: Cut
    form: Form
    dropped_by: frozenset[str]
    near_below: float | None
    max_chars: int | None
    stop_tokens: tuple[str, ...]
    tools: Mapping[str, str]

    def fields(self) -> list[Field]:
        """The columns of the rows."""
        kind = "text" if self.form == "standard" else "messages"
        sides: list[Field]
        if self.form == "kto":
            sides = [Field("prompt", "messages"), Field("completion", "messages"), Field("label", "flag")]
        else:
            sides = [Field(name, kind) for name in ("prompt", "chosen", "rejected")]  # type: ignore[arg-type]
        has_tools = self.tools and self.form != "standard"
        return [*sides, *([Field("tools", "text")] if has_tools else []), *_RIDING]


class Maker:
    """Makes the rows of one run."""

    def __init__(self, rules: Rules, measured: Measured, sessions: Sessions) -> None:
        self.rules = rules
        self.measured = measured
        self._sessions = sessions
        self._drops: dict[tuple[str, ...], Made] = {}
        self._dropping = rules.dropped_by - {"near_tie"}
        self._has_tools = bool(rules.tools) and rules.form != "standard"

    def make(self, pair: Candidate, stored: Sequence[str]) -> Made:
        """The pair, which has these flags in the view. Text that addresses a judge is looked for last."""
        rules = self.rules
        a, b = self._sessions.get(pair.session_a), self._sessions.get(pair.session_b)
        reasons = [flag for flag in stored if flag in self._dropping]
        told = ("near_tie",) if self._is_near(pair, stored) else ()
        if a is None or b is None:
            return self._dropped((*reasons, "no_transcript"), told)
        places = cut_at(a.messages, b.messages, rules.cut, a.task)
        if isinstance(places, str):
            return self._dropped((*reasons, places), told)
        side = chosen_side(pair, rules.prefer)
        if reasons or side is None:
            return self._dropped(tuple(reasons) or ("no_preference",), told)
        found = parted(a.messages, b.messages, places, rules.cut, a.task)
        if a.is_suspect() or b.is_suspect():
            told = (*told, "injection_suspected")
        too_long = rules.max_chars is not None and _longest(found) > rules.max_chars
        if too_long or not rules.dropped_by.isdisjoint(told):
            return self._dropped(("too_long",) if too_long else (), told)
        # A bit for each of prompt, A's and B's completion that holds a tool call.
        calls = (a.first_call < places[0] and rules.cut != "whole") | (a.last_call >= places[0]) << 1
        return self._made(pair, found, side, stored, told, calls | (b.last_call >= places[1]) << 2)

    def _dropped(self, reasons: tuple[str, ...], told: tuple[str, ...]) -> Made:
        """No row. Most pairs are dropped, and for the same few sets of reasons: each is made once."""
        alike = reasons + told
        found = self._drops.get(alike)
        if found is None:
            dropping = {*reasons, *(flag for flag in told if flag in self.rules.dropped_by)}
            found = Made([], [], tuple(sorted(dropping, key=FLAGS.index)), told, None)
            self._drops[alike] = found
        return found

    def _made(
        self,
        pair: Candidate,
        found: Parted,
        side: str,
        stored: Sequence[str],
        told: tuple[str, ...],
        calls: int,
    ) -> Made:
        better = better_side(pair.reward_a, pair.reward_b)
        vouching = better if not stored or UNSURE.isdisjoint(stored) else None
        behind = backing(self.measured, pair.pair_id, pair.gap_bucket, side, vouching)
        chosen, rejected = (found.rest_a, found.rest_b) if side == "A" else (found.rest_b, found.rest_a)
        riding = self._riding(pair, side, vouching, behind)
        prompt = found.prompt
        if self.rules.form == "standard":
            texts = as_strings(prompt, chosen, rejected)
            strings = dict(zip(("prompt", "chosen", "rejected"), texts, strict=True))
            return Made([strings | riding], [self._kinds(riding)], (), told, behind)
        if side == "B":
            calls = calls & 1 | calls >> 1 & 2 | calls << 1 & 4
        if self.rules.form == "kto":
            rows = [
                {"prompt": prompt, "completion": completion, "label": label, **riding}
                for completion, label in ((chosen, True), (rejected, False))
            ]
            numbers = self._kinds(riding)
            kinds = [calls & 3 | numbers, calls & 1 | calls >> 1 & 2 | numbers]
            return Made(rows, kinds, (), told, behind)
        row = {"prompt": prompt, "chosen": chosen, "rejected": rejected, **riding}
        return Made([row], [calls | self._kinds(riding)], (), told, behind)

    def _riding(self, pair: Candidate, side: str, vouching: str | None, behind: Backing) -> dict[str, Any]:
        rate = behind.rate
        margin = 0.0
        if vouching == side and pair.reward_a is not None and pair.reward_b is not None:
            margin = abs(pair.reward_a - pair.reward_b)
        riding = {
            "pair_id": pair.pair_id,
            "run_id": self.rules.run_id,
            "reward_gap": pair.reward_gap,
            "gap_bucket": pair.gap_bucket,
            "margin": margin,
            "flip_rate": rate,
            "weight": None if rate is None else max(0.0, 1 - 2 * rate),
        }
        if self._has_tools:
            return {"tools": self.rules.tools.get(pair.task_id, "[]"), **riding}
        return riding

    @staticmethod
    def _kinds(riding: dict[str, Any]) -> int:
        return (riding["reward_gap"] is not None) << 3 | (riding["flip_rate"] is not None) << 4

    def _is_near(self, pair: Candidate, stored: Sequence[str]) -> bool:
        if self.rules.near_below is None:
            return "near_tie" in stored
        return pair.reward_gap is not None and pair.reward_gap < self.rules.near_below - TOLERANCE


def _longest(found: Parted) -> int:
    return length(found.prompt) + max(length(found.rest_a), length(found.rest_b))
