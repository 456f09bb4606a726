"""Labelling on both databases: what is stored, and that a word taken back counts nowhere."""

import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hostile_sessions import HOSTILE, hostile_sessions
from sqlalchemy import Engine, text

from audit.doors import ask, ask_anchors, ask_dpo, ask_review
from audit.doors.db import open_database, reading
from audit.pipeline.importing import import_file
from audit.pipeline.labelling import Labelling, labelling
from audit.pipeline.review_export import export_review
from audit.pipeline.review_import import review_status
from audit.pipeline.reviewing import store_said
from audit.pipeline.wishes import Wish
from audit.words import clock
from audit.words.errors import BadRequest
from audit.words.review import Question, Said

DONE: list[tuple[Question, str]] = [
    ("preference", "first"),
    ("first_done", "done"),
    ("second_done", "not done"),
]


@pytest.fixture
def engine(database_url: str, tmp_path: Path) -> Iterator[Engine]:
    """One run of sessions, all its pairs picked."""
    engine = open_database(database_url, create=True)
    hostile_sessions(tmp_path / "sessions.jsonl")
    import_file(engine, Wish("sessions", (tmp_path / "sessions.jsonl",)))
    export_review(engine, "latest", tmp_path / "look.csv", 100, gate=None, seed=0, form=None, again=False)
    yield engine
    engine.dispose()


def counted(engine: Engine, sitting: Labelling) -> tuple[set[str], dict[str, str], int, int, int, int]:
    """Where people's words are read: flags, the DPO set, anchors, the queue, successes, the newest words."""
    run_id, gate = sitting.run.run_id, "unjudged"
    with reading(engine) as connection:
        flags = ask.rows(connection, "select pair_id from flagged_pairs where flag = 'human_disagrees'")
        queue = ask.rows(connection, "select annotators from review_queue where annotators > 0")
        successes = ask.rows(
            connection,
            f"with {ask_review.SAID_SUCCESS} select session_id from said where success is not null",
        )
        return (
            {row["pair_id"] for row in flags},
            ask_dpo.said_of_pairs(connection, run_id, gate),
            len(ask_anchors.preferences(connection, run_id)),
            len(queue),
            len(successes),
            len(ask_review.newest_labels(connection, run_id)),
        )


