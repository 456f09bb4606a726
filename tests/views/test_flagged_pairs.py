"""flagged_pairs: every reason not to trust a pair, one row each."""

from typing import Any

import pytest

from audit.words.names import OUTCOMES


def flags(given: Any) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = sorted(given.rows("select pair_id, flag from flagged_pairs"))
    return found


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_pair_when_not_correct_then_is_flagged_with_its_outcome(given: Any, outcome: str) -> None:
    given.run()
    given.pairs(1, outcome, "far")
    assert flags(given) == ([] if outcome == "correct" else [("p1", outcome)])


FLAGS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "nothing wrong": ({}, {}, []),
    "both failed": ({"success_a": 0, "success_b": 0}, {}, ["both_failed"]),
    "one failed": ({"success_a": 0, "success_b": 1}, {}, []),
    "one failed, the other unknown": ({"success_a": 0, "success_b": None}, {}, []),
    "near tie": ({"gap_bucket": "near"}, {}, ["near_tie"]),
    "no bucket": ({"gap_bucket": "unknown"}, {}, []),
    "no gap": ({"gap_bucket": "unknown"}, {}, []),
    "labelled by a model": ({}, {"label_source": "llm"}, ["llm_labelled"]),
    "labelled by a person": ({}, {"label_source": "human"}, []),
    "the simulator's fault": ({}, {"fault": "simulator"}, ["simulator_fault"]),
    "the verifier's fault": ({}, {"fault": "verifier"}, ["verifier_fault"]),
    "the gateway's fault": ({}, {"fault": "gateway"}, ["gateway_fault"]),
    "the agent's fault is what is measured": ({}, {"fault": "agent"}, []),
    "several": (
        {"gap_bucket": "near", "success_a": 0, "success_b": 0},
        {"fault": "gateway", "label_source": "llm"},
        ["both_failed", "gateway_fault", "llm_labelled", "near_tie"],
    ),
}


@pytest.mark.parametrize("side", ["session_a", "session_b"])
@pytest.mark.parametrize(("pair", "session", "expected"), FLAGS.values(), ids=FLAGS.keys())
def test_pair_when_it_or_a_session_has_a_mark_then_has_one_row_for_each_flag(
    given: Any, pair: dict[str, Any], session: dict[str, Any], expected: list[str], side: str
) -> None:
    given.run()
    given.session("s1", **session)
    given.pairs(1, "correct", **{"gap_bucket": "far", **pair, side: "s1"})
    assert flags(given) == [("p1", flag) for flag in expected]


def test_pair_when_both_sessions_have_the_same_mark_then_is_flagged_once(given: Any) -> None:
    given.run()
    given.session("s1", fault="gateway", label_source="llm")
    given.session("s2", fault="gateway", label_source="llm")
    given.session("s3", fault="simulator")
    given.pairs(1, "correct", "far", session_a="s1", session_b="s2")
    given.pairs(1, "correct", "far", session_a="s2", session_b="s3")
    assert flags(given) == [
        ("p1", "gateway_fault"),
        ("p1", "llm_labelled"),
        ("p2", "gateway_fault"),
        ("p2", "llm_labelled"),
        ("p2", "simulator_fault"),
    ]


def test_pairs_when_without_sessions_then_do_not_empty_the_result(given: Any) -> None:
    """A NULL in `in` or `not in` makes a condition unknown for every row."""
    given.run()
    given.session("s1", label_source="llm")
    given.session("s2", label_source=None, fault=None)
    given.pairs(1, "correct", "far")
    given.pairs(1, None, "unknown")
    given.pairs(1, "misselected", "far", session_a="s1")
    given.pairs(1, "correct", "far", session_a="s2", session_b=None)
    assert flags(given) == [("p3", "llm_labelled"), ("p3", "misselected")]


