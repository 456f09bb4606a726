"""satisfied_but_failed: one row a run and cut, with the base rate beside the rate."""

from typing import Any

import pytest


def test_sessions_when_counted_then_a_cut_holds_those_at_it_and_the_unverified_are_left_out(
    given: Any,
) -> None:
    given.run()
    for number, (satisfaction, success) in enumerate(
        [(0.9, 0), (0.8, 1), (0.79999999999, 0), (0.6, 1), (0.2, 0), (0.2, 1), (0.9, None), (None, 0)]
    ):
        given.session(f"s{number}", satisfaction=satisfaction, success=success)

    rows = given.rows(
        "select sessions, failed, satisfied, satisfied_failed, satisfied_failed_rate, base_failure_rate, "
        "relative_risk, j from satisfied_but_failed where cut > 0.75 and cut < 0.85"
    )
    assert len(rows) == 1
    assert rows[0][:4] == (6, 3, 3, 2)
    assert rows[0][4:] == pytest.approx((2 / 3, 1 / 2, 2.0, 1 / 3 - 2 / 3))


def test_cut_when_no_session_reaches_it_then_its_rate_is_null_and_the_base_rate_stays(given: Any) -> None:
    given.run("r1")
    given.run("r2")
    given.session("s1", satisfaction=0.3, success=1)
    given.session("s2", run_id="r2", satisfaction=1.0, success=0)

    assert given.rows(
        "select run_id, cut, satisfied, satisfied_failed_rate, base_failure_rate, relative_risk, j "
        "from satisfied_but_failed where cut > 0.95 order by run_id"
    ) == [("r1", 1.0, 0, None, 0.0, None, None), ("r2", 1.0, 1, 1.0, 1.0, None, None)]
    assert given.rows("select cut from satisfied_but_failed where run_id = 'r1' order by cut") == [
        (0.5,), (0.6,), (0.7,), (0.8,), (0.9,), (1.0,),
    ]  # fmt: skip


# label_source and success as stored, then (annotator, when, value) -> failed, at a cut that holds it
SAID: dict[str, tuple[str | None, int | None, list[tuple[str, str, str]], int | None]] = {
    "a rule stands above people": ("rule", 1, [("ann", "1", "0")], 0),
    "a rule that could not tell does not": ("rule", None, [("ann", "1", "0")], 1),
    "people stand above an outside label": ("external", 1, [("ann", "1", "0")], 1),
    "people stand above a model": ("llm", 0, [("ann", "1", "1")], 0),
    "people stand above nothing": (None, None, [("ann", "1", "1")], 0),
    "most people": ("llm", 1, [("ann", "1", "0"), ("bo", "1", "1"), ("cy", "1", "0")], 1),
    "as many as not": ("llm", 1, [("ann", "1", "0"), ("bo", "1", "1")], 0),
    "the newest word, not the last stored": ("llm", 1, [("ann", "2", "0"), ("ann", "1", "1")], 1),
    "who cannot tell says nothing": ("llm", 1, [("ann", "1", "cannot tell")], 0),
    "who can no longer tell says nothing": ("llm", 1, [("ann", "1", "0"), ("ann", "2", "cannot tell")], 0),
    "a word on a pair is none on a session": ("llm", 1, [], 0),
}


@pytest.mark.parametrize(("source", "success", "said", "failed"), SAID.values(), ids=SAID.keys())
def test_success_when_people_speak_then_theirs_counts_but_where_a_rule_tells(
    given: Any, source: str | None, success: int | None, said: list[tuple[str, str, str]], failed: int | None
) -> None:
    given.run()
    given.session("s1", satisfaction=1.0, success=success, label_source=source)
    given.pairs(1, "correct", "far", session_a="s1")
    given.label("B", pair_id="p1")
    for who, when, value in said:
        given.label(
            value, "success", session_id="s1", annotator=who, created_at=f"2026-03-0{when}T00:00:00.000Z"
        )
    assert given.rows("select sessions, failed from satisfied_but_failed where cut > 0.95") == [(1, failed)]
    assert given.rows("select success, label_source from sessions") == [(success, source)]
