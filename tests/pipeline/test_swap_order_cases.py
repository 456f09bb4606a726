"""Both orders in whole runs: positions come back to sides, failures are no ties, nothing is drawn by lot."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from server import Say, refusing
from staged import GOOD, IDLE, JUDGE, Body, Stage, blocks, task, verdict

NORTH, SOUTH = "I look to the north.", "I look to the south."
CHECKS = [
    {"transcript": {"contains": "anchor"}, "weight": 2.0, "required": False},
    {"transcript": {"contains": "buoy"}, "weight": 7.0, "required": False},
    {"transcript": {"contains": "chain"}, "weight": 1.0},
]
# Rewards of the sides A and B -> the words by which the agents earn them.
WORDS = {
    (1.0, 0.0): ("anchor buoy chain", ""),
    (0.2, 0.9): ("anchor", "anchor buoy"),
    (0.2, 0.2): ("anchor",) * 2,
}
# The judge's choices by position, in the orders AB and BA -> each as a side, the pair's preference under
# `both_agree` and under `net_vote`.
CHOICES: dict[tuple[str, str], tuple[str, str, str | None, str | None]] = {
    ("first", "second"): ("A", "A", "A", "A"),
    ("second", "first"): ("B", "B", "B", "B"),
    ("first", "first"): ("A", "B", None, None),
    ("second", "second"): ("B", "A", None, None),
    ("tie", "tie"): ("tie", "tie", "tie", "tie"),
    ("tie", "second"): ("tie", "A", None, "A"),
    ("second", "tie"): ("B", "tie", None, "B"),
}


def order_of(body: Body) -> str:
    """Which order a pair question is in, read from whose words stand first."""
    return "AB" if NORTH in blocks(body)[0] else "BA"


def misselected(rewards: tuple[float, float], preference: str | None) -> int | None:
    """By the definition: the settled side is the one with the lower reward; NULL where none is lower."""
    if rewards[0] == rewards[1]:
        return None
    return int(preference == ("B" if rewards[0] > rewards[1] else "A"))


def test_pair_when_judged_in_both_orders_then_positions_come_back_to_the_sides_they_stand_for(
    stage: Stage,
) -> None:
    """Case SW-01, for every combination of choices, with either side the better one, and with none."""
    cells = [(rewards, choices) for rewards in WORDS for choices in CHOICES]
    by_berth = {f"K{number}": cell for number, cell in enumerate(cells, 1)}
    stage.tasks = [task(berth, checks=CHECKS) for berth in by_berth]
    stage.parts[GOOD] = lambda berth, _body: f"{NORTH} {WORDS[by_berth[berth][0]][0]}"
    stage.parts[IDLE] = lambda berth, _body: f"{SOUTH} {WORDS[by_berth[berth][0]][1]}"
    # The scores follow the sides, whatever the winner: 4 for A, 1 for B.
    stage.parts[JUDGE] = lambda berth, body: (
        verdict(by_berth[berth][1][0], 4, 1)
        if order_of(body) == "AB"
        else verdict(by_berth[berth][1][1], 1, 4)
    )
    done = stage.run()
    assert done.code == 0, done.stderr

    columns = (
        "agent_a, agent_b, reward_a, reward_b, pref_ab, pref_ba, judge_pref, misselected, "
        "judge_score_a, judge_score_b"
    )
    for rule, place in (("both_agree", 2), ("net_vote", 3)):
        assert stage("score", "--swap-rule", rule).code == 0
        for berth, (rewards, choices) in by_berth.items():
            sides = CHOICES[choices]
            preference = sides[place]
            assert stage.rows(f"select {columns} from audit_pairs where task_id = 'free-{berth}'") == [
                (GOOD, IDLE, *rewards, *sides[:2], preference, misselected(rewards, preference), 4.0, 1.0)
            ], (rule, rewards, choices)
    # Each call's own row says the same: what was chosen by position, and for which side that stands.
    for berth, (_, choices) in by_berth.items():
        logs = stage.rows(
            "select presented_order, choice, judge_logs.preference from judge_logs "
            f"inner join audit_pairs using (pair_id) where task_id = 'free-{berth}' order by 1"
        )
        assert logs == [("AB", choices[0], CHOICES[choices][0]), ("BA", choices[1], CHOICES[choices][1])]


GARBAGE = "They both did well I suppose."
# What the judge says in each order -> the pair's outcome by `both_agree` and by `net_vote`. A is better.
TROUBLE: dict[str, tuple[Say | str, Say | str, str, str]] = {
    "down, B": (refusing("down", 500), verdict("first"), "incomplete", "incomplete"),
    "down, A": (refusing("down", 500), verdict("second"), "incomplete", "incomplete"),
    "A, down": (verdict("first"), refusing("down", 500), "incomplete", "incomplete"),
    "tie, down": (verdict("tie"), refusing("down", 500), "incomplete", "incomplete"),
    "down, down": (refusing("down", 500), refusing("down", 500), "incomplete", "incomplete"),
    "garbage, garbage": (GARBAGE, GARBAGE, "unreadable", "unreadable"),
    "garbage, A": (GARBAGE, verdict("second"), "unreadable", "correct"),
    "B, garbage": (verdict("second"), GARBAGE, "unreadable", "misselected"),
    "tie, tie": (verdict("tie"), verdict("tie"), "judge_tie", "judge_tie"),
    "A, A": (verdict("first"), verdict("second"), "correct", "correct"),
}


@pytest.mark.parametrize("rule", ["both_agree", "net_vote"])
def test_pair_when_a_call_fails_or_cannot_be_read_then_it_is_no_tie_and_no_half_of_a_verdict(
    rule: str, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Case SW-03."""
    monkeypatch.setattr("audit.doors.llm_pace._FIRST_WAIT_S", 0.01)
    by_berth = dict(zip((f"K{number}" for number in range(1, 30)), TROUBLE.values(), strict=False))
    stage.tasks = [task(berth, checks=CHECKS) for berth in by_berth]
    stage.changes = {"swap_rule": rule}
    stage.parts[GOOD] = lambda _berth, _body: f"{NORTH} anchor buoy chain"
    stage.parts[IDLE] = lambda _berth, _body: SOUTH
    stage.parts[JUDGE] = lambda berth, body: by_berth[berth][0 if order_of(body) == "AB" else 1]
    done = stage.run()
    assert done.code == 0, done.stderr

    outcomes = {}
    for name, berth in zip(TROUBLE, by_berth, strict=True):
        ((outcome, preference, is_misselected, consistent),) = stage.rows(
            "select outcome, judge_pref, misselected, is_consistent from audit_pairs "
            f"where task_id = 'free-{berth}'"
        )
        outcomes[name] = outcome
        assert (is_misselected is None) == (outcome in ("incomplete", "unreadable")), name
        if outcome in ("incomplete", "unreadable"):
            assert preference is None, name
        if "garbage" in name or "down" in name:
            assert consistent is None, name
    assert outcomes == {name: row[2 if rule == "both_agree" else 3] for name, row in TROUBLE.items()}

    found = json.loads(stage("--json", "report").stdout)
    ties = sum(outcome == "judge_tie" for outcome in outcomes.values())
    assert (found["pairs"]["total"], found["pairs"]["judge_tie"]) == (len(TROUBLE), ties)
    assert found["pairs"]["incomplete"] == 5
    assert found["pairs"]["unreadable"] == (3 if rule == "both_agree" else 1)
    # 6 calls failed, 4 answers were garbage and asked for once more, the other 10 were read.
    assert {name: count for name, count in found["answers"].items() if count} == {
        "total": 24,
        "ok": 10,
        "unreadable": 8,
        "error": 6,
    }
    # Of those that came to a side, and of all that could have.
    decided = [outcome for outcome in outcomes.values() if outcome in ("correct", "misselected")]
    wrong = decided.count("misselected")
    rates = found["rates"]
    assert (rates["misselected_of_decided"]["k"], rates["misselected_of_decided"]["n"]) == (
        wrong,
        len(decided),
    )
    assert (rates["accuracy"]["k"], rates["accuracy"]["n"]) == (decided.count("correct"), len(TROUBLE))
    assert stage.rows(
        "select count(*) from judge_logs where parse_status <> 'ok' and choice is not null"
    ) == [(0,)]


