"""The published figures, from the recorded files through the importers to stored rows, on both databases."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.rewards import import_rewards
from audit.pipeline.scoring import score_run
from audit.verbs.gaps import buckets_from_text

O1_MINI = "judgebench/gpt4o_pairs.arena_hard.o1-mini"
SKYWORK = "judgebench/gpt4o_pairs.reward_model.Skywork_Skywork-Reward-Gemma-2-27B"
HAIKU = "judgebench/claude_pairs.arena_hard.claude-3-haiku"
JUDGEBENCH = {
    O1_MINI: "o1-mini-2024-09-12",
    HAIKU: "claude-3-haiku-20240307",
    SKYWORK: "Skywork/Skywork-Reward-Gemma-2-27B",
}
LLMBAR = (
    "llmbar/LLMBar/Natural/GPT-4/Vanilla_NoRules",
    "llmbar/LLMBar/Natural/Falcon/CoT",
    "llmbar/LLMBar/Adversarial/Neighbor/GPT-4/Vanilla_NoRules",
    "llmbar/LLMBar/Adversarial/GPTOut/PaLM2/Reference",
)
Rows = list[dict[str, Any]]


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def expected(shared: Path, source: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((shared / "data/expected.json").read_text())["sources"][source]
    return found


def recorded(shared: Path, source: str) -> Path:
    return shared / "data" / expected(shared, source)["file"]


def stored(engine: Engine) -> Rows:
    with reading(engine) as connection:
        found = connection.execute(text("select * from audit_pairs order by pair_id")).mappings()
        return [dict(row) for row in found]


def outcomes(rows: Rows) -> list[int]:
    counts = Counter(row["outcome"] for row in rows)
    order = ("correct", "misselected", "judge_tie", "inconsistent", "unreadable")
    assert sum(counts[name] for name in order) == len(rows)
    return [counts[name] for name in order]


def by_votes(rows: Rows) -> dict[str, tuple[int, int]]:
    """What expected.json counts of pairs that net_vote settled, as (count, n)."""
    n = len(rows)
    counts = Counter(row["outcome"] for row in rows)
    return {
        "accuracy_vote": (counts["correct"], n),
        "misselected_vote": (counts["misselected"], n),
        "undecided_vote": (n - counts["correct"] - counts["misselected"], n),
        "inconsistent_pairs": (sum(row["pref_ab"] != row["pref_ba"] for row in rows), n),
    }


def by_answers(rows: Rows) -> dict[str, tuple[int, int]]:
    """What expected.json counts of single answers, from the two preferences of each pair."""
    n = len(rows)
    shown = [pattern(row) for row in rows]
    read = [one for one in shown if "N" not in one]
    letters = "".join(shown)
    better = ["A" if row["reward_a"] > row["reward_b"] else "B" for row in rows]
    right_ab = sum(row["pref_ab"] == side for row, side in zip(rows, better, strict=True))
    right_ba = sum(row["pref_ba"] == side for row, side in zip(rows, better, strict=True))
    both = [side for row, side in zip(rows, better, strict=True) if row["pref_ab"] == row["pref_ba"] == side]
    worse = [
        row
        for row, side in zip(rows, better, strict=True)
        if row["pref_ab"] == row["pref_ba"] == {"A": "B", "B": "A"}[side]
    ]
    return {
        "null_judgments": (letters.count("N"), 2 * n),
        "pairs_with_a_null": (n - len(read), n),
        "consistent_among_parsed": (sum(row["is_consistent"] == 1 for row in rows), len(read)),
        "primacy_pairs_among_parsed": (sum(one in ("AA", "AT", "TA") for one in read), len(read)),
        "recency_pairs_among_parsed": (sum(one in ("BB", "BT", "TB") for one in read), len(read)),
        "first_shown_share_of_decisive_judgments": (
            letters.count("A"),
            letters.count("A") + letters.count("B"),
        ),
        "accuracy_strict": (len(both), n),
        "misselected_strict": (len(worse), n),
        "accuracy_order1": (right_ab, n),
        "accuracy_order2": (right_ba, n),
        "accuracy_both_orders_avg": (right_ab + right_ba, 2 * n),
    }


def pattern(row: dict[str, Any]) -> str:
    """The letters as displayed in the first and the second run; T a tie, N no verdict."""
    second = {"A": "B", "B": "A", "tie": "T", None: "N"}[row["pref_ba"]]
    return {"tie": "T", None: "N"}.get(row["pref_ab"], row["pref_ab"]) + second


def published(figures: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        name: (figure["count"], figure["n"])
        for name, figure in figures.items()
        if isinstance(figure, dict) and "count" in figure
    }


@pytest.mark.parametrize("source", JUDGEBENCH)
def test_judgebench_when_it_is_imported_then_it_gives_the_published_figures(
    engine: Engine, shared: Path, source: str
) -> None:
    figures = expected(shared, source)
    path = recorded(shared, source)
    made = import_file(engine, Wish("judgebench", (path,), swap_rule="net_vote"))
    rows = stored(engine)
    assert published(figures) == by_votes(rows) | by_answers(rows)
    assert figures["patterns_displayed"]["value"] == Counter(map(pattern, rows))
    groups = {group: published(counts) for group, counts in figures["by_group"].items()}
    assert groups == {group: by_votes([row for row in rows if row["category"] == group]) for group in groups}
    assert {row["gate"] for row in rows} == {JUDGEBENCH[source]}
    if "outcomes" in figures:
        assert outcomes(rows) == figures["outcomes"]["net_vote"]
        score_run(engine, made.run_id, swap_rule="both_agree")
        assert outcomes(stored(engine)) == figures["outcomes"]["both_agree"]


@pytest.mark.parametrize("source", [O1_MINI, HAIKU])
def test_judgebench_when_its_replies_are_reread_then_each_verdict_is_the_recorded_one(
    engine: Engine, shared: Path, source: str
) -> None:
    wish = Wish("judgebench", (recorded(shared, source),))
    said = []
    for made in (import_file(engine, wish), import_file(engine, wish._replace(reread=True))):
        rows = [row for row in stored(engine) if row["run_id"] == made.run_id]
        said.append([(row["source_pair_id"], row[f"pref_{order}"]) for row in rows for order in ("ab", "ba")])
    as_recorded, reread = said
    assert len(as_recorded) == expected(shared, source)["recorded_decision_equals_reparsed_text"]["n"]
    # Our reader may find a verdict where the published one found none, never another one and never less.
    differ = [old for old, new in zip(as_recorded, reread, strict=True) if old != new]
    assert [preference for _, preference in differ if preference is not None] == []
    assert len(differ) <= expected(shared, source)["null_judgments"]["count"]


def test_skywork_when_its_scores_are_reread_then_equal_scores_are_ties(engine: Engine, shared: Path) -> None:
    figures = expected(shared, SKYWORK)["as_scores"]
    import_file(engine, Wish("judgebench", (recorded(shared, SKYWORK),), reread=True))
    rows = stored(engine)
    counted = by_answers(rows)
    assert counted["consistent_among_parsed"] == tuple(figures["consistent"])
    assert Counter(row["outcome"] for row in rows)["judge_tie"] == figures["judge_tie"]
    assert counted["primacy_pairs_among_parsed"][0] == figures["primacy"]
    assert counted["recency_pairs_among_parsed"][0] == figures["recency"]
    assert counted["first_shown_share_of_decisive_judgments"] == tuple(figures["first_share"])


def test_judgebench_when_both_sides_are_one_models_then_they_are_two_trials_with_transcripts(
    engine: Engine, shared: Path
) -> None:
    import_file(engine, Wish("judgebench", (recorded(shared, O1_MINI),)))
    with reading(engine) as connection:
        sessions = [
            dict(row) for row in connection.execute(text("select * from sessions order by trial")).mappings()
        ]
    rows = stored(engine)
    assert Counter(session["trial"] for session in sessions) == {0: 350, 1: 350}
    by_id = {session["session_id"]: session for session in sessions}
    for row in rows:
        assert row["task_id"] == row["source_pair_id"]
        assert row["agent_gap"] is None
        for side, trial in (("a", 0), ("b", 1)):
            session = by_id[row[f"session_{side}"]]
            assert session["task_id"] == row["task_id"]
            assert session["trial"] == trial
            assert session["reward"] == row[f"reward_{side}"] == row[f"success_{side}"]
            assert [message["role"] for message in json.loads(session["transcript_json"])] == [
                "user",
                "assistant",
            ]


def test_llmbar_when_it_is_imported_then_it_gives_the_published_figures(engine: Engine, shared: Path) -> None:
    for source in LLMBAR:
        figures = published(expected(shared, source))
        made = import_file(engine, Wish("llmbar", (recorded(shared, source),), swap_rule="net_vote"))
        rows = [row for row in stored(engine) if row["run_id"] == made.run_id]
        # The authors' own count of equal pairs is the rest of those that are inconsistent.
        equal, n = figures.pop("llmbar_equal_incl_null")
        assert figures["inconsistent_pairs"] == (n - equal, n)
        assert by_votes(rows) | by_answers(rows) == figures
        assert {(row["success_a"], row["success_b"]) for row in rows} == {(None, None)}


def test_pandalm_when_it_is_imported_then_it_gives_the_derived_figures(engine: Engine, shared: Path) -> None:
    figures = expected(shared, "pandalm/gpt-3.5-turbo")
    folder = shared / "data/pandalm"
    paths = (folder / "testset-v1.json", folder / "gpt-3.5-turbo-testset-v1.json")
    buckets = buckets_from_text("(0,1/3] (1/3,2/3] (2/3,..)")
    made = import_file(engine, Wish("pandalm", paths, buckets=buckets))
    rows = stored(engine)
    with reading(engine) as connection:
        run = connection.execute(text("select swap_rule, gap_source from audit_runs")).one()
    assert (made.pairs, tuple(run)) == (999, ("first_order", "session"))
    assert {(row["success_a"], row["success_b"], row["pref_ba"]) for row in rows} == {(None, None, None)}
    # 170 instructions with their inputs, each asked of several agents.
    assert len({row["task_id"] for row in rows}) == 170
    assert sum(row["pref_ab"] is None for row in rows) == figures["unparsed"]["count"]
    decidable = [row for row in rows if row["outcome"] not in ("unverified", "reward_tie")]
    assert bucket_figures(decidable, buckets.buckets) == [
        (one["n"], one["misselected"], one["undecided"])
        for one in figures["buckets_by_annotator_vote_gap"]["value"]
    ]
    counts = Counter(row["outcome"] for row in decidable)
    assert (counts["misselected"], len(decidable)) == (
        figures["misselected"]["count"],
        figures["misselected"]["n"],
    )


def bucket_figures(rows: Rows, buckets: Any) -> list[tuple[int, int, int]]:
    """(pairs, misselected, undecided) of each bucket."""
    counts = Counter((row["gap_bucket"], row["outcome"]) for row in rows)
    totals = Counter(row["gap_bucket"] for row in rows)
    return [
        (
            totals[bucket.label],
            counts[bucket.label, "misselected"],
            totals[bucket.label] - counts[bucket.label, "misselected"] - counts[bucket.label, "correct"],
        )
        for bucket in buckets
    ]


def skywork_rewards(shared: Path, folder: Path) -> Path:
    """The scores of the first run of the reward model, as a file of outside rewards."""
    path = folder / "rewards.jsonl"
    with gzip.open(recorded(shared, SKYWORK), "rt") as lines, path.open("w") as out:
        for line in lines:
            item = json.loads(line)
            reward_a, reward_b = item["judgments"][0]["judgment"]["scores"]
            print(
                json.dumps({"source_pair_id": item["pair_id"], "reward_a": reward_a, "reward_b": reward_b}),
                file=out,
            )
    return path


def test_judgments_when_they_are_held_against_a_reward_model_then_the_derived_buckets_come_out(
    engine: Engine, shared: Path, tmp_path: Path
) -> None:
    figures = expected(shared, "derived/o1-mini_judged_against_Skywork-27B_reward")
    made = import_file(engine, Wish("judgebench", (recorded(shared, O1_MINI),), swap_rule="net_vote"))
    before = stored(engine)
    buckets = buckets_from_text("(0,1] (1,3] (3,8] (8,..)")
    done = import_rewards(
        engine, skywork_rewards(shared, tmp_path), made.run_id, replace=True, buckets=buckets
    )
    assert (done.named, done.changed) == (350, 350)
    rows = stored(engine)
    decidable = [row for row in rows if row["outcome"] != "reward_tie"]
    assert len(rows) - len(decidable) == 3
    found = bucket_figures(decidable, buckets.buckets)
    assert [(misselected, n) for n, misselected, _ in found] == [(6, 28), (18, 54), (30, 117), (15, 148)]
    assert found == [
        (one["n"], one["misselected"], one["undecided"]) for one in figures["buckets_by_reward_gap"]["value"]
    ]
    counts = Counter(row["outcome"] for row in decidable)
    assert (counts["misselected"], counts["correct"], len(decidable)) == (
        figures["misselected_vote"]["count"],
        figures["agree_vote"]["count"],
        figures["misselected_vote"]["n"],
    )
    # Success is a verifier's finding: rewards from elsewhere do not touch it.
    assert [(row["success_a"], row["success_b"]) for row in rows] == [
        (row["success_a"], row["success_b"]) for row in before
    ]


def test_import_when_two_files_share_pair_ids_then_they_live_side_by_side(
    engine: Engine, shared: Path
) -> None:
    for source in (O1_MINI, SKYWORK):
        import_file(engine, Wish("judgebench", (recorded(shared, source),)))
    rows = stored(engine)
    ids: dict[str, set[str]] = {}
    for row in rows:
        ids.setdefault(row["run_id"], set()).add(row["source_pair_id"])
    first, second = ids.values()
    assert first == second
    assert len({row["pair_id"] for row in rows}) == 700
    assert {row["session_a"] for row in rows}.isdisjoint({row["session_b"] for row in rows})
