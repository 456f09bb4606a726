"""clean_pairs: the pairs that nothing in the database stands against, and which session is chosen."""

from typing import Any

import pytest

from audit.words.flags import STORED
from audit.words.names import OUTCOMES


def clean(given: Any) -> list[str]:
    return [row[0] for row in given.rows("select pair_id from clean_pairs order by pair_id")]


def unflagged(given: Any) -> list[str]:
    """The correct pairs without a flag that drops, by `flagged_pairs`."""
    flagged = {
        pair_id for pair_id, flag in given.rows("select pair_id, flag from flagged_pairs") if flag in STORED
    }
    found = [
        row[0]
        for row in given.rows("select pair_id from audit_pairs where outcome = 'correct' order by pair_id")
    ]
    return [pair_id for pair_id in found if pair_id not in flagged]


@pytest.mark.parametrize("outcome", [*OUTCOMES, None])
def test_pair_when_not_correct_then_is_not_clean(given: Any, outcome: str | None) -> None:
    given.run()
    given.pairs(1, outcome, "far", judge_pref="A")
    assert clean(given) == (["p1"] if outcome == "correct" else [])


# What is known of the pair and of one of its sessions -> is it clean?
KNOWN: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "nothing wrong": ({}, {}, True),
    "a near tie": ({"gap_bucket": "near"}, {}, True),
    "no gap": ({"gap_bucket": "unknown"}, {}, True),
    "one failed": ({"success_a": 1, "success_b": 0}, {}, True),
    "one failed, of the other nobody knows": ({"success_a": 0, "success_b": None}, {}, True),
    "both failed": ({"success_a": 0, "success_b": 0}, {}, False),
    "labelled by a model": ({}, {"label_source": "llm"}, False),
    "labelled by a person": ({}, {"label_source": "human"}, True),
    "the simulator's fault": ({}, {"fault": "simulator"}, False),
    "the verifier's fault": ({}, {"fault": "verifier"}, False),
    "the gateway's fault": ({}, {"fault": "gateway"}, False),
    "the agent's fault": ({}, {"fault": "agent"}, True),
}


@pytest.mark.parametrize("side", ["session_a", "session_b"])
@pytest.mark.parametrize(("pair", "session", "is_clean"), KNOWN.values(), ids=KNOWN.keys())
def test_pair_when_it_or_a_session_has_a_mark_then_is_clean_where_no_flag_drops_it(
    given: Any, pair: dict[str, Any], session: dict[str, Any], is_clean: bool, side: str
) -> None:
    given.run()
    given.session("s1", **session)
    given.pairs(1, "correct", **{"gap_bucket": "far", "judge_pref": "A", **pair, side: "s1"})
    assert clean(given) == (["p1"] if is_clean else []) == unflagged(given)


def test_pairs_when_people_have_looked_then_are_clean_where_no_newest_word_disagrees(given: Any) -> None:
    given.run()
    for number in range(1, 8):
        given.session(f"a{number}", success=1)
        given.session(f"b{number}", success=0)
        sides = {"session_a": f"a{number}", "session_b": f"b{number}", "reward_a": 1.0, "reward_b": 0.0}
        given.pairs(1, "correct", "far", judge_pref="A", **sides)
    given.label("a", pair_id="p1")
    given.label("tie", pair_id="p2")
    given.label("B", pair_id="p3")
    given.label("A", pair_id="p3")
    given.label("A", pair_id="p4")
    given.label("B", pair_id="p4", annotator="bo")
    given.label("0", "success", session_id="a5")
    given.label("yes", "success", session_id="b6")
    given.label("false", "success", session_id="b7")
    assert clean(given) == ["p1", "p3", "p7"] == unflagged(given)


def test_pairs_when_every_source_of_flags_holds_nulls_then_the_view_is_not_emptied(given: Any) -> None:
    """A NULL in `not in` makes a condition unknown for every row."""
    given.run()
    given.session("s1", success=None, fault=None, label_source=None)
    given.session("s2", success=1, fault="gateway")
    given.pairs(1, "correct", "far", judge_pref="A")
    given.pairs(1, "correct", "far", judge_pref="A", session_a="s1", session_b=None)
    given.pairs(1, "correct", "far", judge_pref="B", session_a=None, session_b="s2")
    given.pairs(1, "correct", "far", judge_pref="A", session_a=None, session_b=None)
    given.pairs(1, None, "far")
    given.label("0", "success", session_id="s1", pair_id=None)
    given.label("0", "success", session_id="s2", pair_id=None)
    given.label("B", pair_id="p1", session_id=None)
    assert clean(given) == ["p2", "p4"] == unflagged(given)


def test_pair_when_read_then_says_where_it_is_and_which_session_is_chosen(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given.session("s1", "r2", success=1)
    given.session("s2", "r2", success=0)
    known = {
        "pair_id": "p1", "run_id": "r2", "gate": "g2", "source_pair_id": "007", "task_id": "t1",
        "category": "airline", "trial": 2, "agent_a": "ash", "agent_b": "elm", "session_a": "s1",
        "session_b": "s2", "success_a": 1, "success_b": 0, "reward_a": 1.0, "reward_b": 0.0,
        "judge_pref": "A",
    }  # fmt: skip
    given.pairs(1, "correct", "far", reward_gap=0.5, **known)
    given.pairs(1, "correct", "far", **known | {"pair_id": "p2", "run_id": "r1", "judge_pref": "B"})
    found = given.rows("select * from clean_pairs where run_id = 'r2'")
    assert found == [(*known.values(), "s1", "s2", 0.5, "far")]
    assert given.rows(
        "select pair_id, chosen_session, rejected_session from clean_pairs where run_id = 'r1'"
    ) == [("p2", "s2", "s1")]


@pytest.mark.parametrize(
    ("source", "success", "said", "is_clean"),
    [
        ("external", None, ["0"], False),
        ("external", None, ["0", "1"], True),
        ("external", None, ["cannot tell"], True),
        ("rule", None, ["0"], False),
        ("external", 1, ["cannot tell"], True),
        ("external", 1, ["0"], False),
    ],
)
def test_pair_when_people_say_that_its_second_session_failed_too_then_is_not_clean(
    given: Any, source: str, success: int | None, said: list[str], is_clean: bool
) -> None:
    given.run()
    given.session("s1", success=0, label_source="rule")
    given.session("s2", success=success, label_source=source)
    given.pairs(
        1, "correct", "far", judge_pref="A", session_a="s1", session_b="s2", success_a=0, success_b=success
    )
    for number, value in enumerate(said):
        given.label(value, "success", session_id="s2", annotator=f"a{number}")
    given.label("cannot tell", pair_id="p1")
    assert clean(given) == (["p1"] if is_clean else []) == unflagged(given)
