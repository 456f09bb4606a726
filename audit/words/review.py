"""What people say of what they are shown, by position; a file and the page speak alike."""

from typing import Literal, NamedTuple, get_args

from audit.words.names import Choice

CannotTell = Literal["cannot tell"]
Withdrawn = Literal["withdrawn"]
Done = Literal["done", "not done", "cannot tell"]
Question = Literal["preference", "first_done", "second_done"]
Reason = Literal["satisfied_failed", "inconsistent", "panel_disagrees", "near_tie", "llm_labelled", "random"]

CANNOT_TELL: CannotTell = "cannot tell"
# Nothing is ever deleted: who takes a word back adds this one, and then has said nothing.
WITHDRAWN: Withdrawn = "withdrawn"
QUESTIONS: tuple[Question, ...] = get_args(Question)
DONES: tuple[Done, ...] = get_args(Done)
REASONS: tuple[Reason, ...] = get_args(Reason)


class Shown(NamedTuple):
    """What people see of an item: both sessions without names, or one (`second` NULL). Nothing is escaped."""

    review_id: str
    goal: str
    policy: str
    first: str
    second: str | None


class Said(NamedTuple):
    """What one person said of an item; NULL where they said nothing of that.

    `preference` and the two `done` are by position, as shown; of one session only `first_done` counts.
    `note`: NULL says nothing of it, an empty one takes the older one away. `said_at`: as `clock.stamp` writes
    it, NULL for now. `place`: where it stands in its file.
    """

    review_id: str
    annotator: str
    preference: Choice | CannotTell | Withdrawn | None
    first_done: Done | Withdrawn | None
    second_done: Done | Withdrawn | None
    note: str | None = None
    said_at: str | None = None
    place: str = ""
