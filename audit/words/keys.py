"""What may be a key, by its looks or by the name it stands under, and how such a value is shown."""

import re
from typing import Any

SHOWN_INSTEAD = "[key]"
_PREFIXED = re.compile(r"(sk[-_]|gsk_|hf_|AIza)[\w-]{8,}")
_LONG = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])[\w+/=.~-]{20,}")
_PLAIN = re.compile(r"[A-Za-z]+([ _-][A-Za-z]+)*|\d+")
_KEYLIKE = re.compile(r"(\w+ )?[\w+/=.~:-]+")  # a scheme such as `Bearer` may come before it
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEY_WORDS = frozenset(
    ("key", "apikey", "token", "secret", "password", "authorization", "auth", "credential", "credentials")
)


def looks_like_key(text: str) -> bool:
    """Whether nobody would mean anything else by it: a known beginning, or long letters with digits."""
    return begins_as_key(text) or _LONG.fullmatch(text) is not None


def begins_as_key(text: str) -> bool:
    """Whether it begins as the keys of well-known vendors do."""
    return _PREFIXED.match(text) is not None


def is_guessable(key: str) -> bool:
    """Whether the key is short, a word or a number, as gateways get that want none.

    It guards nothing, and to replace it wherever it stands would spoil ordinary text.
    """
    return len(key) < 8 or (len(key) < 20 and _PLAIN.fullmatch(key) is not None)


def is_variable(name: str) -> bool:
    """Whether it can be the name of a variable that holds a key, and not the key itself."""
    if not _VARIABLE.fullmatch(name) or begins_as_key(name):
        return False
    words = {word.lower() for word in name.split("_")}
    if words & {"key", "token", "secret"}:
        return True
    is_mixed = name != name.upper() and name != name.lower()
    has_digit = any(char.isdigit() for char in name)
    return not (is_mixed and has_digit) and (name == name.upper() or len(name) <= 30)


def names_a_key(name: str) -> bool:
    """Whether what stands under the name is a key: `api_key`, `X-Auth-Token`, `accessToken`."""
    parts = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    words = re.findall(r"[a-z0-9]+", parts)
    return bool(words) and words[-1] in _KEY_WORDS and "cache" not in words


def without_keys(extra: dict[str, Any]) -> dict[str, Any]:
    """More of a request's body as it may be stored: what stands under a key's name, and headers, replaced."""
    return {name: _hidden(name, value, is_top=True) for name, value in extra.items()}


def keys_in(extra: dict[str, Any]) -> set[str]:
    """The texts that `without_keys` replaces, as far as a key may look like them."""
    return _lost(extra, without_keys(extra))


def shown(value: object) -> str:
    """A wrong value in an error: of what may be a key only the beginning, of what may hold one its kind."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if not isinstance(value, str) or is_guessable(value):
        return repr(value)[:60]
    return f"{value[:3]!r}... ({len(value)} characters)"


def _hidden(name: str, value: Any, *, is_top: bool = False) -> Any:
    if isinstance(value, dict):
        if is_top and name.lower() in ("headers", "extra_headers"):
            return dict.fromkeys(value, SHOWN_INSTEAD)
        return {str(key): _hidden(str(key), item) for key, item in value.items()}
    if isinstance(value, list):
        return [_hidden(name, item) for item in value]
    is_key = value is not None and not isinstance(value, bool) and names_a_key(name)
    return SHOWN_INSTEAD if is_key else value


def _lost(before: Any, after: Any) -> set[str]:
    """The texts of `before` in whose place `after` holds something else."""
    if isinstance(before, dict):
        pairs = [(value, after.get(str(key))) for key, value in before.items()] if before != after else []
        return set().union(*(_lost(*pair) for pair in pairs))
    if isinstance(before, list):
        return set().union(*(_lost(*pair) for pair in zip(before, after, strict=True)))
    if isinstance(before, str) and before != after and _KEYLIKE.fullmatch(before):
        return {before, before.rpartition(" ")[2]}
    return set()
