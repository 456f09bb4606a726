"""Times are UTC, ISO 8601, to the millisecond, ending in `Z`: so they sort and compare as text."""

from datetime import UTC, datetime


def stamp(moment: datetime) -> str:
    """An aware moment as stored text. Raises ValueError for a naive one: its zone would be a guess."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: write it with an offset or a Z")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def now() -> str:
    """This moment as stored text."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_text(text: str) -> str:
    """Any ISO 8601 time with an offset as stored text. Raises ValueError where there is none."""
    try:
        return stamp(datetime.fromisoformat(text))
    except OverflowError as error:
        raise ValueError(f"{text} is no time in UTC: the year is out of range") from error
