"""Whatever a model writes is stored whole, comes back as it was, and is visible to SQL to its end."""

import json
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import insert, text

from audit.doors import db
from audit.words.schema import prompts
from audit.words.text import as_json, from_stored, to_stored

# What is escaped, and what an escape is made of, far more often than chance would have it; and anything else.
NASTY = st.text(st.one_of(st.sampled_from("\x00␀␛\ud800\udfffD8F0a"), st.characters()))

STORED = {
    "plain": ("Answer: [[A]]\n", "Answer: [[A]]\n"),
    "emoji and Chinese": ("好 👍 é", "好 👍 é"),
    "NUL": ("refund\x00 denied, order 17", "refund␀ denied, order 17"),
    "NUL beside other text": ("退款\x00 denied", "退款␀ denied"),
    "the sign for NUL": ("␀", "␛␀"),
    "the escape": ("␛", "␛␛"),
    "a lone surrogate": ("half \ud83d", "half ␛D83D"),
    "what looks like an escape": ("␛D83D", "␛␛D83D"),
    "control characters": ("\x01\x1b[31m\x7f\ufffe", "\x01\x1b[31m\x7f\ufffe"),
    "empty": ("", ""),
}


@pytest.mark.parametrize(("came", "stored"), STORED.values(), ids=STORED.keys())
def test_text_when_stored_then_has_the_documented_form_and_comes_back(came: str, stored: str) -> None:
    assert to_stored(came) == stored
    assert from_stored(stored) == came


@given(NASTY)
@example("␛\x00␀\ud83d\ude00D83D")
def test_text_when_stored_and_read_back_then_is_the_same_to_the_character(came: str) -> None:
    stored = to_stored(came)
    assert from_stored(stored) == came
    assert "\x00" not in stored
    stored.encode()  # raises for a lone surrogate


def test_text_when_stored_in_a_database_then_sql_sees_its_end_and_it_comes_back(database_url: str) -> None:
    """Case TX-02: with a NUL in it, length() and like end after `refund`, or the row is refused."""
    every = "".join(map(chr, [*range(256), 0x2400, 0x241B, 0xD83D, 0xDE00, 0xFFFE, 0x1F44D]))
    texts = [*(came for came, _ in STORED.values()), every, "refund\x00 denied, order 17"]
    engine = db.open_database(database_url, create=True)
    with db.writing(engine) as connection:
        connection.execute(
            insert(prompts),
            [
                {"prompt_hash": f"{i:02}", "role": "r", "name": "n", "version": "1", "text": to_stored(came)}
                for i, came in enumerate(texts)
            ],
        )
    with db.reading(engine) as connection:
        read = connection.execute(text("select text from prompts order by prompt_hash")).scalars().all()
        lengths = connection.execute(text("select length(text) from prompts order by prompt_hash"))
        found = connection.execute(text("select count(*) from prompts where text like '%denied, order 17'"))
        assert [from_stored(stored) for stored in read] == texts
        assert lengths.scalars().all() == [len(to_stored(came)) for came in texts]
        assert found.scalar() == 2
    engine.dispose()


def test_json_when_it_falls_back_then_it_holds_no_token_that_strict_readers_refuse() -> None:
    value = {"text": "\ud800", "big": 2**70, "scores": [math.nan, math.inf, 1.5]}
    assert json.loads(as_json(value), parse_constant=pytest.fail) == {
        "text": "\ud800",
        "big": 2**70,
        "scores": [None, None, 1.5],
    }
