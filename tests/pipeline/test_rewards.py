"""Outside rewards for an imported run: whole file or nothing, success untouched, no silent overwriting."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.reporting import report
from audit.pipeline.rewards import import_rewards
from audit.verbs.gaps import buckets_from_text
from audit.words.errors import BadFile, BadRequest


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


def written(folder: Path, name: str, *rows: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def imported(engine: Engine, folder: Path, *pairs: dict[str, Any], **wish: Any) -> str:
    both = [{"pref_ab": "A", "pref_ba": "A", **pair} for pair in pairs]
    return import_file(engine, Wish("jsonl", (written(folder, "pairs.jsonl", *both),), **wish)).run_id


def given(pair_id: str, a: float, b: float, **fields: Any) -> dict[str, Any]:
    return {"source_pair_id": pair_id, "reward_a": a, "reward_b": b, **fields}


def stored(engine: Engine, columns: str = "*", table: str = "audit_pairs") -> list[tuple[Any, ...]]:
    with reading(engine) as connection:
        found = connection.execute(text(f"select {columns} from {table} order by 1"))
        return [tuple(row) for row in found]


REWARDS = (
    "source_pair_id, reward_a, reward_b, success_a, success_b, reward_gap, gap_bucket, outcome, misselected"
)


def test_rewards_when_none_were_set_then_they_are_set_and_scored_and_success_is_untouched(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "007"}, {"pair_id": "NA"}, {"pair_id": "1e5"})
    path = written(tmp_path, "rewards.jsonl", given("NA", -2, 0.5), given("007", 1, 0.96))
    done = import_rewards(engine, path, run_id)
    assert (done.run.run_id, done.named, done.changed) == (run_id, 2, 2)
    assert stored(engine, REWARDS) == [
        ("007", 1.0, 0.96, None, None, pytest.approx(0.04), "[0,0.05)", "correct", 0),
        ("1e5", None, None, None, None, None, "unknown", "unverified", None),
        ("NA", -2.0, 0.5, None, None, 2.5, "[0.3,..)", "misselected", 1),
    ]
    verified = stored(engine, "source_pair_id, verified_at is not null")
    assert [(pair, bool(is_set)) for pair, is_set in verified] == [
        ("007", True),
        ("1e5", False),
        ("NA", True),
    ]


def test_rewards_when_success_was_verified_then_other_rewards_leave_it_as_it_was(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "p", "success_a": True, "success_b": False})
    path = written(tmp_path, "rewards.jsonl", given("p", 0.1, 0.9))
    import_rewards(engine, path, run_id, replace=True)
    assert stored(engine, REWARDS) == [("p", 0.1, 0.9, 1, 0, 0.8, "[0.3,..)", "misselected", 1)]


def test_rewards_when_a_gap_is_given_then_it_is_the_gap_and_own_buckets_are_kept(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "p"}, {"pair_id": "q"})
    path = written(tmp_path, "rewards.jsonl", given("p", 3, 1, gap=1), given("q", 3, 1))
    done = import_rewards(engine, path, run_id, buckets=buckets_from_text("[0,1] (1,..)"))
    assert (done.run.gap_source, done.run.bucket_set) == ("external", "right:1")
    assert stored(engine, "source_pair_id, external_gap, session_gap, reward_gap, gap_bucket") == [
        ("p", 1.0, 2.0, 1.0, "[0,1]"),
        ("q", None, 2.0, None, "unknown"),
    ]
    assert stored(engine, "gap_source, bucket_set", "audit_runs") == [("external", "right:1")]


def test_rewards_when_two_judges_saw_a_pair_then_both_verdicts_get_them(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "p", "judge": "j"}, {"pair_id": "p", "judge": "k"})
    done = import_rewards(engine, written(tmp_path, "rewards.jsonl", given("p", 1, 0)), run_id)
    assert (done.named, done.changed) == (1, 2)
    assert stored(engine, "gate, outcome") == [("j", "correct"), ("k", "correct")]


def test_rewards_when_they_were_set_then_others_need_replace_and_the_same_do_not(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "p", "reward_a": 1, "reward_b": 0}, {"pair_id": "q"})
    same = written(tmp_path, "same.jsonl", given("p", 1, 0))
    assert import_rewards(engine, same, run_id).changed == 0
    before = stored(engine)
    other = written(tmp_path, "other.jsonl", given("q", 1, 0), given("p", 0, 1))
    with pytest.raises(BadFile) as caught:
        import_rewards(engine, other, run_id)
    assert str(caught.value) == (
        f"{other}, line 2: source_pair_id 'p' has rewards 1.0 and 0.0 already: say --replace to set others"
    )
    assert stored(engine) == before
    assert import_rewards(engine, other, run_id, replace=True).changed == 2
    assert [row[1:3] for row in stored(engine, REWARDS)] == [(0.0, 1.0), (1.0, 0.0)]


WRONG: list[tuple[list[dict[str, Any]], str]] = [
    ([given("p", 1, 0), given("z", 1, 0)], ", line 2: source_pair_id 'z' is not in run RUN"),
    (
        [given("p", 1, 0), given("y", 1, 0), given("z", 1, 0)],
        ", line 2: source_pair_id 'y' is not in run RUN (nor are 1 others)",
    ),
    ([given("p", 1, 0), given("p", 1, 0)], ", line 2: source_pair_id 'p' stands at line 1 already"),
    ([given("p", 1, float("nan"))], ", line 1: reward_b: expected a finite number, found nan"),
    ([given("p", 1, 0), {"source_pair_id": "q"}], ", line 2: reward_a: is missing"),
    ([], ": holds no rewards"),
]


def test_rewards_when_the_file_is_wrong_then_nothing_is_changed(engine: Engine, tmp_path: Path) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "p"}, {"pair_id": "q"})
    before = stored(engine), stored(engine, table="audit_runs")
    for rows, problem in WRONG:
        path = written(tmp_path, "rewards.jsonl", *rows)
        with pytest.raises(BadFile) as caught:
            import_rewards(engine, path, run_id)
        assert str(caught.value) == f"{path}{problem.replace('RUN', run_id)}"
        assert (stored(engine), stored(engine, table="audit_runs")) == before


def test_rewards_when_the_run_is_unknown_then_it_says_how_to_find_one(engine: Engine, tmp_path: Path) -> None:
    path = written(tmp_path, "rewards.jsonl", given("p", 1, 0))
    with pytest.raises(BadRequest) as caught:
        import_rewards(engine, path, "latest")
    assert str(caught.value) == "there is no run yet: make one with `reward-audit import`"
    run_id = imported(engine, tmp_path, {"pair_id": "p"})
    with pytest.raises(BadRequest) as caught:
        import_rewards(engine, path, "nightly")
    assert str(caught.value) == "there is no run 'nightly': `reward-audit runs` lists them"
    assert import_rewards(engine, path, "latest").run.run_id == run_id


def test_rewards_when_it_is_interrupted_then_nothing_is_changed(engine: Engine, tmp_path: Path) -> None:
    run_id = imported(engine, tmp_path, *({"pair_id": str(number)} for number in range(600)))
    before = stored(engine)

    def interrupt(_done: int) -> None:
        raise KeyboardInterrupt

    path = written(tmp_path, "rewards.jsonl", *(given(str(number), 1, 0) for number in range(600)))
    with pytest.raises(KeyboardInterrupt):
        import_rewards(engine, path, run_id, progress=interrupt)
    assert stored(engine) == before


def test_rewards_when_the_file_gives_no_gap_then_an_earlier_one_is_kept_and_the_change_of_source_is_told(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "-1", "reward_a": 1, "reward_b": 0, "gap": 0.02})
    found = import_rewards(engine, written(tmp_path, "r.jsonl", given("-1", 1, 0)), run_id)
    assert (found.was, found.run.gap_source, found.changed) == (("external", "gauge"), "session", 0)
    assert stored(engine, "external_gap, reward_gap") == [(0.02, 1.0)]


def test_rewards_when_ids_were_guarded_by_our_own_csv_then_they_are_found(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "-1"}, {"pair_id": "=x"})
    path = tmp_path / "scores.csv"
    path.write_text("source_pair_id,reward_a,reward_b\n'-1,1,0\n'=x,0,1\n")
    assert import_rewards(engine, path, run_id).changed == 2


def test_rewards_when_only_a_gap_is_added_then_nothing_need_be_replaced(
    engine: Engine, tmp_path: Path
) -> None:
    run_id = imported(engine, tmp_path, {"pair_id": "1", "reward_a": 1, "reward_b": 0})
    path = written(tmp_path, "r.jsonl", given("1", 1, 0, gap=0.3))
    assert import_rewards(engine, path, run_id).changed == 1
    assert stored(engine, "external_gap") == [(0.3,)]


def test_report_when_rewards_came_from_elsewhere_then_its_agents_have_those_and_no_pass_hat_k(
    engine: Engine, tmp_path: Path
) -> None:
    agents = {"agent_a": "ash", "agent_b": "elm", "response_a": "x", "response_b": "y"}
    pairs = [
        {"pair_id": str(n), "task_id": f"t{n}", "reward_a": 1, "reward_b": 0, **agents} for n in range(4)
    ]
    run_id = imported(engine, tmp_path, *pairs)
    assert [row["mean_reward"] for row in report(engine, run_id)["agents"]] == [1.0, 0.0]

    outside = written(tmp_path, "r.jsonl", *(given(str(n), -3.5, n) for n in range(3)))
    import_rewards(engine, outside, run_id, replace=True)

    found = report(engine, run_id)
    assert [(row["agent"], row["mean_reward"], row["pass_hat_k"]) for row in found["agents"]] == [
        ("ash", pytest.approx((3 * -3.5 + 1) / 4), None),
        ("elm", pytest.approx((0 + 1 + 2 + 0) / 4), None),
    ]
    assert found["why"]["pass_hat_k"].startswith("pass^k: the rewards came from elsewhere")


def test_report_when_the_pairs_of_a_file_were_chosen_then_pass_hat_k_is_left_out_with_its_reason(
    engine: Engine, shared: Path
) -> None:
    file = min((shared / "data" / "judgebench").glob("*.jsonl*"), key=lambda path: path.stat().st_size)
    run_id = import_file(engine, Wish("judgebench", (file,))).run_id

    found = report(engine, run_id)
    assert {row["pass_hat_k"] for row in found["agents"]} == {None}
    assert "were chosen by which answer is right" in found["why"]["pass_hat_k"]