def test_item_when_answered_whole_then_it_is_done_and_the_next_one_is_open(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    total = len(HOSTILE)
    assert sitting.standing(1)[1:] == (
        dict.fromkeys(["preference", "first_done", "second_done"]),
        "",
        0,
        total,
        2,
    )
    for question, value in DONE:
        assert not sitting.standing(1).is_done
        sitting.answer(1, question, value, "")
    standing = sitting.standing(1)
    assert (standing.answers, standing.done, standing.next_open) == (dict(DONE), 1, 2)
    assert standing.is_done
    assert sitting.first_open() == 2
    for number in range(3, total + 1):
        for question, value in DONE:
            sitting.answer(number, question, value, "")
    assert (sitting.standing(total).next_open, sitting.standing(2).next_open) == (2, 2)
    for question, value in DONE:
        sitting.answer(2, question, value, "")
    assert (sitting.standing(2).next_open, sitting.first_open()) == (None, total)


def test_answers_when_taken_back_then_they_count_nowhere_and_no_row_is_gone(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    before = counted(engine, sitting)
    assert before == (set(), {}, 0, 0, 0, 0)
    for question, value in DONE:
        sitting.answer(1, question, value, "")
    said = counted(engine, sitting)
    assert (len(said[1]), *said[2:]) == (1, 1, 1, 2, 3)
    assert [sitting.undo() for _ in range(4)] == [1, 1, 1, None]
    assert counted(engine, sitting) == before
    with reading(engine) as connection:
        values = connection.execute(text("select value from human_labels order by label_id")).scalars().all()
    assert len(values) == 6
    assert values[3:] == ["withdrawn"] * 3


def test_word_against_the_verifier_when_taken_back_then_the_flag_goes(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    pair = sitting.items[0].pair_id
    with reading(engine) as connection:
        agent = connection.execute(
            text(
                "select agent from sessions join audit_pairs on session_id = "
                "case when :side = 'A' then session_a else session_b end where pair_id = :pair"
            ),
            {"pair": pair, "side": sitting.items[0].shown_first},
        ).scalar_one()
    # bittern-7's reward is the lower one
    sitting.answer(1, "preference", "first" if agent == "bittern-7" else "second", "")
    assert counted(engine, sitting)[0] == {pair}
    sitting.undo()
    assert counted(engine, sitting)[0] == set()


def test_answer_when_given_twice_then_it_is_stored_once_and_undone_at_once(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    sitting.answer(1, "preference", "tie", "")
    sitting.answer(1, "preference", "tie", "")
    assert (sitting.undo(), sitting.undo()) == (1, None)
    assert sitting.standing(1).answers["preference"] is None


def test_note_when_kept_then_it_stands_beside_what_was_said(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    with pytest.raises(BadRequest, match="a note is stored with an answer: give one first"):
        sitting.note(1, "x")
    sitting.answer(1, "first_done", "done", "")
    sitting.note(1, " a\nb ")
    assert sitting.standing(1).note == "a\nb"
    sitting.answer(1, "preference", "tie", "c")
    assert sitting.standing(1).note == "c"


def test_note_when_it_is_emptied_then_it_is_gone_and_every_word_stands(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    for question, value in DONE:
        sitting.answer(1, question, value, f"{question}: why")
    sitting.note(1, " \n")
    assert sitting.standing(1).note == ""
    assert sitting.standing(1).answers == dict(DONE)
    with reading(engine) as connection:
        notes = connection.execute(text("select note from human_labels order by label_id")).scalars().all()
    assert notes == [*(f"{question}: why" for question, _ in DONE), None, None, None]
    sitting.note(1, "")
    with reading(engine) as connection:
        assert connection.execute(text("select count(*) from human_labels")).scalar_one() == 6
    # an answer with nothing beside it says nothing of the note
    sitting.note(1, "kept")
    sitting.answer(1, "first_done", "not done", "")
    assert sitting.standing(1).note == "kept"


@pytest.mark.parametrize("order", [("first_done", "second_done"), ("second_done", "first_done")])
def test_note_when_replaced_before_a_side_is_preferred_then_the_newest_is_shown(
    engine: Engine, order: tuple[Question, Question], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = clock.now()
    monkeypatch.setattr(clock, "now", lambda: at)  # all in one millisecond
    sitting = labelling(engine, "latest", "ann")
    for number in range(1, len(HOSTILE) + 1):  # some are shown A first, some B
        for question in order:
            sitting.answer(number, question, "done", "old")
        sitting.note(number, "new")
        assert sitting.standing(number).note == "new"


def test_answer_when_an_older_word_is_told_with_a_later_time_then_the_answer_counts(engine: Engine) -> None:
    """Clocks differ: Label Studio's server may be ahead of this machine."""
    sitting = labelling(engine, "latest", "ann")
    ahead = clock.stamp(datetime.now(UTC) + timedelta(hours=2))
    item = sitting.items[0].review_id
    store_said(engine, [Said(item, "ann", "first", None, None, said_at=ahead)])
    sitting.answer(1, "preference", "second", "")
    assert sitting.standing(1).answers["preference"] == "second"
    sitting.undo()
    assert sitting.standing(1).answers["preference"] == "first"


def test_two_people_when_they_answer_then_each_sees_their_own_words(engine: Engine) -> None:
    ann, bob = labelling(engine, "latest", "ann"), labelling(engine, "latest", "bob")
    ann.answer(1, "preference", "first", "")
    bob.answer(1, "preference", "second", "")
    assert ann.standing(1).answers["preference"] == "first"
    assert bob.standing(1).answers["preference"] == "second"


def test_answers_when_many_come_at_once_then_all_are_stored(engine: Engine) -> None:
    sitting = labelling(engine, "latest", "ann")
    threads = [
        threading.Thread(target=sitting.answer, args=(number, "preference", "tie", ""))
        for number in range(1, len(HOSTILE) + 1)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    standings = [sitting.standing(number).answers["preference"] for number in range(1, len(HOSTILE) + 1)]
    assert standings == ["tie"] * len(HOSTILE)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda sitting: sitting.answer(1, "preference", "A", ""),
        lambda sitting: sitting.answer(1, "winner", "tie", ""),
        lambda sitting: sitting.answer(0, "preference", "tie", ""),
        lambda sitting: sitting.answer(1, "preference", "tie", "x" * 5001),
        lambda sitting: sitting.answer(1, "preference", "withdrawn", ""),
    ],
)
def test_answer_when_it_is_none_then_nothing_is_stored(
    engine: Engine, wrong: Callable[[Labelling], None]
) -> None:
    sitting = labelling(engine, "latest", "ann")
    with pytest.raises(BadRequest):
        wrong(sitting)
    assert counted(engine, sitting) == (set(), {}, 0, 0, 0, 0)
    assert sitting.undo() is None


def test_status_when_a_session_stands_in_other_items_too_then_those_are_labelled_and_not_done(
    here: Callable[..., Any], small: Callable[..., Path], tmp_path: Path
) -> None:
    assert here("run", "-c", small()).code == 0
    assert here("review", "export", "-o", "look.csv", "--n", "20").code == 0
    engine = open_database(f"sqlite:///{tmp_path / 'audit.db'}", create=False)
    with reading(engine) as connection:
        sides = connection.execute(
            text("select review_id, session_a, session_b from review_items join audit_pairs using (pair_id)")
        ).all()
    sharing = {
        review_id: sum(not {a, b}.isdisjoint(other[1:]) for other in sides) for review_id, a, b in sides
    }
    sitting = labelling(engine, "latest", "ann")
    busiest = max(sitting.items, key=lambda item: sharing[item.review_id])
    for question, value in DONE:
        sitting.answer(sitting.items.index(busiest) + 1, question, value, "")

    status = review_status(engine, "latest")
    many = sharing[busiest.review_id]
    assert many > 1
    assert (status["labelled"], status["done"], sitting.standing(1).done) == (many, 1, 1)
    assert status["annotators"] == [{"annotator": "ann", "items": many, "done": 1, "labels": 3}]
    engine.dispose()
