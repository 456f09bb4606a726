"""Labelling: one person goes through the items of a run, answer by answer, and may take answers back."""

import threading
from typing import NamedTuple

from sqlalchemy import Engine

from audit.doors import ask, ask_review
from audit.doors.db import reading
from audit.pipeline.reviewing import answers_to, is_done, said_by, shown, store_said
from audit.words.errors import BadRequest
from audit.words.records import ReviewItem, Run
from audit.words.review import CANNOT_TELL, DONES, QUESTIONS, WITHDRAWN, Question, Said, Shown

ANSWERS: dict[Question, tuple[str, ...]] = {
    "preference": ("first", "second", "tie", CANNOT_TELL),
    "first_done": DONES,
    "second_done": DONES,
}
LONGEST_NOTE = 5000


class Standing(NamedTuple):
    """What this person says of an item now, NULL where nothing yet; how many items are done, and of how many.

    `next_open`: the number of the first item after this one, or else of all, that is not done; NULL: none.
    """

    number: int
    answers: dict[Question, str | None]
    note: str
    done: int
    total: int
    next_open: int | None

    @property
    def is_done(self) -> bool:
        return None not in self.answers.values()


class Labelling:
    """One person at the items of one run, numbered from 1. What can be undone is known until it ends."""

    def __init__(self, engine: Engine, run: Run, annotator: str) -> None:
        """Raises BadRequest where there is nothing to look at."""
        with reading(engine) as connection:
            self.items = ask_review.items(connection, run.run_id)
            other = ask_review.newest_run(connection)
        if not self.items:
            raise BadRequest(
                f"run {run.run_id} has nothing to look at yet: "
                "`reward-audit review export -o FILE --n 40` picks what people should see"
                + (f"; --run {other} is the newest that has" if other else "")
            )
        self.run = run
        self.annotator = annotator
        self._engine = engine
        self._before: list[tuple[int, Question, str | None]] = []
        self._turn = threading.Lock()

    def shown(self, number: int) -> Shown:
        """What is to be looked at. Raises BadRequest for a number that no item has."""
        with reading(self._engine) as connection:
            (found,) = shown(connection, self.run, [self._item(number)])
        return found

    def standing(self, number: int) -> Standing:
        """Raises BadRequest for a number that no item has."""
        item = self._item(number)
        with reading(self._engine) as connection:
            said = said_by(connection, self.run.run_id, self.items, self.annotator)
        open_ = [at for at, one in enumerate(self.items, 1) if not is_done(one, said.get(one.review_id))]
        return Standing(
            number,
            answers_to(item, said.get(item.review_id)),
            (said[item.review_id].note if item.review_id in said else None) or "",
            len(self.items) - len(open_),
            len(self.items),
            next((at for at in open_ if at > number), open_[0] if open_ else None),
        )

    def first_open(self) -> int:
        """The first item that is not done, or the last one."""
        return self.standing(len(self.items)).next_open or len(self.items)

    def answer(self, number: int, question: Question, value: str, note: str) -> None:
        """Store one answer, and the note with it. Raises BadRequest for what is none, BadDatabase."""
        with self._turn:
            before = self.standing(number)
            if question not in before.answers or value not in ANSWERS[question]:
                raise BadRequest(f"{value!r} is no answer to {question!r} of item {number}")
            self._store(number, {question: value}, note.strip() or None)
            if before.answers[question] != value:
                self._before.append((number, question, before.answers[question]))

    def note(self, number: int, note: str) -> None:
        """Store a note beside what was said; an empty one takes the older one away.

        Raises BadRequest where nothing was said yet.
        """
        with self._turn:
            said = {name: value for name, value in self.standing(number).answers.items() if value is not None}
            if not said:
                raise BadRequest("a note is stored with an answer: give one first")
            self._store(number, said, note.strip())

    def undo(self) -> int | None:
        """Take back the last answer of this sitting: what was said before it, or nothing, is said again.

        The number of its item, NULL where there is nothing to undo.
        """
        with self._turn:
            if not self._before:
                return None
            number, question, value = self._before[-1]
            note = self.standing(number).note or None if value is not None else None
            self._store(number, {question: value or WITHDRAWN}, note)
            self._before.pop()
            return number

    def _store(self, number: int, said: dict[Question, str], note: str | None) -> None:
        if note is not None and len(note) > LONGEST_NOTE:
            raise BadRequest(f"the note has {len(note):,} characters: at most {LONGEST_NOTE:,}")
        item = self._item(number)
        answers = {name: said.get(name) for name in QUESTIONS}
        one = Said(item.review_id, self.annotator, **answers, note=note)  # type: ignore[arg-type]
        store_said(self._engine, [one])

    def _item(self, number: int) -> ReviewItem:
        if not 1 <= number <= len(self.items):
            raise BadRequest(f"there is no item {number}: they go from 1 to {len(self.items)}")
        return self.items[number - 1]


def labelling(engine: Engine, wanted: str, annotator: str) -> Labelling:
    """This person at the items of the run named. Raises BadRequest."""
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
    return Labelling(engine, run, annotator)
