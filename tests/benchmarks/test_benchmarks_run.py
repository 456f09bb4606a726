"""The benchmarks still run: each at a tiny size, without its limits. Their figures are not tested here."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TINY = ["--pairs", "2000", "--no-limits"]


@pytest.mark.parametrize(
    ("script", "options", "goals"),
    [
        ("bulk_load.py", ["--rounds", "1"], {"rows_per_second"}),
        ("import_jsonl.py", [], {"rows_per_second", "peak_mb"}),
        ("import_jsonl.py", ["--agents"], {"rows_per_second", "peak_mb"}),
        ("import_jsonl.py", ["--memory-only"], {"peak_mb"}),
        ("bucket_view.py", ["--rounds", "1"], {"of_case", "faster_than_pandas", "peak_mb"}),
        ("report_size.py", ["--rounds", "1"], {"of_reading", "peak_mb"}),
        ("startup.py", ["--rounds", "1"], {"help_seconds"}),
        (
            "dpo_export.py",
            ["--rounds", "1"],
            {"jsonl_pairs_per_second", "jsonl_peak_mb", "parquet_pairs_per_second", "parquet_peak_mb"},
        ),
        ("llm_cpu.py", ["--pairs", "50", "--rounds", "1"], {"of_bare_post", "of_create"}),
        (
            "llm_rate.py",
            ["--pairs", "200", "--rps", "100", "--python-server"],
            {"answered", "calls_a_second", "rejections"},
        ),
        (
            "judging.py",
            ["--pairs", "28", "--rounds", "1", "--parts", "pace", "cpu"],
            {"pace_500ms_64", "pace_500ms_256", "pace_50ms_64", "cpu_of_bare_post", "cpu_of_create"},
        ),
        (
            "judging.py",
            ["--pairs", "280", "--python-server", "--parts", "memory", "rate"],
            {"peak_mb", "answered", "calls_a_second", "rejections"},
        ),
    ],
)
def test_benchmark_when_tiny_then_prints_each_goal_with_its_base_and_ratio(
    tmp_path: Path, script: str, options: list[str], goals: set[str]
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
    done = subprocess.run(
        [sys.executable, HERE / script, *TINY, *options, "--dir", tmp_path],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert set(told["goals"]) == goals
    for goal in told["goals"].values():
        assert goal["ratio"] == pytest.approx(goal["figure"] / goal["base"], rel=1e-3)
        assert isinstance(goal["is_met"], bool)
        assert "at_least" in goal or "at_most" in goal
    assert list(tmp_path.iterdir()) == []


def test_benchmark_when_past_its_goal_then_exits_1(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, HERE / "import_jsonl.py", "--pairs", "1", "--dir", tmp_path],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        check=False,
    )
    # One row takes the bare loop a moment and the command its whole start: far past the goal.
    assert done.returncode == 1, done.stdout
    assert json.loads(done.stdout)["goals"]["rows_per_second"]["is_met"] is False


def test_coverage_when_tiny_then_each_case_has_its_share_for_each_method_and_both_goals() -> None:
    done = subprocess.run(
        [sys.executable, HERE / "coverage.py", "--repeats", "20", "--tasks", "8", "--no-limits"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert [(case["way"], case["rate"]) for case in told["cases"]] == [
        (way, rate) for way in ("beta", "shared") for rate in (0.3, 0.1, 0.05)
    ]
    for case in told["cases"]:
        for side in ("at_least", "at_most"):
            goal = told["goals"][f"{case['way']}_{case['rate']}_{side}"]
            assert goal["figure"] == case["ours"]
            assert goal["is_met"] is (case["ours"] >= 0.93 if side == "at_least" else case["ours"] <= 0.97)
        assert all(0 <= case[method] <= 1 for method in ("ours", "wilson", "bootstrap"))
        # Eight tasks of six pairs: a plain interval cannot but be the one that holds less.
        assert case["wilson"] <= case["ours"]


def test_corrected_when_tiny_then_each_case_has_its_share_for_each_method_and_both_goals() -> None:
    done = subprocess.run(
        [sys.executable, HERE / "corrected.py", "--repeats", "10", "--tasks", "40", "--no-limits"],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = json.loads(done.stdout)
    assert len(told["cases"]) == 2 * 2 * 3 * 5
    assert len(told["goals"]) == 2 * 2 * len(told["cases"])
    for case in told["cases"]:
        judge = (case["rate"], case["sensitivity"], case["specificity"])
        for method in ("ppi", "rogan_gladen"):
            name = "_".join(map(str, (case["rows"], case["way"], *judge, method)))
            low, high = (told["goals"][f"{name}_{side}"] for side in ("at_least", "at_most"))
            assert low["figure"] == high["figure"] == pytest.approx(case[method], rel=1e-3)
            assert (low["is_met"], high["is_met"]) == (case[method] >= 0.93, case[method] <= 0.97)
    # Clustered rows, taken as independent, cannot but tell less than they seem to.
    clustered = [case for case in told["cases"] if case["rows"] == "clustered"]
    assert sum(case["plain_ppi"] for case in clustered) < sum(case["ppi"] for case in clustered)
