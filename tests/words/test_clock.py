"""Times are one kind of text, whatever zone they came from: a window in SQL is a comparison of text."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import insert, text

from audit.doors import db
from audit.words import clock
from audit.words.schema import prompts

WRITTEN = {
    "west of Greenwich": ("2026-03-05T09:15:00-08:00", "2026-03-05T17:15:00.000Z"),
    "UTC with Z": ("2026-03-05T17:15:00Z", "2026-03-05T17:15:00.000Z"),
    "east, the next day": ("2026-03-06T02:15:00+09:00", "2026-03-05T17:15:00.000Z"),
    "half an hour off": ("2026-03-05T22:45:00+05:30", "2026-03-05T17:15:00.000Z"),
    "with a blank": ("2026-03-05 17:15:00+00:00", "2026-03-05T17:15:00.000Z"),
    "microseconds": ("2026-03-05T17:15:00.123999Z", "2026-03-05T17:15:00.123Z"),
    "no seconds": ("2026-03-05T17:15Z", "2026-03-05T17:15:00.000Z"),
}


@pytest.mark.parametrize(("written", "stored"), WRITTEN.values(), ids=WRITTEN.keys())
def test_time_when_written_with_an_offset_then_is_stored_as_the_same_instant_in_utc(
    written: str, stored: str
) -> None:
    assert clock.from_text(written) == stored
    assert clock.from_text(stored) == stored


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("2026-03-05T17:15:00", "2026-03-05T17:15:00 has no time zone: write it with an offset or a Z"),
        ("2026-03-05", "2026-03-05T00:00:00 has no time zone: write it with an offset or a Z"),
        ("yesterday", "Invalid isoformat string: 'yesterday'"),
        ("", "Invalid isoformat string: ''"),
    ],
)
def test_time_when_its_instant_is_unknown_then_is_refused(written: str, message: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        clock.from_text(written)
    assert str(caught.value) == message


def test_now_when_read_back_then_is_this_moment_in_utc() -> None:
    before = datetime.now(UTC) - timedelta(milliseconds=1)
    assert before <= datetime.fromisoformat(clock.now()) <= datetime.now(UTC)
    assert clock.now().endswith("Z")


MOMENTS = st.datetimes(
    min_value=datetime(1, 1, 3),  # noqa: DTZ001 - the zone is drawn beside it
    max_value=datetime(9999, 12, 29),  # noqa: DTZ001 - the same
    timezones=st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes))),
)


@given(MOMENTS, MOMENTS)
def test_times_when_compared_as_text_then_stand_in_the_order_of_the_instants(
    one: datetime, other: datetime
) -> None:
    if one < other:
        assert clock.stamp(one) <= clock.stamp(other)
    assert abs(datetime.fromisoformat(clock.stamp(one)) - one) < timedelta(milliseconds=1)


def test_window_when_times_came_from_three_zones_then_holds_all_of_them(database_url: str) -> None:
    """Case ST-09: SQLite drops an offset and keeps the wall clock, so the window would hold one."""
    engine = db.open_database(database_url, create=True)
    zones = ["2026-03-05T09:15:00-08:00", "2026-03-05T17:15:00Z", "2026-03-06T02:15:00+09:00"]
    outside = ["2026-03-05T18:00:00Z", "2026-03-05T16:59:59.999Z", "2026-03-05T17:30:00-08:00"]
    with db.writing(engine) as connection:
        connection.execute(
            insert(prompts),
            [
                {
                    "prompt_hash": str(i),
                    "role": "r",
                    "name": "n",
                    "version": clock.from_text(when),
                    "text": "",
                }
                for i, when in enumerate(zones + outside)
            ],
        )
    with db.reading(engine) as connection:
        found = connection.execute(
            text("select version from prompts where version >= :since and version < :until"),
            {
                "since": clock.from_text("2026-03-05T17:00:00Z"),
                "until": clock.from_text("2026-03-05T18:00:00Z"),
            },
        )
        assert found.scalars().all() == ["2026-03-05T17:15:00.000Z"] * 3
    engine.dispose()
