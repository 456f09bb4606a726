"""What can be told of a key by looking at it: not filled in, spoiled in copying, meant for another."""

from collections.abc import Iterator

from audit.words.findings import Finding, error, warning
from audit.words.vendors import is_placeholder, vendor_of_host, vendor_of_key, vendor_of_variable

_QUOTES = "'\"`‘’“”"


def key_findings(where: str, variable: str, value: str, host: str, *, is_local: bool) -> Iterator[Finding]:
    """Whether the value of the variable may be sent to the host as a key. No finding shows any of it."""
    key = value.strip()
    if key != value:
        yield warning(
            "key_padded",
            where,
            f"{variable} begins or ends with blanks or line ends; the key is used without them",
            "take them out: other programs send them along",
        )
    spoiled = _spoiled(key, variable)
    if is_placeholder(key.strip(_QUOTES)):
        yield error(
            "key_placeholder",
            where,
            f"{variable} holds a placeholder, not a key",
            f"export {variable}=... with the key that {host} gave you",
        )
    elif spoiled is not None:
        yield error("key_spoiled", where, f"{variable} {spoiled}", f"set {variable} to the key alone")
    else:
        yield from _meant_for(where, variable, key, host, is_local=is_local)


def _spoiled(key: str, variable: str) -> str | None:
    if key[0] in _QUOTES or key[-1] in _QUOTES:
        return "holds quotes, which would be sent as part of the key"
    if key.lower().startswith(("bearer ", "authorization:", "x-api-key:")):
        return "holds a header's words before the key: they are added when it is sent"
    if key.startswith((f"{variable}=", "export ")):
        return "holds an assignment, not a key alone"
    if len(key.split()) > 1:
        return "holds blanks or line ends within the key"
    if not (key.isascii() and key.isprintable()):
        return "holds characters that no HTTP header takes"
    return None


def _meant_for(where: str, variable: str, key: str, host: str, *, is_local: bool) -> Iterator[Finding]:
    """A vendor's key goes to that vendor alone; a program on this machine may pass it on."""
    if is_local:
        return
    here, issuer, named = vendor_of_host(host), vendor_of_key(key), vendor_of_variable(variable)
    if issuer is not None and issuer != here:
        grade = warning if here is None else error
        yield grade(
            "key_of_other_vendor",
            where,
            f"{variable} holds a key as {issuer} gives them out, and would be sent to {host}",
            f"name the variable with {host}'s own key in api_key_env",
        )
    elif named is not None and named != here:
        yield warning(
            "key_of_other_vendor",
            where,
            f"{variable} is named for a key of {named}, and would be sent to {host}",
            f"put {host}'s own key into a variable of its own, and name that in api_key_env",
        )
