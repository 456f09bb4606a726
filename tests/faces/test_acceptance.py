"""The published judgments through the real command give the published figures.

The figures stand in expected.json beside the records; what is spelt out here is what the issue spells out.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

O1_MINI = "judgebench/gpt4o_pairs.arena_hard.o1-mini.jsonl"
HAIKU = "judgebench/claude_pairs.arena_hard.claude-3-haiku.jsonl"
SKYWORK = "judgebench/gpt4o_pairs.reward_model.Skywork-Reward-Gemma-2-27B.jsonl.gz"
LLMBAR = (
    "LLMBar/Natural/GPT-4/Vanilla_NoRules",
    "LLMBar/Natural/Falcon/CoT",
    "LLMBar/Adversarial/Neighbor/GPT-4/Vanilla_NoRules",
    "LLMBar/Adversarial/GPTOut/PaLM2/Reference",
)

pytestmark = pytest.mark.shared_data


@pytest.fixture
def data(shared: Path) -> Path:
    return shared / "data"


@pytest.fixture
def expected(data: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((data / "expected.json").read_text(encoding="utf-8"))["sources"]
    return found


@pytest.fixture
def done(cli: Callable[..., Any]) -> Callable[..., str]:
    """Runs a command that must succeed, and gives what it printed."""

    def run(*args: str | Path) -> str:
        ran = cli(*args)
        assert (ran.code, ran.stderr) == (0, ""), ran
        printed: str = ran.stdout
        return printed

    return run


@pytest.fixture
def report(done: Callable[..., str]) -> Callable[..., dict[str, Any]]:
    def run(wanted: str = "latest") -> dict[str, Any]:
        found: dict[str, Any] = json.loads(done("report", wanted, "--json"))
        return found

    return run


def outcomes(found: dict[str, Any], order: list[str]) -> list[int]:
    return [found["pairs"][outcome] for outcome in order]


def share(rate: dict[str, Any]) -> tuple[int, int]:
    return rate["k"], rate["n"]


def published(figure: dict[str, Any]) -> tuple[int, int]:
    return figure["count"], figure["n"]


@pytest.mark.parametrize(
    ("file", "source", "issue"),
    [
        pytest.param(
            O1_MINI,
            "judgebench/gpt4o_pairs.arena_hard.o1-mini",
            {
                "net_vote": [230, 39, 5, 76, 0],
                "both_agree": [203, 32, 5, 110, 0],
                "consistent": (240, 350),
                "primacy": 74,
                "recency": 36,
                "first_share": (367, 656),
                "correct": {
                    "Knowledge": (90, 154),
                    "Reasoning": (61, 98),
                    "Math": (46, 56),
                    "Coding": (33, 42),
                },
            },
            id="o1-mini",
        ),
        pytest.param(
            HAIKU,
            "judgebench/claude_pairs.arena_hard.claude-3-haiku",
            {
                "net_vote": [87, 79, 54, 44, 6],
                "both_agree": [38, 43, 54, 122, 13],
                "consistent": (135, 257),
                "primacy": 89,
                "recency": 33,
                "first_share": (212, 335),
                "correct": {
                    "Knowledge": (58, 154),
                    "Reasoning": (15, 51),
                    "Math": (11, 34),
                    "Coding": (3, 31),
                },
            },
            id="haiku",
        ),
    ],
)
def test_judgebench_when_imported_and_scored_again_then_every_published_figure_comes_out(
    done: Callable[..., str],
    report: Callable[..., dict[str, Any]],
    data: Path,
    expected: dict[str, Any],
    file: str,
    source: str,
    issue: dict[str, Any],
) -> None:
    figures = expected[source]
    order = figures["outcomes"]["order"]

    done("import", "judgebench", data / file, "--swap-rule", "net_vote")
    found = report()

    assert outcomes(found, order) == issue["net_vote"] == figures["outcomes"]["net_vote"]
    assert sum(issue["net_vote"]) == found["pairs"]["total"] == found["pairs"]["decidable"]
    position = found["position"]
    assert share(position["consistent"]) == issue["consistent"]
    assert share(position["consistent"]) == published(figures["consistent_among_parsed"])
    assert position["primacy"] == issue["primacy"] == figures["primacy_pairs_among_parsed"]["count"]
    assert position["recency"] == issue["recency"] == figures["recency_pairs_among_parsed"]["count"]
    assert share(position["first_share"]) == issue["first_share"]
    assert share(position["first_share"]) == published(figures["first_shown_share_of_decisive_judgments"])
    for category in found["categories"]:
        group = figures["by_group"][category["category"]]
        assert share(category["accuracy"]) == published(group["accuracy_vote"])
        assert share(category["misselected_of_decidable"]) == published(group["misselected_vote"])
    assert {group["category"]: share(group["accuracy"]) for group in found["categories"]} == issue["correct"]

    done("score", "--swap-rule", "both_agree")
    assert outcomes(report(), order) == issue["both_agree"] == figures["outcomes"]["both_agree"]


def test_skywork_when_read_from_its_scores_then_three_recorded_decisions_turn_out_ties(
    done: Callable[..., str], report: Callable[..., dict[str, Any]], data: Path, expected: dict[str, Any]
) -> None:
    figures = expected["judgebench/gpt4o_pairs.reward_model.Skywork_Skywork-Reward-Gemma-2-27B"]

    done("import", "judgebench", data / SKYWORK)
    recorded = report()
    done("import", "judgebench", data / SKYWORK, "--reread")
    read = report()

    assert recorded["run"]["run_id"] != read["run"]["run_id"]
    assert (recorded["pairs"]["correct"], recorded["pairs"]["misselected"]) == (225, 122)
    assert share(recorded["rates"]["accuracy"]) == published(figures["accuracy_vote"])
    assert share(recorded["rates"]["misselected_of_decidable"]) == published(figures["misselected_vote"])
    assert recorded["answers"]["recorded"] == 700
    scores = figures["as_scores"]
    assert read["pairs"]["judge_tie"] == scores["judge_tie"] == 3
    assert list(share(read["position"]["consistent"])) == scores["consistent"] == [350, 350]
    assert list(share(read["position"]["first_share"])) == scores["first_share"] == [347, 694]
    assert (read["position"]["primacy"], read["position"]["recency"]) == (
        scores["primacy"],
        scores["recency"],
    )


def test_rewards_when_made_from_another_run_by_our_own_commands_then_buckets_are_the_derived_ones(
    done: Callable[..., str],
    report: Callable[..., dict[str, Any]],
    data: Path,
    expected: dict[str, Any],
    tmp_path: Path,
) -> None:
    figures = expected["derived/o1-mini_judged_against_Skywork-27B_reward"]

    done("import", "judgebench", data / O1_MINI, "--swap-rule", "net_vote")
    judged = report()["run"]["run_id"]
    done("import", "judgebench", data / SKYWORK)
    scored = report()["run"]["run_id"]
    rewards = tmp_path / "rewards.csv"
    rewards.write_text(
        done(
            "sql",
            "--csv",
            "select source_pair_id, judge_score_a as reward_a, judge_score_b as reward_b "
            f"from audit_pairs where run_id = '{scored}'",
        ),
        encoding="utf-8",
    )
    buckets = "(0,1] (1,3] (3,8] (8,..)"
    said = done("import", "rewards", rewards, "--run", judged, "--replace", "--buckets", buckets)
    found = report(judged)

    assert said.splitlines()[0] == (
        f"set the rewards of 350 pairs in run {judged} by 350 ids; "
        "0 pairs are not in the file and keep theirs"
    )
    assert (found["run"]["gap_source"], found["run"]["swap_rule"]) == ("session", "net_vote")
    rows = [bucket for bucket in found["gap_buckets"] if bucket["label"] != "unknown"]
    assert [share(bucket["misselected_of_decidable"]) for bucket in rows] == [
        (6, 28),
        (18, 54),
        (30, 117),
        (15, 148),
    ]
    assert [(bucket["misselected"], bucket["decidable"], bucket["undecided"]) for bucket in rows] == [
        (bucket["misselected"], bucket["n"], bucket["undecided"])
        for bucket in figures["buckets_by_reward_gap"]["value"]
    ]
    assert share(found["rates"]["misselected_of_decidable"]) == published(figures["misselected_vote"])
    assert found["pairs"]["reward_tie"] == 3
    assert f"run {judged} holds the rewards of {rewards} already: nothing was changed\n" == done(
        "import", "rewards", rewards, "--run", judged
    )


def test_llmbar_when_four_files_are_imported_at_once_then_each_gives_its_published_statistics(
    done: Callable[..., str], report: Callable[..., dict[str, Any]], data: Path, expected: dict[str, Any]
) -> None:
    figures = [expected[f"llmbar/{source}"] for source in LLMBAR]

    done("import", "llmbar", *(data / figure["file"] for figure in figures), "--swap-rule", "net_vote")
    in_sql = json.loads(
        done(
            "sql",
            "--json",
            "select run_id, count(*) as pairs, count(success_a) as with_success, "
            "count(*) filter (where pref_ab is null or pref_ba is null) as with_a_null, "
            "count(*) filter (where coalesce(pref_ab, '-') <> coalesce(pref_ba, '-')) as inconsistent "
            "from audit_pairs group by run_id",
        )
    )
    runs = {row["run_id"]: row for row in in_sql}
    named = {run["name"]: run["run_id"] for run in json.loads(done("runs", "--json"))}

    assert len(runs) == len(named) == 4
    for figure in figures:
        row = runs[named[Path(figure["file"]).stem]]
        found = report(row["run_id"])
        assert share(found["rates"]["accuracy"]) == published(figure["accuracy_vote"])
        assert share(found["rates"]["misselected_of_decidable"]) == published(figure["misselected_vote"])
        answers = found["answers"]
        assert (answers["unreadable"], answers["total"]) == published(figure["null_judgments"])
        assert (row["inconsistent"], row["pairs"]) == published(figure["inconsistent_pairs"])
        assert (row["with_a_null"], row["pairs"]) == published(figure["pairs_with_a_null"])
        # A person's preference is no verifier's finding.
        assert row["with_success"] == 0


def test_pandalm_when_buckets_follow_the_three_annotators_then_counts_are_as_its_reading_says(
    done: Callable[..., str], report: Callable[..., dict[str, Any]], data: Path, expected: dict[str, Any]
) -> None:
    figures = expected["pandalm/gpt-3.5-turbo"]
    tests, results = figures["file"].split(" + ")

    done(
        "import", "pandalm", data / tests, data / results, "--buckets", "(0,.34] (.34,.67] (.67,..)"
    )  # fmt: skip
    found = report()

    assert (found["run"]["swap_rule"], found["run"]["gap_source"]) == ("first_order", "session")
    assert found["position"] is None
    assert found["why"]["position"] == "the swap rule is first_order: one order tells nothing of position"
    assert share(found["rates"]["misselected_of_decidable"]) == published(figures["misselected"])
    assert found["answers"]["unreadable"] == figures["unparsed"]["count"] == 25
    assert found["pairs"]["reward_tie"] == 999 - 914
    counted = [
        (bucket["misselected"], bucket["decidable"], bucket["undecided"])
        for bucket in found["gap_buckets"]
        if bucket["decidable"]
    ]
    assert counted == [(27, 89, 6), (5, 31, 5), (130, 794, 36)]
    assert counted == [
        (bucket["misselected"], bucket["n"], bucket["undecided"])
        for bucket in figures["buckets_by_annotator_vote_gap"]["value"]
    ]
    assert json.loads(done("sql", "--json", "select count(success_a) as n from audit_pairs")) == [{"n": 0}]
