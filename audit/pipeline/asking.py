"""Asking: how a pair, or a session, is put to the judges of a run, and what their answers make of it."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from audit.doors import store_live
from audit.doors.waiting import Asked
from audit.pipeline.budget import UsedUp
from audit.pipeline.calls import Read, log_of, tokens_of
from audit.pipeline.expected import ATTEMPTS
from audit.pipeline.pointwise import ask_pointwise, pointwise_messages
from audit.pipeline.rows import mean_score, preference_or_null
from audit.pipeline.workplace import Workplace, gates_of
from audit.verbs.gaps import judge_gap
from audit.verbs.pointwise import read_satisfaction
from audit.verbs.render import nonce, render_session
from audit.verbs.settle import preference_of, settle
from audit.verbs.shorten import Shortened
from audit.verbs.spending import cost_of
from audit.verbs.verdict import grammar, read_verdict
from audit.verbs.vote import is_contested, vote
from audit.words import clock
from audit.words.calls import Message, Reply
from audit.words.config import Config, Panel
from audit.words.names import Answer, Order
from audit.words.profiles import Endpoint
from audit.words.records import JudgeLog
from audit.words.text import as_json

ORDERS: tuple[Order, Order] = ("AB", "BA")
RENDERED = 64  # sessions kept as text: those of the tasks being judged
GRAMMAR = grammar("json:0-5")
_SIDE = {
    "type": "object",
    "properties": {"evidence": {"type": "string"}, "done": {"type": "boolean"}},
    "required": ["evidence", "done"],
    "additionalProperties": False,
}
# Evidence before verdict: measured to lift a small judge from 60% right with 80% flips to 97% with 5%.
PAIR_SCHEMA = {
    "type": "object",
    "properties": {
        "first": _SIDE,
        "second": _SIDE,
        "score_first": {"type": "number"},
        "score_second": {"type": "number"},
        "winner": {"type": "string", "enum": ["first", "second", "tie"]},
    },
    "required": ["first", "second", "score_first", "score_second", "winner"],
    "additionalProperties": False,
}
SATISFACTION_SCHEMA = {
    "type": "object",
    "properties": _SIDE["properties"] | {"satisfaction": {"type": "number"}},  # type: ignore[operator]
    "required": ["evidence", "done", "satisfaction"],
    "additionalProperties": False,
}


class Heard(NamedTuple):
    """What one judge answered in one order; scores by side."""

    order: Order
    answer: Answer
    score_a: float | None
    score_b: float | None


class Judged(NamedTuple):
    """One judged pair, with its new calls; no verdict yet where the budget ended between them."""

    update: store_live.JudgmentUpdate | None
    logs: list[JudgeLog]


class Satisfied(NamedTuple):
    """One session's answered satisfaction question. `source_json` is set where the judges read it cut."""

    session_id: str
    satisfaction: float | None
    logs: list[JudgeLog]
    source_json: str | None


class Question(NamedTuple):
    """One order of one pair to one judge, for the time that `attempt` counts."""

    endpoint: Endpoint
    order: Order
    attempt: int


