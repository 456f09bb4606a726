"""The worst rows of a live run, on its page: both sessions as they were, and the judge's own reasons."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_read import Page, check, check_inert
from staged import GOOD, IDLE, JUDGE, Stage, blocks, task, verdict

from audit.doors import db
from audit.pipeline.worst import AT_MOST, cut, report_with_worst


def test_page_when_a_live_run_is_done_then_it_has_every_part_and_the_figures_of_json(
    here: Callable[..., Any], small: Callable[..., Path], tmp_path: Path
) -> None:
    """Three synthetic agents on three tasks: pairs, agents, position, satisfaction, cost, worst rows."""
    assert here("run", "-c", small()).code == 0
    done = here("report", "--html", tmp_path / "page.html", "--json")
    assert (done.code, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    seen = check(page, report)
    check_inert(page)
    assert {title for title, _, _ in page.pictures} >= {
        "Misselection by reward gap",
        "Position bias by reward gap",
        "Satisfied but failed, over cuts",
    }
    assert {
        "satisfaction.satisfied_failed.k", "satisfaction.base_failure", "agents.2.mean_reward", "cost.calls",
        "cost.run_calls.agent", "cost.agents_tokens", "position.consistent", "categories.0.accuracy",
    } <= seen  # fmt: skip
    for key in ("misselected", "inconsistent"):
        assert page.text.count(f". {key}, task ") == min(AT_MOST, report["pairs"][key])


def test_page_when_a_judge_prefers_the_idle_agent_then_both_sessions_and_its_reasons_are_there(
    stage: Stage,
) -> None:
    """A judge that always names the session without the call, and says why of each."""

    def judging(_berth: str, body: dict[str, object]) -> str | None:
        shown = blocks(body)
        if len(shown) < 2:
            return None
        first_acts = "calls free_berth" in shown[0]
        found = json.loads(verdict("second" if first_acts else "first"))
        for place, acts in (("first", first_acts), ("second", not first_acts)):
            found[place]["evidence"] = "it is <b>curt</b>" if acts else "it is so kind"
        return json.dumps(found)

    stage.tasks = [task(f"K{number}") for number in range(1, 4)]
    stage.parts[JUDGE] = judging
    done = stage.run()
    assert done.code == 0, done.stderr
    engine = db.open_database(f"sqlite:///{stage.database}", create=False)
    try:
        report, worst = report_with_worst(engine, "latest")
    finally:
        engine.dispose()
    assert (report["pairs"]["misselected"], len(worst)) == (3, 3)
    pair = worst[0]
    good, idle = sorted(pair["sides"], key=lambda side: side["agent"] != GOOD)
    assert (good["agent"], good["reward"], idle["agent"], idle["reward"]) == (GOOD, 1, IDLE, 0)
    assert pair["judge_pref"] == idle["side"]
    assert "agent calls free_berth" in good["said"]
    assert "agent calls free_berth" not in idle["said"]
    assert (good["failed_checks"], [name for name, _ in idle["failed_checks"]]) == ([], ["berth is free"])
    assert {(reply["order"], reply["preference"]) for reply in pair["replies"]} == {
        ("AB", idle["side"]),
        ("BA", idle["side"]),
    }
    for reply in pair["replies"]:
        assert sorted(reply["reasons"]) == sorted(
            [(good["side"], "it is <b>curt</b>"), (idle["side"], "it is so kind")]
        )
        assert "&lt;" not in reply["raw"]


@pytest.mark.parametrize(
    ("text", "limit", "kept"),
    [
        ("abc", 3, "abc"),
        ("", 3, ""),
        ("abcdef", 3, "ab […3 characters left out…] f"),
        ("a" * 1000 + "b" * 1000, 300, "a" * 200 + " […1,700 characters left out…] " + "b" * 100),
    ],
)
def test_text_when_it_is_too_long_then_its_ends_are_kept_and_the_rest_counted(
    text: str, limit: int, kept: str
) -> None:
    assert cut(text, limit) == kept
