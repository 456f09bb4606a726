"""Judges whose faults are known beforehand, through the whole command: what is planted comes out.

One run, six gates: the sessions are held once and each judge reads all of them.
"""

import json
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

import pytest
import yaml

DATA = Path(__file__).parents[2] / "data"
JUDGES = {
    "fallible": "judge-80-pos10",
    "perfect": "judge-100",
    "first": "judge-first",
    "coin": "judge-coin",
    "coin30": "judge-coin-pos30",
    "coin100": "judge-coin-pos100",
}
PAIRS = 24 * 28  # the web shop's tasks, all pairs of eight agents


@pytest.fixture(scope="module")
def reports(
    tmp_path_factory: pytest.TempPathFactory, command_in: Callable[[Path], Callable[..., Any]]
) -> dict[str, dict[str, Any]]:
    """Gate -> `report --json` of one embedded run."""
    folder = tmp_path_factory.mktemp("planted")
    config = yaml.safe_load((DATA / "embedded.yaml").read_text(encoding="utf-8"))
    config["tasks"] = [str(DATA / task) for task in config["tasks"][:1]]
    config["profiles"] = [profile for profile in config["profiles"] if profile["role"] != "llm_judge"] + [
        {"name": name, "role": "llm_judge", "base_url": "offline://synthetic", "model": model, "seed": 0}
        for name, model in JUDGES.items()
    ]
    config["judges"] = list(JUDGES)
    file = folder / "audit.yaml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    cli = command_in(folder)
    ran = cli("run", "-c", file)
    assert ran.code == 0, ran.stderr
    return {gate: json.loads(cli("report", "--gate", gate, "--json").stdout) for gate in JUDGES}


def near(value: float, expected: float, n: int) -> bool:
    """Within four standard errors of a share that is `expected`, of n answers that are each an own draw."""
    return abs(value - expected) <= 4 * sqrt(max(expected * (1 - expected), 0) / n)


@pytest.mark.parametrize(("gate", "dial"), [("coin", 0.0), ("coin30", 0.3), ("coin100", 1.0)])
def test_position_when_the_dial_is_set_then_every_measure_of_it_follows(
    reports: dict[str, Any], gate: str, dial: float
) -> None:
    position = reports[gate]["position"]
    first = (1 + dial) / 2  # of each answer, whatever the other order was answered
    assert position["first_share"]["n"] == 2 * PAIRS
    assert near(position["first_share"]["value"], first, 2 * PAIRS)
    assert near(position["consistent"]["value"], 2 * first * (1 - first), PAIRS)
    assert near(position["primacy"] / PAIRS, first**2, PAIRS)
    assert near(position["recency"] / PAIRS, (1 - first) ** 2, PAIRS)
    spread = sqrt((first**2 + (1 - first) ** 2 - dial**2) / PAIRS)
    assert abs(position["preference_fairness"] + dial) <= 4 * spread
    assert (position["mcnemar_p"] < 1e-6) is (dial > 0)


def test_always_first_when_both_orders_must_agree_then_all_are_inconsistent_and_none_misselected(
    reports: dict[str, Any],
) -> None:
    pairs = reports["first"]["pairs"]
    assert pairs["misselected"] == pairs["correct"] == pairs["judge_tie"] == 0
    assert pairs["inconsistent"] == pairs["decidable"] > 300
    assert reports["first"]["position"]["consistent"]["k"] == 0


def test_perfect_judge_when_it_reads_all_pairs_then_every_decidable_one_is_right(
    reports: dict[str, Any],
) -> None:
    pairs = reports["perfect"]["pairs"]
    assert pairs["correct"] == pairs["decidable"] > 300
    assert pairs["misselected"] == 0


def test_coin_when_it_decides_then_half_is_misselected_and_the_gap_does_not_matter(
    reports: dict[str, Any],
) -> None:
    decided = reports["coin"]["rates"]["misselected_of_decided"]
    assert near(decided["value"], 0.5, decided["n"])
    for kind in ("near", "wide"):
        of_kind = reports["coin"]["near_vs_wide"][kind]["misselected_of_decided"]
        assert of_kind["n"] >= 20
        assert near(of_kind["value"], 0.5, of_kind["n"])


def test_fallible_judge_when_agents_are_close_then_it_errs_more_often(reports: dict[str, Any]) -> None:
    kinds = reports["fallible"]["near_vs_wide"]
    assert kinds["near"]["misselected_of_decided"]["value"] > kinds["wide"]["misselected_of_decided"]["value"]
    assert (
        kinds["near"]["misselected_of_decidable"]["value"]
        > kinds["wide"]["misselected_of_decidable"]["value"]
    )


def test_gates_when_several_then_each_has_all_pairs_and_the_first_of_the_config_is_shown(
    reports: dict[str, Any],
) -> None:
    assert {gate: found["pairs"]["total"] for gate, found in reports.items()} == dict.fromkeys(JUDGES, PAIRS)
    assert len({found["pairs"]["decidable"] for found in reports.values()}) == 1