class Asking:
    """How a pair, or a session, is put to the judges of a run.

    A call that failed is made again; where `errors_after` is given, only those up to that log_id are.
    """

    def __init__(self, workplace: Workplace, errors_after: int | None = None) -> None:
        self.workplace = workplace
        self.errors_after = errors_after
        self.hidden = workplace.hidden()
        self.gates = gates_of(workplace.config)
        self.pair_prompt = workplace.prompt("judge_pair")
        self.session_prompt = workplace.prompt("satisfaction")
        # A session stands in many pairs, which come one after the other.
        self.rendered = lru_cache(RENDERED)(self._rendered)

    async def pair(self, pair: dict[str, Any]) -> Judged:
        """Both orders to each member of the gate's panel; the later ones only where the rule says so."""
        panel = self.gates[pair["gate"]]
        logs: list[JudgeLog] = []
        heard: list[list[Heard]] = []
        try:
            for number, name in enumerate(panel.members):
                if number == 1 and self._is_enough(pair, panel, heard[0]):
                    break
                endpoint = self.workplace.endpoint(name)
                heard.append([await self._order(pair, endpoint, order, logs) for order in ORDERS])
        except UsedUp:
            if not logs:
                raise
            return Judged(None, logs)
        return Judged(_update(self.workplace.config, pair, panel, heard, logs), logs)

    def questions(self, pair: dict[str, Any]) -> list[Question]:
        """What `pair` would ask now, as far as no answer decides it; none: its verdict is known."""
        panel = self.gates[pair["gate"]]
        found: list[Question] = []
        for number, name in enumerate(panel.members):
            if number == 1 and self._may_be_enough(pair, panel):
                if found:
                    break
                heard = [_heard(pair["asked"][panel.members[0], order], order) for order in ORDERS]
                if self._is_enough(pair, panel, heard):
                    break
            for order in ORDERS:
                asked = pair["asked"].get((name, order))
                if not self._stands(asked):
                    attempt = 1 if asked is None else asked.attempts + 1
                    found.append(Question(self.workplace.endpoint(name), order, attempt))
        return found

    def messages(self, pair: dict[str, Any], order: Order) -> list[Message]:
        """What a judge is shown of a pair in this order."""
        source = json.loads(pair["source_json"] or "{}")
        sides = [pair["transcript_a"], pair["transcript_b"]]
        first, second = map(self.rendered, sides if order == "AB" else reversed(sides))
        return self.pair_prompt.fill(
            goal=source.get("goal", ""),
            policy=source.get("policy", ""),
            nonce=nonce(first, second),
            first=first,
            second=second,
        )

    async def session(self, session: dict[str, Any]) -> Satisfied:
        """The pointwise question, to the first judge."""
        shown = self.workplace.shown(session["transcript_json"])
        found, logs = await ask_pointwise(
            self.workplace,
            self.session_prompt,
            SATISFACTION_SCHEMA,
            session,
            render_session(shown.messages, self.hidden),
            read_satisfaction,
        )
        return Satisfied(session["session_id"], found.value, logs, self.with_cut(session, shown))

    def session_messages(self, session: dict[str, Any], shown: Shortened) -> list[Message]:
        """What the first judge is shown of a session."""
        return pointwise_messages(self.session_prompt, session, render_session(shown.messages, self.hidden))

    def with_cut(self, session: dict[str, Any], shown: Shortened) -> str | None:
        """What is known of the session, and how much of it no judge saw; NULL where they saw all."""
        if not shown.left_out and not shown.clipped:
            return None
        cut = {
            "transcript_tokens": self.workplace.config.transcript_tokens,
            "left_out": shown.left_out,
            "clipped": shown.clipped,
        }
        self.workplace.note(
            f"session {session['session_id']} is cut for the judge: {shown.left_out} messages left out, "
            f"{shown.clipped} clipped (transcript_tokens: {self.workplace.config.transcript_tokens})"
        )
        return as_json(json.loads(session["source_json"] or "{}") | {"cut": cut})

    async def _order(
        self, pair: dict[str, Any], endpoint: Endpoint, order: Order, logs: list[JudgeLog]
    ) -> Heard:
        """One order to one judge, asked once more where the reply cannot be read."""
        asked = pair["asked"].get((endpoint.name, order))
        if asked is not None and self._stands(asked):
            return _heard(asked, order)
        messages = self.messages(pair, order)
        heard = Heard(order, "missing", None, None)
        tried, in_vain = (0, 0) if asked is None else (asked.attempts, asked.unreadable)
        for attempt in range(tried + 1, tried + ATTEMPTS - in_vain + 1):
            heard, log = await self._once(pair, endpoint, order, messages, attempt)
            logs.append(log)
            if heard.answer != "unreadable":
                break
        return heard

    async def _once(
        self, pair: dict[str, Any], endpoint: Endpoint, order: Order, messages: list[Any], attempt: int
    ) -> tuple[Heard, JudgeLog]:
        seed = pair_seed(endpoint, pair)
        reply = await self.workplace.chat(endpoint, messages, response_schema=PAIR_SCHEMA, seed=seed)
        heard, read = read_verdict_in(reply, order)
        log = log_of(
            reply,
            read,
            run_id=self.workplace.run.run_id,
            endpoint=endpoint,
            prompt=self.pair_prompt,
            pair_id=pair["pair_id"],
            order=order,
            attempt=attempt,
        )
        return heard, log

    def _stands(self, asked: Asked | None) -> bool:
        """Is it answered for good?"""
        if asked is None:
            return False
        if asked.is_error:
            return self.errors_after is not None and asked.log_id > self.errors_after
        return asked.unreadable == 0 or asked.unreadable >= ATTEMPTS

    def _may_be_enough(self, pair: dict[str, Any], panel: Panel) -> bool:
        """Can the first judge alone decide? Who was asked once has a vote for good: scoring counts it."""
        was_asked = any(profile in panel.members[1:] for profile, _ in pair["asked"])
        return panel.escalate == "contested" and not was_asked

    def _is_enough(self, pair: dict[str, Any], panel: Panel, heard: Sequence[Heard]) -> bool:
        return self._may_be_enough(pair, panel) and not self._contested(heard, panel)

    def _contested(self, heard: Sequence[Heard], panel: Panel) -> bool:
        settled = settle(heard[0].answer, heard[1].answer, self.workplace.run.swap_rule)
        gap = judge_gap(mean_score([h.score_a for h in heard]), mean_score([h.score_b for h in heard]))
        return is_contested(settled, gap, panel.contested_below)

    def _rendered(self, transcript_json: str | None) -> str:
        return render_session(self.workplace.shown(transcript_json).messages, self.hidden)


