"""The whole round: a run, a sample of it on the page, labels by keyboard, then the corrected report."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chromium import chromium, label_by_keyboard, needs_chromium
from local_server import served


def keys_of(file: Path) -> dict[int, str]:
    """Number of the item -> what a person presses who sees what the verifier sees."""
    connection = sqlite3.connect(file)
    found = connection.execute(
        "select r.shown_first, p.reward_a, p.reward_b, p.success_a, p.success_b from review_items as r "
        "join audit_pairs as p on p.pair_id = r.pair_id order by r.review_id"
    ).fetchall()
    connection.close()
    keys = {}
    for number, (side, reward_a, reward_b, success_a, success_b) in enumerate(found, 1):
        turn = 1 if side == "A" else -1
        first, second = (reward_a, reward_b)[::turn]
        dones = (success_a, success_b)[::turn]
        choice = "t" if first == second else "a" if first > second else "b"
        keys[number] = choice + ("1" if dones[0] else "2") + ("4" if dones[1] else "5")
    return keys


@needs_chromium
def test_run_when_labelled_by_keyboard_then_the_report_holds_judge_and_verifier_to_it(
    here: Callable[..., Any], small: Callable[..., Path], tmp_path: Path
) -> None:
    # All of its pairs, so that no draw decides whether they are of many kinds.
    assert here("run", "-c", small(trials=2)).code == 0
    assert here("review", "export", "-o", tmp_path / "look.json", "--n", "18").code == 0
    file = tmp_path / "audit.db"
    keys = keys_of(file)
    assert len(keys) == 18
    assert len(set(keys.values())) > 2

    async def label(url: str) -> list[str]:
        async with chromium() as tab:
            await tab.open(url)
            await tab.until("document.getElementById('answers')")
            order = iter(keys.values())
            await label_by_keyboard(tab, lambda _shown: next(order))
            return tab.errors + tab.dialogs

    with served(f"sqlite:///{file}", "review", "serve", "--annotator", "ann", cwd=tmp_path) as page:
        assert asyncio.run(label(page.url)) == []

    found = json.loads(here("report", "--json").stdout)["review"]
    assert (found["exported"], found["labelled"], found["conflicts"]) == (18, 18, 0)
    assert [one["annotator"] for one in found["annotators"]] == ["ann"]
    # They say what the verifier says: nothing is denied.
    assert found["misselected"]["disagree"] == 0
    assert found["satisfied_failed"]["disagree"] == 0
    # A tie of verified rewards tells no side apart: there people are held against the judge, who named one.
    assert json.loads(here("sql", "--json", DENIED).stdout) == json.loads(here("sql", "--json", NAMED).stdout)


DENIED = "select count(*) as n from flagged_pairs where flag = 'human_disagrees'"
NAMED = "select count(*) as n from audit_pairs where outcome = 'reward_tie' and judge_pref in ('A', 'B')"
