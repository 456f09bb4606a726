"""Messages that say what was meant: a slip, a file of another format, a scale that fits nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]
PAIR = {"pair_id": "p1", "task_id": "t", "agent_a": "ash", "agent_b": "elm", "reward_a": 1, "reward_b": 0}


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def pairs(count: int, **more: Any) -> list[dict[str, Any]]:
    """Each of its own two agents."""
    return [
        PAIR | {"pair_id": f"p{n}", "task_id": f"t{n}", "agent_a": f"a{n}", "agent_b": f"b{n}", **more}
        for n in range(count)
    ]


@pytest.mark.parametrize("option", ["--within", "--change"])
def test_plan_when_its_wish_is_no_number_then_it_is_a_usage_error(cli: Cli, option: str) -> None:
    ran = cli("plan", option, "nan")

    assert (ran.code, ran.stdout) == (2, "")
    assert f"Invalid value for '{option}': 'nan' is no number between 0 and 1 (help: " in ran.stderr


JUDGEBENCH = {
    "pair_id": "1", "question": "q", "response_model": "m", "response_A": "a", "response_B": "b",
    "label": "A>B", "judgments": [],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "as_format", "named"),
    [
        ("x.jsonl", json.dumps(JUDGEBENCH), "jsonl", "judgebench"),
        ("x.jsonl", json.dumps(PAIR | {"pref_ab": "A"}), "judgebench", "jsonl"),
        ("x.csv", "pair_id,pref_ab\np,A\n", "gauge-csv", "csv"),
        ("x.csv", "agent_model,task_success,satisfaction\nm,1,1\n", "csv", "gauge-csv"),
        ("x.json", json.dumps({"simulations": [], "tasks": []}), "tau", "tau2"),
        ("x.json", json.dumps([{"task_id": 1, "traj": [], "reward": 1, "trial": 0}]), "tau2", "tau"),
        ("x.jsonl", json.dumps({"task_id": "t", "messages": []}), "csv", "sessions"),
        ("x.jsonl", json.dumps({"source_pair_id": "1", "reward_a": 1, "reward_b": 2}), "jsonl", "rewards"),
    ],
)
def test_import_when_the_file_is_plainly_of_another_format_then_the_error_names_that(
    cli: Cli, tmp_path: Path, name: str, content: str, as_format: str, named: str
) -> None:
    file = tmp_path / name
    file.write_text(content, encoding="utf-8")

    ran = cli("import", as_format, file)

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr.startswith(f"error: {file}")
    assert ran.stderr.endswith(f"; it looks like {named}: reward-audit import {named}\n")


def test_import_when_the_file_is_merely_broken_then_no_format_is_guessed(cli: Cli, tmp_path: Path) -> None:
    broken = written(tmp_path / "x.jsonl", PAIR | {"pref_ab": "A"}, PAIR | {"pref_ab": "left"})

    assert "looks like" not in cli("import", "jsonl", broken).stderr


@pytest.mark.parametrize(
    "rows", [[PAIR | {"pref_ab": "A"}], [PAIR | {"raw_ab": "[[A]]", "grammar": "digit"}]]
)
def test_import_when_the_grammar_is_unknown_then_it_is_refused_whether_it_is_needed_or_not(
    cli: Cli, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    ran = cli("import", "jsonl", written(tmp_path / "x.jsonl", *rows), "--grammar", "mtbench")

    assert (ran.code, "unknown verdict grammar 'mtbench'" in ran.stderr) == (2, True)


def test_import_when_a_row_has_a_key_twice_then_it_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "x.jsonl"
    inner = json.dumps(PAIR | {"pref_ab": "A", "prompt": 'as "pair_id" and "task_id"'})
    file.write_text(inner + '\n{"pair_id": "p2", "pref_ab": "A", "pref_ab": "B"}\n', encoding="utf-8")

    ran = cli("import", "jsonl", file)

    assert (ran.code, ran.stderr) == (1, f"error: {file}, line 2: the key 'pref_ab' stands twice\n")
    (tmp_path / "x.json").write_text('[{"task_id": 1, "reward": 0, "reward": 1}]', encoding="utf-8")
    whole = cli("import", "tau", tmp_path / "x.json")
    assert (whole.code, "the key 'reward' stands twice" in whole.stderr) == (1, True)
    file.write_text(inner + "\n", encoding="utf-8")
    assert cli("import", "jsonl", file).code == 0


CONFIG = """
profiles:
  - {{name: j, role: {role}, base_url: "offline://synthetic", model: judge-80}}
