"""Doctor: profile lists as users of CC Switch keep them, and what the tools' settings say of each other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from audit.doors.llm_url import OFFLINE, clean_base_url, is_loopback, shown_url
from audit.pipeline.doctor_urls import host_of, is_local, url_findings
from audit.pipeline.neighbours import Seen, claude_code, codex, in_file
from audit.verbs.key_checks import key_findings
from audit.words.errors import AuditError
from audit.words.findings import Finding, error, fine, warning
from audit.words.keys import is_variable, looks_like_key
from audit.words.vendors import is_placeholder, vendor_of_variable

_JUDGES = ("llm_judge", "judge")
_USERS = ("simulated_user", "user_simulator", "simulator", "user")
_TOOLS = ("tool", "app", "client", "role")
# What one gateway's addresses for several tools differ in, pasted endpoints too.
_TAILS = ("v1", "anthropic", "openai", "messages", "responses", "chat", "completions")


def profile_list(file: str, path: str, listed: Sequence[Any], environ: Mapping[str, str]) -> Seen:
    """A list of `{name, base_url, api_key_env, model, role, tool}`."""
    seen = Seen("profiles")
    names: defaultdict[str, list[str]] = defaultdict(list)
    for index, profile in enumerate(listed):
        where = f"{file}: {path}[{index}]"
        if not isinstance(profile, dict):
            seen.findings.append(
                error("neighbour_shape", where, "expected a profile", "{name, base_url, ...}")
            )
            continue
        texts = {str(key): value for key, value in profile.items() if isinstance(value, str)}
        names[texts.get("name", "")].append(where)
        seen.findings += _profile(where, texts, environ, seen)
    for name, places in names.items():
        if name and len(places) > 1:
            seen.findings.append(
                warning(
                    "neighbour_name_twice",
                    places[1],
                    f"a profile before it is called {name!r} too",
                    "rename it",
                )
            )
    seen.findings += _one_model(f"{file}: {path}".rstrip(": "), listed)
    return seen


def _profile(
    where: str, texts: Mapping[str, str], environ: Mapping[str, str], seen: Seen
) -> Iterator[Finding]:
    tool = next((texts[key].casefold() for key in _TOOLS if key in texts), "")
    env = {name: texts[name] for name in texts if name in ("api_key", "key", "token", "auth_token")}
    if "claude" in tool or "codex" in tool:
        # As the tool itself would be set up: its own rules hold.
        yield from _as_tool(where, texts, environ, seen, is_claude="claude" in tool)
    elif "base_url" in texts:
        yield from url_findings(f"{where}.base_url", texts["base_url"])
        _keep(seen, texts["base_url"])
    for name, value in env.items():
        if is_placeholder(value):
            yield error(
                "key_placeholder", f"{where}.{name}", "holds a placeholder", "name a variable in api_key_env"
            )
        elif value.strip():
            seen.secrets |= {value, value.strip()}
            yield in_file(f"{where}.{name}")
    if is_placeholder(texts.get("model", "")):
        yield error("model_placeholder", f"{where}.model", "model is a placeholder", "write the model's name")
    yield from _variable(where, texts, environ, seen)


def _variable(
    where: str, texts: Mapping[str, str], environ: Mapping[str, str], seen: Seen
) -> Iterator[Finding]:
    variable, url = texts.get("api_key_env"), texts.get("base_url", "")
    if variable is None:
        return
    place = f"{where}.api_key_env"
    if not is_variable(variable) or looks_like_key(variable):
        seen.secrets.add(variable)
        yield error("neighbour_key_in_file", place, "holds a key, where the name of a variable belongs",
                    "write the variable's name, and the key into the variable")  # fmt: skip
    elif not environ.get(variable, "").strip():
        yield warning("neighbour_key_unset", place, f"{variable} is not set here", f"export {variable}=...")
    elif url:
        yield from key_findings(place, variable, environ[variable], host_of(url), is_local=is_local(url))


def _as_tool(
    where: str, texts: Mapping[str, str], environ: Mapping[str, str], seen: Seen, *, is_claude: bool
) -> Iterator[Finding]:
    """The profile read as the settings that it stands for."""
    url, variable = texts.get("base_url"), texts.get("api_key_env", "")
    if is_claude:
        found = claude_code(where, {"env": {"ANTHROPIC_BASE_URL": url}})
    else:
        provider = {"base_url": url, "wire_api": texts.get("wire_api")}
        found = codex(where, {"model_provider": "x", "model_providers": {"x": provider}}, environ)
    seen.bases += found.bases
    inner = ("env.ANTHROPIC_BASE_URL", "model_providers.x.base_url", "model_providers.x.wire_api")
    for item in found.findings:
        place = item.where
        for path in inner:
            place = place.replace(f": {path}", "." + ("wire_api" if "wire" in path else "base_url"))
        yield Finding(item.level, item.code, place, item.what, item.do)
    stranger, seen_for = ("OpenAI", "Claude Code") if is_claude else ("Anthropic", "Codex")
    if vendor_of_variable(variable) == stranger:
        yield error(
            "neighbour_wrong_family",
            f"{where}.api_key_env",
            f"{variable} is named for {stranger}, but the profile is for {seen_for}",
            "name the variable of this gateway's key",
        )


def _one_model(where: str, listed: Sequence[Any]) -> Iterator[Finding]:
    """Judge and simulated user on one model."""
    by_role: dict[str, set[str]] = {"judge": set(), "user": set()}
    for profile in listed:
        role, model = (
            (profile.get("role"), profile.get("model")) if isinstance(profile, dict) else (None, None)
        )
        for name, roles in (("judge", _JUDGES), ("user", _USERS)):
            if role in roles and isinstance(model, str) and not is_placeholder(model):
                by_role[name].add(model)
    for model in sorted(by_role["judge"] & by_role["user"]):
        yield one_model(where, model)


def one_model(where: str, model: str) -> Finding:
    """A judge that is the simulated user's twin is no second opinion."""
    return warning(
        "one_model", where, f"judge and simulated user are both mapped to {model}",
        "give the judge another model, of another family where you can",
    )  # fmt: skip


