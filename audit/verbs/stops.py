"""The tokens by which a simulated user ends a session: found in a text, and taken out of it."""

import re
from collections.abc import Iterable
from functools import lru_cache


def without_stops(text: str, tokens: Iterable[str]) -> tuple[str, str | None]:
    """The text with a space for each token, and the token that stands first, None where there is none."""
    tokens = tuple(tokens)
    if not any(token in text for token in tokens):
        return text, None
    pattern = _pattern(tokens)
    first = pattern.search(text)
    while pattern.search(text):  # until none is left: two halves may meet where one was taken out
        text = pattern.sub(" ", text)
    return text, first[1] if first else None


@lru_cache(maxsize=64)
def _pattern(tokens: tuple[str, ...]) -> re.Pattern[str]:
    """The longest first, where one token is part of another."""
    longest = sorted((token for token in tokens if token.strip()), key=len, reverse=True)
    return re.compile(f" ?({'|'.join(map(re.escape, longest))}) ?" if longest else r"(?!)")
