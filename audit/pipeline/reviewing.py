"""Reviewing: what people are shown of an item, and how what they say of it becomes labels.

People see positions, labels are stored by side: only this file leads from one to the other.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask_review, store_review
from audit.doors.db import writing
from audit.pipeline.standing import config_of
from audit.pipeline.workplace import hidden_names
from audit.verbs.render import render_session
from audit.verbs.shorten import shorten
from audit.words import clock
from audit.words.config import Config
from audit.words.errors import BadFile
from audit.words.names import Choice
from audit.words.records import HumanLabel, ReviewItem, Run
from audit.words.review import (
    CANNOT_TELL,
    QUESTIONS,
    WITHDRAWN,
    CannotTell,
    Done,
    Question,
    Said,
    Shown,
    Withdrawn,
)
from audit.words.text import to_stored

_STORED_DONE = {"done": "1", "not done": "0", CANNOT_TELL: CANNOT_TELL, WITHDRAWN: WITHDRAWN}
_TOLD_DONE: dict[str, Done] = {"1": "done", "0": "not done", CANNOT_TELL: CANNOT_TELL}


class Stored(NamedTuple):
    """How many labels were new, how many were there already."""

    stored: int
    known: int


def shown(connection: Connection, run: Run, items: Sequence[ReviewItem]) -> Iterator[Shown]:
    """What people see of these items of a run, in the order of review_id."""
    first_sides = {item.review_id: item.shown_first for item in items}
    render = renderer(connection, run)
    for content in ask_review.contents(connection, [item.review_id for item in items]):
        source = json.loads(content["source_json"] or "{}")
        sides = [content["transcript_a"], content["transcript_b"]]
        if first_sides[content["review_id"]] == "B":
            sides.reverse()
        is_pair = content["session_b"] is not None
        yield Shown(
            content["review_id"],
            str(source.get("goal") or ""),
            str(source.get("policy") or ""),
            render(sides[0]),
            render(sides[1]) if is_pair else None,
        )


def renderer(connection: Connection, run: Run) -> Callable[[str | None], str]:
    """Turns a stored transcript of the run into what the run's judge sees of it."""
    config = config_of(run)
    profiles = [(p["name"], p["model"]) for p in config.get("profiles", ())]
    tokens = config.get("stop_tokens", Config.model_fields["stop_tokens"].default)
    budget = config.get("transcript_tokens", Config.model_fields["transcript_tokens"].default)
    hidden = hidden_names(profiles, ask_review.agents(connection, run.run_id), tokens)

    def render(transcript_json: str | None) -> str:
        return render_session(shorten(json.loads(transcript_json or "[]"), budget).messages, hidden)

    return render


def store_said(engine: Engine, said: Iterable[Said], file: str = "the labels") -> Stored:
    """Store what people said, all of it or nothing; older words of theirs stay, the newest counts.

    What an annotator said already adds nothing. Raises BadFile naming `file` and the place for an item that
    was never exported, for a preference between one session and nothing, and for a lone note.
    """
    everything = list(said)
    with writing(engine) as connection:
        ids = sorted({one.review_id for one in everything})
        items = ask_review.items_named(connection, ids)
        sessions = ask_review.sessions_of(connection, ids)
        for one in everything:
            _refuse(one, items.get(one.review_id), file)
        labels = [
            _Label(label, one.said_at is not None, one.note == "")
            for one in everything
            for label in _labels(one, items[one.review_id], sessions[one.review_id])
        ]
        new = _new(connection, _in_time(labels))
        store_review.add_labels(connection, new)
    return Stored(len(new), len(labels) - len(new))


class _Label(NamedTuple):
    """A label to store: is its time its own, and does it take the note away that stands with it?"""

    label: HumanLabel
    is_timed: bool
    drops_note: bool


def said_by(
    connection: Connection, run_id: str, items: Sequence[ReviewItem], annotator: str
) -> dict[str, Said]:
    """review_id -> what this annotator says of the item now, as it was shown."""
    newest = [one for one in ask_review.newest_labels(connection, run_id) if one.annotator == annotator]
    sessions = ask_review.sessions_of(connection, [item.review_id for item in items])
    return said_of(newest, items, sessions, annotator)


