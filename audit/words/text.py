"""Text as it is stored: every code point visible to SQL and C-string readers, and nothing lost.

PostgreSQL refuses NUL, SQLite's own functions and its shell stop at it, and neither takes a lone surrogate.
So NUL is stored as `␀`, a lone surrogate as `␛` and its four hex digits; a literal `␀` or `␛` is doubled by
a `␛` before it. All other text is stored byte for byte. `from_stored(to_stored(t)) == t` for every `t`.
"""

import json
import math
import re
from typing import Any

import orjson

_SPECIAL = re.compile("[\x00\u2400\u241b\ud800-\udfff]")
_STORED = re.compile("\u241b([\u2400\u241b]|[0-9A-F]{4})|\u2400")


def to_stored(text: str) -> str:
    """The text with NUL and lone surrogates made visible."""
    if text.isascii():
        return text.replace("\x00", "\u2400") if "\x00" in text else text
    return _SPECIAL.sub(_escape, text)


def from_stored(text: str) -> str:
    """The text as it came, from its stored form."""
    if "\u2400" not in text and "\u241b" not in text:
        return text
    return _STORED.sub(_unescape, text)


def as_json(value: object) -> str:
    """Compact JSON, for a column that ends in _json."""
    try:
        return orjson.dumps(value).decode()
    except TypeError:
        # A lone surrogate or an integer over 64 bits, which the slower library can write; but it would write
        # NaN and infinities too, as tokens that no strict reader takes.
        return json.dumps(_finite(value), separators=(",", ":"))


def from_json(text: str) -> Any:
    """The value of stored JSON; half a character in it, which no other program takes, comes as `?`."""
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(json.dumps(json.loads(text), ensure_ascii=False).encode("utf-8", "replace"))


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char == "\x00":
        return "\u2400"
    if char in "\u2400\u241b":
        return "\u241b" + char
    return f"\u241b{ord(char):04X}"


def _unescape(match: re.Match[str]) -> str:
    held = match[1]
    if held is None:
        return "\x00"
    return held if len(held) == 1 else chr(int(held, 16))
