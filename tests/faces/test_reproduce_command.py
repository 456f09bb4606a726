"""`reproduce gauge`: the published table comes out again, from the file's lines and from nothing else."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SHIPPED = Path(__file__).parents[2] / "data" / "gauge_agents.csv"
OPUS, GPT, PROXY = "rank_opus48", "rank_gpt55", "score_proxy"


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, command_in: Callable[[Path], Callable[..., Any]]) -> Any:
    ran = command_in(tmp_path_factory.mktemp("gauge"))("reproduce", "gauge", "--json")
    assert (ran.code, ran.stderr) == (0, "")
    return json.loads(ran.stdout)


@pytest.mark.shared_data
def test_shipped_table_when_compared_with_the_published_figures_then_every_one_is_the_same(
    shared: Path,
) -> None:
    with (shared / "data" / "gauge" / "table8.csv").open(encoding="utf-8", newline="") as file:
        published = list(csv.DictReader(file))
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        ours = list(csv.DictReader(file))

    assert len(ours) == 25
    for one, other in zip(ours, published, strict=True):
        assert one.pop("score_proxy") == other["proxy_mean_1to7"]
        assert one.items() <= other.items()


def judge(found: Any, name: str) -> Any:
    return next(one for one in found["judges"] if one["judge"] == name)


def test_table_when_it_is_the_papers_then_near_and_wide_are_what_two_decimals_give(found: Any) -> None:
    counts = {
        one["judge"]: [(one[half]["k"], one[half]["n"]) for half in ("near", "wide")]
        for one in found["judges"]
    }

    assert counts == {OPUS: [(23, 80), (3, 215)], GPT: [(31, 80), (17, 215)], PROXY: [(23, 80), (23, 215)]}
    assert (found["agents"], found["families"], found["agent_pairs"], found["reward_ties"]) == (
        25,
        13,
        300,
        5,
    )
    assert found["on_the_edge"] == 6
    assert judge(found, PROXY)["pick_ties"] == 2


def test_paper_when_it_differs_then_its_own_figure_stands_beside_ours(found: Any) -> None:
    assert {one["judge"]: one["paper"] for one in found["judges"]} == {
        OPUS: {"near": 0.310, "wide": 0.009},
        GPT: {"near": 0.391, "wide": 0.076},
        PROXY: {"near": 0.299, "wide": 0.104},
    }


def test_thresholds_when_they_rise_then_misselection_falls_as_published(found: Any) -> None:
    shares = {one["below"]: one["misselected"]["value"] for one in judge(found, OPUS)["thresholds"]}

    assert shares == pytest.approx({0.05: 0.389, 0.10: 0.288, 0.15: 0.248}, abs=6e-4)
    assert [one["misselected"]["n"] for one in judge(found, OPUS)["thresholds"]] == [36, 80, 105]


def test_interval_when_base_models_are_resampled_then_it_is_near_the_published_one(found: Any) -> None:
    near = judge(found, OPUS)["near"]

    assert (near["method"], near["clusters"]) == ("bootstrap_of_agents", 13)
    assert near["low"] == pytest.approx(0.095, abs=0.02)
    assert near["high"] == pytest.approx(0.485, abs=0.02)


def test_noise_floor_when_errors_are_independent_then_it_is_as_published(found: Any) -> None:
    assert found["noise_floor"]["near"] == pytest.approx(0.197, abs=5e-4)
    assert found["noise_floor"]["wide"] == pytest.approx(0.0026, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "s", "gap_at_10"), [(OPUS, 0.0798, 0.102), (GPT, 0.1792, 0.230), (PROXY, 0.2116, 0.271)]
)
def test_curve_when_it_is_fitted_then_scale_and_trustworthy_gap_are_as_published(
    found: Any, name: str, s: float, gap_at_10: float
) -> None:
    curve = judge(found, name)["error_curve"]

    assert curve["s"] == pytest.approx(s, abs=5e-5)
    assert curve["gap_at_10"]["value"] == pytest.approx(gap_at_10, abs=5e-4)
    assert curve["gap_at_10"]["low"] < gap_at_10 < curve["gap_at_10"]["high"]
    assert curve["unit"] == "agent_pairs"


def test_terminal_when_shown_then_it_has_all_tables_in_80_columns(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    ran = cli("reproduce", "gauge")

    assert ran.code == 0
    assert max(map(len, ran.stdout.splitlines())) <= 80
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    for line in (
        "rank_opus48 23/80 28.8% 10.0-49.4 31.0% 3/215 1.4% 0.0-7.2 0.9%",
        "rank_gpt55 31/80 38.8% 17.0-62.1 39.1% 17/215 7.9% 0.0-24.4 7.6%",
        "score_proxy 23/80 28.8% 10.3-50.8 29.9% 23/215 10.7% 0.0-28.6 10.4%",
        "rank_opus48 14/36 38.9% 23/80 28.8% 26/105 24.8% 0.0042",
        "rank_opus48 0.0798 0.054 (0.02-0.10) 0.102 (0.04-0.19) 0.131 (0.06-0.24)",
    ):
        assert line in lines
    text = " ".join(lines)
    assert "Noise floor: near 19.7%, wide 0.26%" in text
    assert "computed from unrounded rewards, its table gives two decimals" in text
    assert "5 pairs are equal, and 6 stand on the edge 0.1 itself" in text
    # No database was asked for, and none was made.
    assert not (tmp_path / "audit.db").exists()


def changed(tmp_path: Path, change: Callable[[list[dict[str, str]]], Any]) -> Path:
    with SHIPPED.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rows = change(rows) or rows
    path = tmp_path / "agents.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_file_when_one_agents_reward_changes_then_the_table_moves(
    cli: Callable[..., Any], tmp_path: Path, found: Any
) -> None:
    def worse(rows: list[dict[str, str]]) -> None:
        assert (rows[-1]["agent"], rows[-1]["reward"]) == ("Opus-4.6-t7", "0.87")
        rows[-1]["reward"] = "0.30"

    ran = cli("reproduce", "gauge", "--file", changed(tmp_path, worse), "--json")
    moved = json.loads(ran.stdout)

    assert moved["source"].endswith("agents.csv")
    assert moved["reward_ties"] == 6
    # The best agent falls among the worst, while every judge still ranks it high.
    for one in moved["judges"]:
        before = judge(found, one["judge"])
        assert one["wide"]["k"] > before["wide"]["k"]
        assert one["error_curve"]["s"] > before["error_curve"]["s"]
    assert judge(moved, OPUS)["near"]["n"] + judge(moved, OPUS)["wide"]["n"] == 300 - 6


def test_file_when_it_is_the_shipped_one_with_trailing_zeros_then_equal_rewards_stay_equal(
    cli: Callable[..., Any], tmp_path: Path, found: Any
) -> None:
    def longer(rows: list[dict[str, str]]) -> None:
        for number, row in enumerate(rows):
            row["reward"] += "000" if number % 2 else ""

    moved = json.loads(cli("reproduce", "gauge", "--file", changed(tmp_path, longer), "--json").stdout)

    assert moved["judges"] == found["judges"]
    assert moved["reward_ties"] == 5


def test_file_when_rewards_differ_in_a_late_digit_then_they_are_not_equal(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "own.csv"
    path.write_text(
        "agent,reward,rank_x\na,0.1,1\nb,0.10000000000000000001,2\nc,0.1000,3\n", encoding="utf-8"
    )
    found = json.loads(cli("reproduce", "gauge", "--file", path, "--json").stdout)
    (one,) = found["judges"]

    assert found["reward_ties"] == 1
    assert (one["near"]["k"], one["near"]["n"]) == (1, 2)


def test_file_when_it_has_neither_errors_nor_families_then_it_says_so_and_resamples_agents(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "own.csv"
    path.write_text("agent,reward,score_mine\na,0.9,3\nb,0.5,4\nc,0.45,1\nd,0.4,\n", encoding="utf-8")
    ran = cli("reproduce", "gauge", "--file", path, "--json")
    found = json.loads(ran.stdout)
    (one,) = found["judges"]

    assert found["noise_floor"] == {"near": None, "wide": None, "why": "the file gives no reward_se"}
    assert (one["near"]["k"], one["near"]["n"], one["wide"]["k"], one["wide"]["n"]) == (0, 1, 1, 2)
    assert (one["no_pick"], one["paper"]) == (3, None)
    shown = cli("reproduce", "gauge", "--file", path)
    assert "Noise floor: unknown, the file gives no reward_se." in shown.stdout
    assert "paper's figures" not in shown.stdout


def test_file_when_the_judge_never_errs_then_its_curve_is_unknown_and_says_why(
    cli: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "own.csv"
    path.write_text("agent,reward,rank_mine\na,0.9,1\nb,0.5,2\nc,0.3,3\n", encoding="utf-8")
    ran = cli("reproduce", "gauge", "--file", path)

    assert ran.code == 0
    assert "(rank_mine: no error was seen: every small scale fits" in " ".join(ran.stdout.split())


BROKEN = {
    "no file": (None, "no such file"),
    "no judge": (
        "agent,reward\na,1\nb,0\n",
        "line 1: no judge: expected a column named rank_... or score_...",
    ),
    "no reward": ("agent,rank_x\na,1\nb,0\n", "line 2: reward: is missing: the header does not name it"),
    "slip": (
        "agent,reward,reward_sem,rank_x\na,1,0,1\n",
        "line 2: reward_sem: is not a known column; did you mean reward_se?",
    ),
    "word": (
        "agent,reward,rank_x\na,high,1\nb,0,2\n",
        "line 2: reward: expected a finite number, found 'high'",
    ),
    "empty": ("agent,reward,rank_x\na,,1\nb,0,2\n", "line 2: reward: is missing"),
    "infinite": (
        "agent,reward,rank_x\na,1,1\nb,1e999,2\n",
        "line 3: reward: expected a finite number, found '1e999'",
    ),
    "twice": ("agent,reward,rank_x\na,1,1\na,0,2\n", "line 3: agent: 'a' stands twice in the file"),
    "one": ("agent,reward,rank_x\na,1,1\n", "expected two agents or more, found 1"),
    "none": ("agent,reward,rank_x\n", "expected two agents or more, found 0"),
    "negative error": (
        "agent,reward,reward_se,rank_x\na,1,-1,1\nb,1,0,2\n",
        "line 2: reward_se: expected a number from 0 up, found '-1'",
    ),
}


@pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_file_when_it_is_broken_then_one_line_names_the_place(
    cli: Callable[..., Any], tmp_path: Path, text: str | None, problem: str
) -> None:
    path = tmp_path / "bad.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    ran = cli("reproduce", "gauge", "--file", path)

    between = ", " if problem.startswith("line") else ": "
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == f"error: {path}{between}{problem}\n"
