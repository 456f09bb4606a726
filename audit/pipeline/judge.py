"""Judge: every pair of sessions asked in both orders, and every session how satisfied its customer can be."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import store, store_live, waiting
from audit.doors.db import reading, writing
from audit.pipeline.calls import Read, log_of, tokens_of
from audit.pipeline.expected import ATTEMPTS
from audit.pipeline.live import Live, gates_of
from audit.pipeline.pointwise import ask_pointwise
from audit.pipeline.rows import mean_score, preference_or_null
from audit.pipeline.sampled import in_sample
from audit.verbs.gaps import judge_gap
from audit.verbs.pointwise import read_satisfaction
from audit.verbs.render import nonce, render_session
from audit.verbs.settle import preference_of, settle
from audit.verbs.shorten import Shortened
from audit.verbs.spending import cost_of
from audit.verbs.verdict import grammar, read_verdict
from audit.verbs.vote import is_contested, vote
from audit.words import clock
from audit.words.config import Config, Panel
from audit.words.names import Answer, Order
from audit.words.profiles import Endpoint
from audit.words.records import JudgeLog
from audit.words.text import as_json

ORDERS: tuple[Order, Order] = ("AB", "BA")
SIZE = 100
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


class Shown(NamedTuple):
    """What the judge is shown of a pair: its task, and both sessions as text."""

    source: dict[str, Any]
    a: str
    b: str


class Heard(NamedTuple):
    """What one judge answered in one order; scores by side."""

    order: Order
    answer: Answer
    score_a: float | None
    score_b: float | None


class Judged(NamedTuple):
    """One judged pair, with its new calls."""

    update: store_live.JudgmentUpdate
    logs: list[JudgeLog]


class Satisfied(NamedTuple):
    """One session's answered satisfaction question. `source_json` is set where the judges read it cut."""

    session_id: str
    satisfaction: float | None
    logs: list[JudgeLog]
    source_json: str | None


async def judge(live: Live) -> None:
    """Ask what is not answered yet: pairs first, then the satisfaction question."""
    await _judge_pairs(live)
    await _ask_satisfaction(live)


async def _judge_pairs(live: Live) -> None:
    with reading(live.engine) as connection:
        found = waiting.unjudged(connection, live.run.run_id, live.retry_errors)
        found = in_sample(connection, live.run, found, live.config.sample, live.config.seed)[: live.limit]

    def keep(judged: list[Judged]) -> None:
        with writing(live.engine) as connection:
            store.add_logs(connection, [log for one in judged for log in one.logs])
            store_live.set_judgments(connection, [one.update for one in judged])
        for one in judged:
            live.meter.count(one.logs)

    asking = Asking(live)
    live.begin("judge", len(found))
    pairs = _read(live, found, waiting.pairs_to_judge)
    await live.work(asking.pair, keep).through(pairs)


async def _ask_satisfaction(live: Live) -> None:
    with reading(live.engine) as connection:
        found = waiting.unasked_satisfaction(connection, live.run.run_id, live.retry_errors)[: live.limit]

    def keep(asked: list[Satisfied]) -> None:
        with writing(live.engine) as connection:
            store.add_logs(connection, [log for one in asked for log in one.logs])
            store_live.set_satisfaction(connection, [(one.satisfaction, one.session_id) for one in asked])
            cut = [(one.source_json, one.session_id) for one in asked if one.source_json is not None]
            store_live.set_source(connection, cut)
        for one in asked:
            live.meter.count(one.logs)

    asking = Asking(live)
    live.begin("satisfaction", len(found))
    sessions = _read(live, found, waiting.sessions_to_ask)
    await live.work(asking.session, keep).through(sessions)


def _read(
    live: Live, ids: list[str], rows: Callable[[Connection, list[str]], list[dict[str, Any]]]
) -> Iterator[dict[str, Any]]:
    """What is to be asked, read from the database as it is needed: only ids are all held at once."""
    for start in range(0, len(ids), SIZE):
        with reading(live.engine) as connection:
            found = rows(connection, ids[start : start + SIZE])
        yield from found


