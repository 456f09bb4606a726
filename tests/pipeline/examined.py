"""What the tests of `doctor` share: a config of four profiles, and the findings as they are looked up."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

FEW_TASKS = Path(__file__).parents[2] / "data" / "init" / "tasks"
URL = "http://127.0.0.1:9/v1"
ROLES = {"customer": "simulated_user", "v1": "agent", "v2": "agent", "judge": "llm_judge"}
MODELS = {"customer": "mint", "v1": "sage", "v2": "thyme", "judge": "basil"}


def profiles(base_url: str = URL, **changes: dict[str, Any]) -> list[dict[str, Any]]:
    """The four profiles; `changes` by profile."""
    return [
        {"name": name, "role": role, "base_url": base_url, "model": MODELS[name]} | changes.get(name, {})
        for name, role in ROLES.items()
    ]


def write_config(folder: Path, listed: object, **more: Any) -> Path:
    """An audit.yaml with these profiles."""
    path = folder / "audit.yaml"
    config = {"profiles": listed, "agents": ["v1", "v2"], "user": "customer", "judges": "judge"}
    config |= {"tasks": [str(FEW_TASKS)]} | more
    path.write_text(yaml.safe_dump(config, allow_unicode=True, sort_keys=False), encoding="utf-8")
    return path


def clear_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have keys and proxies; what is tested is what a test sets."""
    import os

    for name in list(os.environ):
        if name.upper().startswith(("OPENAI_", "ANTHROPIC_")) or name.upper().endswith(("_PROXY", "_KEY")):
            monkeypatch.delenv(name)
    for name in ("SIM_USER_MODEL", "JUDGE_MODEL", "TAOTOKEN_MODEL", "AGENT_MODEL"):
        monkeypatch.delenv(name, raising=False)


class Examined:
    """What `doctor --json` found."""

    def __init__(self, did: Any) -> None:
        assert did.stderr == "", did
        self.code = did.code
        self.found = json.loads(did.stdout)
        # The exit code is what a nightly job looks at: it must always say what the findings say.
        assert (self.code == 1) == any(item["level"] == "error" for item in self.found["findings"])

    def of(self, code: str) -> list[dict[str, str]]:
        return [item for item in self.found["findings"] if item["code"] == code]

    def one(self, code: str) -> dict[str, str]:
        (item,) = self.of(code)
        return item

    def bad(self) -> list[tuple[str, str, str]]:
        """(level, code, where) of all that is not well."""
        return [
            (item["level"], item["code"], item["where"])
            for item in self.found["findings"]
            if item["level"] != "ok"
        ]


Doctor = Callable[..., Examined]
