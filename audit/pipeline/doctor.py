"""Doctor: everything that can be known before a token is spent, and who would be asked what, from where."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from audit.doors.config import Written, load_config, read_written, with_key
from audit.doors.environment import Environment
from audit.doors.llm_secrets import Secrets
from audit.doors.llm_url import keys_of_query
from audit.doors.neighbours import read_profile_list, read_settings, read_toml
from audit.doors.prompts import prompt
from audit.doors.tasks import load_tasks
from audit.pipeline.doctor_live import Probe, probes
from audit.pipeline.doctor_machine import env_file, machine_findings
from audit.pipeline.doctor_roles import Role, role_findings, role_row, roles_of
from audit.pipeline.doctor_urls import is_local
from audit.pipeline.live import buckets_of
from audit.pipeline.neighbour_profiles import compared, profile_list, twin_variables
from audit.pipeline.neighbours import Seen, claude_code, codex
from audit.verbs.isolation import Isolation, isolation, own_kin
from audit.verbs.left_overs import left_overs
from audit.verbs.prompt_rules import RULES, checked
from audit.words.config import Config, Profile
from audit.words.errors import BadFile, BadRequest
from audit.words.findings import LEVELS, Finding, error, fine, warning
from audit.words.keys import keys_in, names_a_key
from audit.words.vendors import is_placeholder

_FOR_JUDGING = {"agents: is missing", "user: is missing"}


class Wish(NamedTuple):
    """What is to be looked at. `db_source`: where its address was written. `is_embedded`: no own config."""

    config: Path
    is_embedded: bool
    environ: Environment
    db: str
    db_source: str
    live: bool = False
    claude_settings: Path | None = None
    codex_config: Path | None = None
    profiles: Path | None = None


def examine(wish: Wish) -> dict[str, Any]:
    """`config`, `roles`, `live`, `findings` (the worst first) and `counts`, as `--json` shows them.

    No value of it holds a key. Never raises for what is wrong with the config: that is a finding.
    """
    secrets = Secrets(value for name, value in wish.environ.items() if names_a_key(name))
    config, written, findings = _read(wish)
    roles = roles_of(written) if written else []
    secrets.add(_keys_of(roles, wish.environ))
    findings = [*_once(findings, roles), *role_findings(roles, wish.environ)]
    language = config.language if config else _language(written)
    grades, told = _isolation(roles, language)
    findings += [*told, *_prompts(language)]
    named = {role.profile.api_key_env for role in roles if role.profile.api_key_env}
    is_remote = any(role.is_used and not is_local(role.profile.base_url.strip()) for role in roles)
    findings += left_overs(wish.environ, named, is_remote=is_remote)
    findings += twin_variables("SIM_USER_MODEL, JUDGE_MODEL", wish.environ)
    findings += env_file(wish.environ)
    findings += machine_findings(wish.db, wish.db_source)
    own = [] if wish.is_embedded else [role.profile.base_url for role in roles if role.is_used]
    findings += _neighbours(wish, own, secrets)
    probed = _live(roles, findings, wish.environ) if wish.live else []
    findings += [item for probe in probed for item in probe.findings]
    findings.sort(key=lambda item: LEVELS.index(item.level))
    found = {
        "config": {
            "file": str(wish.config),
            "is_embedded": wish.is_embedded,
            "is_loaded": config is not None,
        },
        "roles": [role_row(role, wish.environ) for role in roles],
        "isolation": [apart._asdict() for apart in grades],
        "live": [probe.row for probe in probed] if wish.live else None,
        "findings": [item.as_row() for item in findings],
        "counts": {level: sum(item.level == level for item in findings) for level in LEVELS},
    }
    shown: dict[str, Any] = secrets.out_of(found)
    return shown


def _read(wish: Wish) -> tuple[Config | None, Written | None, list[Finding]]:
    """The config where it can be loaded, what is written in it where it can be read, and every fault."""
    file = str(wish.config)
    try:
        written = read_written(wish.config)
    except BadFile as fault:
        return None, None, [error("config", _place(fault), fault.problem, "correct it: the README shows one")]
    findings = []
    try:
        config, notes = load_config(wish.config, wish.environ)
    except BadFile as fault:
        if not set(fault.faults) <= _FOR_JUDGING:
            told = [error("config", file, one, "correct it: the README says what each key may be")
                    for one in fault.faults]  # fmt: skip
            return None, written, told
        config, notes = load_config(wish.config, wish.environ, judges_only=True)
        findings.append(
            warning(
                "config_judges_only",
                file,
                "names no agents and no user: it can judge imported runs alone",
                "add agents and user for `run`",
            )
        )
    own = (
        "there is no audit.yaml here: this is what `run` does without one" if wish.is_embedded else "is read"
    )
    findings.append(fine("config", file, own, "`reward-audit init` writes one" if wish.is_embedded else ""))
    passed = [note for note in notes if "holds its key" not in note]  # which is told with its place below
    findings += [fine("config_note", file, note) for note in passed]
    return config, written, findings + list(_material(file, config))


def _once(findings: list[Finding], roles: list[Role]) -> Iterator[Finding]:
    """Without what is told again, with more, of the roles in use: an address that is refused."""
    told = {f"profile {role.profile.name!r}: base_url " for role in roles if role.is_used}
    for item in findings:
        if not (item.code == "config" and item.what.startswith(tuple(told))):
            yield item


def _place(fault: BadFile) -> str:
    return f"{fault.file}: {fault.place}" if fault.place else fault.file


def _material(file: str, config: Config) -> Iterator[Finding]:
    """The tasks, read whole, or the recorded sessions; before them buckets that are none."""
    try:
        buckets_of(config)
    except BadRequest as fault:
        yield error("buckets", file, str(fault), "correct it, or leave it out")
    if config.sessions is not None:
        missing = [name for name in config.sessions.files if not Path(name).is_file()]
        for name in missing:
            yield error("sessions", f"{file}: sessions.files", f"no such file: {name}", "name the right one")
        if not missing:
            yield fine("sessions", file, f"{len(config.sessions.files)} files of recorded sessions are there")
        return
    try:
        tasks = load_tasks([Path(path) for path in config.tasks])
    except BadFile as fault:
        yield error("tasks", _place(fault), fault.problem, "data/tasks/README.md says how tasks are written")
    else:
        yield fine("tasks", f"{file}: tasks", f"{len(tasks):,} tasks, each with checks that can run")


def _keys_of(roles: list[Role], environ: Environment) -> Iterator[str]:
    """Every key that a profile holds or names, so that none can be shown."""
    for role in roles:
        profile = role.profile
        yield environ.get(profile.api_key_env or "", "")
        yield profile.api_key.get_secret_value() if profile.api_key else ""
        yield from keys_in(profile.extra)
        yield from keys_of_query(_query(profile.base_url))


def _query(url: str) -> dict[str, str]:
    return dict(parse_qsl(url.partition("?")[2].partition("#")[0]))


def _isolation(roles: list[Role], language: str) -> tuple[list[Isolation], list[Finding]]:
    """How far each judge is from the simulated user, and whether it judges its own kin."""
    # Placeholders are all of one family.
    used = [role for role in roles if role.is_used and not is_placeholder(role.profile.model)]
    user = next((role.profile for role in used if role.profile.role == "simulated_user"), None)
    agents = [role.profile for role in used if role.profile.role == "agent"]
    is_one = prompt("judge_pair", language).prompt_hash == prompt("simulated_user", language).prompt_hash
    grades, findings = [], []
    for role in used:
        if role.profile.role != "llm_judge":
            continue
        if user is not None:
            apart = isolation(role.profile, user, is_same_prompt=is_one)
            grades.append(apart)
            findings.append(_apart(role.where, apart))
        findings += _kin(role, agents)
    return grades, findings


def _apart(where: str, apart: Isolation) -> Finding:
    shared = ", ".join(apart.shared) or "nothing"
    what = f"isolation from simulated user {apart.user}: {apart.grade} (shared: {shared})"
    if set(apart.shared) <= {"provider"}:
        return fine("isolation", where, what)
    grade = error if "prompt" in apart.shared else warning
    return grade(
        "isolation", where, what, "give the judge a model of another family, and its own temperature"
    )


def _kin(role: Role, agents: list[Profile]) -> Iterator[Finding]:
    same, kin = own_kin(role.profile, agents)
    if same:
        what = f"judges {', '.join(same)}, which is the same model {role.profile.model}"
        yield warning("judges_itself", role.where, what, "let another model judge")
    if kin:
        what = f"judges {', '.join(kin)}, of its own family of models"
        yield warning("judges_its_family", role.where, what, "compare with a judge of another family")


def _prompts(language: str) -> Iterator[Finding]:
    """Whether the templates in use say what they must, and nothing that they must not."""
    kept = 0
    for name in RULES:
        for rule, clause in checked(name, prompt(name, language).text):
            if clause is None:
                kept += 1
                continue
            where = f"audit/prompts/{name}.{language}.jinja"
            found = f"it says {clause!r}" if clause else "it says nothing of it"
            yield error(f"prompt_{rule.code}", where, f"the template does not ask {rule.wanted}: {found}",
                        "correct the template, or install reward-audit anew")  # fmt: skip
    yield fine(
        "prompts", "audit/prompts", f"{kept} rules for the judge's and the simulated user's prompts hold"
    )


def _language(written: Written | None) -> str:
    found = written.found.get("language") if written and isinstance(written.found, dict) else None
    return found if found in ("en", "zh") else "en"


def _live(roles: list[Role], findings: list[Finding], environ: Environment) -> list[Probe]:
    """The calls, but none for a profile that cannot be meant as it stands."""
    broken = {item.where for item in findings if item.level == "error"}
    used = [role for role in roles if role.is_used]
    ready = [(role.where, with_key(role.profile, environ)) for role in used if role.where not in broken]
    left = [role for role in used if role.where in broken]
    done = asyncio.run(probes(ready)) if ready else []
    return done + [
        Probe(
            {"profile": role.profile.name, "status": "not asked"},
            [fine("live", role.where, "is not asked: the errors above come first")],
        )
        for role in left
    ]


def _neighbours(wish: Wish, own: list[str], secrets: Secrets) -> list[Finding]:
    """Other tools' settings, each by itself, then beside each other and this config."""
    findings: list[Finding] = []
    sources: dict[str, list[str]] = {"the config": own} if own else {}
    for path, read in (
        (wish.claude_settings, _claude),
        (wish.codex_config, _codex),
        (wish.profiles, _profiles),
    ):
        if path is None:
            continue
        try:
            seen = read(path, wish.environ)
        except BadFile as fault:
            findings.append(error("neighbour_file", _place(fault), fault.problem, "name the right file"))
            continue
        secrets.add(seen.secrets)
        sources[seen.tool] = seen.bases
        findings += seen.findings or [fine("neighbour", str(path), f"nothing is wrong for {seen.tool}")]
    return findings + (list(compared(sources)) if wish[-3:] != (None, None, None) else [])


def _claude(path: Path, _environ: Environment) -> Seen:
    found = read_settings(path)
    seen = claude_code(str(path), found)
    env = found.get("env")
    seen.findings += twin_variables(f"{path}: env", env if isinstance(env, dict) else {})
    return seen


def _codex(path: Path, environ: Environment) -> Seen:
    return codex(str(path), read_toml(path), environ)


def _profiles(path: Path, environ: Environment) -> Seen:
    key, listed = read_profile_list(path)
    return profile_list(str(path), key, listed, environ)