judges: {judges}
"""


@pytest.mark.parametrize("role", ["llm_jugde", "LLM-judge", "judge", "agents", "simulated-user"])
def test_config_when_a_role_is_mistyped_then_it_is_a_fault_beside_every_other(
    cli: Cli, tmp_path: Path, role: str
) -> None:
    (tmp_path / "c.yaml").write_text(CONFIG.format(role=role, judges="j") + "seeed: 1\n", encoding="utf-8")
    meant = {"agents": "agent", "simulated-user": "simulated_user"}.get(role, "llm_judge")

    ran = cli("judge", "--run", "latest", "-c", tmp_path / "c.yaml")

    assert ran.code == 1
    assert f"profiles[0].role: there is no role {role!r} (did you mean {meant}?)" in ran.stderr
    assert "seeed: unknown key" in ran.stderr
    assert "is missing" not in ran.stderr


def test_config_when_a_role_is_another_programs_then_its_profile_is_passed_over(
    cli: Cli, tmp_path: Path
) -> None:
    foreign = '  - {name: e, role: embedder, base_url: "http://x/v1", model: m}\n'
    text = CONFIG.format(role="llm_judge", judges="j").replace("judges:", foreign + "judges:")
    (tmp_path / "c.yaml").write_text(text, encoding="utf-8")

    ran = cli("judge", "--run", "latest", "-c", tmp_path / "c.yaml")

    assert "profile 'e' has the role 'embedder', none of ours: passed over" in ran.stderr
    assert "there is no run yet" in ran.stderr


@pytest.mark.parametrize("command", [("run",), ("judge",), ("judge", "--run", "latest")])
def test_config_when_it_holds_thresholds_alone_then_it_says_what_is_missing_in_one_line(
    cli: Cli, tmp_path: Path, command: tuple[str, ...]
) -> None:
    (tmp_path / "c.yaml").write_text("gate: {accuracy: {min: 0.5}}\n", encoding="utf-8")

    ran = cli(*command, "-c", tmp_path / "c.yaml")

    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"error: {tmp_path / 'c.yaml'}: holds 'gate' and says of no model: add `profiles` and `judges` "
        "(the README shows how), or name another config with -c\n"
    )


def test_judge_when_only_an_import_is_there_then_it_is_told_how_that_is_judged(
    cli: Cli, tmp_path: Path
) -> None:
    session = {"task_id": "t", "agent": "a", "messages": [{"role": "user", "content": "hi"}], "reward": 1}
    cli("import", "sessions", written(tmp_path / "s.jsonl", session, session | {"agent": "b"}))
    (tmp_path / "c.yaml").write_text(CONFIG.format(role="llm_judge", judges="j"), encoding="utf-8")

    ran = cli("judge", "-c", tmp_path / "c.yaml")

    assert (ran.code, "reward-audit judge --run latest -c FILE" in ran.stderr) == (1, True)


def test_sql_when_a_column_is_not_there_then_the_nearest_of_its_table_is_named(
    cli: Cli, tmp_path: Path
) -> None:
    cli("import", "jsonl", written(tmp_path / "x.jsonl", *pairs(2, pref_ab="A")))

    for statement in ("select misselectd from audit_pairs", "select p.misselectd from audit_pairs as p"):
        ran = cli("sql", statement)
        assert (ran.code, "(did you mean misselected?)" in ran.stderr) == (1, True)
    assert "did you mean" not in cli("sql", "select qqqqq from audit_pairs").stderr


def test_report_when_agents_differ_by_pair_then_it_says_why_no_gap_is_known_and_what_to_do(
    cli: Cli, tmp_path: Path
) -> None:
    cli("import", "jsonl", written(tmp_path / "x.jsonl", *pairs(4, pref_ab="A", pref_ba="A")))

    said = " ".join(cli("report").stdout.split())

    assert "No pair has a gap of source agent (it takes two agents by name that share two tasks" in said
    assert "--gap-source session` takes that between the rewards of its two sessions" in said
    assert cli("score", "--gap-source", "session").stderr == ""
    assert "No pair has a gap" not in cli("report").stdout


@pytest.mark.parametrize("source", ["judge", "external"])
def test_score_when_no_pair_has_that_gap_then_one_line_warns(cli: Cli, tmp_path: Path, source: str) -> None:
    cli("import", "jsonl", written(tmp_path / "x.jsonl", *pairs(4, pref_ab="A", pref_ba="A")))

    ran = cli("score", "--gap-source", source)

    assert (ran.code, len(ran.stderr.splitlines())) == (0, 1)
    assert ran.stderr.startswith(f"warning: No pair has a gap of source {source} (it takes ")


def shown_accuracy(cli: Cli) -> str:
    (line,) = [line for line in cli("report").stdout.splitlines() if line.startswith("accuracy")]
    return str(line.split()[1])


def test_score_when_the_run_has_one_order_then_a_rule_of_both_warns_and_no_accuracy_is_shown(
    cli: Cli, tmp_path: Path
) -> None:
    rows = pairs(4, pref_ab="A", agent_a="x", agent_b="y")
    cli("import", "jsonl", written(tmp_path / "x.jsonl", *rows), "--swap-rule", "first_order")
    assert shown_accuracy(cli) == "4/4"

    ran = cli("score", "--swap-rule", "both_agree")

    assert len(ran.stderr.splitlines()) == 1
    assert "--swap-rule first_order` takes that" in ran.stderr
    assert shown_accuracy(cli) == "-"


@pytest.mark.parametrize(("high", "is_binary"), [(1, True), (0.75, False)])
def test_headline_when_no_pair_is_near_then_binary_rewards_are_named_only_where_they_are(
    cli: Cli, tmp_path: Path, high: float, is_binary: bool
) -> None:
    rows = pairs(4, pref_ab="A", pref_ba="A", reward_a=high)
    cli("import", "jsonl", written(tmp_path / "x.jsonl", *rows), "--gap-source", "session")

    said = " ".join(cli("report").stdout.split())

    assert "the empty near bucket is no good news" in said
    assert ("with 0/1 rewards and gap_source session none can" in said) == is_binary