def said_of(
    newest: Iterable[HumanLabel],
    items: Sequence[ReviewItem],
    sessions: Mapping[str, tuple[str, str | None]],
    annotator: str,
) -> dict[str, Said]:
    """As `said_by`, of this annotator's newest labels, the oldest first; `sessions`: those of each item."""
    labels = {(label.kind, label.pair_id or label.session_id): label for label in newest}
    # In the order in which they count: two may have been stored in one millisecond.
    place = {label: number for number, label in enumerate(labels.values())}
    found: dict[str, Said] = {}
    for item in items:
        preferred = labels.get(("preference", item.pair_id))
        dones = [labels.get(("success", session_id)) for session_id in sessions[item.review_id]]
        if preferred is None and not any(dones):
            continue
        first, second = reversed(dones) if item.shown_first == "B" else dones
        noted = sorted(filter(None, dones), key=place.__getitem__, reverse=True)
        found[item.review_id] = Said(
            item.review_id,
            annotator,
            None if preferred is None else _turned(preferred.value, item),
            None if first is None else _TOLD_DONE[first.value],
            None if second is None else _TOLD_DONE[second.value],
            next((label.note for label in (preferred, *noted) if label and label.note), None),
            max(label.created_at for label in (preferred, *dones) if label),
        )
    return found


def answers_to(item: ReviewItem, said: Said | None) -> dict[Question, str | None]:
    """Each question that the item asks, with its answer."""
    asked = QUESTIONS if item.pair_id is not None else ("first_done",)
    return {name: getattr(said, name) if said else None for name in asked}


def is_done(item: ReviewItem, said: Said | None) -> bool:
    """Is every question of the item answered?"""
    return None not in answers_to(item, said).values()


def _refuse(one: Said, item: ReviewItem | None, file: str) -> None:
    problem = None
    if item is None:
        problem = f"review_id {one.review_id!r} was never exported from this database; nothing was stored"
    elif item.session_id is not None and (one.preference or one.second_done):
        problem = f"{one.review_id} is one session: there is nothing to prefer it to, and no second"
    elif one.note and not (one.preference or one.first_done or one.second_done):
        problem = "a note alone: say first, second, tie or cannot tell as well, or done or not done"
    if problem:
        raise BadFile(file, one.place, problem)


def _labels(one: Said, item: ReviewItem, sessions: tuple[str, str | None]) -> Iterator[HumanLabel]:
    """The labels, by side, that a person's words about an item make; the first of them carries the note."""
    at = one.said_at or clock.now()
    note = to_stored(one.note) if one.note else None
    annotator = to_stored(one.annotator)
    if one.preference is not None:
        side = _side(one.preference, item)
        yield HumanLabel(item.pair_id, None, annotator, "preference", side, note, at)
        note = None
    first, second = reversed(sessions) if item.shown_first == "B" else sessions
    for session_id, done in ((first, one.first_done), (second, one.second_done)):
        if session_id is not None and done is not None:
            yield HumanLabel(None, session_id, annotator, "success", _STORED_DONE[done], note, at)
            note = None


def _in_time(labels: Sequence[_Label]) -> list[_Label]:
    """The labels, the oldest first; of those without a time of their own each person's last on a subject.

    A session stands in several pairs, so that one file may say of it one thing and then another.
    """
    last = {one.label[:4]: one for one in labels if not one.is_timed}
    timed = [one for one in labels if one.is_timed]
    return sorted([*timed, *last.values()], key=lambda one: one.label.created_at)


def _new(connection: Connection, labels: Sequence[_Label]) -> list[HumanLabel]:
    """Those of the labels, the oldest first, that say something which is not stored."""
    subjects = sorted({one.label.pair_id or one.label.session_id or "" for one in labels})
    known: set[Any] = set()
    newest: dict[Any, HumanLabel] = {}
    for label in ask_review.all_labels(connection, subjects):
        known.add(label)
        newest[label[:4]] = label
    new = []
    for label, is_timed, drops_note in labels:
        last = newest.get(label[:4])
        if last is not None and not is_timed:
            # What is said now is the newest word, by whatever clock the last one was told.
            label = label._replace(created_at=max(label.created_at, last.created_at))
        is_noted = label.note not in (None, last.note if last else None)
        is_same = last is not None and last.value == label.value and not is_noted
        if (is_timed and label in known) or (is_same and not (drops_note and last is not None and last.note)):
            continue
        known.add(label)
        if last is None or last.created_at <= label.created_at:
            newest[label[:4]] = label
        new.append(label)
    return new


def _side(preference: Choice | CannotTell | Withdrawn, item: ReviewItem) -> str:
    if preference not in ("first", "second"):
        return preference
    is_a = (preference == "first") == (item.shown_first == "A")
    return "A" if is_a else "B"


def _turned(value: str, item: ReviewItem) -> Choice | CannotTell:
    if value == "tie":
        return "tie"
    if value not in ("A", "B"):
        return CANNOT_TELL
    return "first" if value == item.shown_first else "second"
