"""Variables that other programs read and this one does not, each with what it does there."""

from collections.abc import Iterable, Iterator, Mapping

from audit.words.findings import Finding, fine, warning

_NOT_HERE = "reward-audit does not read it: addresses and keys come from the config alone"
_SDK = "the OpenAI SDK and what is built on it"
# Variable -> what it does elsewhere. Redirected calls are a warning: they go, with a key, somewhere else.
_REDIRECTS = {
    "OPENAI_BASE_URL": f"{_SDK} send every call and the key there",
    "OPENAI_API_BASE": "older OpenAI SDKs, and tools such as LangChain and aider, send every call there",
    "ANTHROPIC_BASE_URL": "the Anthropic SDK and Claude Code send every call and the key there",
}
_PROXIES = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_KEYS = {
    "OPENAI_API_KEY": f"{_SDK}, Codex too, send it wherever no other key is given",
    "ANTHROPIC_API_KEY": "the Anthropic SDK and Claude Code send it as x-api-key, before any login",
    "ANTHROPIC_AUTH_TOKEN": "the Anthropic SDK and Claude Code send it as Authorization: Bearer",
    "OPENAI_ORG_ID": f"{_SDK} send it as a header",
    "OPENAI_ORGANIZATION": f"{_SDK} send it as a header",
    "OPENAI_PROJECT_ID": f"{_SDK} send it as a header",
    "OPENAI_CUSTOM_HEADERS": f"{_SDK} add these headers, and may replace the key by them",
    "ANTHROPIC_CUSTOM_HEADERS": "Claude Code adds these headers to every call",
    "ANTHROPIC_MODEL": "Claude Code asks this model instead of the one in its settings",
}


def left_overs(environ: Mapping[str, str], named: Iterable[str], *, is_remote: bool) -> Iterator[Finding]:
    """A finding for each variable that could take over elsewhere; values are not shown.

    `named`: variables that the config itself names. `is_remote`: a profile is not on this machine, so that a
    proxy could matter.
    """
    meant = set(named)
    for name in sorted(environ):
        known = name.upper()
        if name in meant:
            continue
        if known in _REDIRECTS:
            yield _redirect(name, _REDIRECTS[known], is_empty=not environ[name].strip())
        elif known in _PROXIES and environ[name].strip():
            yield _proxy(name, is_remote=is_remote)
        elif known == "NO_PROXY":
            yield fine("left_over", name, f"{_NOT_HERE}; other programs go straight to the hosts in it")
        elif known.startswith(("OPENAI_", "ANTHROPIC_")):
            effect = _KEYS.get(known, "tools of that vendor may read it")
            state = "is set" if environ[name].strip() else "is set, but empty"
            yield fine("left_over", name, f"{state}: {effect}. {_NOT_HERE}")


def _redirect(name: str, effect: str, *, is_empty: bool) -> Finding:
    if is_empty:
        effect = (
            "other programs take the empty text for an address, and fail with a puzzling error "
            "(such as `Connection error.` or `unsupported protocol`)"
        )
    state = "is set, but empty" if is_empty else "is set"
    return warning(
        "left_over_empty" if is_empty else "left_over",
        name,
        f"{state}: {effect}. {_NOT_HERE}",
        f"unset {name}, unless another program is meant to have it",
    )


def _proxy(name: str, *, is_remote: bool) -> Finding:
    what = (
        "is set: curl, the OpenAI and Anthropic SDKs and Codex send their calls through it. "
        "reward-audit does not read it and connects straight"
    )
    if not is_remote:
        return fine("proxy", name, what)
    return warning("proxy", name, what, "where only the proxy leads outside, calls fail: `--live` shows it")
