"""run_progress: how far each stage of each run has come."""

from typing import Any

T = "2026-03-05T17:15:00.000Z"


def test_run_when_half_way_then_each_stage_is_counted_by_itself(given: Any) -> None:
    given.run("r1", status="running", finished_at=None)
    given.run("r2", name="nightly", kind="import", finished_at=T)
    for number in range(3):
        given.session(f"s{number}", verified_at=T if number else None)
    given.pairs(1, "correct", judged_at=T, scored_at=T)
    given.pairs(2, None, judged_at=T)
    given.pairs(3, None)
    given.call()
    given.call(parse_status="unreadable")
    given.call(parse_status="error")
    given.pairs(1, "correct", run_id="r2", judged_at=T, scored_at=T)

    columns = (
        "run_id, name, kind, status, sessions, sessions_verified, pairs, pairs_judged, pairs_scored, "
        "calls, calls_failed, created_at, finished_at"
    )
    assert given.rows(f"select {columns} from run_progress order by run_id") == [
        ("r1", "r1", "live", "running", 3, 2, 6, 3, 1, 3, 1, T, None),
        ("r2", "nightly", "import", "complete", 0, 0, 1, 1, 1, 0, 0, T, T),
    ]


def test_run_when_nothing_is_in_it_then_is_a_row_of_zeros(given: Any) -> None:
    given.run()
    assert given.rows(
        "select sessions, sessions_verified, pairs, pairs_judged, pairs_scored, calls, calls_failed "
        "from run_progress"
    ) == [(0, 0, 0, 0, 0, 0, 0)]
