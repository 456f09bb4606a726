"""Review import and status: what people said comes back, and where they contradict each other."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_review, review_files
from audit.doors.db import reading
from audit.pipeline.reviewing import Stored, is_done, said_of, store_said
from audit.words.records import HumanLabel, ReviewItem, Run
from audit.words.review import CANNOT_TELL


class Conflict(NamedTuple):
    """A pair or session of which people say different things: `said` is annotator -> value, by side."""

    kind: str
    subject: str
    said: Mapping[str, str]


def import_review(engine: Engine, path: Path, annotator: str | None) -> tuple[Stored, list[str]]:
    """Store what people said in a file, whole or not at all; also the runs it is about.

    Raises BadFile naming line or JSON path for what cannot be read, and for an item that never went out.
    """
    said = list(review_files.read(path, annotator))
    stored = store_said(engine, said, str(path))
    with reading(engine) as connection:
        items = ask_review.items_named(connection, sorted({one.review_id for one in said}))
    return stored, sorted({item.run_id for item in items.values()})


def review_status(engine: Engine, wanted: str) -> dict[str, Any]:
    """How far the review of a run has come: what went out, what was labelled and by whom, conflicts.

    An item is labelled when anybody gave a preference of it, or said of a session of it whether it was done,
    there or in another pair of that session; it is done when one person has answered all that it asks.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        return status_of(connection, run)


def status_of(connection: Connection, run: Run) -> dict[str, Any]:
    """`review_status` of a run that is known already."""
    items = ask_review.items(connection, run.run_id)
    labels = ask_review.newest_labels(connection, run.run_id)
    sessions = ask_review.sessions_of(connection, [item.review_id for item in items])
    about = _items_about(items, sessions)
    labelled: dict[str, set[str]] = defaultdict(set)
    for label in labels:
        for review_id in about.get(label.pair_id or label.session_id or "", ()):
            labelled[review_id].add(label.annotator)
    reasons = Counter(item.reason for item in items)
    heard = Counter(item.reason for item in items if item.review_id in labelled)
    done = _done(items, labels, sessions)
    found = conflicts(labels)
    return {
        "run_id": run.run_id,
        "exported": len(items),
        "labelled": len(labelled),
        "done": len(set().union(*done.values())),
        "by_reason": [
            {"reason": reason, "exported": count, "labelled": heard[reason]}
            for reason, count in sorted(reasons.items())
        ],
        "annotators": [
            {
                "annotator": who,
                "items": sum(who in people for people in labelled.values()),
                "done": len(done[who]),
                "labels": sum(label.annotator == who for label in labels),
            }
            for who in sorted(done)
        ],
        "conflicts": [{"kind": one.kind, "subject": one.subject, "said": dict(one.said)} for one in found],
        "newest_exported": ask_review.newest_run(connection),
    }


def _done(
    items: list[ReviewItem],
    labels: Iterable[HumanLabel],
    sessions: Mapping[str, tuple[str, str | None]],
) -> dict[str, set[str]]:
    """Annotator -> the items whose every question they have answered."""
    own: dict[str, list[HumanLabel]] = defaultdict(list)
    for label in labels:
        own[label.annotator].append(label)
    found: dict[str, set[str]] = {}
    for who, newest in own.items():
        said = said_of(newest, items, sessions, who)
        found[who] = {item.review_id for item in items if is_done(item, said.get(item.review_id))}
    return found


def conflicts(labels: Iterable[HumanLabel]) -> list[Conflict]:
    """Where annotators contradict each other in their newest words; `cannot tell` contradicts nobody."""
    said: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for label in labels:
        if label.value != CANNOT_TELL:
            said[label.kind, label.pair_id or label.session_id or ""][label.annotator] = label.value
    return [
        Conflict(kind, subject, values)
        for (kind, subject), values in sorted(said.items())
        if len(set(values.values())) > 1
    ]


def _items_about(
    items: list[ReviewItem], sessions: Mapping[str, tuple[str, str | None]]
) -> dict[str, list[str]]:
    """pair_id or session_id -> the items that show it."""
    about: dict[str, list[str]] = defaultdict(list)
    for item in items:
        for subject in {item.pair_id, *sessions[item.review_id]} - {None}:
            about[str(subject)].append(item.review_id)
    return about
