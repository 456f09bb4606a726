"""`gate` and `plan`: exit codes, what too few pairs mean, numbers that follow from the run's own rates."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from live_rows import rows

from audit.doors.db import open_database
from audit.pipeline.holding import keep_outcome
from audit.statistics.intervals import design_effect
from audit.statistics.power import change_variance, pairs_for_precision, pairs_to_see_change

TASKS = 40


@pytest.fixture
def filled(here: Callable[..., Any], tmp_path: Path) -> Callable[..., None]:
    """Imports a run of 40 tasks with three near and three wide pairs each; of the near ones some `wrong`."""

    def of(wrong: Callable[[int], int] = lambda task: task % 2, tasks: int = TASKS, name: str = "n") -> None:
        lines = [
            {"pair_id": f"{task}-{which}", "task_id": f"t{task}", "reward_a": 1, "reward_b": 0,
             "gap": 0.02 if which < 3 else 0.5, "pref_ab": said, "pref_ba": said}
            for task in range(tasks)
            for which in range(6)
            for said in ("B" if which < wrong(task) else "A",)
        ]  # fmt: skip
        file = tmp_path / f"judged-{len(list(tmp_path.iterdir()))}.jsonl"
        file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        done = here("import", "jsonl", file, "--gap-source", "external", "--name", name)
        assert done.code == 0, done.stderr

    return of


@pytest.fixture
def limits(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "limits.yaml"
        path.write_text(f"gate: {text}\n", encoding="utf-8")
        return path

    return write


# The near ties of the run: 20 of 120 = .1667, by task 0 or 1 of 3.
LIMITS = {
    "held": ("{near.misselected_of_decided: {max: 0.2}}", 0, "held     near.misselected_of_decided: 20/120"),
    "crossed": ("{near.misselected_of_decided: {max: 0.15}}", 3, "crossed  near.misselected_of_decided"),
    "by its upper bound": (
        "{near.misselected_of_decided: {max: 0.2, by: upper}}", 3, "upper bound against max 0.2",
    ),
    "by its lower bound": ("{near.misselected_of_decided: {max: 0.15, by: lower}}", 0, "held"),
    "below a floor": ("{accuracy: {min: 0.95}}", 3, "crossed  accuracy: 220/240 = 0.9167"),
    "within both": ("{accuracy: {min: 0.9, max: 0.95}}", 0, "against max 0.95 and min 0.9"),
    "unknown fails": (
        "{satisfied_failed: {max: 0.5}}", 3,
        "against max 0.5: no session holds a satisfaction; on_unknown is fail",
    ),
    "unknown may pass": ("{satisfied_failed: {max: 0.5, on_unknown: pass}}", 0, "on_unknown is pass"),
    "no run before": ("{drift: {max: 0.1}}", 3, "there is no earlier complete run of this name"),
    "position": ("{position.consistent: {min: 0.9}, position.first_share: {max: 0.6}}", 0, "240/240"),
    "one of two": ("{accuracy: {min: 0.5}, error_calls: {min: 0.5}}", 3, "fails: 1 of 2 lines above"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "code", "line"), LIMITS.values(), ids=LIMITS.keys())
def test_gate_when_a_limit_is_held_or_not_then_its_line_says_so_and_the_exit_code_too(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path],
    text: str, code: int, line: str,
) -> None:  # fmt: skip
    filled()
    ran = here("gate", "-c", limits(text))

    assert (ran.code, ran.stderr) == (code, "")
    assert line in ran.stdout
    found = json.loads(here("--json", "gate", "-c", limits(text)).stdout)
    assert found["passed"] is (code == 0)
    assert len(ran.stdout.splitlines()) == len(found["checks"]) + 1


def test_gate_when_few_tasks_straddle_the_limit_then_it_cannot_tell_and_far_from_it_can(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path]
) -> None:
    filled(tasks=8)

    near = here("gate", "-c", limits("{near.misselected_of_decided: {max: 0.3}}"))
    assert near.code == 3
    assert "unknown  near.misselected_of_decided: 4/24" in near.stdout
    assert "too few to tell (8 clusters, and the interval holds the limit)" in near.stdout
    passing = limits("{near.misselected_of_decided: {max: 0.3, on_unknown: pass}}")
    assert here("gate", "-c", passing).code == 0
    assert here("gate", "-c", limits("{near.misselected_of_decided: {max: 0.9}}")).code == 0
    assert "crossed" in here("gate", "-c", limits("{near.misselected_of_decided: {max: 0.001}}")).stdout


def test_gate_when_the_run_of_the_night_before_was_better_then_drift_is_crossed(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path]
) -> None:
    filled(lambda task: 0)
    filled(lambda task: 2 if task % 4 else 1)
    ran = here("--json", "gate", "-c", limits("{drift: {max: 0.05, by: lower}}"))

    assert ran.code == 3
    [check] = json.loads(ran.stdout)["checks"]
    assert check["figure"]["value"] == pytest.approx(70 / 240)
    assert check["status"] == "crossed"


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ("update audit_runs set status = 'stopped'", "failed   the run is stopped, not complete"),
        (
            "update judge_logs set parse_status = 'error' where log_id <= 40",
            "failed   40 of 480 calls failed, more than max_error_rate 0.05",
        ),
    ],
)
def test_gate_when_the_run_has_errors_then_it_never_passes(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path], tmp_path: Path,
    change: str, fault: str,
) -> None:  # fmt: skip
    filled()
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        connection.execute(change)
        connection.commit()
    ran = here("gate", "-c", limits("{accuracy: {min: 0.1}}"))

    assert ran.code == 3
    assert fault in ran.stdout
    assert "held     accuracy" in ran.stdout


def test_gate_when_the_judge_decides_nothing_then_it_fails_though_unknown_is_to_pass(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path], tmp_path: Path
) -> None:
    filled()
    with closing(sqlite3.connect(tmp_path / "audit.db")) as connection:
        connection.execute(
            "update audit_pairs set judge_pref = null, misselected = null, "
            "outcome = case when source_pair_id like '1-%' then 'judge_tie' else 'unreadable' end"
        )
        connection.commit()
    ran = here("gate", "-c", limits("{drift: {max: 0.03, by: lower, on_unknown: pass}}"))

    assert ran.code == 3
    assert "failed   the judge decides none of 240 decidable pairs: 6 judge_tie, 234 unreadable" in ran.stdout


def test_outcome_when_kept_then_a_run_that_passes_later_is_measured_against_again(
    here: Callable[..., Any], filled: Callable[..., None], limits: Callable[[str], Path], tmp_path: Path
) -> None:
    filled(lambda task: 0)
    filled(lambda task: 1)
    filled(lambda task: 2)
    first, second, third = (
        run_id for (run_id,) in rows(tmp_path / "audit.db", "select run_id from audit_runs order by run_id")
    )
    engine = open_database(f"sqlite:///{tmp_path / 'audit.db'}", create=False)

    def against() -> str:
        found = here("--json", "gate", third, "-c", limits("{drift: {max: 1}}"))
        return str(json.loads(found.stdout)["checks"][0]["figure"]["against"])

    assert against() == second
    for passed, wanted in ((False, first), (False, first), (True, second)):
        keep_outcome(engine, second, [{"gate": "judge", "passed": passed}, {"gate": None, "passed": True}])
        assert against() == wanted
    for run_id in (first, second):
        keep_outcome(engine, run_id, [{"gate": "judge", "passed": False}])
    assert against() == second  # where all have failed, the newest
    engine.dispose()


WRONG = {
    "percent": (
        "{accuracy: {min: 80}, drift: {max: -1.5}, gap_at_10: {max: 3}}",
        "gate.accuracy.min: expected a share from 0 to 1, found 80; "
        "gate.drift.max: expected a share from -1 to 1, found -1.5",
    ),
    "unknown name": (
        "{near.misselected_of_decide: {max: 0.1}}",
        "gate: there is no figure 'near.misselected_of_decide' (did you mean near.misselected_of_decided?)",
    ),
    "no limit": ("{drift: {by: upper}}", "gate.drift: expected max or min"),
    "text for a number": ("{drift: {max: high}}", "gate.drift.max: expected a valid number, found 'high'"),
    "unknown key": ("{drift: {maximum: 1}}", "gate.drift.maximum: unknown key (did you mean max?)"),
    "nothing": ("{}", "no thresholds"),
}


@pytest.mark.parametrize(("text", "fault"), WRONG.values(), ids=WRONG.keys())
def test_gate_when_the_file_is_wrong_then_it_says_what_and_exits_1(
    here: Callable[..., Any],
    filled: Callable[..., None],
    limits: Callable[[str], Path],
    text: str,
    fault: str,
) -> None:
    filled(tasks=1)
    ran = here("gate", "-c", limits(text))

    assert (ran.code, ran.stdout) == (1, "")
    assert fault in ran.stderr


def test_gate_when_no_file_is_named_then_the_runs_own_limits_hold_or_it_says_there_are_none(
    here: Callable[..., Any], small: Callable[..., Path], tmp_path: Path
) -> None:
    refused = here("run", "-c", small(gate={"acuracy": {"min": 0.5}}))
    assert (refused.code, "there is no figure 'acuracy' (did you mean accuracy?)" in refused.stderr) == (
        1,
        True,
    )

    config = small(gate={"position.consistent": {"min": 0, "on_unknown": "pass"}})
    assert here("run", "-c", config).code == 0
    config.unlink()
    ran = here("gate")
    assert (ran.code, ran.stdout.splitlines()[-1].endswith("(gate judge, limits of the run's config)")) == (
        0,
        True,
    )

    (tmp_path / "p.csv").write_text(
        "pair_id,reward_a,reward_b,pref_ab,pref_ba\np,1,0,A,A\n", encoding="utf-8"
    )
    assert here("import", "csv", tmp_path / "p.csv").code == 0
    none = here("gate")
    assert (none.code, "was begun without thresholds" in none.stderr) == (1, True)
    (tmp_path / "audit.yaml").write_text("gate: {accuracy: {max: 1}}\n", encoding="utf-8")
    assert "limits of audit.yaml)" in here("gate").stdout


def test_plan_when_it_is_reckoned_then_it_follows_from_the_runs_rate_clustering_and_cost(
    here: Callable[..., Any], filled: Callable[..., None]
) -> None:
    filled(lambda task: 3 if task % 4 == 0 else 0)
    found = json.loads(here("--json", "plan", "--within", ".05", "--change", ".1").stdout)
    near, _ = found["rates"]

    # 30 of 120, three or none a task: a task is worth one pair.
    effect = design_effect([3 if task % 4 == 0 else 0 for task in range(TASKS)], [3] * TASKS)
    assert (near["k"], near["n"], near["design_effect"]) == (30, 120, pytest.approx(effect))
    assert effect == pytest.approx(3, rel=0.03)
    to_know = near["to_know"]
    assert to_know["decided"] == pairs_for_precision(0.25, 0.05, effect)
    assert to_know["pairs"] == pytest.approx(2 * to_know["decided"], abs=1)
    assert (to_know["calls"], to_know["tokens"]) == (2 * to_know["pairs"], None)
    independent = pairs_to_see_change(0.1, change_variance(2 * 0.25 * 0.75, 0.1))
    assert near["to_see_change"]["decided"] == pytest.approx(independent * effect, abs=1)
    assert near["is_discordant_measured"] is False

    filled(lambda task: 3 if task % 4 == 0 or task == 1 else 0)
    again = json.loads(here("--json", "plan", "--change", ".02").stdout)["rates"][0]
    assert (again["is_discordant_measured"], again["discordant"]) == (True, pytest.approx(3 / 120))
    text = here("plan")
    assert (text.code, text.stderr) == (0, "")
    assert max(map(len, text.stdout.splitlines())) <= 80
    assert "know near ties to +-5 points" in text.stdout


def test_plan_when_nothing_is_decided_or_nothing_wrong_then_it_says_what_it_takes_instead(
    here: Callable[..., Any], filled: Callable[..., None], tmp_path: Path
) -> None:
    filled(lambda task: 0)
    near, _ = json.loads(here("--json", "plan").stdout)["rates"]
    assert near["taken_as"] == pytest.approx(0.5 / 121)
    assert near["to_know"]["decided"] >= 1

    (tmp_path / "p.csv").write_text(
        "pair_id,reward_a,reward_b,pref_ab,pref_ba\np,1,0,A,B\n", encoding="utf-8"
    )
    assert here("import", "csv", tmp_path / "p.csv").code == 0
    rates = json.loads(here("--json", "plan").stdout)["rates"]
    assert [(rate["to_know"], "no pair of it is decided" in rate["why"]) for rate in rates] == [
        (None, True)
    ] * 2
    assert "no pair of it is decided" in " ".join(here("plan").stdout.split())
