"""A config or task file that cannot be meant is one line: the file, the place in it, what is wrong."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from audit.doors.config import load_config
from audit.doors.recorded import load_checks
from audit.doors.sound import unsound
from audit.doors.tasks import load_tasks
from audit.words.errors import BadFile


def bomb(levels: int = 9) -> str:
    """A few hundred characters that stand for ten to the power of `levels` + 1 values."""
    lists = [f"k{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, levels)]
    return "{" + ", ".join([f"k0: &a0 [{', '.join('x' * 10)}]", *lists]) + "}"


DEEP = "is nested over 100 deep, or holds itself"
HALF = "holds half a character (a lone surrogate)"
# In either file: (YAML of one value, what is said of it). `@` stands for where the value stands.
VALUES: dict[str, tuple[str, str]] = {
    "a number of 5000 digits": ("9" * 5000, "what stands here is no whole number that can be read"),
    "a number over 64 bits": (str(2**70), "@: is a whole number of over 64 bits"),
    "half a character": ('"v\\ud83d"', f"@: {HALF}"),
    "half a character in a key": ('{"v\\ud83d": 1}', HALF),
    "one that holds itself": ("&s {x: *s}", DEEP),
    "nested deep": ("[" * 150 + "]" * 150, DEEP),
    "nested without end": ("[" * 5000, "nested too deep"),
    "aliases that grow": (bomb(), "its aliases make millions of values of it"),
}


def told(load: Callable[[], object]) -> str:
    began = time.monotonic()
    with pytest.raises(BadFile) as caught:
        load()
    assert time.monotonic() - began < 5
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("case", VALUES)
def test_config_when_a_value_cannot_be_meant_then_file_and_place_are_told(case: str, tmp_path: Path) -> None:
    written, problem = VALUES[case]
    file = tmp_path / "audit.yaml"
    file.write_text(f"profiles:\n  - name: a\n    extra: {{a: {written}}}\n", encoding="utf-8")
    said = told(lambda: load_config(file))
    assert said.startswith(f"{file}")
    assert problem.replace("@", f"{file}, profiles[0].extra.a") in said


@pytest.mark.parametrize("case", VALUES)
def test_tasks_when_a_value_cannot_be_meant_then_file_and_place_are_told(case: str, tmp_path: Path) -> None:
    written, problem = VALUES[case]
    file = tmp_path / "tasks.yaml"
    file.write_text(f"- id: {written}\n", encoding="utf-8")
    (tmp_path / "domain.yaml").write_text("{name: d, policy: p, world: world.sql, tools: []}")
    (tmp_path / "world.sql").write_text("create table t (x);")
    said = told(lambda: load_tasks([tmp_path]))
    assert said.startswith(f"{file}")
    assert problem.replace("@", f"{file}, [0].id") in said


@pytest.mark.parametrize("case", VALUES)
def test_checks_when_a_value_cannot_be_meant_then_file_and_place_are_told(case: str, tmp_path: Path) -> None:
    written, problem = VALUES[case]
    file = tmp_path / "checks.yaml"
    file.write_text(f"t1: {written}\n", encoding="utf-8")
    said = told(lambda: load_checks(file))
    assert said.startswith(f"{file}")
    assert problem.replace("@", f"{file}, t1") in said


CONFIGS: dict[str, tuple[str, str, str]] = {
    "a date that is none": (
        "audit.yaml",
        "judges: j\nname: 2025-99-99\n",
        "line 2: not YAML: what stands here is no date that can be read; as text it needs quotes",
    ),
    "a time that is none": (
        "audit.yaml",
        "name: 2025-01-01T99:99:99\n",
        "line 1: not YAML: what stands here",
    ),
    "NUL": ("audit.yaml", "judges: j\nname: a\0b\n", "line 2: not YAML: special characters are not allowed"),
    "JSON: a key twice": (
        "audit.json",
        '{"name": "a", "name": "b"}',
        "not JSON: the key 'name' stands twice",
    ),
    "JSON: a key twice, within": ("audit.json", '{"gate": {"x": 1, "x": 2}}', "the key 'x' stands twice"),
    "JSON: nested without end": ("audit.json", "[" * 100_000, "not JSON: nested too deep"),
    "JSON: a number of 5000 digits": (
        "audit.json",
        '{"seed": ' + "9" * 5000 + "}",
        "not JSON: a number is too long to be read",
    ),
    "JSON: half a character": ("audit.json", '{"agents": ["a", "\\ud83d"]}', f"agents[1]: {HALF}"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_config_when_it_cannot_be_read_then_it_is_one_line_with_the_place(case: str, tmp_path: Path) -> None:
    name, text, problem = CONFIGS[case]
    (tmp_path / name).write_text(text, encoding="utf-8")
    said = told(lambda: load_config(tmp_path / name))
    assert said.startswith(str(tmp_path / name))
    assert problem in said


def test_config_when_it_or_its_profiles_are_a_folder_then_it_says_so(tmp_path: Path) -> None:
    assert told(lambda: load_config(tmp_path)) == f"{tmp_path}: is a folder: name the file"
    (tmp_path / "audit.yaml").write_text("profiles: .")
    assert told(lambda: load_config(tmp_path / "audit.yaml")).endswith(": is a folder: name the file")


def test_world_when_its_sql_holds_nul_then_file_and_line_are_told(tmp_path: Path) -> None:
    domain = {"name": "d", "policy": "p", "world": "world.sql", "tools": []}
    (tmp_path / "domain.yaml").write_text(json.dumps(domain))
    check = {"sql": "select 1", "rows": [[1]]}
    task: dict[str, Any] = {"id": "t", "category": "c", "goal": "g", "facts": [], "checks": [check]}
    (tmp_path / "tasks.yaml").write_text(json.dumps([task]))
    (tmp_path / "world.sql").write_text("create table t (x);\ninsert into t values ('a\0');")
    assert told(lambda: load_tasks([tmp_path])) == f"{tmp_path}/world.sql, line 2: holds a NUL character"
    (tmp_path / "world.sql").write_text("create table t (x);")
    (tmp_path / "tasks.yaml").write_text(json.dumps([task | {"setup": "select 1;\n\nselect '\0'"}]))
    assert told(lambda: load_tasks([tmp_path])) == (
        f"{tmp_path}/tasks.yaml, [0].setup: line 3: holds a NUL character"
    )


def test_aliases_when_they_save_some_writing_then_they_are_welcome(tmp_path: Path) -> None:
    shared = "&base {base_url: 'http://127.0.0.1:1/v1', model: m, extra: {top_k: 5, stop: [a, b, c]}}"
    names = [("u", "simulated_user"), ("j", "llm_judge"), *((f"a{n}", "agent") for n in range(60))]
    listed = [f"  - {{<<: *base, name: {name}, role: {role}}}" for name, role in names]
    listed[0] = listed[0].replace("*base", shared)
    agents = ", ".join(name for name, role in names if role == "agent")
    text = "\n".join(["profiles:", *listed, f"agents: [{agents}]", "user: u", "judges: j"])
    (tmp_path / "audit.yaml").write_text(text)
    config, _ = load_config(tmp_path / "audit.yaml")
    assert {profile.extra["top_k"] for profile in config.profiles} == {5}
    assert len(config.profiles) == 62


def test_sound_when_nothing_is_wrong_then_all_of_it_is_looked_at() -> None:
    found = {"a": [1, -(2**63), {"b": "é"}, None, True, 0.5], "c": 2**64 - 1}
    assert unsound(found, 10) is None
    assert unsound(found | {"d": [[{"e": "\udc00"}]]}, 10) == ("d[0][0].e", HALF)
