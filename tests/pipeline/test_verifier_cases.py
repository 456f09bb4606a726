"""Verifying in whole runs: the stored world is read and never touched, and what cannot be told is NULL."""

import base64
import hashlib
import json
import sqlite3
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from staged import GOOD, IDLE, TOOLS, Stage, calling, freed, task

FINDINGS = "agent, reward, success, checks_json, fault, label_source"


def world_of(state_json: str, folder: Path) -> list[tuple[Any, ...]]:
    """The first berth of a stored final world."""
    file = folder / "final.db"
    file.write_bytes(zlib.decompress(base64.b64decode(json.loads(state_json)["world"])))
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("select berth, state from berths where berth in ('K1', 'K2')").fetchall()


def test_stages_when_called_one_by_one_then_they_make_one_run_that_is_complete_at_the_end(
    stage: Stage,
) -> None:
    config = str(stage.written())
    status = "select status, (select count(*) from sessions) from audit_runs"
    for name in ("simulate", "judge", "verify"):
        assert stage.rows(status) == [("stopped", 2)] if name != "simulate" else True
        done = stage(name, "-c", config)
        assert done.code == 0, done.stderr
        assert ("going on with run" in done.stderr) == (name != "simulate")
    assert stage.rows(status) == [("stopped", 2)]
    assert stage("score").code == 0
    assert stage.rows(status) == [("complete", 2)]
    assert stage.rows("select outcome, judge_pref, success_a, success_b from audit_pairs") == [
        ("correct", "A", 1, 0)
    ]
    # Now there is nothing to go on with: another night is another run.
    assert "going on with run" not in stage("simulate", "-c", config).stderr
    assert len(stage.rows("select 1 from audit_runs")) == 2


def test_verify_when_done_twice_then_it_finds_the_same_and_what_the_agents_left_is_untouched(
    stage: Stage, tmp_path: Path
) -> None:
    """Case VF-01: nothing is replayed on the world that is looked at, so a second look sees no gold."""
    config = str(stage.written())
    assert stage("simulate", "-c", config).code == 0
    left = "agent, final_state_json, transcript_json"
    before = stage.rows(f"select {left} from sessions order by agent")
    looks = []
    for _ in range(2):
        done = stage("verify", "-c", config)
        assert done.code == 0, done.stderr
        assert "going on with run" in done.stderr
        looks.append(stage.rows(f"select {FINDINGS} from sessions order by agent"))
        with closing(sqlite3.connect(stage.database)) as connection:
            assert connection.execute("update sessions set verified_at = null").rowcount == 2
            connection.commit()
    assert looks[0] == looks[1]
    assert [(agent, reward, success) for agent, reward, success, *_ in looks[0]] == [
        (GOOD, 1.0, 1),
        (IDLE, 0.0, 0),
    ]
    after = stage.rows(f"select {left} from sessions order by agent")
    digests = [[hashlib.sha256(str(row).encode()).hexdigest() for row in rows] for rows in (before, after)]
    assert digests[0] == digests[1]
    (_, good_state, _), (_, idle_state, idle_transcript) = after
    assert world_of(good_state, tmp_path) == [("K1", "free"), ("K2", "held")]
    assert world_of(idle_state, tmp_path) == [("K1", "held"), ("K2", "held")]
    assert "tool_calls" not in idle_transcript
    assert stage.server.requests == 7  # verifying asks no model


@pytest.mark.parametrize(
    ("check", "complaint"),
    [
        (
            {"sql": "update berths set state = 'free' where berth = 'K1' returning 1", "rows": [[1]]},
            "only reading",
        ),
        ({"sql": "delete from berths", "rows": []}, "only reading"),
        ({"sql": "select state from berth", "rows": [["free"]]}, "no such table: berth"),
        ({"tool_called": {"name": "free_berths"}}, "did you mean free_berth?"),
        (None, "a task nobody can fail"),
    ],
    ids=["gold that writes", "deletion", "unknown table", "unknown tool", "no criteria"],
)
def test_task_when_a_check_cannot_be_one_then_it_is_refused_before_anything_is_asked(
    check: dict[str, Any] | None, complaint: str, stage: Stage
) -> None:
    stage.tasks = [task("K1"), task("K2", checks=[check] if check else [])]
    done = stage.run()
    assert done.code == 1
    assert complaint in done.stderr
    assert "tasks.yaml, [1].checks" in done.stderr
    assert stage.server.requests == 0


# What must be said, what the agent says, and whether that says it: numbers are amounts, words are whole.
SAID = [
    ("40", "Your fee is $400.", False),
    ("40", "Your fee is $40.", True),
    ("40", "You hold 1,040 points.", False),
    ("40", "It comes to 40.00 in all.", True),
    ("40", "It comes to 40.5 in all.", False),
    ("40", "Berth B-40 is yours.", False),
    ("2350.5", "In total: $2,350.50", True),
    ("2350.5", "In total: $12,350.50", False),
    ("2026-11-30", "From 2026-11-30 on.", True),
    ("30", "From 2026-11-30 on.", False),
    ("refused", "That is unrefused.", False),
    ("refused", "That is REFUSED, sorry.", True),
]


