"""What the README says is run here, so that it stays true."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from audit.doors.config import load_config
from audit.doors.formats import gauge_csv, sessions
from audit.doors.formats.plain import COLUMNS
from audit.doors.shipped import view_texts
from audit.doors.task_shapes import BODIES
from audit.doors.tasks import load_tasks
from audit.faces.cli import COMMANDS, cli
from audit.verbs.grammars import grammar
from audit.words.config import Config
from audit.words.names import METRICS
from audit.words.schema import audit_pairs

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_first_screen_when_its_command_is_run_then_it_prints_what_stands_there(tmp_path):
    first = "\n".join(README.splitlines()[:40])
    command = re.search(r"^    pip install -e \. && (.*)$", first, re.MULTILINE)[1].split()
    assert command[0] == "reward-audit"
    env = {**os.environ, "REWARD_AUDIT_DB": f"sqlite:///{tmp_path}/a.db"}
    call = [sys.executable, "-m", "audit", *command[1:]]
    done = subprocess.run(call, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    printed = [line.rstrip() for line in done.stdout.splitlines()]
    counts = re.search(r"simulates (\S+) sessions, judges (\S+) pairs", first)
    assert f"simulate: {counts[1]}/{counts[1]}" in done.stderr
    assert f"{counts[2]} pairs, " in done.stdout
    shown = re.search(r"among other tables:\n\n((?:    .*\n|\n)+)", first)[1]
    lines = [line.removeprefix("    ").rstrip() for line in shown.splitlines() if line.strip()]
    assert len(lines) > 8
    assert [line for line in lines if line not in printed] == []


def test_first_screen_when_read_then_it_names_the_test_command_that_ci_runs():
    first = "\n".join(README.splitlines()[:40])
    assert "pip install -e '.[test]' && python -m pytest\n" in first
    assert "python -m pytest" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_config_when_shown_then_it_is_one(tmp_path):
    file = tmp_path / "audit.yaml"
    (tmp_path / "my_tasks").mkdir()
    file.write_text(re.search(r"```yaml\n(.*?)```", _section("A live run"), re.DOTALL)[1], encoding="utf-8")
    config, notes = load_config(file)
    assert (config.agents, notes) == (["v1", "v2"], [])
    text = file.read_text(encoding="utf-8")
    file.write_text(re.sub("(?m)^tasks: .*$", "", text), encoding="utf-8")
    assert len(load_tasks([Path(path) for path in load_config(file)[0].tasks])) == 48


def test_config_keys_when_listed_then_they_are_those_there_are():
    cells = re.findall(r"^\| (`[a-z_`, :{}]+?(?:or `sessions`)?) \|", _section("A live run"), re.MULTILINE)
    named = {name for cell in cells for name in re.findall(r"`(\w+)", cell)}
    assert named == set(Config.model_fields)


def test_checks_when_listed_then_they_are_those_there_are():
    text = (ROOT / "data" / "tasks" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?) \|", text.split("| check |")[1], re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) - {"rows"} == set(BODIES)


def test_checks_when_shown_then_each_can_be_read_beside_the_shops_world(tmp_path):
    text = (ROOT / "data" / "tasks" / "README.md").read_text(encoding="utf-8")
    shown = yaml.safe_load(re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1])["checks"]
    assert {kind for check in shown for kind in BODIES if kind in check} == set(BODIES)
    (tmp_path / "my_checks.py").write_text("def is_refunded(evidence):\n    return True\n", encoding="utf-8")
    shop = ROOT / "data" / "tasks" / "shop"
    errand = {"id": "t", "category": "cancel", "goal": "g", "facts": [], "checks": shown}
    file = tmp_path / "tasks.yaml"
    file.write_text(
        yaml.safe_dump({"domain": str(shop), "tasks": [errand]}, sort_keys=False), encoding="utf-8"
    )
    assert len(load_tasks([file])[0].checks) == len(shown)


def test_columns_when_listed_then_they_are_those_the_importer_knows():
    table = re.findall(r"^\| (`pair_id`.*|`[a-z_`, ]+) \|", _section("Your own judge"), re.MULTILINE)
    named = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert set(COLUMNS) <= named


def test_session_columns_when_listed_then_they_are_those_the_importer_knows():
    table = re.findall(r"^\| (`[a-z_`, ]+) \|", _section("Your own sessions"), re.MULTILINE)
    named = [name for cell in table for name in re.findall(r"`(\w+)`", cell)]
    assert sorted(named) == sorted(sessions.COLUMNS)


def test_grammars_when_listed_then_each_is_known():
    cells = re.findall(
        r"^\| (`(?:json|arena|mtbench|output|score|digit)[^|]*) \|", _section("Your own judge"), re.MULTILINE
    )
    names = [name for cell in cells for name in re.findall(r"`([^`]+)`", cell)]
    assert [grammar(name).name for name in names if name.startswith("llmbar")] == ["output_ab"] * 2
    for name in names:
        assert grammar(name).name == name.split(":")[0] or name.startswith("llmbar")
    with pytest.raises(ValueError, match="unknown verdict grammar") as unknown:
        grammar("none")
    told = str(unknown.value).partition("use one of ")[2].partition(";")[0].split(", ")
    assert {name.partition(":")[0] for name in names} == set(told)


def test_commands_when_listed_then_they_are_those_there_are():
    cells = "\n".join(re.findall(r"^\| (`.*?) \|", _section("The commands"), re.MULTILINE))
    named = set(re.findall(r"`([a-z]+)", cells)) & set(COMMANDS)
    assert named == set(COMMANDS) == set(cli.list_commands(None))


def test_views_when_listed_then_they_are_the_files_in_sql():
    named = set(re.findall(r"`([a-z_]+)`", _section("The commands"))) & set(view_texts())
    assert named == set(view_texts())


def test_columns_when_listed_then_they_are_those_of_the_table_and_of_the_format():
    listed = README.split("Columns of `audit_pairs`")[1].split("\n\nText with")[0]
    rows = [line for line in listed.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(names) == sorted(column.name for column in audit_pairs.columns)
    gauge = README.split("in the columns `run_id`")[1].split(" and perhaps\n`task_id`")[0]
    assert ("run_id", *re.findall(r"`(\w+)`", gauge)) == gauge_csv.COLUMNS
    rates = README.split("Rates may be ")[1].split("What cannot be told")[0]
    named = set(re.findall(r"`([\w.]+)`", rates))
    assert named - {"wide."} == set(METRICS) - {name for name in METRICS if name.startswith("wide.")}
