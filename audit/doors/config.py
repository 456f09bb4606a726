"""The door to `audit.yaml`: YAML or JSON, profiles in it or in their own file, keys from the environment."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic import SecretStr

from audit.doors.llm_url import clean_base_url
from audit.doors.shipped import shipped
from audit.doors.sound import SoundLoader, json_loads, unsound
from audit.words.config import Config, Profile, check_config, is_foreign
from audit.words.errors import AuditError, BadFile
from audit.words.keys import shown


class Written(NamedTuple):
    """A config as it is written, unchecked; its list of profiles stands in `file`, under `path`."""

    found: Any
    file: Path
    path: str


def load_config(
    path: Path, environ: Mapping[str, str] | None = None, *, judges_only: bool = False
) -> tuple[Config, list[str]]:
    """The config in `path`, and notes for the user. Paths in it are relative to its folder.

    Each profile gets its key from its variable in `environ` (default: the environment), as a secret.
    Without `tasks`, they are those that ship with this program.
    `profiles: FILE` takes the list from another file, YAML or JSON. Raises BadFile with every fault.
    """
    found = read_written(path).found
    config: Config | None = None
    faults: list[str] = []
    if isinstance(found, dict) and found and not found.keys() & {"profiles", "judges", "agents", "user"}:
        raise BadFile(
            str(path),
            "",
            f"holds {', '.join(map(shown, found))} and says of no model: add `profiles` and `judges` (the "
            "README shows how), or name another config with -c",
        )
    try:
        config = check_config(found, str(path), judges_only=judges_only)
    except BadFile as error:
        faults += error.faults
    if isinstance(found, dict):
        faults += _address_faults(found.get("profiles")) + _task_faults(path, found.get("tasks"))
    if config is None or faults:
        raise BadFile(str(path), "", "; ".join(faults), faults)
    tasks = [str(path.parent / task) for task in config.tasks] or [str(shipped("data") / "tasks")]
    changes: dict[str, Any] = {"tasks": tasks}
    if config.sessions is not None:
        files = [str(path.parent / file) for file in config.sessions.files]
        changes = {"tasks": [], "sessions": config.sessions.model_copy(update={"files": files})}
    changes["profiles"] = [with_key(profile, environ) for profile in config.profiles]
    return config.model_copy(update=changes), _notes(config, found["profiles"])


def with_key(profile: Profile, environ: Mapping[str, str] | None = None) -> Profile:
    """The profile with the key that its own variable holds; with its own literal one where that is unset."""
    known = os.environ if environ is None else environ
    key = known.get(profile.api_key_env, "").strip() if profile.api_key_env else ""
    return profile.model_copy(update={"api_key": SecretStr(key)}) if key else profile


def read_config_file(path: Path) -> Any:
    """What a config file holds, unchecked. Raises BadFile where it is not there or neither YAML nor JSON."""
    return _read(path)


def read_written(path: Path) -> Written:
    """The config in `path`, with the list of profiles that it names put in. Raises BadFile."""
    found = _read(path)
    if not (isinstance(found, dict) and isinstance(found.get("profiles"), str)):
        return Written(found, path, "profiles")
    file = path.parent / found["profiles"]
    listed = _read(file)
    has_key = isinstance(listed, dict) and "profiles" in listed
    found["profiles"] = listed["profiles"] if has_key else listed
    return Written(found, file, "profiles" if has_key else "")


def keys_of(config: Config) -> dict[str, str | None]:
    """Profile name -> its key, never another's.

    Only profiles that the run uses are asked for. Raises AuditError naming the variable and the profile.
    """
    used = set(config.role_names())
    keys: dict[str, str | None] = {}
    for profile in config.profiles:
        if profile.name not in used:
            continue
        key = profile.api_key.get_secret_value() if profile.api_key else None
        if key is None and profile.api_key_env:
            raise AuditError(
                f"profile {profile.name!r} takes its key from {profile.api_key_env}, which is not set: "
                f"export {profile.api_key_env}=..."
            )
        keys[profile.name] = key.strip() if key else None
    return keys


def _address_faults(listed: object) -> list[str]:
    """Every address that cannot be meant, told before anything is shown or sent."""
    faults = []
    for index, profile in enumerate(listed if isinstance(listed, list) else []):
        url = profile.get("base_url") if isinstance(profile, dict) and not is_foreign(profile) else None
        if isinstance(url, str) and url:
            name = profile.get("name")
            try:
                clean_base_url(url)
            except AuditError as error:
                place = f"profile {name!r}" if isinstance(name, str) else f"profiles[{index}]"
                faults.append(f"{place}: {error}")
    return faults


def _task_faults(path: Path, tasks: object) -> list[str]:
    """Files and folders of tasks that are not there."""
    named = [("tasks", tasks)] if isinstance(tasks, str) else []
    if isinstance(tasks, list):
        named = [(f"tasks[{index}]", task) for index, task in enumerate(tasks) if isinstance(task, str)]
    return [
        f"{place}: no such file or folder: {path.parent / task}"
        for place, task in named
        if not (path.parent / task).exists()
    ]


def _notes(config: Config, listed: list[dict[str, Any]]) -> list[str]:
    notes = [
        f"profile {profile.get('name')!r} has the role {shown(profile['role'])}, none of ours: passed over"
        for profile in listed
        if is_foreign(profile)
    ]
    notes += [
        f"profile {profile.name!r} holds its key in the file: put it into a variable and name that in "
        "api_key_env; it is used and never stored"
        for profile in config.profiles
        if profile.api_key is not None
    ]
    return notes


class _Loader(SoundLoader):
    """YAML in which a key that stands twice is an error, not a silent overwrite."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str | int | float | bool) and key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"the key {shown(key)} stands twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def _cut(problem: str | None) -> str:
    """The problem with what it quotes of the file, such as a tag or an alias, cut: it may be a key."""
    return re.sub(r"\b(tag|alias|anchor|handle) (['\"])(.{,4}).*\2", r"\1 \2\3...\2", problem or "")


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise BadFile(
            str(path), "", "no such file: `reward-audit init` writes one to begin with, the README shows all"
        ) from error
    except IsADirectoryError as error:
        raise BadFile(str(path), "", "is a folder: name the file") from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(str(path), "", f"cannot be read: {error}") from error
    found = _read_json(path, text) if path.suffix == ".json" else _read_yaml(path, text)
    fault = unsound(found, len(text))
    if fault is not None:
        raise BadFile(str(path), *fault)
    return found


def _read_json(path: Path, text: str) -> Any:
    try:
        return json_loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise BadFile(str(path), place, f"not JSON: {error.msg}") from error
    except RecursionError as error:
        raise BadFile(str(path), "", "not JSON: nested too deep") from error
    except ValueError as error:
        problem = str(error) if "stands twice" in str(error) else "a number is too long to be read"
        raise BadFile(str(path), "", f"not JSON: {problem}") from error


def _read_yaml(path: Path, text: str) -> Any:
    # Without their causes, which would show the line, and perhaps the key in it.
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise BadFile(
            str(path), f"line {mark.line + 1}" if mark else "", f"not YAML: {_cut(error.problem)}"
        ) from None  # which would show the line, and perhaps the key in it
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadFile(str(path), f"line {line}", f"not YAML: {error.reason}") from None
    except yaml.YAMLError as error:
        raise BadFile(str(path), "", f"not YAML: {error}") from None
    except RecursionError:
        raise BadFile(str(path), "", "not YAML: nested too deep") from None
