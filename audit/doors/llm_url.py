"""Base URLs as people paste them, and as the client needs them."""

from ipaddress import ip_address
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from audit.words.errors import AuditError

ENDPOINT_PATH = "/chat/completions"
OFFLINE = "offline://"
_TRACKING = ("utm_", "gclid", "fbclid")


def clean_base_url(url: str) -> tuple[str, dict[str, str]]:
    """(base URL without query and closing slash, query that every request needs).

    A pasted `/chat/completions` is taken off. Raises AuditError for what cannot be meant: no scheme, a name
    and password inside, or a query left over from a link in a letter; it proposes the right URL.
    """
    parts = urlsplit(url.strip())
    if parts.scheme == "offline":
        return url.strip().rstrip("/") if parts.netloc else OFFLINE, {}
    if parts.scheme not in ("http", "https") or not parts.netloc:
        bare = url.strip().partition("://")[2] or url.strip().lstrip("/")
        if "@" in bare.partition("/")[0]:
            raise AuditError(
                f"base_url holds a password: write {_without_query('https://' + bare.rpartition('@')[2])} "
                "and name the key in api_key_env"
            )
        raise AuditError(f"base_url {url!r} is not an address: write it as https://{bare or 'HOST/v1'}")
    if "@" in parts.netloc:
        right = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        raise AuditError(
            f"base_url holds a password: write {_without_query(right)} and name the key in api_key_env"
        )
    query = parse_qsl(parts.query, keep_blank_values=True)
    needed = [(name, value) for name, value in query if not name.lower().startswith(_TRACKING)]
    path = parts.path.rstrip("/").removesuffix(ENDPOINT_PATH).rstrip("/")
    if len(needed) < len(query):
        right = urlunsplit((parts.scheme, parts.netloc, path, urlencode(needed), ""))
        tracking = ", ".join(name for name, _ in query if name.lower().startswith(_TRACKING))
        raise AuditError(f"base_url {url!r} carries tracking parameters ({tracking}): write {right}")
    return urlunsplit((parts.scheme, parts.netloc, path, "", "")), dict(needed)


def is_loopback(url: str) -> bool:
    """Whether the address is this machine's own."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _without_query(url: str) -> str:
    return urlunsplit(urlsplit(url)._replace(query="", fragment=""))
