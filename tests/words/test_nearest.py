"""A misspelt name is answered with the one that was meant, and a strange one with none."""

import pytest

from audit.words.nearest import did_you_mean


@pytest.mark.parametrize(
    ("word", "said"),
    [("reprot", " (did you mean report?)"), ("Report", " (did you mean report?)"), ("nope", ""), ("", "")],
)
def test_name_when_it_is_not_known_then_the_nearest_is_named_if_it_is_near(word: str, said: str) -> None:
    assert did_you_mean(word, ("report", "reproduce", "runs")) == said
