"""The door for writes, fourth part: what people are asked to look at, and what they say of it."""

from collections.abc import Sequence

from sqlalchemy import Connection

from audit.doors.store import insert, update
from audit.words.records import HumanLabel, ReviewItem


def add_items(connection: Connection, rows: Sequence[ReviewItem]) -> None:
    """New items; one that is stored already is left as it is."""
    insert(connection, "review_items", ReviewItem._fields, rows, once="review_id")


def set_weights(connection: Connection, rows: Sequence[tuple[float, str]]) -> None:
    """(weight, review_id) of items beside which more were picked from the same stratum."""
    update(connection, "review_items", ("weight", "review_id"), rows)


def add_labels(connection: Connection, rows: Sequence[HumanLabel]) -> None:
    """New labels; nothing in this table is ever changed. Their texts are storable already."""
    insert(connection, "human_labels", HumanLabel._fields, rows)
