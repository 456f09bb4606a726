"""Doctor: the settings of Claude Code and Codex, as their users keep them beside this program's.

What these tools do with them was read in their documentation: Claude Code appends `/v1/messages` to its base
URL and reads `ANTHROPIC_...` alone; Codex appends `/responses`, takes its key from the variable in `env_key`,
and since its version 0.134 neither reads `[profiles.NAME]` nor starts with `wire_api = "chat"`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from audit.doors.llm_url import clean_base_url, shown_url
from audit.pipeline.doctor_urls import host_of, is_local, refused
from audit.verbs.key_checks import key_findings
from audit.words.errors import AuditError
from audit.words.findings import Finding, error, warning
from audit.words.keys import begins_as_key, is_variable, looks_like_key, names_a_key
from audit.words.vendors import is_example_host, is_placeholder, vendor_of_key

_CODEX_OWN = ("openai", "ollama", "lmstudio", "oss", "amazon-bedrock")
_PASTED = ("/chat/completions", "/v1/messages", "/messages", "/responses")


@dataclass(slots=True)
class Seen:
    """What a tool's settings say: findings, the addresses in use (place, URL), values that are keys."""

    tool: str
    findings: list[Finding] = field(default_factory=list)
    bases: list[str] = field(default_factory=list)
    secrets: set[str] = field(default_factory=set)


def claude_code(file: str, found: Mapping[str, Any]) -> Seen:
    """Claude Code's settings.json."""
    seen = Seen("Claude Code")
    env = found.get("env", {})
    if not isinstance(env, dict):
        seen.findings.append(
            error("neighbour_shape", f"{file}: env", "expected variables with their values", "see its manual")
        )
        return seen
    texts = {name: value for name, value in env.items() if isinstance(value, str)}
    seen.secrets |= {name for name in env if begins_as_key(name)}
    seen.findings += _strangers(file, texts, "env", "OPENAI_", "Claude Code", "ANTHROPIC_")
    seen.findings += _keys_in(file, "env", texts, seen.secrets)
    url = texts.get("ANTHROPIC_BASE_URL")
    if url is not None:
        seen.findings += _claude_url(f"{file}: env.ANTHROPIC_BASE_URL", url, seen)
    if texts.get("ANTHROPIC_AUTH_TOKEN") and texts.get("ANTHROPIC_API_KEY"):
        seen.findings.append(
            warning(
                "neighbour_two_keys",
                f"{file}: env",
                "ANTHROPIC_AUTH_TOKEN and ANTHROPIC_API_KEY are both set: Claude Code sends both",
                "keep the one that the gateway wants (mostly ANTHROPIC_AUTH_TOKEN)",
            )
        )
    seen.findings += _models(file, "env", {n: v for n, v in texts.items() if n.endswith("MODEL")})
    return seen


def _claude_url(where: str, url: str, seen: Seen) -> Iterator[Finding]:
    base = _plain_base(where, url, seen)
    if base is None:
        return
    end = next((end for end in (*_PASTED, "/v1") if urlsplit(base).path.endswith(end)), None)
    if end is not None:
        right = base.removesuffix(end).removesuffix("/v1")
        yield error(
            "neighbour_url",
            where,
            f"{shown_url(base)} ends in {end}: Claude Code appends /v1/messages to it",
            f"write {shown_url(right)}",
        )