def test_flag_when_read_then_tells_where_the_pair_is(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given.pairs(
        1,
        "inconsistent",
        "far",
        run_id="r2",
        gate="g2",
        source_pair_id="007",
        category="airline",
        reward_gap=0.5,
    )
    assert given.rows("select * from flagged_pairs") == [
        ("p1", "inconsistent", "r2", "g2", "007", "t1", "airline", "far", 0.5)
    ]
    assert given.rows("select * from flagged_pairs where run_id = 'r1'") == []


# rewards and judge_pref of the pair -> what a person prefers -> is that another side?
PREFERRED: dict[str, tuple[dict[str, Any], list[str], bool]] = {
    "the verifier's side": ({"reward_a": 1.0, "reward_b": 0.0, "judge_pref": "A"}, ["A"], False),
    "the other side": ({"reward_a": 1.0, "reward_b": 0.0, "judge_pref": "A"}, ["B"], True),
    "a tie": ({"reward_a": 0.2, "reward_b": 0.9, "judge_pref": "B"}, ["tie"], True),
    "the verifier's side, which the judge missed": (
        {"reward_a": 1.0, "reward_b": 0.0, "judge_pref": "B"},
        ["A"],
        False,
    ),
    "the judge's side, nothing verified": ({"reward_a": None, "judge_pref": "B"}, ["b"], False),
    "another than the judge's, nothing verified": ({"reward_a": None, "judge_pref": "B"}, ["A"], True),
    "a side where nobody says any": ({"judge_pref": None}, ["A"], False),
    "first the other, then the verifier's": ({"reward_a": 1.0, "reward_b": 0.0}, ["B", "A"], False),
    "first the verifier's, then the other": ({"reward_a": 1.0, "reward_b": 0.0}, ["A", "B"], True),
}


@pytest.mark.parametrize(("pair", "said", "disagrees"), PREFERRED.values(), ids=PREFERRED.keys())
def test_pair_when_a_person_prefers_a_side_then_another_than_the_known_one_is_flagged(
    given: Any, pair: dict[str, Any], said: list[str], disagrees: bool
) -> None:
    given.run()
    given.pairs(2, "correct", "far", **pair)
    for value in said:
        given.label(value, pair_id="p1")
    assert flags(given) == ([("p1", "human_disagrees")] if disagrees else [])


@pytest.mark.parametrize("side", ["session_a", "session_b"])
@pytest.mark.parametrize(
    ("success", "said", "disagrees"),
    [(1, "true", False), (1, "0", True), (0, "1", True), (0, "False", False), (None, "1", False)],
)
def test_pair_when_a_person_says_of_a_session_what_the_verifier_denies_then_is_flagged(
    given: Any, side: str, success: int | None, said: str, disagrees: bool
) -> None:
    given.run()
    given.session("s1", success=success)
    given.session("s2", success=1)
    other = "session_b" if side == "session_a" else "session_a"
    given.pairs(1, "correct", "far", **{side: "s1", other: "s2"})
    given.pairs(1, "correct", "far", **{other: "s2"})
    given.label(said, "success", session_id="s1")
    assert flags(given) == ([("p1", "human_disagrees")] if disagrees else [])


def test_pair_when_one_of_several_people_disagrees_then_is_flagged_once(given: Any) -> None:
    given.run()
    given.session("s1", success=1)
    given.pairs(1, "correct", "far", reward_a=1.0, reward_b=0.0, session_a="s1")
    given.label("A", pair_id="p1", annotator="bo")
    given.label("B", pair_id="p1", annotator="ann")
    given.label("0", "success", session_id="s1", annotator="ann")
    assert flags(given) == [("p1", "human_disagrees")]


def test_people_when_they_cannot_tell_then_they_do_not_disagree(given: Any) -> None:
    given.run()
    given.session("s1", success=1)
    given.pairs(1, "correct", "far", reward_a=1.0, reward_b=0.0, session_a="s1")
    given.label("cannot tell", pair_id="p1")
    given.label("cannot tell", "success", session_id="s1")
    assert flags(given) == []


def test_word_when_a_later_one_was_stored_before_it_then_the_later_one_counts(given: Any) -> None:
    given.run()
    given.pairs(1, "correct", "far", reward_a=1.0, reward_b=0.0)
    given.label("A", pair_id="p1", created_at="2026-03-06T00:00:00.000Z")
    given.label("B", pair_id="p1", created_at="2026-03-05T00:00:00.000Z")
    assert flags(given) == []


@pytest.mark.parametrize(
    ("source", "said", "expected"),
    [
        ("llm", "0", ["both_failed", "human_disagrees", "llm_labelled"]),
        ("external", "0", ["both_failed", "human_disagrees"]),
        ("rule", "0", ["human_disagrees"]),
        ("external", "1", []),
    ],
)
def test_both_failed_when_people_say_so_then_it_is_but_where_a_rule_tells(
    given: Any, source: str, said: str, expected: list[str]
) -> None:
    given.run()
    given.session("s1", success=1, label_source=source)
    given.session("s2", success=0, label_source="rule")
    given.pairs(1, "correct", "far", session_a="s1", session_b="s2", success_a=1, success_b=0)
    given.label(said, "success", session_id="s1")
    assert flags(given) == [("p1", flag) for flag in expected]


def test_both_failed_when_people_say_one_was_done_then_it_is_not(given: Any) -> None:
    given.run()
    given.session("s1", success=0, label_source="external")
    given.pairs(1, "correct", "far", session_a="s1", success_a=0, success_b=0)
    given.label("1", "success", session_id="s1")
    assert flags(given) == [("p1", "human_disagrees")]
