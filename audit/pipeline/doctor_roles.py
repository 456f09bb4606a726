"""Doctor: each role's address, model, key and limits, where each was written, and what is wrong with it."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from audit.doors.config import Written
from audit.doors.environment import Environment
from audit.doors.llm_url import OFFLINE, shown_url
from audit.pipeline.doctor_urls import host_of, is_local, url_findings
from audit.verbs.key_checks import key_findings
from audit.words.config import Profile, check_profile, is_foreign
from audit.words.findings import Finding, error, fine, warning
from audit.words.keys import keys_in
from audit.words.roles import named_roles
from audit.words.vendors import is_placeholder

_SHOWN = ("base_url", "model", "temperature", "rpm", "tpm")


class Role(NamedTuple):
    """A profile as it is written. `place`: file and key path; `keys`: what is written of it."""

    profile: Profile
    place: str
    keys: frozenset[str]
    is_used: bool

    @property
    def where(self) -> str:
        """By which name findings call it."""
        return f"{self.profile.name} ({self.place.rpartition(': ')[2]})"


def roles_of(written: Written) -> list[Role]:
    """The profiles of our roles that can be read, whatever else is wrong with the config."""
    found = written.found
    listed = found.get("profiles") if isinstance(found, dict) else None
    used = {(name, role) for _, name, role in named_roles(found)} if isinstance(found, dict) else set()
    roles = []
    for index, raw in enumerate(listed if isinstance(listed, list) else []):
        profile = None if is_foreign(raw) else check_profile(raw)
        if profile is not None:
            place = f"{written.file}: {written.path}[{index}]"
            roles.append(Role(profile, place, frozenset(raw), (profile.name, profile.role) in used))
    return roles


def role_row(role: Role, environ: Environment) -> dict[str, Any]:
    """What is shown of a role; of the key only whether it is set."""
    profile = role.profile
    values = {name: getattr(profile, name) for name in _SHOWN}
    values["base_url"] = shown_url(profile.base_url)
    row: dict[str, Any] = {"profile": profile.name, "role": profile.role, "is_used": role.is_used}
    row["from"] = role.place
    for name, value in values.items():
        row[name] = {"value": value, "from": f"{role.place}.{name}" if name in role.keys else "default"}
    row["key"] = _key_row(role, environ)
    return row


def _key_row(role: Role, environ: Environment) -> dict[str, Any]:
    profile, variable = role.profile, role.profile.api_key_env
    is_set = bool(variable and environ.get(variable, "").strip())
    origin = environ.origin(variable) if variable and is_set else None
    if not is_set and profile.api_key is not None and profile.api_key.get_secret_value().strip():
        is_set, origin = True, f"{role.place}.api_key"
    named = f"{role.place}.api_key_env" if variable else None
    return {"variable": variable, "variable_from": named, "is_set": is_set, "from": origin}


def role_findings(roles: Sequence[Role], environ: Mapping[str, str]) -> Iterator[Finding]:
    """Everything that is wrong with, or worth knowing of, the profiles in use."""
    for role in roles:
        if role.is_used:
            yield from url_findings(role.where, role.profile.base_url)
            yield from _model(role)
            yield from _key(role, environ)
    unused = [role.profile.name for role in roles if not role.is_used]
    if unused:
        yield fine("profile_unused", ", ".join(unused), "nothing in the config uses it: not looked at")
    yield from _shared_keys(roles, environ)


def _model(role: Role) -> Iterator[Finding]:
    if is_placeholder(role.profile.model):
        yield error(
            "model_placeholder",
            role.where,
            f"model is a placeholder: {json.dumps(role.profile.model, ensure_ascii=False)}",
            "write the model's name as the gateway lists it; variables are not put in here",
        )


def _key(role: Role, environ: Mapping[str, str]) -> Iterator[Finding]:
    profile, url = role.profile, role.profile.base_url.strip()
    if profile.api_key is not None:
        yield warning(
            "key_in_file",
            role.where,
            "the file holds the key itself; it is used, and never stored or shown",
            "put it into a variable, and name that in api_key_env",
        )
    if keys_in(profile.extra):
        yield warning(
            "key_in_file",
            role.where,
            "extra holds a key; it is sent, and never stored or shown",
            "put it into a variable that api_key_env names, where the gateway takes a header",
        )
    if url.startswith(OFFLINE):
        return
    variable = profile.api_key_env
    value = environ.get(variable, "") if variable else ""
    if variable and value.strip():
        yield from key_findings(role.where, variable, value, host_of(url), is_local=is_local(url))
    elif profile.api_key is not None and profile.api_key.get_secret_value().strip():
        literal = profile.api_key.get_secret_value()
        yield from key_findings(role.where, "api_key", literal, host_of(url), is_local=is_local(url))
    elif variable:
        yield error(
            "key_unset",
            role.where,
            f"{variable} is not set" + (", only blank" if value else ""),
            f"export {variable}=..., or put it into .env; no other key is sent in its place",
        )
    elif not is_local(url):
        yield error(
            "key_unnamed",
            role.where,
            f"no key is named for {shown_url(url)}",
            "set api_key_env to the variable that holds it (any value where the gateway wants none)",
        )


def _shared_keys(roles: Sequence[Role], environ: Mapping[str, str]) -> Iterator[Finding]:
    """A key that several hosts get, under one variable or two."""
    hosts: defaultdict[str, set[str]] = defaultdict(set)
    names: defaultdict[str, set[str]] = defaultdict(set)
    for role in roles:
        variable, url = role.profile.api_key_env, role.profile.base_url
        key = environ.get(variable, "").strip() if variable else ""
        if role.is_used and variable and len(key) >= 8 and not (is_local(url) or is_placeholder(key)):
            hosts[key].add(host_of(url))
            names[key].add(variable)
    for key, found in hosts.items():
        if len(found) > 1:
            yield warning(
                "key_to_several_hosts",
                ", ".join(sorted(names[key])),
                f"one key is sent to {' and '.join(sorted(found))}",
                "give each gateway a key of its own",
            )