def twin_variables(where: str, texts: Mapping[str, Any]) -> Iterator[Finding]:
    """The same said by variables."""
    user, judge = texts.get("SIM_USER_MODEL"), texts.get("JUDGE_MODEL")
    if isinstance(judge, str) and judge.strip() and judge == user:
        yield one_model(where, judge)


def _keep(seen: Seen, url: str) -> None:
    try:
        seen.bases.append(clean_base_url(url)[0])
    except AuditError:
        return


def compared(sources: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    """Tools that go to different gateways: `sources` maps each to its addresses."""
    known = {tool: {_base(url): url for url in urls if not url.startswith(OFFLINE)} for tool, urls in
             sources.items()}  # fmt: skip
    known = {tool: bases for tool, bases in known.items() if bases}
    apart = [
        (one, other)
        for index, one in enumerate(known)
        for other in list(known)[index + 1 :]
        if known[one].keys().isdisjoint(known[other])
    ]
    if not apart:
        if len(known) > 1:
            yield fine("neighbour_bases", ", ".join(known), "lead to the same gateway")
        return
    shown = "; ".join(f"{tool}: {', '.join(map(shown_url, bases.values()))}" for tool, bases in known.items())
    yield warning(
        "neighbour_bases_differ",
        ", ".join(dict.fromkeys(tool for pair in apart for tool in pair)),
        f"lead to different gateways ({shown})",
        "write one gateway's addresses in all of them, unless that is meant",
    )


def _base(url: str) -> tuple[str, tuple[str, ...]]:
    """(host with port, path) without what only tells one tool's API from another's."""
    parts = urlsplit(url)
    host = "localhost" if is_loopback(url) else (parts.hostname or "")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    steps = [step for step in parts.path.split("/") if step]
    while steps and steps[-1] in _TAILS:
        steps.pop()
    return f"{host}:{port}", tuple(steps)
