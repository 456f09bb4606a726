"""The benchmarks still run: each at a tiny size, without its limits. Their figures are not tested here."""

import json
import os
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import made_whole
import measure
import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.engine import make_url

from audit.doors import store
from audit.doors.db import open_database, reading, writing
from audit.doors.shipped import view_texts
from audit.words.names import OUTCOMES

HERE = Path(__file__).parent
POSTGRES = os.environ.get("REWARD_AUDIT_TEST_POSTGRES", "")
TINY = ["--pairs", "2000", "--no-limits"]


@pytest.mark.parametrize(
    ("script", "options", "goals"),
    [
        ("bulk_load.py", ["--rounds", "1"], {"rows_per_second"}),
        ("import_jsonl.py", [], {"rows_per_second", "peak_mb"}),
        ("import_jsonl.py", ["--agents"], {"rows_per_second", "peak_mb"}),
        ("import_jsonl.py", ["--memory-only"], {"peak_mb"}),
        ("bucket_view.py", ["--rounds", "1"], {"of_group", "of_case", "faster_than_pandas", "peak_mb"}),
        ("report_size.py", ["--rounds", "1"], {"of_reading", "peak_mb"}),
        ("at_size.py", ["--rounds", "1"], {"rows_per_second", "report_peak_mb", "view_of_group"}),
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


@pytest.mark.postgres
@pytest.mark.skipif(not POSTGRES, reason="needs a PostgreSQL server in REWARD_AUDIT_TEST_POSTGRES")
def test_views_when_read_from_both_databases_then_every_row_is_the_same_and_copies_too(
    tmp_path: Path,
) -> None:
    told = run_on_postgres("views_equal.py", ["--pairs", "2500"], tmp_path)
    assert {view["view"] for view in told["views"]} == set(view_texts())
    assert [view["view"] for view in told["views"] if not view["is_equal"] or not view["rows"]] == []
    assert [copy["is_equal"] for copy in told["copies"]] == [True, True]
    assert told["copies"][0]["rows"] > 4 * 2500


def test_whole_database_when_made_then_every_outcome_flag_and_reason_is_in_it(sqlite_url: str) -> None:
    engine = open_database(sqlite_url, create=True)
    with writing(engine) as connection:
        for table, columns, rows in made_whole.tables(6000):
            store.insert(connection, table, columns, rows)
    with reading(engine) as connection:

        def found(column: str, source: str) -> set[str]:
            asked = connection.execute(text(f"select distinct {column} from {source}"))
            return {str(row[0]) for row in asked}

        assert found("outcome", "audit_pairs") == {*OUTCOMES, "None"}
        assert found("flag", "flagged_pairs") == {
            *set(OUTCOMES) - {"correct"},
            "both_failed",
            "near_tie",
            "llm_labelled",
            "simulator_fault",
            "verifier_fault",
            "gateway_fault",
            "human_disagrees",
        }
        assert found("reason", "review_queue") == {*made_whole.REASONS}
        assert found("gap_kind", "near_tie_vs_wide_gap where pairs > 0") == {"near", "wide", "unknown"}
        assert found("misselected", "agent_pairs") == {"0", "1", "None"}
    engine.dispose()


@pytest.mark.postgres
@pytest.mark.skipif(not POSTGRES, reason="needs a PostgreSQL server in REWARD_AUDIT_TEST_POSTGRES")
@pytest.mark.parametrize(
    ("script", "goals"),
    [
        ("bulk_load.py", {"rows_per_second"}),
        ("bucket_view.py", {"of_group", "peak_mb"}),
        ("at_size.py", {"rows_per_second", "report_peak_mb", "view_of_group"}),
    ],
)
def test_benchmark_when_on_postgres_then_prints_each_goal(
    tmp_path: Path, script: str, goals: set[str]
) -> None:
    told = run_on_postgres(script, [*TINY, "--rounds", "1"], tmp_path)
    assert set(told["goals"]) == goals
    assert told["machine"]["postgres"]


def run_on_postgres(script: str, options: list[str], folder: Path) -> Any:
    """What a script told; nothing is left in its folder."""
    done = subprocess.run(
        [sys.executable, HERE / script, *options, "--postgres", POSTGRES, "--dir", folder],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(HERE.parents[1])},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return json.loads(done.stdout)


@pytest.mark.postgres
@pytest.mark.skipif(not POSTGRES, reason="needs a PostgreSQL server in REWARD_AUDIT_TEST_POSTGRES")
def test_database_of_a_benchmark_when_done_then_it_is_gone_from_the_server() -> None:
    with measure.database(Namespace(postgres=POSTGRES)) as url:
        open_database(url, create=True).dispose()
        name = make_url(url).database
    with psycopg.connect(measure.psycopg_url(POSTGRES)) as server:
        assert server.execute("select 1 from pg_database where datname = %s", [name]).fetchall() == []
        assert server.execute("select 1 from pg_database where datname = 'postgres'").fetchall() == [(1,)]
