"""One pair as one row of a training set, or the reasons why it gives none."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from audit.doors.ask_dpo import Candidate
from audit.doors.dataset import Field
from audit.pipeline.dpo_noise import UNSURE, Backing, Measured, backing, better_side, chosen_side
from audit.verbs.dpo import Parted, cleaned, cut_at, length, parted
from audit.verbs.dpo_text import addresses_judge, as_strings, may_think
from audit.words.calls import Message
from audit.words.flags import FLAGS, Cut, Form, Prefer
from audit.words.names import TOLERANCE
from audit.words.text import from_json

# Sessions are in many pairs, mostly of one task: so many characters of them are kept cleaned, and as many
# of those before.
_KEPT_CHARS = 120_000
_NO_ROWS: list[dict[str, Any]] = []
_NO_KINDS: list[int] = []
_RIDING = (
    Field("pair_id", "text"),
    Field("run_id", "text"),
    Field("reward_gap", "real"),
    Field("gap_bucket", "text"),
    Field("margin", "real"),
    Field("flip_rate", "real"),
    Field("weight", "real"),
)


class Cleaned:
    """A session as it is trained on. Of its tool calls the first and the last message that has one."""

    __slots__ = ("_is_suspect", "first_call", "last_call", "messages")

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        calling = [at for at, message in enumerate(messages) if "tool_calls" in message]
        self.first_call = calling[0] if calling else len(messages)
        self.last_call = calling[-1] if calling else -1
        self._is_suspect: bool | None = None

    def is_suspect(self) -> bool:
        """Does the agent address the judge? Looked for once, where somebody asks."""
        if self._is_suspect is None:
            self._is_suspect = addresses_judge(self.messages)
        return self._is_suspect


class Made(NamedTuple):
    """What became of a pair: `rows` is empty where one of its `flags` drops it.

    `kinds`: for each row a bit for every thing that not all rows have (see doors.dataset).
    """

    rows: list[dict[str, Any]]
    kinds: list[int]
    reasons: list[str]
    told: list[str]
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

    def __init__(self, rules: Rules, measured: Measured) -> None:
        self.rules = rules
        self.measured = measured
        self._sessions: dict[str | None, Cleaned] = {}
        self._earlier: dict[str | None, Cleaned] = {}
        self._kept = 0
        # Tokens that stand in JSON as they are can be looked for before it is parsed.
        plain = [token for token in rules.stop_tokens if json.dumps(token) == f'"{token}"']
        self._plain_tokens = tuple(plain)
        self._odd_tokens = tuple(token for token in rules.stop_tokens if token not in plain)
        self._has_tools = bool(rules.tools) and rules.form != "standard"

    def make(self, pair: Candidate, stored: Sequence[str]) -> Made:
        """The pair, which has these flags in the view. Text that addresses a judge is looked for last."""
        rules, dropped_by = self.rules, self.rules.dropped_by
        known, earlier, id_a, id_b = self._sessions, self._earlier, pair.session_a, pair.session_b
        a = known.get(id_a) or earlier.get(id_a) or self._cleaned(id_a, pair.transcript_a)
        b = known.get(id_b) or earlier.get(id_b) or self._cleaned(id_b, pair.transcript_b)
        reasons = [flag for flag in stored if flag in dropped_by and flag != "near_tie"] if stored else []
        told = ["near_tie"] if self._is_near(pair, stored) else []
        if a is None or b is None:
            return _dropped([*reasons, "no_transcript"], told, dropped_by)
        task = None if pair.source_a is None else _task(pair.source_a)
        places = cut_at(a.messages, b.messages, rules.cut, task)
        if isinstance(places, str):
            return _dropped([*reasons, places], told, dropped_by)
        side = chosen_side(pair, rules.prefer)
        if side is None and not reasons:
            reasons.append("no_preference")
        if reasons or side is None:
            return _dropped(reasons, told, dropped_by)
        found = parted(a.messages, b.messages, places, rules.cut, task)
        if rules.max_chars is not None and _longest(found) > rules.max_chars:
            reasons.append("too_long")
        if a.is_suspect() or b.is_suspect():
            told.append("injection_suspected")
        if reasons or (told and not dropped_by.isdisjoint(told)):
            return _dropped(reasons, told, dropped_by)
        # A bit for each of prompt, A's and B's completion that holds a tool call.
        calls = (a.first_call < places[0] and rules.cut != "whole") | (a.last_call >= places[0]) << 1
        return self._made(pair, found, side, stored, told, calls | (b.last_call >= places[1]) << 2)

    def _made(
        self,
        pair: Candidate,
        found: Parted,
        side: str,
        stored: Sequence[str],
        told: list[str],
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
            return Made([strings | riding], [self._kinds(riding)], [], told, behind)
        if side == "B":
            calls = calls & 1 | calls >> 1 & 2 | calls << 1 & 4
        if self.rules.form == "kto":
            rows = [
                {"prompt": prompt, "completion": completion, "label": label, **riding}
                for completion, label in ((chosen, True), (rejected, False))
            ]
            numbers = self._kinds(riding)
            kinds = [calls & 3 | numbers, calls & 1 | calls >> 1 & 2 | numbers]
            return Made(rows, kinds, [], told, behind)
        row = {"prompt": prompt, "chosen": chosen, "rejected": rejected, **riding}
        return Made([row], [calls | self._kinds(riding)], [], told, behind)

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

    def _cleaned(self, session_id: str | None, transcript: str | None) -> Cleaned | None:
        if session_id is None or transcript is None:
            return None
        tokens = self._odd_tokens
        for token in self._plain_tokens:
            if token in transcript:
                tokens = (*tokens, token)
        messages = cleaned(from_json(transcript), tokens, may_think=may_think(transcript))
        found = Cleaned(messages)
        self._kept += len(transcript)
        if self._kept > _KEPT_CHARS:
            self._earlier, self._sessions = self._sessions, {}
            self._kept = len(transcript)
        self._sessions[session_id] = found
        return found

    def _is_near(self, pair: Candidate, stored: Sequence[str]) -> bool:
        if self.rules.near_below is None:
            return "near_tie" in stored
        return pair.reward_gap is not None and pair.reward_gap < self.rules.near_below - TOLERANCE


def _dropped(reasons: list[str], told: list[str], dropped_by: frozenset[str]) -> Made:
    if told:
        reasons += [flag for flag in told if flag in dropped_by]
    if len(reasons) > 1:
        reasons.sort(key=FLAGS.index)
    return Made(_NO_ROWS, _NO_KINDS, reasons, told, None)


def _longest(found: Parted) -> int:
    return length(found.prompt) + max(length(found.rest_a), length(found.rest_b))


def _task(source_json: str) -> str | None:
    goal = json.loads(source_json).get("goal")
    return goal if isinstance(goal, str) else None
