"""Keys: which one an endpoint is sent, and how they stay out of everything that is kept."""

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote, quote_plus

from audit.doors.llm_url import OFFLINE, is_loopback
from audit.words.errors import AuditError
from audit.words.profiles import Endpoint

SHOWN_INSTEAD = "[key]"
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


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text with each secret replaced, also where it stands URL-encoded or escaped in JSON."""
    for form in forms(frozenset(secrets)):
        if form in text:
            text = text.replace(form, SHOWN_INSTEAD)
    return text


@lru_cache(maxsize=64)
def forms(secrets: frozenset[str]) -> tuple[str, ...]:
    """The ways in which the secrets may be written, longest first, so that none is left in half."""
    found = set()
    for secret in {secret.strip() for secret in secrets}:
        if len(secret) < MIN_LENGTH:
            continue
        encoded = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
        in_json = json.dumps(secret)[1:-1]
        found |= {secret, in_json, in_json.replace("/", "\\/"), repr(secret)[1:-1], *encoded}
        found |= {_lower_escapes(form) for form in encoded}
    return tuple(sorted(found, key=lambda form: (-len(form), form)))


def _lower_escapes(text: str) -> str:
    """`%2F` as `%2f`: some servers write it so."""
    first, *rest = text.split("%")
    return "%".join([first, *(part[:2].lower() + part[2:] for part in rest)])
