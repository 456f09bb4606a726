"""Panels whose calls failed, asked again: what is judged anew and what is scored are one and the same."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import yaml
from server import ChatServer, Say, refusing
from sessions_made import tau2_results, tau2_run


def verdict(winner: str, first: float = 4, second: float = 1) -> Say:
    side = {"evidence": "e", "done": True}
    found = {"first": side, "second": side, "score_first": first, "score_second": second, "winner": winner}
    return Say(text=json.dumps(found))


class Judged:
    """One recorded pair under judges that answer as the test says, by (model, order of asking)."""

    def __init__(self, folder: Path, here: Callable[..., Any], server: ChatServer) -> None:
        self.folder, self.here, self.server = folder, here, server
        files = []
        for agent, reward in (("v-1", 1.0), ("v-2", 0.0)):
            path = folder / f"{agent}.json"
            path.write_text(json.dumps(tau2_results(agent, tau2_run("t", reward))), encoding="utf-8")
            files.append(path)
        assert here("import", "tau2", *files).code == 0

    def judge(self, panel: Any, *arguments: str, **more: Any) -> Any:
        members = panel["members"] if isinstance(panel, dict) else [panel]
        behind = {"role": "llm_judge", "base_url": self.server.base_url, "attempts": 1, "timeout_s": 5}
        profiles = [{"name": name, "model": name} | behind for name in members]
        config = {"profiles": profiles, "judges": [panel], "max_error_rate": 1.0} | more
        path = self.folder / "judges.yaml"
        path.write_text(yaml.safe_dump(config), encoding="utf-8")
        return self.here("judge", "--run", "latest", "-c", path, "-j", "1", *arguments)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "audit.db")) as connection:
            return connection.execute(query).fetchall()


SATISFIED = Say(text='{"evidence": "e", "done": true, "satisfaction": 0.5}')


def test_scores_when_the_verdict_cannot_be_read_then_they_are_no_scores(
    tmp_path: Path, here: Callable[..., Any], gateway: Callable[..., ChatServer]
) -> None:
    server = gateway(
        lambda body: verdict("neither", 5, 0) if "<<<FIRST" in body["messages"][-1]["content"] else SATISFIED
    )
    judged = Judged(tmp_path, here, server)
    assert judged.judge("j").code == 0
    query = "select judge_score_a, judge_score_b, judge_gap, outcome from audit_pairs"
    assert judged.rows(query) == [(None, None, None, "unreadable")]


def test_contested_panel_when_failed_calls_are_asked_again_then_every_stored_vote_counts(
    tmp_path: Path, here: Callable[..., Any], gateway: Callable[..., ChatServer]
) -> None:
    broken = refusing("not now", 400)
    said: dict[str, list[Say]] = {
        # AB, BA; then AB again, twice because it cannot be read.
        "j1": [broken, verdict("second"), Say(text="I cannot tell."), Say(text="I cannot tell.")],
        "j2": [broken, verdict("first"), verdict("first")],
    }

    def answer(body: dict[str, Any]) -> Say:
        if "<<<FIRST" not in body["messages"][-1]["content"]:
            return SATISFIED
        return said[body["model"]].pop(0)

    judged = Judged(tmp_path, here, gateway(answer))
    panel = {"members": ["j1", "j2"], "escalate": "contested", "contested_below": 0.0}
    assert judged.judge(panel, swap_rule="net_vote").code == 0
    assert judged.judge(panel, "--retry-errors", swap_rule="net_vote").code == 0
    assert said == {"j1": [], "j2": []}
    stored = judged.rows("select pref_ab, pref_ba, outcome from audit_pairs")
    # AB: one cannot be read, the other names A. BA: one names A, the other B. No majority in either.
    assert stored == [(None, None, "unreadable")]
    again = judged.judge(panel, "--retry-errors", swap_rule="net_vote")
    assert again.code == 0
    assert judged.rows("select pref_ab, pref_ba, outcome from audit_pairs") == stored
    here("score", "latest")
    assert judged.rows("select pref_ab, pref_ba, outcome from audit_pairs") == stored
