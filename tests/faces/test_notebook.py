"""The exported pairs feed the notebooks that users already have, as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

# The columns of audit_pairs that users' queries know; names and meanings are fixed.
KNOWN_COLUMNS = [
    "pair_id",
    "task_id",
    "agent_a",
    "agent_b",
    "success_a",
    "success_b",
    "judge_pref",
    "judge_score_a",
    "judge_score_b",
    "reward_gap",
    "misselected",
    "created_at",
]

HEADER = "pair_id,task_id,agent_a,agent_b,success_a,success_b,pref_ab,pref_ba,judge_score_a,judge_score_b,gap"
# What the notebook finds is worked out by hand: gap, misselected, scores against success.
ROWS = [
    "p1,t1,ash,elm,1,0,A,A,4.5,2,0",  # right, on the first bin's inner edge
    "p2,t2,ash,elm,0,1,A,A,4,3.5,0.2",  # wrong, on an edge, scores against success
    "p3,t3,ash,elm,1,0,B,B,2,3,0.2",  # wrong; the scores follow the judge
    "p4,t4,ash,elm,1,0,A,B,3,3,0.5",  # inconsistent: not misselected
    "p5,t5,ash,elm,1,1,A,A,5,1,0.7",  # equal rewards: not decidable, scores against success
    "p6,t6,ash,elm,,0,A,A,5,1,3",  # success unknown: not decidable, scores without success
]


@pytest.fixture
def pairs(cli: Callable[..., Any], tmp_path: Path) -> pd.DataFrame:
    file = tmp_path / "judged.csv"
    file.write_text("\n".join([HEADER, *ROWS]) + "\n", encoding="utf-8")
    assert cli("import", "csv", file).code == 0
    exported = tmp_path / "pairs.csv"
    assert cli("export", "pairs", "-o", exported).code == 0
    return pd.read_csv(exported)


def test_notebook_when_it_groups_by_cut_gaps_then_mean_count_and_sum_are_those_of_the_pairs(
    pairs: pd.DataFrame,
) -> None:
    pairs["bucket"] = pd.cut(
        pairs["reward_gap"],
        bins=[-0.01, 0.2, 0.5, 1.0, 5.0],
        labels=["tiny", "small", "medium", "large"],
    )
    found = pairs.groupby("bucket", observed=False)["misselected"].agg(["mean", "count", "sum"])

    assert found["count"].to_dict() == {"tiny": 3, "small": 1, "medium": 0, "large": 0}
    assert found["sum"].to_dict() == {"tiny": 2, "small": 0, "medium": 0, "large": 0}
    assert found["mean"].dropna().to_dict() == {"tiny": pytest.approx(2 / 3), "small": 0}


def test_notebook_when_it_looks_for_scores_against_success_then_it_finds_those_rows(
    pairs: pd.DataFrame,
) -> None:
    against = pairs[
        (pairs["judge_score_a"] > pairs["judge_score_b"]) & ~(pairs["success_a"] > pairs["success_b"])
    ]

    assert against["task_id"].tolist() == ["t2", "t5", "t6"]


def test_notebook_when_it_reads_the_file_then_every_known_column_is_there_with_its_values(
    pairs: pd.DataFrame,
) -> None:
    assert [column for column in KNOWN_COLUMNS if column not in pairs.columns] == []
    first = pairs.set_index("task_id").loc["t2", KNOWN_COLUMNS[2:-1]].to_dict()
    assert first == {
        "agent_a": "ash",
        "agent_b": "elm",
        "success_a": 0,
        "success_b": 1,
        "judge_pref": "A",
        "judge_score_a": 4,
        "judge_score_b": 3.5,
        "reward_gap": 0.2,
        "misselected": 1,
    }
    assert pairs["judge_pref"].isna().tolist() == [False, False, False, True, False, False]
    assert pairs["created_at"].str.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z").all()
