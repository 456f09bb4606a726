"""The noise that the manifest tells is the noise in the set: judges and verifiers with planted errors."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Connection, insert

from audit.doors import store
from audit.doors.db import open_database, writing
from audit.pipeline.exporting_dpo import Wish, export_dpo
from audit.statistics.noise import flip_rates
from audit.verbs.gaps import GAUGE
from audit.verbs.score import Scale, score
from audit.words import schema
from audit.words.records import Pair, Run, Session
from audit.words.text import as_json

RUNS = 200
T = "2026-01-01T00:00:00.000Z"
# gap of a pair -> how often the judge names the worse side
FLIPS = {0.02: 0.35, 0.12: 0.2, 0.5: 0.05}
LABELS = {0.02: "[0,0.05)", 0.12: "[0.1,0.15)", 0.5: "[0.3,..)"}
SCALE = Scale("both_agree", "external", GAUGE)
OTHER = {"A": "B", "B": "A"}


class Planted(NamedTuple):
    """A run: its tasks, how often its verifier is wrong, which share is unverified, which people look at."""

    seed: int
    tasks: int = 40
    verifier_error: float = 0.0
    unverified: float = 0.0
    looked_at: float = 0.0


def plant(connection: Connection, planted: Planted) -> tuple[str, dict[str, str]]:
    """Three pairs a task, one in each bucket; the run's id, and the better side of each pair."""
    chance = random.Random(planted.seed)
    run_id = f"20260101-000000000-{planted.seed:08d}"
    truth: dict[str, str] = {}
    sessions, pairs, labels = [], [], []
    for task in range(planted.tasks):
        for gap, flips in FLIPS.items():
            pair_id = f"{planted.seed:08d}-p{len(pairs):07d}"
            better = truth[pair_id] = chance.choice("AB")
            said = OTHER[better] if chance.random() < flips else better
            found = OTHER[better] if chance.random() < planted.verifier_error else better
            rewards = {"A": (0.9, 0.4), "B": (0.4, 0.9)}[found]
            if chance.random() < planted.unverified:
                rewards = (None, None)  # type: ignore[assignment]
            pairs.append(_pair(run_id, pair_id, task, said, rewards, gap))
            sessions += [_session(run_id, f"{pair_id}{side}", task, side) for side in "AB"]
            if chance.random() < planted.looked_at:
                labels.append(
                    {
                        "pair_id": pair_id,
                        "annotator": "ann",
                        "kind": "preference",
                        "value": better,
                        "created_at": T,
                    }
                )
    store.add_run(
        connection,
        Run(run_id, "planted", "live", "{}", run_id, None, None, "both_agree", "external", "run", "gauge",
            "complete", T, T),
    )  # fmt: skip
    store.add_buckets(connection, GAUGE.name, GAUGE.with_unknown())
    store.add_sessions(connection, sessions)
    store.add_pairs(connection, pairs)
    if labels:
        connection.execute(insert(schema.human_labels), labels)
    return run_id, truth


def _pair(run_id: str, pair_id: str, task: int, said: Any, rewards: tuple[Any, Any], gap: float) -> Pair:
    scored = score(SCALE, said, said, reward_a=rewards[0], reward_b=rewards[1], external_gap=gap)
    blank: dict[str, Any] = dict.fromkeys(Pair._fields)
    return Pair(
        **blank
        | scored._asdict()
        | {
            "pair_id": pair_id, "run_id": run_id, "gate": "judge", "task_id": f"t{task}", "trial": 0,
            "session_a": f"{pair_id}A", "session_b": f"{pair_id}B", "reward_a": rewards[0],
            "reward_b": rewards[1], "external_gap": gap, "created_at": T,
        }
    )  # fmt: skip


def _session(run_id: str, session_id: str, task: int, side: str) -> Session:
    blank: dict[str, Any] = dict.fromkeys(Session._fields)
    said = [{"role": "user", "content": "Q"}, {"role": "assistant", "content": side}]
    return Session(
        **blank
        | {
            "session_id": session_id, "run_id": run_id, "task_id": f"t{task}", "agent": session_id,
            "trial": 0, "transcript_json": as_json(said), "created_at": T,
        }
    )  # fmt: skip