class Asking:
    """How a pair, or a session, is put to the judges of a run."""

    def __init__(self, live: Live) -> None:
        self.live = live
        self.hidden = live.hidden()
        self.gates = gates_of(live.config)
        self.pair_prompt = live.prompt("judge_pair")
        self.session_prompt = live.prompt("satisfaction")
        # A session stands in many pairs, which come one after the other.
        self.rendered = lru_cache(RENDERED)(self._rendered)

    async def pair(self, pair: dict[str, Any]) -> Judged:
        """Both orders to each member of the gate's panel; the later ones only where the rule says so."""
        panel = self.gates[pair["gate"]]
        shown = Shown(
            source=json.loads(pair["source_json"] or "{}"),
            a=self.rendered(pair["transcript_a"]),
            b=self.rendered(pair["transcript_b"]),
        )
        logs: list[JudgeLog] = []
        heard: list[list[Heard]] = []
        for number, name in enumerate(panel.members):
            # Who was asked once has a vote for good: scoring counts every answer that is stored.
            was_asked = any(profile in panel.members[1:] for profile, _ in pair["attempts"])
            is_settled = panel.escalate == "contested" and not was_asked
            if number == 1 and is_settled and not self._contested(heard[0], panel):
                break
            endpoint = self.live.endpoint(name)
            heard.append([await self._order(pair, shown, endpoint, order, logs) for order in ORDERS])
        return Judged(_update(self.live.config, pair, panel, heard, logs), logs)

    async def session(self, session: dict[str, Any]) -> Satisfied:
        """The pointwise question, to the first judge."""
        shown = self.live.shown(session["transcript_json"])
        found, logs = await ask_pointwise(
            self.live,
            self.session_prompt,
            SATISFACTION_SCHEMA,
            session,
            render_session(shown.messages, self.hidden),
            read_satisfaction,
        )
        return Satisfied(session["session_id"], found.value, logs, self._with_cut(session, shown))

    def _with_cut(self, session: dict[str, Any], shown: Shortened) -> str | None:
        """What is known of the session, and how much of it no judge saw; NULL where they saw all."""
        if not shown.left_out and not shown.clipped:
            return None
        cut = {
            "transcript_tokens": self.live.config.transcript_tokens,
            "left_out": shown.left_out,
            "clipped": shown.clipped,
        }
        self.live.meter.note(
            f"session {session['session_id']} is cut for the judge: {shown.left_out} messages left out, "
            f"{shown.clipped} clipped (transcript_tokens: {self.live.config.transcript_tokens})"
        )
        return as_json(json.loads(session["source_json"] or "{}") | {"cut": cut})

    async def _order(
        self,
        pair: dict[str, Any],
        shown: Shown,
        endpoint: Endpoint,
        order: Order,
        logs: list[JudgeLog],
    ) -> Heard:
        """One order to one judge, asked once more where the reply cannot be read."""
        kept = pair["kept"].get((endpoint.name, order))
        if kept is not None:
            return _read_reply(kept["raw_output"], kept["finish_reason"], order)[0]
        first, second = (shown.a, shown.b) if order == "AB" else (shown.b, shown.a)
        messages = self.pair_prompt.fill(
            goal=shown.source.get("goal", ""),
            policy=shown.source.get("policy", ""),
            nonce=nonce(first, second),
            first=first,
            second=second,
        )
        heard = Heard(order, "missing", None, None)
        tried = pair["attempts"].get((endpoint.name, order), 0)
        for attempt in range(tried + 1, tried + ATTEMPTS + 1):
            heard, log = await self._once(pair, endpoint, order, messages, attempt)
            logs.append(log)
            if heard.answer != "unreadable":
                break
        return heard

    async def _once(
        self, pair: dict[str, Any], endpoint: Endpoint, order: Order, messages: list[Any], attempt: int
    ) -> tuple[Heard, JudgeLog]:
        seed = None if endpoint.seed is None else endpoint.seed + pair["trial"]
        reply = await self.live.models.chat(endpoint, messages, response_schema=PAIR_SCHEMA, seed=seed)
        if reply.status == "error":
            heard, read = Heard(order, "failed", None, None), Read("error")
        else:
            heard, read = _read_reply(reply.content, reply.finish_reason, order)
        log = log_of(
            reply,
            read,
            run_id=self.live.run.run_id,
            endpoint=endpoint,
            prompt=self.pair_prompt,
            pair_id=pair["pair_id"],
            order=order,
            attempt=attempt,
        )
        return heard, log

    def _contested(self, heard: Sequence[Heard], panel: Panel) -> bool:
        settled = settle(heard[0].answer, heard[1].answer, self.live.run.swap_rule)
        gap = judge_gap(mean_score([h.score_a for h in heard]), mean_score([h.score_b for h in heard]))
        return is_contested(settled, gap, panel.contested_below)

    def _rendered(self, transcript_json: str | None) -> str:
        return render_session(self.live.shown(transcript_json).messages, self.hidden)


def _read_reply(content: str | None, finish_reason: str | None, order: Order) -> tuple[Heard, Read]:
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
    tokens = [_added(old, new) for old, new in zip(pair["tokens"], tokens_of(logs), strict=True)]
    costs = [pair["cost_usd"], *(cost_of(log, config) for log in logs)] if config.prices else [None]
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


def _added(old: int | None, new: int | None) -> int | None:
    """Tokens of earlier attempts and of new ones; `old` is 0 where there were none."""
    return None if old is None or new is None else old + new