def asked_in(stage: Stage, database: Path) -> list[tuple[Any, ...]]:
    """(task, sides, order, SHA-256 of the prompt, seed) of every pair question."""
    found = stage.rows(
        "select task_id, agent_a, agent_b, presented_order, request_json, seed from judge_logs "
        "inner join audit_pairs using (pair_id) where role = 'judge' order by 1, 2, 3, 4",
        db=database,
    )
    return [
        (*row[:4], hashlib.sha256(json.dumps(json.loads(row[4])["messages"]).encode()).hexdigest(), row[5])
        for row in found
    ]


def test_judge_when_run_twice_with_one_seed_then_orders_and_prompts_are_the_same(
    stage: Stage, tmp_path: Path
) -> None:
    """Case SW-05: no order is drawn by lot; both are asked, and each row tells its own."""
    stage.tasks = [task(f"K{number}") for number in range(1, 9)]
    stage.profiles[JUDGE] = {"seed": 1}
    found = {}
    for name, seed, jobs in (("one", "7", "1"), ("two", "7", "8"), ("other", "8", "4")):
        database = tmp_path / f"{name}.db"
        done = stage("run", "-c", str(stage.written()), "--seed", seed, "-j", jobs, db=database)
        assert done.code == 0, done.stderr
        found[name] = asked_in(stage, database)
    assert found["one"] == found["two"]
    assert [row[:4] for row in found["one"]] == [
        (f"free-K{number}", GOOD, IDLE, order) for number in range(1, 9) for order in ("AB", "BA")
    ]
    assert len({row[4] for row in found["one"]}) == 16
    assert {row[5] for row in found["one"]} == {7}
    assert [row[:5] for row in found["other"]] == [row[:5] for row in found["one"]]
    assert {row[5] for row in found["other"]} == {8}
    # The side that won can be read again from the raw reply and the order alone.
    for raw, order, preference in stage.rows(
        "select raw_output, presented_order, preference from judge_logs where role = 'judge'",
        db=tmp_path / "one.db",
    ):
        winner = json.loads(raw)["winner"]
        assert (
            preference
            == {"AB": {"first": "A", "second": "B"}, "BA": {"first": "B", "second": "A"}}[order][winner]
        )