def pair_seed(endpoint: Endpoint, pair: dict[str, Any]) -> int | None:
    """The seed that a pair is judged with."""
    return None if endpoint.seed is None else endpoint.seed + int(pair["trial"])


def read_verdict_in(reply: Reply, order: Order) -> tuple[Heard, Read]:
    """What a reply about a pair says, by side and for the log."""
    if reply.status == "error":
        return Heard(order, "failed", None, None), Read("error")
    return _read_text(reply.content, reply.finish_reason, order)


def _heard(asked: Asked, order: Order) -> Heard:
    """What was answered before."""
    if asked.is_error:
        return Heard(order, "failed", None, None)
    return _read_text(asked.raw_output, asked.finish_reason, order)[0]


def _read_text(content: str | None, finish_reason: str | None, order: Order) -> tuple[Heard, Read]:
    verdict = read_verdict(content, GRAMMAR, finish_reason)
    preference = preference_of(verdict.choice, order)
    # A half of what could not be read is no score to average.
    scores = (None, None) if verdict.choice is None else (verdict.score_first, verdict.score_second)
    score_a, score_b = scores if order == "AB" else (scores[1], scores[0])
    parsed = None if verdict.parsed is None else as_json(verdict.parsed)
    heard = Heard(order, preference or "unreadable", score_a, score_b)
    return heard, Read(verdict.status, parsed, verdict.choice, preference)


def _update(
    config: Config, pair: dict[str, Any], panel: Panel, heard: list[list[Heard]], logs: list[JudgeLog]
) -> store_live.JudgmentUpdate:
    ab, ba = (vote([member[index].answer for member in heard], panel.vote) for index in (0, 1))
    told = [one for member in heard for one in member]
    calls = [*pair["calls"], *logs]
    tokens = tokens_of(calls)
    costs = [cost_of(call, config) for call in calls] if config.prices else [None]
    known = [cost for cost in costs if cost is not None]
    return store_live.JudgmentUpdate(
        pref_ab=preference_or_null(ab),
        pref_ba=preference_or_null(ba),
        judge_score_a=mean_score([one.score_a for one in told]),
        judge_score_b=mean_score([one.score_b for one in told]),
        prompt_tokens=tokens[0],
        completion_tokens=tokens[1],
        total_tokens=tokens[2],
        cost_usd=sum(known) if len(known) == len(costs) else None,
        judged_at=clock.now(),
        pair_id=pair["pair_id"],
    )
