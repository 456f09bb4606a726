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