def codex(file: str, found: Mapping[str, Any], environ: Mapping[str, str]) -> Seen:
    """Codex's config.toml."""
    seen = Seen("Codex")
    providers = found.get("model_providers", {})
    if not isinstance(providers, dict):
        seen.findings.append(
            error("neighbour_shape", f"{file}: model_providers", "expected tables", "see its manual")
        )
        return seen
    used = found.get("model_provider", "openai")
    for name, provider in providers.items():
        where = f"{file}: model_providers.{name}"
        if isinstance(provider, dict):
            seen.findings += _provider(where, provider, environ, seen, is_used=name == used)
        else:
            seen.findings.append(error("neighbour_shape", where, "expected a table", "see its manual"))
    seen.findings += _chosen(f"{file}: model_provider", used, providers)
    if "profiles" in found or "profile" in found:
        seen.findings += _old_profiles(file, found, providers)
    seen.findings += _models(file, "", {"model": found.get("model")})
    for path, table in _tables(found):
        seen.secrets |= {name for name in table if begins_as_key(name)}
        texts = {name: value for name, value in table.items() if isinstance(value, str)}
        seen.findings += _strangers(file, texts, path, "ANTHROPIC_", "Codex", "the provider's env_key")
        if not path.startswith("model_providers."):
            seen.findings += _keys_in(file, path, texts, seen.secrets)
    return seen


def _provider(
    where: str, provider: Mapping[str, Any], environ: Mapping[str, str], seen: Seen, *, is_used: bool
) -> Iterator[Finding]:
    url, variable, wire = provider.get("base_url"), provider.get("env_key"), provider.get("wire_api")
    if isinstance(url, str):
        base = _plain_base(f"{where}.base_url", url, seen, keep=is_used)
        if base is not None:
            yield from _codex_url(f"{where}.base_url", base)
    if wire is not None and wire != "responses":
        what = '"chat" was removed: Codex does not start with it' if wire == "chat" else "is no wire_api"
        yield error("neighbour_wire_api", f"{where}.wire_api", what, 'write wire_api = "responses"')
    yield from _provider_keys(where, provider, seen)
    if not isinstance(variable, str):
        return
    if not is_variable(variable) or looks_like_key(variable):
        seen.secrets.add(variable)
        yield error(
            "neighbour_key_in_file",
            f"{where}.env_key",
            "holds a key, where the name of a variable belongs",
            "write the variable's name, and the key into the variable",
        )
    elif variable.startswith("ANTHROPIC_"):
        yield error(
            "neighbour_wrong_family",
            f"{where}.env_key",
            f"{variable} is Claude Code's: Codex speaks OpenAI's API",
            "name the variable of a key for that API",
        )
    elif is_used and not environ.get(variable, "").strip():
        yield warning(
            "neighbour_key_unset", f"{where}.env_key", f"{variable} is not set here", f"export {variable}=..."
        )
    elif is_used and isinstance(url, str):
        yield from key_findings(
            f"{where}.env_key", variable, environ[variable], host_of(url), is_local=is_local(url)
        )


def _codex_url(where: str, base: str) -> Iterator[Finding]:
    path = urlsplit(base).path
    end = next((end for end in _PASTED if path.endswith(end)), None)
    if end is not None:
        right = shown_url(base.removesuffix(end))
        yield error(
            "neighbour_url", where, f"ends in {end}: Codex appends /responses to it", f"write {right}"
        )
    elif "anthropic" in path.split("/"):
        yield error(
            "neighbour_url", where, f"{shown_url(base)} is for Anthropic's API, as Claude Code wants it",
            "write the gateway's OpenAI-compatible address, mostly ending in /v1",
        )  # fmt: skip
    elif not path.endswith("/v1"):
        yield warning(
            "neighbour_url",
            where,
            f"{shown_url(base)} does not end in /v1: Codex asks {shown_url(base)}/responses",
            f"most gateways want {shown_url(base)}/v1",
        )


def _provider_keys(where: str, provider: Mapping[str, Any], seen: Seen) -> Iterator[Finding]:
    """Keys written out: as a bearer token, or in headers and queries that are sent as they are."""
    held = {"experimental_bearer_token": provider.get("experimental_bearer_token")}
    for part in ("http_headers", "query_params"):
        table = provider.get(part)
        held |= {f"{part}.{name}": value for name, value in table.items()} if isinstance(table, dict) else {}
    for path, value in held.items():
        if isinstance(value, str) and value and (names_a_key(path) or looks_like_key(value)):
            seen.secrets |= {value, value.rpartition(" ")[2]}
            yield in_file(f"{where}.{path}")


