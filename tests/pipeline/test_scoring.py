"""Scoring stored pairs anew: another rule, gap or bucket set and back, without asking the judge again."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.scoring import score_run
from audit.verbs.gaps import GAUGE, PRESETS, buckets_from_text
from audit.words.errors import BadRequest
from audit.words.names import GAP_SOURCES, SWAP_RULES

GARBAGE = {"grammar": "json", "raw_ab": "garbage", "raw_ba": "garbage"}
BETTER_A: dict[str, Any] = {"reward_a": 1, "reward_b": 0}
# One pair of every kind that a NULL preference can mean, and of every kind that has one.
PAIRS: list[dict[str, Any]] = [
    {"pair_id": "agree", "pref_ab": "A", "pref_ba": "A"},
    {"pair_id": "wrong", "pref_ab": "B", "pref_ba": "B"},
    {"pair_id": "side and tie", "pref_ab": "A", "pref_ba": "tie"},
    {"pair_id": "opposite", "pref_ab": "A", "pref_ba": "B"},
    {"pair_id": "ties", "pref_ab": "tie", "pref_ba": "tie"},
    {"pair_id": "unreadable once", "pref_ab": "unreadable", "pref_ba": "B"},
    {"pair_id": "garbage", **GARBAGE},
    {"pair_id": "failed", "pref_ab": "failed", "pref_ba": "A"},
    {"pair_id": "failed second", "pref_ab": "A", "pref_ba": "failed"},
    {"pair_id": "second missing", "pref_ab": "A"},
    {"pair_id": "first missing", "pref_ba": "B"},
    {"pair_id": "not asked"},
]
OUTCOMES = {
    "both_agree": {
        "agree": "correct",
        "wrong": "misselected",
        "side and tie": "inconsistent",
        "opposite": "inconsistent",
        "ties": "judge_tie",
        "unreadable once": "unreadable",
        "garbage": "unreadable",
        "failed": "incomplete",
        "failed second": "incomplete",
        "second missing": "incomplete",
        "first missing": "incomplete",
        "not asked": "incomplete",
    },
    "net_vote": {
        "agree": "correct",
        "wrong": "misselected",
        "side and tie": "correct",
        "opposite": "inconsistent",
        "ties": "judge_tie",
        "unreadable once": "misselected",
        "garbage": "unreadable",
        "failed": "incomplete",
        "failed second": "incomplete",
        "second missing": "incomplete",
        "first missing": "incomplete",
        "not asked": "incomplete",
    },
    "first_order": {
        "agree": "correct",
        "wrong": "misselected",
        "side and tie": "correct",
        "opposite": "correct",
        "ties": "judge_tie",
        "unreadable once": "unreadable",
        "garbage": "unreadable",
        "failed": "incomplete",
        "failed second": "correct",
        "second missing": "correct",
        "first missing": "misselected",
        "not asked": "incomplete",
    },
}


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def imported(engine: Engine, folder: Path, pairs: list[dict[str, Any]], **wish: Any) -> str:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(BETTER_A | pair) + "\n" for pair in pairs))
    return import_file(engine, Wish("jsonl", (path,), **wish)).run_id


def stored(engine: Engine, columns: str = "*") -> list[dict[str, Any]]:
    with reading(engine) as connection:
        found = connection.execute(text(f"select {columns} from audit_pairs order by pair_id")).mappings()
        return [{key: value for key, value in row.items() if key != "scored_at"} for row in found]


def outcomes(engine: Engine, run_id: str) -> dict[str, str]:
    return {row["source_pair_id"]: row["outcome"] for row in stored(engine) if row["run_id"] == run_id}


def test_score_when_the_rule_is_another_then_the_logs_tell_why_an_order_has_no_preference(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, PAIRS)
    now = "both_agree"
    assert outcomes(engine, run_id) == OUTCOMES[now]
    for rule in (*SWAP_RULES, *reversed(SWAP_RULES)):
        run, changed = score_run(engine, run_id, swap_rule=rule)
        assert outcomes(engine, run_id) == OUTCOMES[rule]
        assert run.swap_rule == rule
        differ = [pair for pair, before in OUTCOMES[now].items() if before != OUTCOMES[rule][pair]]
        assert changed == len(differ)
        now = rule


def test_score_when_a_file_is_imported_under_a_rule_then_it_is_as_if_rescored(
    engine: Engine, tmp_path: Path
) -> None:
    for rule in SWAP_RULES:
        run_id = imported(engine, tmp_path, PAIRS, swap_rule=rule, name=rule)
        assert outcomes(engine, run_id) == OUTCOMES[rule]


GRADED = [
    {
        "pair_id": str(number),
        "task_id": f"t{number % 4}",
        "trial": number // 4,
        "category": "even" if number % 2 == 0 else "odd",
        "agent_a": "x",
        "agent_b": "y",
        "reward_a": number / 10,
        "reward_b": 0.5,
        "pref_ab": "A",
        "pref_ba": ("A", "tie", "B")[number % 3],
        "judge_score_a": 0.1 * number,
        "judge_score_b": 0.7,
        "gap": number / 4 if number != 3 else None,
    }
    for number in range(10)
]


def test_score_when_rule_source_and_buckets_change_and_come_back_then_the_rows_are_the_same(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, GRADED)
    before = stored(engine)
    buckets = buckets_from_text("[0,1/3] (1/3,1] (1,..)")
    labels = {bucket.label for bucket in buckets.with_unknown()}
    for rule, source in product(SWAP_RULES, GAP_SOURCES):
        run, changed = score_run(
            engine, run_id, swap_rule=rule, gap_source=source, gap_scope="category", buckets=buckets
        )
        scale = (run.swap_rule, run.gap_source, run.gap_scope, run.bucket_set)
        assert scale == (rule, source, "category", buckets.name)
        assert changed == len(GRADED)
        for row in stored(engine):
            assert row["reward_gap"] == row[f"{source}_gap"]
            assert row["gap_bucket"] in labels
        score_run(
            engine, run_id, swap_rule="both_agree", gap_source="external", gap_scope="run", buckets=GAUGE
        )
        assert stored(engine) == before


def test_score_when_nothing_changes_then_no_row_is_written(engine: Engine, tmp_path: Path) -> None:
    run_id = imported(engine, tmp_path, GRADED)
    assert score_run(engine, run_id)[1] == 0
    assert score_run(engine, "latest", swap_rule="both_agree")[1] == 0


def test_score_when_the_scope_is_a_category_then_the_agents_are_compared_within_it(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, GRADED, gap_source="agent")
    # x: 0, .1, ... .9, mean .45; y: .5 always.
    assert {row["agent_gap"] for row in stored(engine)} == {0.05}
    assert {row["gap_bucket"] for row in stored(engine)} == {"[0.05,0.1)"}
    score_run(engine, run_id, gap_scope="category")
    # Even: 0, .2, .4, .6, .8, mean .4; odd: mean .5, equal as decimals.
    found = {(row["category"], row["agent_gap"], row["gap_bucket"]) for row in stored(engine)}
    assert found == {("even", 0.1, "[0.1,0.15)"), ("odd", 0.0, "[0,0.05)")}


def test_score_when_the_gap_is_the_judges_then_the_bucket_set_scores_is_implied(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, GRADED)
    run, _ = score_run(engine, run_id, gap_source="judge")
    assert run.bucket_set == "scores"
    # |0.1 * i - 0.7|, where a gap of 0.2 and of 0.5 stand on an edge that floats miss.
    assert [row["gap_bucket"] for row in stored(engine)] == [
        "(0.5,1]",
        "(0.5,1]",
        "(0.2,0.5]",
        "(0.2,0.5]",
        "(0.2,0.5]",
        "[0,0.2]",
        "[0,0.2]",
        "[0,0.2]",
        "[0,0.2]",
        "[0,0.2]",
    ]
    assert score_run(engine, run_id, gap_source="session")[0].bucket_set == "gauge"


def test_score_when_own_buckets_were_given_then_a_later_score_keeps_them(
    engine: Engine, tmp_path: Path
) -> None:
    own = buckets_from_text("[0,1/3] (1/3,2/3] (2/3,..)", near_below=0.7)
    run_id = imported(engine, tmp_path, GRADED, buckets=own)
    before = stored(engine)
    run, changed = score_run(engine, run_id, swap_rule="both_agree")
    assert (run.bucket_set, changed) == (own.name, 0)
    assert stored(engine) == before
    assert own.name not in PRESETS


def test_score_when_the_run_is_unknown_then_it_says_how_to_find_one(engine: Engine) -> None:
    with pytest.raises(BadRequest) as caught:
        score_run(engine, "nightly")
    assert str(caught.value) == "there is no run 'nightly': `reward-audit runs` lists them"


@pytest.mark.parametrize("scope", ["run", "category"])
@pytest.mark.parametrize("source", ["agent", "session"])
def test_score_when_agents_are_imported_then_the_import_has_set_their_gaps_already(
    engine: Engine, scope: Any, source: Any
) -> None:
    """The import sets agents' gaps by one statement, `score` pair by pair: both must say the same."""
    example = Path(__file__).parents[2] / "data" / "judged_pairs.jsonl"
    wish = Wish("jsonl", (example,), gap_scope=scope, gap_source=source)
    run_id = import_file(engine, wish).run_id
    with reading(engine) as connection:
        known = connection.execute(text("select count(agent_gap) from audit_pairs")).scalar_one()
    assert known == 540
    assert score_run(engine, run_id)[1] == 0
