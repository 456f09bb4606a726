"""Doctor: base URLs as people paste them, what is made of each, and what cannot be meant."""

from collections.abc import Iterator
from ipaddress import ip_address
from urllib.parse import urlsplit

from audit.doors.llm_url import ENDPOINT_PATH, OFFLINE, clean_base_url, is_loopback, keys_of_query, shown_url
from audit.words.errors import AuditError
from audit.words.findings import Finding, error, fine, warning
from audit.words.vendors import is_example_host

# Ends of addresses that are pasted from documentation, and are no base.
_OTHER_ENDS = ("/messages", "/responses", "/completions", "/embeddings", "/models")


def url_findings(where: str, url: str) -> list[Finding]:
    """What is to be told of an address that this program is to send chat completions to."""
    try:
        base, query = clean_base_url(url)
    except AuditError as problem:
        return [refused(where, problem)]
    if base.startswith(OFFLINE):
        return []
    return [*_wrong(where, base), *_noted(where, url, base), *_query(where, base, query)]


def refused(where: str, problem: AuditError) -> Finding:
    """An address that `clean_base_url` refuses, with the right one where it proposes one."""
    what, found, right = str(problem).partition(": write ")
    return error("url_refused", where, what, f"write {right}" if found else "write it as https://HOST/v1")


def host_of(url: str) -> str:
    """The host of an address, without its port."""
    return urlsplit(url.strip()).hostname or ""


def is_local(url: str) -> bool:
    """Whether what is sent there stays on this machine."""
    return url.startswith(OFFLINE) or is_loopback(url)


def _wrong(where: str, base: str) -> Iterator[Finding]:
    path = urlsplit(base).path
    end = next((end for end in _OTHER_ENDS if path.endswith(end)), None)
    if is_example_host(host_of(base)):
        yield error(
            "url_placeholder",
            where,
            f"{shown_url(base)} is a placeholder, not your gateway",
            "write your gateway's address",
        )
    elif end is not None:
        yield error(
            "url_other_endpoint",
            where,
            f"{shown_url(base)} is one endpoint; calls would go to {shown_url(base)}{ENDPOINT_PATH}",
            f"write {shown_url(base.removesuffix(end))}",
        )
    elif "anthropic" in path.split("/"):
        yield warning(
            "url_of_other_api",
            where,
            f"{shown_url(base)} looks like a gateway's address for Anthropic's API, as Claude Code wants it",
            "write the gateway's OpenAI-compatible address: chat completions are what is spoken here",
        )
    elif not path:
        yield warning(
            "url_without_path",
            where,
            f"{shown_url(base)} has no path: calls go to {shown_url(base)}{ENDPOINT_PATH}",
            f"most gateways want {shown_url(base)}/v1",
        )
    if base.startswith("http:") and not _is_near(base):
        yield warning(
            "url_not_encrypted",
            where,
            f"{shown_url(base)} is not encrypted: key and transcripts go there in the open",
            f"write {shown_url(base).replace('http:', 'https:', 1)} where the gateway has it",
        )


def _noted(where: str, url: str, base: str) -> Iterator[Finding]:
    """What was understood, though it is no base as documentation has it."""
    path = urlsplit(url.strip()).path
    if path.rstrip("/").endswith(ENDPOINT_PATH):
        yield fine("url_endpoint_pasted", where, f"{ENDPOINT_PATH} is taken off: {shown_url(base)} is meant")
    elif path.endswith("/"):
        yield fine("url_slash", where, f"the slash at the end is taken off: {shown_url(base)} is meant")


def _query(where: str, base: str, query: dict[str, str]) -> Iterator[Finding]:
    if not query:
        return
    names = ", ".join(query)
    if keys_of_query(query):
        yield warning(
            "key_in_url",
            where,
            f"the query of {shown_url(base)} holds a key ({names}); it is sent, and never stored or shown",
            "put it into a variable that api_key_env names, where the gateway takes a header",
        )
    else:
        yield fine("url_query", where, f"the query ({names}) is kept, and sent with every call")


def _is_near(base: str) -> bool:
    """On this machine or in its own network: an address kept for that, or a name without a dot."""
    host = host_of(base)
    try:
        return ip_address(host).is_private
    except ValueError:
        return is_loopback(base) or "." not in host or host.endswith((".local", ".internal", ".lan"))
