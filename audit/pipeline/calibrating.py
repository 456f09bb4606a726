"""Calibrating: every judge on the same anchors, which are the pairs that people compared, whatever the run.

A pair is the same in another run by its task, trial and agents, as in `compare`, and only where both sessions
went the same way to the letter: what people said of one session says nothing of another.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_anchors
from audit.doors.ask_anchors import Placed
from audit.doors.db import reading
from audit.statistics.agreement import kappa, mcnemar_p
from audit.statistics.rates import clustered_rate
from audit.verbs.people import agreement_tables, majority
from audit.words.errors import BadRequest
from audit.words.review import CANNOT_TELL

_TURNED = {"A": "B", "B": "A"}
_CLASSES = ("A", "B", "tie")


class _Key(NamedTuple):
    """Where a pair stands in any run; `nth` tells equal ones apart, which an import may have."""

    task: str
    trial: int
    one: str
    other: str
    own_id: str
    nth: int


class _Anchor(NamedTuple):
    """What most people prefer, `A` being the agent that comes first by name; digests of both sessions."""

    said: str
    sessions: tuple[str, str]


def calibrate(engine: Engine, wanted: Sequence[str]) -> dict[str, Any]:
    """The mapping of `review calibrate --json`: each judge of each run (all, where none is named) on the
    anchors that it has, and on those that all have; `without`: runs that have none. Raises BadRequest where
    people compared nothing, and where no run holds a pair that they did.
    """
    with reading(engine) as connection:
        runs = [ask.run_named(connection, name).run_id for name in wanted] or ask_anchors.judged_runs(
            connection
        )
        anchors, tasks, undecided = _anchors(connection)
        if not anchors:
            raise BadRequest("no person has compared a pair: `reward-audit review export` picks some")
        found = [
            _Judged(run_id, gate, said, changed)
            for run_id in dict.fromkeys(runs)
            for gate, said, changed in _judged(connection, run_id, anchors, tasks)
        ]
        named = {run_id: ask.run_named(connection, run_id) for run_id in runs}
    changed: Counter[str] = Counter()
    for judged in found:
        changed[judged.run_id] += judged.changed
    found = [judged for judged in found if judged.said]
    if not found:
        raise BadRequest(
            f"of {len(anchors)} pairs that people compared no judged run holds any, with the same sessions"
        )
    common = set(found[0].said).intersection(*(judged.said for judged in found))
    first = found[0]
    without = [run_id for run_id in named if run_id not in {judged.run_id for judged in found}]
    return {
        "anchors": len(anchors),
        "undecided": undecided,
        "common": len(common),
        "judges": [
            {
                "run_id": judged.run_id,
                "name": named[judged.run_id].name,
                "created_at": named[judged.run_id].created_at,
                "gate": judged.gate,
                **_measured(judged.said, anchors),
                "changed": judged.changed,
                "on_common": _measured({key: judged.said[key] for key in common}, anchors),
                "against_first": _against(first.said, judged.said, common, anchors),
            }
            for judged in found
        ],
        "without": [
            {"run_id": run_id, "name": named[run_id].name, "changed": changed[run_id]} for run_id in without
        ],
    }


class _Judged(NamedTuple):
    """What a judge says of the anchors that its run has; `changed`: so many have other sessions there."""

    run_id: str
    gate: str
    said: Mapping[_Key, str | None]
    changed: int


def _anchors(connection: Connection) -> tuple[dict[_Key, _Anchor], list[str], int]:
    """The anchors, their tasks, and how many pairs more people looked at without a majority for anything."""
    looked_at = set()
    said: dict[tuple[_Key, tuple[str, str]], dict[str, str]] = defaultdict(dict)
    tasks: set[str] = set()
    for run_id in ask_anchors.compared_runs(connection):
        labels = ask_anchors.preferences(connection, run_id)
        here = ask_anchors.tasks_of(connection, sorted({pair_id for pair_id, _, _ in labels}))
        tasks |= here
        wanted = {pair_id for pair_id, _, _ in labels}
        pairs = {
            pair.pair_id: (key, pair)
            for key, pair in _keyed(connection, run_id, sorted(here))
            if pair.pair_id in wanted
        }
        digests = _digests(connection, [pair for _, pair in pairs.values()])
        for pair_id, annotator, value in labels:
            key, pair = pairs[pair_id]
            looked_at.add(key)
            if value != CANNOT_TELL:
                said[key, digests[pair_id]][annotator] = _as_first(value, pair)
    found = {}
    for (key, sessions), values in said.items():
        most = majority(values)
        if most is not None:
            # Of one pair with other sessions in a later run, what was said later counts.
            found[key] = _Anchor(most, sessions)
    return found, sorted(tasks), len(looked_at - found.keys())


def _judged(
    connection: Connection, run_id: str, anchors: Mapping[_Key, _Anchor], tasks: Sequence[str]
) -> Iterator[tuple[str, dict[_Key, str | None], int]]:
    said: dict[str, dict[_Key, str | None]] = defaultdict(dict)
    changed: Counter[str] = Counter()
    same = [(key, pair) for key, pair in _keyed(connection, run_id, tasks) if key in anchors]
    digests = _digests(connection, [pair for _, pair in same])
    for key, pair in same:
        if digests[pair.pair_id] == anchors[key].sessions:
            said[pair.gate][key] = _as_first(pair.judge_pref, pair) if pair.judge_pref else None
        else:
            changed[pair.gate] += 1
    for gate in sorted(said.keys() | changed.keys()):
        yield gate, said[gate], changed[gate]


def _keyed(connection: Connection, run_id: str, tasks: Sequence[str]) -> Iterator[tuple[_Key, Placed]]:
    seen: Counter[Any] = Counter()
    for pair in ask_anchors.placed(connection, run_id, tasks):
        one, other = sorted((pair.agent_a or "", pair.agent_b or ""))
        own_id = "" if pair.agent_a and pair.agent_b else pair.source_pair_id or ""
        place = (pair.task, pair.trial, one, other, own_id)
        yield _Key(*place, seen[pair.gate, place]), pair
        seen[pair.gate, place] += 1


def _is_turned(pair: Placed) -> bool:
    return (pair.agent_a or "") > (pair.agent_b or "")


def _as_first(side: str, pair: Placed) -> str:
    """The side, `A` being the agent that comes first by name."""
    return _TURNED.get(side, side) if _is_turned(pair) else side


def _digests(connection: Connection, pairs: Sequence[Placed]) -> dict[str, tuple[str, str]]:
    """pair_id -> digests of what was done in both sessions, that of the first agent by name first."""
    names = sorted({name for pair in pairs for name in (pair.session_a, pair.session_b) if name})
    digests = {
        name: hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        for name, text in ask_anchors.transcripts(connection, names)
    }
    found = {}
    for pair in pairs:
        a, b = (digests.get(name or "", "") for name in (pair.session_a, pair.session_b))
        found[pair.pair_id] = (b, a) if _is_turned(pair) else (a, b)
    return found


def _measured(said: Mapping[_Key, str | None], anchors: Mapping[_Key, _Anchor]) -> dict[str, Any]:
    """How often the judge says what people say; where both name a side, how often the other one."""
    agree: Counter[str] = Counter()
    against: Counter[str] = Counter()
    both: Counter[str] = Counter()
    counts = Counter(key.task for key in said)
    for key, side in said.items():
        agree[key.task] += side == anchors[key].said
        if side in _TURNED and anchors[key].said in _TURNED:
            both[key.task] += 1
            against[key.task] += side != anchors[key].said
    tasks = list(counts)
    tables = agreement_tables(((key.task, side, anchors[key].said) for key, side in said.items()), _CLASSES)
    return {
        "anchors": len(said),
        "agree": clustered_rate([agree[task] for task in tasks], [counts[task] for task in tasks]),
        "misselected": clustered_rate([against[task] for task in tasks], [both[task] for task in tasks]),
        "kappa": kappa(tables),
    }


def _against(
    first: Mapping[_Key, str | None],
    judged: Mapping[_Key, str | None],
    common: set[_Key],
    anchors: Mapping[_Key, _Anchor],
) -> dict[str, Any]:
    """On the common anchors: how many only the first judge, and only this one, has as people have them."""
    lost = sum(first[key] == anchors[key].said != judged[key] for key in common)
    won = sum(judged[key] == anchors[key].said != first[key] for key in common)
    return {"lost": lost, "won": won, "mcnemar_p": mcnemar_p(lost, won)}
