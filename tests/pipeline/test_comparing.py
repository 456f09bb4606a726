"""Two runs side by side: which pairs are the same, what changed, what explains it; and the trend."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from audit.doors import db
from audit.pipeline.comparing import compare, trend
from audit.pipeline.importing import Wish, import_file
from audit.statistics.agreement import mcnemar_p
from audit.statistics.intervals import paired_interval
from audit.words.errors import BadRequest

SWAPPED = {"A": "B", "B": "A", "tie": "tie"}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = db.open_database(database_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def night(engine: Engine, tmp_path: Path) -> Callable[..., str]:
    """Imports one night's pairs under the name `nightly`; the run's id."""

    def of(pairs: list[dict[str, Any]], name: str = "nightly") -> str:
        file = tmp_path / f"night-{len(list(tmp_path.iterdir()))}.jsonl"
        file.write_text("\n".join(json.dumps(pair) for pair in pairs) + "\n", encoding="utf-8")
        return import_file(engine, Wish("jsonl", (file,), name=name)).run_id

    return of


def pair(number: int, said: str, *, turned: bool = False, **more: Any) -> dict[str, Any]:
    """A pair of ash (reward 1) and elm (0) on its task, three to a task; `turned`: elm is side A."""
    a, b = ("elm", "ash") if turned else ("ash", "elm")
    said = SWAPPED[said] if turned else said
    return {
        "pair_id": f"p{number}", "task_id": f"t{number // 3}", "trial": number % 3,
        "agent_a": a, "agent_b": b,
        "reward_a": float(not turned), "reward_b": float(turned), "pref_ab": said, "pref_ba": said, **more,
    }  # fmt: skip


def test_pairs_when_sides_and_ids_differ_then_they_are_matched_by_task_trial_and_agents(
    engine: Engine, night: Callable[..., str]
) -> None:
    before = night([pair(number, "B" if number < 3 else "A") for number in range(30)])
    after = night(
        [
            pair(
                number, "B" if number in (0, *range(20, 29)) else "A", turned=True, pair_id=f"other-{number}"
            )
            for number in range(33)
        ]
    )
    found = compare(engine, [before, after])

    assert found["matched"] == {
        "pairs": 30, "tasks": 10, "only_before": 0, "only_after": 3, "same_rewards": 30,
    }  # fmt: skip
    assert found["mcnemar"] == {
        "counted": 30, "both_misselected": 1, "misselected_before": 2, "misselected_after": 9,
        "p": mcnemar_p(2, 9),
    }  # fmt: skip
    rate = next(one for one in found["rates"] if one["rate"] == "misselected_of_decided")
    assert (rate["before"]["k"], rate["before"]["n"], rate["after"]["k"], rate["after"]["n"]) == (
        3,
        30,
        10,
        30,
    )
    k1 = [3] + [0] * 9
    k2 = [
        sum(number in (0, *range(20, 29)) for number in range(3 * task, 3 * task + 3)) for task in range(10)
    ]
    change, interval = paired_interval(k1, [3] * 10, k2, [3] * 10)
    assert (rate["change"], rate["low"], rate["high"]) == pytest.approx((change, interval.low, interval.high))
    assert found["is_beyond_chance"] is (not interval.low <= 0 <= interval.high)


def test_drift_when_the_same_answers_come_again_then_it_is_none_and_its_interval_is_narrow(
    engine: Engine, night: Callable[..., str], tmp_path: Path, here: Callable[..., Any], database_url: str
) -> None:
    rows = [pair(number, "B" if number % 7 == 0 else "A") for number in range(240)]
    before, after = night(rows), night([*rows, pair(999, "A")])

    rate = next(
        one for one in compare(engine, [before, after])["rates"] if one["rate"] == "misselected_of_decided"
    )
    assert rate["change"] == 0
    assert -0.02 < rate["low"] < 0 < rate["high"] < 0.02
    (tmp_path / "limits.yaml").write_text("gate: {drift: {max: 0.02, by: upper}}", encoding="utf-8")
    assert here("gate", "-c", "limits.yaml", db=database_url).code == 0


def test_pairs_when_agents_are_unnamed_then_they_are_matched_by_their_own_id(
    engine: Engine, night: Callable[..., str]
) -> None:
    def unnamed(number: int, said: str) -> dict[str, Any]:
        return pair(number, said) | {"agent_a": None, "agent_b": None, "trial": 0}

    before = night([unnamed(number, "A") for number in range(6)])
    after = night([unnamed(number, "B") for number in reversed(range(5))])
    found = compare(engine, [before, after])

    assert (found["matched"]["pairs"], found["mcnemar"]["misselected_after"]) == (5, 5)


def test_explanation_when_another_rate_moved_then_it_is_named_and_misselected_is_said_not_to(
    engine: Engine, night: Callable[..., str]
) -> None:
    before = night([pair(number, "A", pref_ba="B" if number % 3 else "A") for number in range(90)])
    after = night([pair(number, "A", pref_ba="A") for number in range(90)])
    found = compare(engine, [before, after])

    rates = {rate["rate"]: rate for rate in found["rates"]}
    assert (rates["misselected_of_decided"]["change"], found["is_beyond_chance"]) == (0, False)
    assert rates["consistent"]["low"] > 0
    assert "no change of misselected beyond chance was seen" in found["explanation"]
    assert found["explanation"].endswith(
        "By intervals of their own accuracy, consistent moved beyond chance."
    )


def test_explanation_when_only_the_judge_moved_then_the_change_is_laid_to_it_and_else_to_none(
    engine: Engine, night: Callable[..., str]
) -> None:
    plain = night([pair(number, "A", judge="old") for number in range(60)])
    worse = night([pair(number, "B" if number % 2 else "A", judge="new") for number in range(60)])
    other = night([pair(number + 30, "B", judge="new") for number in range(60)])
    apart = night([pair(number + 900, "B") for number in range(3)])

    alone = compare(engine, [plain, worse])
    assert (alone["moved"], alone["is_beyond_chance"]) == (["judge"], True)
    assert alone["explanation"] == "Only the judge moved: the change can be laid to that alone."
    assert alone["changed"]["gate"] == {"before": "old", "after": "new"}
    both = compare(engine, [plain, other])
    assert both["moved"] == ["judge", "tasks"]
    assert both["explanation"].startswith(
        "judge, tasks moved together: the change can be laid to none alone."
    )
    assert both["changed"]["tasks"] == {"both": 10, "only_before": 10, "only_after": 10, "edited": 0}
    assert compare(engine, [plain, apart])["explanation"].startswith("No pair is in both runs")


def test_trend_when_runs_share_a_name_then_each_is_held_against_the_one_before(
    engine: Engine, night: Callable[..., str]
) -> None:
    runs = [night([pair(n, "B" if n % 5 < bad else "A") for n in range(60)]) for bad in (0, 1, 3)]
    night([pair(n, "A", pair_id=f"x{n}") for n in range(3)], name="another")

    found = trend(engine, 2, "nightly")
    assert [run["run_id"] for run in found["runs"]] == runs[1:]
    first, last = found["runs"]
    assert first["change"] is None
    assert (last["misselected_of_decided"]["k"], last["change"]["change"]) == (36, pytest.approx(0.4))
    assert last["change"]["low"] > 0
    assert len(trend(engine, 9, "nightly")["runs"]) == 3
    with pytest.raises(BadRequest, match="1 complete run named 'another': a trend needs two"):
        trend(engine, 5)


def test_live_runs_when_only_a_judges_model_moved_then_it_is_named_with_what_was_served(
    here: Callable[..., Any], small: Callable[..., Path]
) -> None:
    import yaml

    config = small()
    assert here("run", "-c", config).code == 0
    text = yaml.safe_load(config.read_text(encoding="utf-8"))
    next(one for one in text["profiles"] if one["name"] == "judge")["model"] = "judge-50-pos40"
    config.write_text(yaml.safe_dump(text | {"max_error_rate": 0.2}), encoding="utf-8")
    assert here("run", "-c", config).code == 0
    first, last = (run["run_id"] for run in reversed(json.loads(here("--json", "runs").stdout)))

    found = json.loads(here("--json", "compare", first, "latest").stdout)
    assert found["after"]["run_id"] == last
    assert found["moved"] == ["judge"]
    assert {key["key"] for key in found["changed"]["config"]} == {"max_error_rate", "profiles.judge.model"}
    judge = next(model for model in found["changed"]["models"] if model["role"] == "judge")
    assert judge["before"] == {"asked": ["judge-80-pos10"], "served": ["synthetic/judge-80-pos10"]}
    assert judge["after"] == {"asked": ["judge-50-pos40"], "served": ["synthetic/judge-50-pos40"]}
    assert found["matched"]["same_rewards"] == found["matched"]["pairs"] == 9

    text = here("compare", first, last)
    assert (text.code, text.stderr) == (0, "")
    assert "profiles.judge.model: judge-80-pos10 -> judge-50-pos40" in text.stdout
    shown = here("compare", "--last", "2").stdout
    assert max(map(len, (text.stdout + shown).splitlines())) <= 80
    assert shown.startswith("2 runs named embedded")


def test_live_runs_when_only_the_tasks_moved_then_shared_pairs_are_told_from_the_rest(
    here: Callable[..., Any], small: Callable[..., Path], few_tasks: str
) -> None:
    import yaml

    config, tasks = small(), Path(few_tasks) / "tasks.yaml"
    assert here("run", "-c", config).code == 0
    listed = yaml.safe_load(tasks.read_text(encoding="utf-8"))
    tasks.write_text(yaml.safe_dump(listed[:2], allow_unicode=True), encoding="utf-8")
    assert here("run", "-c", config).code == 0
    first = json.loads(here("--json", "runs").stdout)[1]["run_id"]

    found = json.loads(here("--json", "compare", first, "latest").stdout)
    assert found["moved"] == ["tasks"]
    assert found["changed"]["tasks"] == {"both": 2, "only_before": 1, "only_after": 0, "edited": 0}
    assert found["matched"]["pairs"] == 6
    assert found["explanation"].startswith("Only the tasks moved. On the pairs both runs have nothing did")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ((), "name two runs"),
        (("latest",), "name two runs"),
        (("a", "b", "--last", "3"), "not both"),
        (("a", "b", "--plot", "x.svg"), "--name and --plot go with --last N"),
        (("--last", "1"), "--last"),
    ],
)
def test_command_when_options_do_not_fit_then_it_is_a_usage_error(
    here: Callable[..., Any], args: tuple[str, ...], problem: str
) -> None:
    ran = here("compare", *args)
    assert (ran.code, ran.stdout) == (2, "")
    assert problem in ran.stderr


def test_plot_when_it_is_asked_for_then_it_is_drawn(
    here: Callable[..., Any], tmp_path: Path, night: Callable[..., str], database_url: str
) -> None:
    for bad in (1, 2):
        night([pair(n, "B" if n % 5 < bad else "A") for n in range(30)])

    drawn = here("compare", "--last", "2", "--plot", "trend.svg", db=database_url)
    assert (drawn.code, drawn.stdout.splitlines()[-1]) == (0, "wrote the trend of 2 runs to trend.svg")
    assert "<svg" in (tmp_path / "trend.svg").read_text(encoding="utf-8")
    as_json = here("--json", "compare", "--last", "2", "--plot", "trend.PNG", db=database_url)
    assert as_json.stderr == "wrote the trend of 2 runs to trend.PNG\n"
    assert len(json.loads(as_json.stdout)["runs"]) == 2
    assert (tmp_path / "trend.PNG").read_bytes().startswith(b"\x89PNG")
    wrong = here("compare", "--last", "2", "--plot", "trend.gif", db=database_url)
    assert (wrong.code, "its ending says no format" in wrong.stderr) == (1, True)