def test_transcript_check_when_a_run_is_verified_then_a_number_within_another_earns_nothing(
    stage: Stage,
) -> None:
    """Case VF-03."""
    said = {f"K{number}": row for number, row in enumerate(SAID, 1)}
    stage.tasks = [task(berth, checks=[{"transcript": {"contains": row[0]}}]) for berth, row in said.items()]
    stage.parts[IDLE] = lambda berth, _body: said[berth][1]
    # The customer's words and a tool's are not the agent's.
    stage.parts[GOOD] = lambda berth, _body: "Done."
    assert stage.run().code == 0
    found = dict(stage.rows(f"select task_id, success from sessions where agent = '{IDLE}'"))
    assert {row: bool(found[f"free-{berth}"]) for berth, row in said.items()} == {row: row[2] for row in SAID}
    assert stage.rows(f"select distinct success, reward from sessions where agent = '{GOOD}'") == [(0, 0.0)]


CHECKS = """
def holds(evidence):
    return evidence.query("select count(*) from berths where state = 'free'") == [(1,)]

def breaks(evidence):
    raise RuntimeError("the rule book is gone")

def writes(evidence):
    return bool(evidence.query("update berths set state = 'free' returning 1"))

def maybe(evidence):
    return 1
"""
HOLDS = {"name": "holds", "python": "harbour_rules:holds"}
# A task's checks -> what is found of the agent that frees the berth and of the one that does nothing:
# (reward, success, fault), and the pair's outcome.
KINDS: dict[str, tuple[list[dict[str, Any]], tuple[Any, ...], tuple[Any, ...], str]] = {
    "all met or none": ([freed("K1"), HOLDS], (1.0, 1, None), (0.0, 0, None), "correct"),
    "by weight": (
        [
            freed("K2") | {"weight": 3.0},
            {"name": "looked", "tool_called": {"name": "berth_sheet"}, "required": False},
        ],
        (0.75, 1, None),
        (0.0, 0, None),
        "correct",
    ),
    "doing nothing is right": (
        [{"unchanged": "all"}, {"tool_not_called": {"name": "free_berth"}}],
        (0.0, 0, None),
        (1.0, 1, None),
        "misselected",
    ),
    "what a tool said": (
        [{"json": {"of": "tool:free_berth", "path": "$.changed", "equals": 1}}],
        (1.0, 1, None),
        (0.0, 0, None),
        "correct",
    ),
    "a rule that breaks": (
        [freed("K5"), {"python": "harbour_rules:breaks"}],
        (None, None, "verifier"),
        (None, None, "verifier"),
        "unverified",
    ),
    "a rule that writes": (
        [{"python": "harbour_rules:writes"}],
        (None, None, "verifier"),
        (None, None, "verifier"),
        "unverified",
    ),
    "a rule that does not say": (
        [{"python": "harbour_rules:maybe"}],
        (None, None, "verifier"),
        (None, None, "verifier"),
        "unverified",
    ),
    "a table that the agent dropped": (
        [{"name": "notes kept", "sql": "select count(*) from notes", "rows": [[0]]}],
        (None, None, "verifier"),
        (1.0, 1, None),
        "unverified",
    ),
    "a model's label alone": (
        [{"llm": "Was the customer told when the berth is free?"}],
        (None, None, None),
        (None, None, None),
        "unverified",
    ),
    "a model's label beside a rule": (
        [freed("K10"), {"llm": "Was it kind?", "weight": 9.0}],
        (1.0, 1, None),
        (0.0, 0, None),
        "correct",
    ),
}  # fmt: skip


def test_verify_when_checks_differ_then_each_finding_is_true_false_or_null_and_never_guessed(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "harbour_rules.py").write_text(CHECKS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    berths = {name: f"K{number}" for number, name in enumerate(KINDS, 1)}
    stage.more_sql = "create table notes (note text);"
    nothing: dict[str, Any] = {"type": "object", "properties": {}}
    drop = {"name": "drop_notes", "description": "-", "parameters": nothing, "sql": ["drop table notes"]}
    stage.tools = [*TOOLS, drop]
    stage.tasks = [task(berths[name], checks=checks) for name, (checks, *_) in KINDS.items()]
    dropping = berths["a table that the agent dropped"]
    stage.parts[GOOD] = lambda berth, body: (
        calling("drop_notes", {}) if berth == dropping and body["messages"][-1]["role"] == "user" else None
    )
    done = stage.run()

    assert done.code == 0, done.stderr
    for name, (_, good, idle, outcome) in KINDS.items():
        found = stage.rows(
            "select reward, success, fault from sessions "
            f"where task_id = 'free-{berths[name]}' order by agent"
        )
        assert found == [good, idle], name
        ((stored, success_a, reward_b, misselected),) = stage.rows(
            "select outcome, success_a, reward_b, misselected from audit_pairs "
            f"where task_id = 'free-{berths[name]}'"
        )
        if name != "a table that the agent dropped":  # there the judge saw no call it could prefer
            assert stored == outcome, name
        assert (success_a, reward_b) == (good[1], idle[0]), name
        expected = {"correct": 0, "misselected": 1, "unverified": None}[outcome]
        assert misselected == expected, name
    # Each check that could not run says why.
    evidence = {
        check["evidence"]
        for (row,) in stage.rows("select checks_json from sessions where fault = 'verifier'")
        for check in json.loads(row)
        if check["passed"] is None
    }
    assert evidence == {
        "cannot run: the rule book is gone",
        "cannot run: only reading is allowed here",
        "cannot run: harbour_rules:maybe said 1, expected true or false",
        "cannot run: no such table: notes",
    }
    # Nobody's failure: no session of a broken check counts in its agent's mean, nor is it asked again.
    before = stage.server.requests
    assert stage("run", "-c", str(stage.written()), "--resume", "latest").code == 0
    assert stage.server.requests == before
