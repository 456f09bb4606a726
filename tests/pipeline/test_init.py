"""`init`: files that `doctor` reads and `run` takes, without keys, and never over what is there."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from examined import Doctor, clear_variables

from audit.doors.config import load_config
from audit.words.gateways import EXAMPLES, GATEWAYS

KEY = "sk-planted-4f9b2c81d6aa"
WITH = ("--with", "claude-code,codex,profiles")
FILES = {"audit.yaml", "tasks/domain.yaml", "tasks/tasks.yaml", "tasks/world.sql"}


def files_in(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    clear_variables(monkeypatch)


@pytest.mark.parametrize("gateway", GATEWAYS)
def test_init_when_run_then_doctor_reads_it_and_a_dry_run_takes_it(
    gateway: str, here: Callable[..., Any], doctor: Doctor, tmp_path: Path
) -> None:
    did = here("init", "--gateway", gateway, *WITH)
    assert (did.code, did.stderr) == (0, "")
    assert files_in(tmp_path) == FILES | set(EXAMPLES.values())
    text = (tmp_path / "audit.yaml").read_text(encoding="utf-8")
    assert text.count("#") > 15
    assert "$" not in text

    examined = doctor(
        *("--claude-settings", "claude-code.settings.example.json"),
        *("--codex-config", "codex.config.example.toml", "--profiles", "profiles.example.yaml"),
    )
    assert examined.found["config"]["is_loaded"] is True
    assert "2 tasks" in examined.one("tasks")["what"]
    errors = {code for level, code, where in examined.bad() if level == "error" and "example" not in where}
    wanted = {"model_placeholder"} | ({"key_unset"} if GATEWAYS[gateway].key else set())
    assert errors == wanted | ({"url_placeholder"} if gateway == "custom" else set())
    dry = json.loads(here("run", "--dry-run", "--json").stdout)
    assert (dry["sessions"], dry["pairs"], dry["judge calls"]) == (4, 2, 4)


def test_init_when_the_models_variables_are_set_then_their_names_are_written_and_only_the_key_is_left(
    here: Callable[..., Any], doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text('SIM_USER_MODEL=qwen-y: "odd" # not a comment\n', encoding="utf-8")
    monkeypatch.setenv("SIM_USER_MODEL", 'qwen "y": # x')
    monkeypatch.setenv("TAOTOKEN_MODEL", "glm-5")
    monkeypatch.setenv("JUDGE_MODEL", "claude-z")
    made = json.loads(here("init", "desk/nightly", "--gateway", "taotoken", *WITH, "--json").stdout)
    assert made["models"] == {
        "SIM_USER_MODEL": 'qwen "y": # x',
        "TAOTOKEN_MODEL": "glm-5",
        "JUDGE_MODEL": "claude-z",
    }
    folder = tmp_path / "desk" / "nightly"
    assert {str(tmp_path / file) for file in made["files"]} == {
        str(folder / file) for file in files_in(folder)
    }
    config, notes = load_config(folder / "audit.yaml")
    assert notes == []
    assert {profile.base_url for profile in config.profiles} == {"https://taotoken.net/api"}
    assert {profile.api_key_env for profile in config.profiles} == {"TAOTOKEN_API_KEY"}
    assert [profile.model for profile in config.profiles] == ['qwen "y": # x', "glm-5", "glm-5", "claude-z"]

    args = ["-c", folder / "audit.yaml", "--profiles", folder / "profiles.example.yaml"]
    args += ["--claude-settings", folder / "claude-code.settings.example.json"]
    args += ["--codex-config", folder / "codex.config.example.toml"]
    assert {code for level, code, _ in doctor(*args).bad() if level == "error"} == {"key_unset"}
    monkeypatch.setenv("TAOTOKEN_API_KEY", KEY)
    examined = doctor(*args)
    assert examined.bad() == []
    assert examined.one("neighbour_bases")["where"] == "the config, Claude Code, Codex, profiles"


def test_init_when_its_examples_are_read_as_their_tools_do_then_they_say_the_same_gateway(
    here: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TAOTOKEN_API_KEY", KEY)
    monkeypatch.setenv("TAOTOKEN_MODEL", KEY)  # a slip: no model, and nothing that may be written
    assert here("init", "--gateway", "taotoken", *WITH).code == 0
    claude = json.loads((tmp_path / EXAMPLES["claude-code"]).read_text(encoding="utf-8"))
    assert claude["env"]["ANTHROPIC_BASE_URL"] == "https://taotoken.net/api"
    codex = tomllib.loads((tmp_path / EXAMPLES["codex"]).read_text(encoding="utf-8"))
    assert codex["model_providers"][codex["model_provider"]] == {
        "name": "taotoken",
        "base_url": "https://taotoken.net/api/v1",
        "env_key": "TAOTOKEN_API_KEY",
        "wire_api": "responses",
    }
    for file in files_in(tmp_path):
        assert KEY not in (tmp_path / file).read_text(encoding="utf-8")
    # The list can be read in place of the config's own.
    config = yaml.safe_load((tmp_path / "audit.yaml").read_text(encoding="utf-8"))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    (tmp_path / "shared.yaml").write_text(
        yaml.safe_dump(config | {"profiles": EXAMPLES["profiles"]}), encoding="utf-8"
    )
    assert load_config(tmp_path / "shared.yaml")[0] == load_config(tmp_path / "own.yaml")[0]


@pytest.mark.parametrize("taken", ["audit.yaml", "tasks/world.sql", "profiles.example.yaml"])
def test_init_when_one_file_is_there_already_then_nothing_is_written(
    taken: str, here: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "mine"
    (folder / taken).parent.mkdir(parents=True)
    (folder / taken).write_text("mine\n", encoding="utf-8")
    did = here("init", "mine", *WITH)
    assert (did.code, did.stdout) == (1, "")
    assert did.stderr == (
        f"error: mine/{taken}: exists already: name another, or move it away; nothing was written\n"
    )
    assert files_in(folder) == {taken}
    assert (folder / taken).read_text(encoding="utf-8") == "mine\n"


def test_init_when_a_link_leads_nowhere_then_it_is_not_written_through(
    here: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "audit.yaml").symlink_to(tmp_path / "elsewhere.yaml")
    assert "exists already" in here("init").stderr
    assert not (tmp_path / "elsewhere.yaml").exists()


def test_init_when_it_fails_on_the_way_then_nothing_is_left(here: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tasks").write_text("a file where the folder belongs", encoding="utf-8")
    did = here("init", "mine")
    assert did.code == 1
    assert did.stderr.startswith("error: mine/tasks")
    assert did.stderr.count("\n") == 1
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["tasks"]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert here("init", "file/deep").code == 1


def test_init_when_an_example_is_unknown_then_the_known_ones_are_told(here: Callable[..., Any]) -> None:
    did = here("init", "--with", "codex,cursor")
    assert did.code == 2
    assert "'cursor' is none of claude-code, codex, profiles" in did.stderr
