"""Init: a commented config, two errands, and examples for the tools beside it, made for one gateway."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

from audit.doors.fresh_files import write_fresh
from audit.doors.shipped import shipped
from audit.words.gateways import EXAMPLES, GATEWAYS, JUDGE_MODEL, USER_MODEL, Gateway
from audit.words.keys import begins_as_key, names_a_key

_TASKS = ("domain.yaml", "world.sql", "tasks.yaml")


def start(folder: Path, name: str, examples: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """Writes the files; gives their paths, the models' names by variable, and the key's variable.

    Raises BadFile where one of them is there already: then none is written.
    """
    gateway = GATEWAYS[name]
    models = {variable: _model(variable, environ) for variable in (USER_MODEL, gateway.model, JUDGE_MODEL)}
    values = _values(name, gateway, models)
    source = shipped("data") / "init"
    texts = {folder / "audit.yaml": _filled(source / "audit.yaml", values)}
    texts |= {
        folder / "tasks" / file: (source / "tasks" / file).read_text(encoding="utf-8") for file in _TASKS
    }
    texts |= {folder / EXAMPLES[one]: _filled(source / EXAMPLES[one], values) for one in examples}
    write_fresh(texts)
    return {"files": [str(path) for path in texts], "gateway": name, "key": gateway.key, "models": models}


def _model(variable: str, environ: Mapping[str, str]) -> str | None:
    """The model that the variable names; never what is a key, which no file may hold."""
    name = environ.get(variable, "").strip()
    keys = {value.strip() for key, value in environ.items() if names_a_key(key)}
    return name if name and name.isprintable() and name not in keys and not begins_as_key(name) else None


def _values(name: str, gateway: Gateway, models: Mapping[str, str | None]) -> dict[str, str]:
    """What is filled in; texts in double quotes are read alike by YAML, JSON and TOML."""
    values = {
        "gateway_note": gateway.note,
        "base_url": json.dumps(gateway.base_url),
        "claude_url": json.dumps(gateway.claude_url),
        "codex_url": json.dumps(gateway.codex_url),
        "provider": name,
        "key_line": f"api_key_env: {gateway.key}",
        "key_item": f"api_key_env: {gateway.key},",
        "codex_key_line": f'env_key = "{gateway.key}"',
    }
    if gateway.key is None:
        values |= {"key_line": "# api_key_env: LOCAL_API_KEY", "codex_key_line": "# env_key: it wants no key"}
        values["key_item"] = ""
    for role, variable in (("user", USER_MODEL), ("agent", gateway.model), ("judge", JUDGE_MODEL)):
        found = models[variable]
        values[f"{role}_model"] = json.dumps(found or f"YOUR_{role.upper()}_MODEL", ensure_ascii=False)
        values[f"{role}_note"] = (
            f"as {variable} said when this was written" if found else f"a placeholder: {variable} was not set"
        )
    return values


def _filled(file: Path, values: Mapping[str, str]) -> str:
    # A value that is left empty leaves two blanks.
    return Template(file.read_text(encoding="utf-8")).substitute(values).replace(",  ", ", ")
