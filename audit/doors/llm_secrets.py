"""Keys: which one an endpoint is sent, and how they stay out of everything that is kept."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from html import escape
from typing import Any

from audit.doors.llm_url import OFFLINE, is_loopback
from audit.words.errors import AuditError
from audit.words.keys import SHOWN_INSTEAD, is_guessable
from audit.words.profiles import Endpoint

MIN_LENGTH = 4  # a shorter value guards nothing, and blanking it would spoil ordinary words

_NO_KEY = "none"  # the client wants one, and must not look for it in the environment


def key_for(endpoint: Endpoint, base_url: str, keys: Mapping[str, str]) -> str:
    """The endpoint's own key and never another one. Raises AuditError where it is missing."""
    variable = endpoint.api_key_env
    if base_url.startswith(OFFLINE):
        return _NO_KEY
    if variable is None:
        if is_loopback(base_url):
            return _NO_KEY
        raise AuditError(
            f"profile {endpoint.name!r} names no key for {base_url}: "
            "set api_key_env to the variable that holds it (any value where the gateway wants none)"
        )
    key = keys.get(variable)
    if not key:
        raise AuditError(
            f"profile {endpoint.name!r} needs a key in {variable}, which is not set: export {variable}=..."
        )
    if not (key.isascii() and key.isprintable()):
        raise AuditError(f"profile {endpoint.name!r}: {variable} holds characters that no HTTP header takes")
    return key


class Secrets:
    """All that must not be kept, and texts without it, also where it stands escaped or URL-encoded.

    A guessable one (`is_guessable`) is taken out of errors only: a gateway that wants no key is given any
    word, and that word may be a verdict.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._all: tuple[str, ...] = ()
        self._guarded: tuple[str, ...] = ()
        self._in_json: frozenset[str] = frozenset()
        self._marks: tuple[str, ...] = ()
        self.add(values)

    def add(self, values: Iterable[str]) -> None:
        """More of them."""
        found = {value.strip() for value in values}
        known = found.union(self._all)
        # The longest first, so that none is left in half.
        self._all = tuple(
            sorted((one for one in known if len(one) >= MIN_LENGTH), key=lambda one: (-len(one), one))
        )
        self._guarded = tuple(secret for secret in self._all if not is_guessable(secret))
        self._in_json = frozenset(form for one in self._guarded for form in (one, json.dumps(one)[1:-1]))
        special = {f"\\{char}" for one in self._guarded for char in one if char in _ESCAPED_ALONE}
        self._marks = ("\\u", *sorted(special))

    def are_in_json(self, text: str) -> bool:
        """Whether a guarded one is in JSON that this program wrote."""
        return any(form in text for form in self._in_json)

    def are_in(self, text: str) -> bool:
        """Whether a guarded one is in what others wrote."""
        if any(secret in text for secret in self._guarded):
            return True
        # Only an escaped text can hold one in another form, which takes long to look for.
        is_escaped = self._guarded and (
            any(mark in text for mark in self._marks)
            or ("%" in text and _URL_ESCAPE.search(text))
            or ("&" in text and _HTML_ESCAPE.search(text))
        )
        return bool(is_escaped) and any(_pattern(secret).search(text) for secret in self._guarded)

    def out_of(self, value: Any) -> Any:
        """The value without the guarded ones, in all its texts; itself where it holds none."""
        if isinstance(value, str):
            return _replaced(value, self._guarded) if self.are_in(value) else value
        if isinstance(value, dict):
            return {self.out_of(key): self.out_of(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.out_of(item) for item in value]
        return tuple(self.out_of(item) for item in value) if isinstance(value, tuple) else value

    def out_of_error(self, text: str) -> str:
        """The text without any, guessable or not."""
        return _replaced(text, self._all)


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced."""
    return Secrets(secrets).out_of_error(text)


def _replaced(text: str, secrets: tuple[str, ...]) -> str:
    for secret in secrets:
        text = _pattern(secret).sub(SHOWN_INSTEAD, text)
    return text


_URL_ESCAPE = re.compile("%[0-9A-Fa-f]{2}")
_HTML_ESCAPE = re.compile("&(?:#|[a-z]+;)")
_ESCAPED_ALONE = "\"'/\\"


@cache
def _pattern(secret: str) -> re.Pattern[str]:
    """The secret, each of its characters as it is or escaped as JSON, Python, URLs or HTML do."""
    return re.compile("".join(_forms_of(char) for char in secret))


@cache
def _forms_of(char: str) -> str:
    number = ord(char)
    in_url = "".join(f"%{_hex(byte, 2)}" for byte in char.encode("utf-8", "surrogatepass"))
    # So many backslashes stand before an escape in JSON that is in JSON; more would cost time to try.
    back = r"\\\\{0,7}"
    forms = [
        re.escape(char),
        f"{back}u{_hex(number, 4)}",
        f"{back}x{_hex(number, 2)}",
        in_url,
        f"&#(?:0*{number}|[xX]0*{_hex(number, 1)});",
    ]
    if char in _ESCAPED_ALONE:
        forms.append(back + re.escape(char))
    if char == " ":
        forms.append(r"\+")
    if escape(char) != char:
        forms.append(re.escape(escape(char)))
    # Each begins with one certain character: so the search passes quickly over all others.
    return f"(?:{'|'.join(forms)})"


def _hex(number: int, width: int) -> str:
    """A pattern of the number in hexadecimal digits of either case."""
    digits = f"{number:0{width}x}"
    return "".join(f"[{digit}{digit.upper()}]" if digit.isalpha() else digit for digit in digits)