def _chosen(where: str, used: object, providers: Mapping[str, Any]) -> Iterator[Finding]:
    if isinstance(used, str) and (used in providers or used in _CODEX_OWN):
        return
    known = ", ".join(providers) or "none"
    yield error(
        "neighbour_no_provider", where, f"names a provider that is not there (there are: {known})",
        "name one of [model_providers]",
    )  # fmt: skip


def _old_profiles(file: str, found: Mapping[str, Any], providers: Mapping[str, Any]) -> Iterator[Finding]:
    profiles = found.get("profiles")
    yield warning(
        "neighbour_profiles",
        f"{file}: {'profiles' if 'profiles' in found else 'profile'}",
        "Codex 0.134 and later does not read profiles here",
        "move each to NAME.config.toml beside this file, and start with --profile NAME",
    )
    named = found.get("profile")
    tables = profiles if isinstance(profiles, dict) else {}
    if isinstance(named, str) and named not in tables:
        yield error("neighbour_no_profile", f"{file}: profile", "names a profile that is not there",
                    f"there are: {', '.join(tables) or 'none'}")  # fmt: skip
    for name, table in tables.items():
        if isinstance(table, dict) and "model_provider" in table:
            yield from _chosen(f"{file}: profiles.{name}.model_provider", table["model_provider"], providers)


def _plain_base(where: str, url: str, seen: Seen, *, keep: bool = True) -> str | None:
    """The base URL that is meant, NULL where it cannot be; it is kept for comparing."""
    try:
        base, _ = clean_base_url(url)
    except AuditError as problem:
        seen.findings.append(refused(where, problem))
        return None
    if is_example_host(host_of(base)):
        seen.findings.append(
            error(
                "url_placeholder", where, f"{shown_url(base)} is a placeholder", "write the gateway's address"
            )
        )
        return None
    if keep:
        seen.bases.append(base)
    # What `clean_base_url` takes off for us, the other tool does not.
    pasted = urlsplit(url.strip()).path.rstrip("/").endswith("/chat/completions")
    return base + "/chat/completions" if pasted else base


def _strangers(
    file: str, texts: Mapping[str, str], path: str, start: str, tool: str, own: str
) -> Iterator[Finding]:
    for name in texts:
        if name.startswith(start):
            yield error(
                "neighbour_wrong_family",
                _at(file, path, name),
                f"{tool} does not read {start}... variables",
                f"use {own}{'...' if own.endswith('_') else ''} instead",
            )


def _keys_in(file: str, path: str, texts: Mapping[str, str], secrets: set[str]) -> Iterator[Finding]:
    for name, value in texts.items():
        where = _at(file, path, name)
        if not value.strip() or not (names_a_key(name) or vendor_of_key(value) or value.startswith("sk-")):
            continue
        if is_placeholder(value):
            yield error("key_placeholder", where, "holds a placeholder, not a key", "put the key in")
        else:
            secrets |= {value, value.strip()}
            yield in_file(where)


def _at(file: str, path: str, name: str) -> str:
    return f"{file}: {path}.{name}" if path else f"{file}: {name}"


def in_file(where: str) -> Finding:
    """A key is written out there."""
    return warning(
        "neighbour_key_in_file",
        where,
        "the file holds a key",
        "keep the file out of repositories and backups, or name a variable where the tool takes one",
    )


def _models(file: str, path: str, models: Mapping[str, Any]) -> Iterator[Finding]:
    for name, model in models.items():
        if isinstance(model, str) and is_placeholder(model):
            where = _at(file, path, name)
            yield error("model_placeholder", where, "model is a placeholder", "write the model's name")


def _tables(found: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(key path, table) of all tables of a TOML document."""
    yield path, found
    for name, value in found.items():
        if isinstance(value, dict):
            yield from _tables(value, f"{path}.{name}".lstrip("."))
