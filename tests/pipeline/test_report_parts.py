"""The report's parts, against counts made by hand or anew from the single rows, on both databases."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from audit.doors import ask, db
from audit.pipeline import report_words
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.report_words import headline
from audit.pipeline.reporting import report
from audit.statistics.curve import error_curve
from audit.statistics.rates import clustered_rate

EXAMPLE = Path(__file__).parents[2] / "data" / "judged_pairs.jsonl"


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = db.open_database(database_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def judged(engine: Engine, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Imports pairs, given as one mapping each, and reports."""

    def of(pairs: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
        file = tmp_path / "judged.jsonl"
        lines = [json.dumps({"pair_id": f"p{number}"} | pair) for number, pair in enumerate(pairs)]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return report(engine, import_file(engine, Wish("jsonl", (file,), **options)).run_id)

    return of


def meeting(task: int, a: str, b: str, rewards: tuple[float, float], said: str) -> dict[str, Any]:
    return {
        "task_id": f"t{task}", "agent_a": a, "agent_b": b, "reward_a": rewards[0], "reward_b": rewards[1],
        "pref_ab": said, "pref_ba": said,
    }  # fmt: skip


def test_rates_when_counted_anew_from_the_single_pairs_then_they_and_their_intervals_are_the_same(
    engine: Engine,
) -> None:
    run_id = import_file(engine, Wish("jsonl", (EXAMPLE,))).run_id
    found = report(engine, run_id)
    with db.reading(engine) as connection:
        pairs = ask.rows(connection, "select * from audit_pairs")

    def naive(part: Callable[[Any], bool], whole: Callable[[Any], bool]) -> dict[str, Any]:
        by_task: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for pair in pairs:
            by_task[pair["task_id"]][0] += part(pair)
            by_task[pair["task_id"]][1] += whole(pair)
        return clustered_rate(*zip(*by_task.values(), strict=True))

    def same(rate: dict[str, Any], part: Callable[[Any], bool], whole: Callable[[Any], bool]) -> None:
        assert rate == pytest.approx(naive(part, whole), nan_ok=True)

    def is_decided(pair: Any) -> bool:
        return pair["outcome"] in ("correct", "misselected")

    def is_wrong(pair: Any) -> bool:
        return bool(pair["misselected"])

    same(found["rates"]["misselected_of_decided"], is_wrong, is_decided)
    same(found["rates"]["misselected_of_decidable"], is_wrong, lambda pair: pair["misselected"] is not None
         or pair["outcome"] == "incomplete" or pair["outcome"] == "unreadable")  # fmt: skip
    for bucket in found["gap_buckets"]:

        def is_in(pair: Any, label: str = bucket["label"]) -> bool:
            return pair["gap_bucket"] == label

        same(
            bucket["misselected_of_decided"],
            lambda pair, is_in=is_in: is_in(pair) and is_wrong(pair),
            lambda pair, is_in=is_in: is_in(pair) and is_decided(pair),
        )
        same(
            bucket["consistent"],
            lambda pair, is_in=is_in: is_in(pair) and pair["is_consistent"] == 1,
            lambda pair, is_in=is_in: is_in(pair) and pair["is_consistent"] is not None,
        )
    for category in found["categories"]:
        same(
            category["misselected_of_decided"],
            lambda pair, name=category["category"]: pair["category"] == name and is_wrong(pair),
            lambda pair, name=category["category"]: pair["category"] == name and is_decided(pair),
        )
    curve = found["error_curve"]
    decided = [pair for pair in pairs if is_decided(pair)]
    fitted = error_curve(
        [pair["reward_gap"] for pair in decided],
        [pair["misselected"] for pair in decided],
        [1] * len(decided),
        [pair["task_id"] for pair in decided],
    )
    assert (curve["unit"], curve["gap_source"]) == ("pairs", "agent")
    assert curve["instead_of"]["why"] == "only 1 of 15 agent pairs are misselected"
    assert curve["gap_at_5"] == pytest.approx(fitted["gap_at_5"])
    from_there = curve["trust"]["from_there_on"]
    assert curve["trust"]["below"]["n"] + from_there["n"] == len(decided)
    assert from_there["n"] == sum(pair["reward_gap"] >= fitted["gap_at_5"]["value"] for pair in decided)
    assert "Trust this judge when agents differ by 0.21 or more (95%: 0.18 to 0.25)" in headline(found)


def test_agent_pairs_when_means_are_equal_as_decimals_then_they_are_a_reward_tie_and_no_error(
    judged: Callable[..., dict[str, Any]],
) -> None:
    # As floats .1 + .2 is more than .3: ash and elm are equal all the same.
    found = judged(
        [
            meeting(1, "ash", "elm", (0.1, 0.3), "A"),
            meeting(2, "ash", "elm", (0.2, 0.0), "A"),
            meeting(1, "fir", "ash", (0.9, 0.1), "B"),
            meeting(2, "ash", "fir", (0.2, 0.9), "A"),
            meeting(1, "oak", "fir", (0.85, 0.9), "tie"),
            meeting(2, "oak", "fir", (0.85, 0.9), "tie"),
            meeting(1, "yew", "fir", (1, 0), "A"),
        ]
    )
    part = found["agent_pairs"]
    rows = {(row["agent_a"], row["agent_b"]): row for row in part["rows"]}

    # yew and fir share one task: nothing of chance can be told, so they are no agent pair.
    assert list(rows) == [("ash", "elm"), ("ash", "fir"), ("fir", "oak")]
    tied = rows["ash", "elm"]
    assert (tied["gap"], tied["misselected"], tied["pick"], tied["wins_a"], tied["tasks"]) == (
        0,
        None,
        "A",
        2,
        2,
    )
    worse = rows["ash", "fir"]
    assert worse["gap"] == pytest.approx(0.75)
    assert worse["se"] == pytest.approx(0.05)
    assert (worse["pick"], worse["misselected"], worse["oracle_resolved"], worse["is_near"]) == (
        "A",
        1,
        True,
        0,
    )
    assert (rows["fir", "oak"]["pick"], rows["fir", "oak"]["misselected"]) == ("tie", 0)
    assert (part["reward_ties"], part["pick_ties"], part["near_below"]) == (1, 1, 0.1)
    assert [(part[half]["k"], part[half]["n"]) for half in ("near", "wide")] == [(0, 1), (1, 1)]


def test_parts_when_they_cannot_be_computed_then_each_is_null_with_a_why(
    judged: Callable[..., dict[str, Any]],
) -> None:
    found = judged([{"reward_a": 1, "reward_b": 0, "pref_ab": "A"}], swap_rule="first_order")

    assert [name for name in found["why"] if found[name] is not None] == []
    assert found["why"] == {
        "agent_pairs": "no pair names two different agents that share more than one task with known rewards",
        "position": "the swap rule is first_order: one order tells nothing of position",
        "satisfaction": "no session holds a satisfaction",
        "review": "no person has looked at a row of this run: `reward-audit review export` picks some",
    }
    assert found["error_curve"]["s"] is None
    assert found["error_curve"]["trust_why"] == found["error_curve"]["why"]


def test_notes_when_tasks_are_few_and_nothing_is_seen_then_they_say_so_with_what_could_have_been(
    judged: Callable[..., dict[str, Any]],
) -> None:
    found = judged(
        [
            {
                "task_id": f"t{task}",
                "reward_a": 1,
                "reward_b": 0,
                "gap": gap,
                "pref_ab": one,
                "pref_ba": other,
            }
            for task in range(12)
            for gap in (0.02, 0.2)
            for one, other in (("A", "A"), ("B", "B"), ("A", "B") if task % 2 else ("B", "A"))
        ],
        gap_source="external",
    )
    notes = " ".join(found["notes"])

    assert "Only 12 tasks with a decided pair" in notes
    assert "No decided pair in [0.05,0.1), [0.1,0.15), [0.3,..)" in notes
    assert "Near ties and wide gaps do not differ beyond chance" in notes
    assert "No lean to a position beyond chance" in notes
    assert found["near_minus_wide"]["smallest_seen"] > 0
    assert 0 < found["position"]["smallest_seen"] < 1


@pytest.mark.parametrize(("wrong", "is_trusted"), [(1, False), (4, False), (5, True)])
def test_error_curve_when_few_are_wrong_then_no_gap_is_to_be_trusted(
    judged: Callable[..., dict[str, Any]], wrong: int, is_trusted: bool
) -> None:
    found = judged(
        [
            {
                "task_id": f"t{task}", "reward_a": 1, "reward_b": 0, "gap": (0.01, 0.1, 0.3)[which],
                "pref_ab": said, "pref_ba": said,
            }
            for task in range(40)
            for which in range(3)
            for said in ("B" if not which and task < wrong else "A",)
        ],
        gap_source="external",
    )  # fmt: skip
    curve = found["error_curve"]
    assert (curve["trust"] is not None) is is_trusted
    if not is_trusted:
        assert curve["trust_why"] == f"only {wrong} of 120 are wrong: too few to say from where on"
        assert "Trust this judge" not in headline(found)


def test_notes_when_some_parts_have_few_tasks_then_those_are_named_with_how_many(
    judged: Callable[..., dict[str, Any]],
) -> None:
    found = judged(
        [
            {
                "task_id": f"t{task}", "category": "few" if task < 9 else "many",
                "reward_a": 1, "reward_b": 0,
                "gap": 0.02 if task < 19 else 0.2, "pref_ab": "A", "pref_ba": "A",
            }
            for task in range(48)
        ],
        gap_source="external",
    )  # fmt: skip
    notes = " ".join(found["notes"])

    assert "Fewer than 20 tasks with a decided pair in [0,0.05) (19), few (9): take the intervals" in notes


@pytest.mark.parametrize(
    ("smallest", "words"),
    [
        (
            0.71,
            "Satisfaction tells success no better than chance, in too little to have seen any such thing.",
        ),
        (0.2, "Satisfaction tells success no better than chance; an AUC within -+0.2 of 0.5 would mostly"),
    ],
)
def test_notes_when_nothing_could_have_been_seen_then_no_impossible_figure_is_told(
    judged: Callable[..., dict[str, Any]], smallest: float, words: str
) -> None:
    found = judged([{"task_id": "t", "reward_a": 1, "reward_b": 0, "pref_ab": "A", "pref_ba": "A"}])
    found["satisfaction"] = {
        "auc_interval": {"low": 0.1, "high": 0.9}, "smallest_seen": smallest, "base_failure": None
    }  # fmt: skip
    assert any(note.startswith(words) for note in report_words.notes(found))


def test_satisfaction_when_sessions_are_counted_then_the_2x2_the_rates_and_the_cuts_agree(
    engine: Engine, tmp_path: Path
) -> None:
    file = tmp_path / "sessions.jsonl"
    lines = [
        {"task_id": f"t{task}", "agent": agent, "reward": reward, "satisfaction": satisfaction,
         "messages": [{"role": "user", "content": "hello"}]}
        for task in range(10)
        for agent, reward, satisfaction in (
            ("ash", 1, 0.9), ("elm", 0, 0.8), ("fir", 0, 0.1), ("oak", 1, None),
        )
    ]  # fmt: skip
    file.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
    part = report(engine, import_file(engine, Wish("sessions", (file,))).run_id)["satisfaction"]

    assert (part["cut"], part["satisfied"], part["clusters_are"]) == (0.8, 20, "tasks")
    of = ("satisfied_failed", "not_satisfied_failed", "base_failure")
    assert [(part[name]["k"], part[name]["n"]) for name in of] == [(10, 20), (10, 10), (20, 30)]
    assert (part["relative_risk"], part["j"], part["auc"]) == pytest.approx((0.5, 0.5, 1.0))
    assert [(one["cut"], one["satisfied"]) for one in part["cuts"]] == [
        (0.5, 20), (0.6, 20), (0.7, 20), (0.8, 20), (0.9, 10), (1.0, 0),
    ]  # fmt: skip


def test_satisfaction_when_no_session_names_its_task_then_it_clusters_on_agents_and_says_so(
    engine: Engine, tmp_path: Path
) -> None:
    from audit.doors.formats.gauge_csv import COLUMNS

    file = tmp_path / "sessions.csv"
    with file.open("w", encoding="utf-8", newline="") as target:
        writer = csv.writer(target)
        writer.writerow(COLUMNS)
        for number in range(40):
            writer.writerow(
                ["r", "sim", "j", f"agent-{number % 4}", (number % 7) / 6, int(number % 3 > 0), 1, 2, 3, 0]
            )
    found = report(engine, import_file(engine, Wish("gauge-csv", (file,))).run_id)

    assert found["satisfaction"]["clusters_are"] == "agents"
    assert found["satisfaction"]["base_failure"]["clusters"] == 4
    assert any("No session names its task" in note for note in found["notes"])
    assert found["run"]["gate"] is None
    assert found["why"]["error_curve"] == "the run holds no pairs"
