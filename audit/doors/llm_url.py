"""Base URLs as people paste them, and as the client needs them."""

from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import parse_qsl, urlsplit, urlunsplit

from audit.words.errors import AuditError
from audit.words.keys import looks_like_key, names_a_key

ENDPOINT_PATH = "/chat/completions"
OFFLINE = "offline://"
_TRACKING = ("utm_", "gclid", "fbclid")


def clean_base_url(url: str) -> tuple[str, dict[str, str]]:
    """(base URL without query and closing slash, query that every request needs).

    A pasted `/chat/completions` is taken off. Raises AuditError for what cannot be meant: no scheme, a name
    and password inside, or a query left over from a link in a letter; it proposes the right URL. No error
    shows a value of the query: it may be a key.
    """
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError:  # whose text may show a part of a password
        host = url.rpartition("@")[2].rpartition("://")[2]
        raise AuditError(f"base_url is not an address: write it as https://{shown_url(host)}") from None
    if parts.scheme == "offline":
        return url.strip().rstrip("/") if parts.netloc else OFFLINE, {}
    if parts.scheme not in ("http", "https") or not parts.netloc:
        bare = url.strip().partition("://")[2] or url.strip().lstrip("/")
        if "@" in bare.partition("/")[0]:
            raise AuditError(
                f"base_url holds a password: write {shown_url('https://' + bare)} "
                "and name the key in api_key_env"
            )
        right = shown_url(bare) or "HOST/v1"
        raise AuditError(f"base_url {shown_url(url)!r} is not an address: write it as https://{right}")
    if "@" in parts.netloc:
        raise AuditError(f"base_url holds a password: write {shown_url(url)} and name the key in api_key_env")
    query = parse_qsl(parts.query, keep_blank_values=True)
    needed = [(name, value) for name, value in query if not name.lower().startswith(_TRACKING)]
    path = parts.path.rstrip("/").removesuffix(ENDPOINT_PATH).rstrip("/")
    if len(needed) < len(query):
        right = urlunsplit((parts.scheme, parts.netloc, path, "&".join(f"{n}=..." for n, _ in needed), ""))
        tracking = ", ".join(name for name, _ in query if name.lower().startswith(_TRACKING))
        raise AuditError(
            f"base_url {shown_url(url)!r} carries tracking parameters ({tracking}): write {right}"
        )
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(needed)


@lru_cache(maxsize=256)
def shown_url(url: str) -> str:
    """The address as it may be shown and stored: without query, fragment, name and password."""
    bare = url.strip().partition("?")[0].partition("#")[0]
    scheme, found, rest = bare.rpartition("://")
    host, slash, path = rest.partition("/")
    return scheme + found + host.rpartition("@")[2] + slash + path


def keys_of_query(query: dict[str, str]) -> set[str]:
    """The values of a query that are keys."""
    return {
        value
        for name, value in query.items()
        if names_a_key(name) or name.lower() in ("code", "sig") or looks_like_key(value)
    }


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