def exports(folder: Path, plans: list[Planted], **wish: Any) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Of each run its manifest and of each row (flip_rate it carries, is it verified, is its label wrong)."""
    for start in range(0, len(plans), 20):
        # A database for each twenty, so that none reads the labels of two hundred runs.
        engine = open_database(f"sqlite:///{folder}/{start}.db", create=True)
        with writing(engine) as connection:
            planted = [plant(connection, plan) for plan in plans[start : start + 20]]
        for run_id, truth in planted:
            found = export_dpo(engine, Wish(folder / "set.jsonl", run=run_id, **wish))
            rows = [json.loads(line) for line in (folder / "set.jsonl").read_text().splitlines()]
            yield (
                found,
                [
                    (
                        row["flip_rate"],
                        row["margin"] > 0,
                        row["chosen"][0]["content"] != truth[row["pair_id"]],
                    )
                    for row in rows
                ],
            )
        engine.dispose()


def test_flip_rates_when_judges_are_planted_then_their_intervals_hold_the_truth_as_often_as_they_say() -> (
    None
):
    held, below, runs = 0, 0, 0
    for seed in range(RUNS):
        chance = random.Random(seed)
        decided = [
            (str(gap), gap, f"t{task}", int(chance.random() < flips))
            for task in range(40)
            for gap, flips in FLIPS.items()
            for _ in range(3)
        ]
        rates, overall, curve = flip_rates(decided, 40)
        assert overall["n"] == len(decided)
        assert overall["k"] == sum(one[3] for one in decided)
        # The judge errs in one pair of ten somewhere between the second gap and the third.
        assert 0.12 < curve["gap_at_10"]["value"] < 0.5
        for gap, flips in FLIPS.items():
            rate = rates[str(gap)]
            runs += 1
            held += rate["low"] <= flips <= rate["high"]
            below += flips <= rate["high"]
    assert 0.93 <= held / runs <= 0.98
    assert 0.96 <= below / runs <= 0.995


def test_flip_rates_when_a_run_has_many_tasks_then_memory_is_bounded_and_nothing_is_lost() -> None:
    chance = random.Random(3)
    decided = [("b", chance.random(), f"t{task}", int(chance.random() < 0.2)) for task in range(60_000)]
    rates, overall, curve = flip_rates(decided, 60_000)
    flipped = sum(one[3] for one in decided)
    assert (rates["b"]["k"], rates["b"]["n"]) == (overall["k"], overall["n"]) == (flipped, 60_000)
    assert overall["clusters"] == 2000
    assert overall["low"] < 0.2 < overall["high"] < overall["low"] + 0.01
    assert curve["clusters"] <= 2100


def test_set_when_the_verifier_is_right_then_verified_rows_hold_no_noise_and_others_the_judges(
    tmp_path: Path,
) -> None:
    held, intervals, told, wrong, rows_alone = 0, 0, 0.0, 0, 0
    plans = [Planted(seed, unverified=0.3) for seed in range(RUNS)]
    for found, rows in exports(tmp_path, plans, keep=("unverified",)):
        assert not any(is_wrong for rate, is_verified, is_wrong in rows if is_verified)
        assert all(rate == 0 for rate, is_verified, _ in rows if is_verified)
        alone = [(rate, is_wrong) for rate, is_verified, is_wrong in rows if not is_verified]
        told += sum(rate for rate, _ in alone)
        wrong += sum(is_wrong for _, is_wrong in alone)
        rows_alone += len(alone)
        noise = found["label_noise"]
        assert (noise["by_judge_alone"], noise["vouched_by_verifier"]) == (len(alone), len(rows) - len(alone))
        assert noise["value"] == pytest.approx(sum(rate for rate, *_ in rows) / len(rows))
        assert noise["value"] <= noise["upper"]
        assert found["trl"]["label_smoothing"] == pytest.approx(noise["value"])
        by_label = {row["label"]: row["flip_rate"] for row in found["gap_buckets"]}
        for gap, label in LABELS.items():
            intervals += 1
            held += by_label[label]["low"] <= FLIPS[gap] <= by_label[label]["high"]
    assert 0.93 <= held / intervals <= 0.985
    # Told and true, over 200 runs, differ by less than two standard errors of the true share.
    assert rows_alone > 5000
    assert told / rows_alone == pytest.approx(wrong / rows_alone, abs=0.012)


def test_set_when_the_verifier_errs_and_people_show_it_then_the_manifest_tells_the_planted_noise(
    tmp_path: Path,
) -> None:
    held, told, wrong, rows_in_all = 0, 0.0, 0, 0
    plans = [Planted(seed, verifier_error=0.12, looked_at=0.4) for seed in range(RUNS)]
    for found, rows in exports(tmp_path, plans, prefer="reward"):
        error = found["verifier_error"]
        held += error["low"] <= 0.12 <= error["high"]
        told += found["label_noise"]["value"] * len(rows)
        wrong += sum(is_wrong for *_, is_wrong in rows)
        rows_in_all += len(rows)
        assert found["reasons"].keys() <= {"human_disagrees"}
        assert found["label_noise"]["confirmed_by_people"] == error["n"] - error["k"]
    assert 0.92 <= held / RUNS <= 0.985
    assert wrong / rows_in_all > 0.05
    assert told / rows_in_all == pytest.approx(wrong / rows_in_all, abs=0.008)


def test_set_when_the_judge_agrees_with_an_erring_verifier_then_the_noise_is_that_of_both(
    tmp_path: Path,
) -> None:
    """Where judge and verifier agree, both are wrong far less often than the verifier is in all."""
    told, wrong, rows_in_all = 0.0, 0, 0
    plans = [Planted(seed, tasks=300, verifier_error=0.2, looked_at=0.4) for seed in range(10)]
    for found, rows in exports(tmp_path, plans):
        told += found["label_noise"]["value"] * len(rows)
        wrong += sum(is_wrong for *_, is_wrong in rows)
        rows_in_all += len(rows)
    assert 0.01 < wrong / rows_in_all < 0.1
    assert told / rows_in_all == pytest.approx(wrong / rows_in_all, abs=0.008)
