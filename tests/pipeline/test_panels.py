"""Panels: several judges as one gate, one row a pair; who is asked, how they vote, what is counted."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from live_rows import rows, synthetic_profile
from server import ChatServer, Say, refusing

from audit.offline.serve import serve

AGENTS = ["agent-95", "agent-80", "agent-50", "agent-30"]
SESSIONS, PAIRS = 12, 18  # three tasks, four agents, so six pairs of agents
MEMBERS = ["rather", "coin", "slanted"]


@pytest.fixture
def paneled(small: Callable[..., Path]) -> Callable[..., Path]:
    """The small config with three judges that often differ, and `judges` as given."""

    def write(judges: Any, server: ChatServer | None = None, **changes: Any) -> Path:
        embedded = yaml.safe_load(small().read_text(encoding="utf-8"))["profiles"]
        models = dict(zip(MEMBERS, ("judge-60", "judge-coin", "judge-40-pos50"), strict=True))
        profiles = [profile for profile in embedded if profile["role"] != "llm_judge"]
        profiles += [synthetic_profile(name, "llm_judge", model) for name, model in models.items()]
        return small(server, profiles=profiles, judges=judges, agents=AGENTS, **changes)

    return write


def said_by_member(file: Path) -> dict[str, dict[str, dict[str, str | None]]]:
    """pair_id -> order -> profile -> the preference its last call was read as."""
    said: dict[str, dict[str, dict[str, str | None]]] = defaultdict(lambda: {"AB": {}, "BA": {}})
    for pair_id, order, profile, preference in rows(
        file,
        "select pair_id, presented_order, profile, preference from judge_logs where role = 'judge' "
        "order by log_id",
    ):
        said[pair_id][order][profile] = preference
    return said


def most_say(said: dict[str, str | None]) -> str | None:
    preference, votes = Counter(said.values()).most_common(1)[0]
    return preference if 2 * votes > len(said) else None


def all_say(said: dict[str, str | None]) -> str | None:
    return next(iter(said.values())) if len(set(said.values())) == 1 else None


@pytest.mark.parametrize(("rule", "count"), [("majority", most_say), ("unanimous", all_say)])
def test_panel_when_three_judges_vote_then_one_row_a_pair_holds_what_the_rule_makes_of_their_answers(
    rule: str,
    count: Callable[[dict[str, str | None]], str | None],
    here: Any,
    paneled: Callable[..., Path],
    tmp_path: Path,
) -> None:
    done = here("run", "-c", paneled({"members": MEMBERS, "vote": rule}))
    assert done.code == 0, done.stderr

    file = tmp_path / "audit.db"
    said = said_by_member(file)
    found = rows(file, "select pair_id, pref_ab, pref_ba, judge_pref, outcome, gate from audit_pairs")
    assert len(found) == len(said) == PAIRS
    assert {gate for *_, gate in found} == {"panel(rather+coin+slanted)"}
    for pair_id, ab, ba, preference, outcome, _ in found:
        assert (ab, ba) == (count(said[pair_id]["AB"]), count(said[pair_id]["BA"])), said[pair_id]
        agreed = ab if ab == ba else None
        assert preference == agreed
        assert (outcome == "inconsistent") == (agreed is None)
    # Both ways of a vote occur, or the rule was not put to the test.
    assert {None} < {ab for _, ab, *_ in found}
    asked = "select profile, count(*) from judge_logs where role = 'judge' group by 1"
    assert dict(rows(file, asked)) == dict.fromkeys(MEMBERS, 2 * PAIRS)


def test_report_when_a_run_has_two_gates_then_each_has_its_own_rows_answers_and_tokens(
    here: Any, paneled: Callable[..., Path], tmp_path: Path
) -> None:
    panel = {"members": MEMBERS, "name": "board"}
    done = here("run", "-c", paneled([panel, "coin"]))
    assert done.code == 0, done.stderr
    file = tmp_path / "audit.db"
    assert dict(rows(file, "select gate, count(*) from audit_pairs group by 1")) == {
        "board": PAIRS,
        "coin": PAIRS,
    }
    # What each gate cost, from the calls themselves.
    spent = dict(
        rows(
            file,
            "select gate, count(*) || ' ' || sum(judge_logs.total_tokens) from judge_logs "
            "inner join audit_pairs on audit_pairs.pair_id = judge_logs.pair_id group by 1",
        )
    )
    for gate, members in (("board", 3), ("coin", 1)):
        shown_report = here("--json", "report", "--gate", gate)
        assert shown_report.code == 0, shown_report.stderr
        found = json.loads(shown_report.stdout)
        assert found["run"]["gate"] == gate
        assert found["pairs"]["total"] == PAIRS
        assert found["answers"]["total"] == found["cost"]["calls"] == 2 * PAIRS * members
        assert f"{found['cost']['calls']} {found['cost']['total_tokens']}" == spent[gate]
    calls = json.loads(here("--json", "run", "--resume", "latest", "-c", tmp_path / "audit.yaml").stdout)
    assert calls["calls"] == 0
    # The satisfaction question is one a session, however many gates there are.
    assert rows(file, "select count(*) from judge_logs where role = 'satisfaction'") == [(SESSIONS,)]
    wrong = here("report", "--gate", "rather")
    assert (wrong.code, "only board, coin" in wrong.stderr) == (1, True)


def test_escalation_when_only_contested_pairs_go_on_then_no_other_is_asked_of_the_later_judges(
    here: Any, paneled: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    server = gateway(lambda body: Say(body=serve(body)))
    cut = 0.4
    panel = {"members": MEMBERS, "escalate": "contested", "contested_below": cut}
    done = here("run", "-c", paneled(panel, server))
    assert done.code == 0, done.stderr

    file = tmp_path / "audit.db"
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: {"A": [], "B": []})
    for pair_id, order, raw in rows(
        file,
        "select pair_id, presented_order, raw_output from judge_logs "
        "where role = 'judge' and profile = 'rather'",
    ):
        given = json.loads(raw)
        for side, position in zip(order, ("first", "second"), strict=True):
            scores[pair_id][side].append(given[f"score_{position}"])
    said = said_by_member(file)
    inconsistent = {pair for pair in said if said[pair]["AB"]["rather"] != said[pair]["BA"]["rather"]}
    close = {pair for pair, of in scores.items() if abs(sum(of["A"]) - sum(of["B"])) / 2 < cut}
    contested = inconsistent | close
    assert inconsistent - close
    assert close - inconsistent
    assert len(contested) < PAIRS

    assert {pair for pair in said if len(said[pair]["AB"]) == 3} == contested
    assert all(len(said[pair][order]) in (1, 3) for pair in said for order in ("AB", "BA"))
    asked = Counter(body["model"] for body in server.bodies if body["model"].startswith("judge"))
    assert asked == {
        "judge-60": 2 * PAIRS + SESSIONS,
        "judge-coin": 2 * len(contested),
        "judge-40-pos50": 2 * len(contested),
    }
    for pair_id, ab, ba in rows(file, "select pair_id, pref_ab, pref_ba from audit_pairs"):
        assert (ab, ba) == (most_say(said[pair_id]["AB"]), most_say(said[pair_id]["BA"]))


def shown(body: dict[str, Any]) -> tuple[str, str]:
    """The two transcripts of a pair question, first and second."""
    question = body["messages"][-1]["content"]
    return (
        question.split("<<<FIRST ")[1].split("<<<END")[0].split("\n", 1)[1],
        question.split("<<<SECOND ")[1].split("<<<END")[0].split("\n", 1)[1],
    )


def verdict(winner: str) -> Say:
    side = {"evidence": "e", "done": True}
    scores = (
        {"score_first": 4, "score_second": 1} if winner == "first" else {"score_first": 1, "score_second": 4}
    )
    return Say(text=json.dumps({"first": side, "second": side} | scores | {"winner": winner}))


# Three judges: the first one's calls fail, one is always for the longer transcript, one always against it.
FAILURES = {
    # They differ whatever the first would have said.
    "unanimous": "inconsistent",
    # The first would have decided.
    "majority": "incomplete",
}


@pytest.mark.parametrize("rule", FAILURES)
def test_panel_when_a_member_fails_then_it_matters_only_where_its_vote_could_have(
    rule: str, here: Any, paneled: Callable[..., Path], gateway: Callable[..., ChatServer], tmp_path: Path
) -> None:
    is_broken = True

    def answer(body: dict[str, Any]) -> Say:
        if not body["model"].startswith("judge") or "<<<FIRST" not in body["messages"][-1]["content"]:
            return Say(body=serve(body))
        first, second = shown(body)
        longer_first = (len(first), first) > (len(second), second)
        if body["model"] == "judge-60" and is_broken:
            return refusing("no such deployment", 400)
        return verdict("first" if longer_first == (body["model"] != "judge-coin") else "second")

    server = gateway(answer)
    config = paneled({"members": MEMBERS, "vote": rule}, server, max_error_rate=1.0)
    done = here("run", "-c", config)
    assert done.code == 0, done.stderr
    file = tmp_path / "audit.db"
    outcomes = "select outcome, count(*) from audit_pairs where outcome <> 'reward_tie' group by 1"
    # Two sessions that read the same have no longer one.
    assert [outcome for outcome, _ in rows(file, outcomes)] == [FAILURES[rule]]

    # The failed member is asked again, the others are not, and the vote is taken anew.
    is_broken = False
    server.reset()
    again = here("run", "-c", config, "--resume", "latest", "--retry-errors")
    assert again.code == 0, again.stderr
    assert server.requests == 2 * PAIRS
    decided = {outcome for outcome, _ in rows(file, outcomes)}
    assert decided <= ({"inconsistent"} if rule == "unanimous" else {"correct", "misselected"})
    assert rows(file, "select count(*) from audit_pairs") == [(PAIRS,)]


TWICE = {
    "a gate": (["coin", "coin"], "judges: the gate 'coin' stands twice"),
    "a member": ({"members": ["coin", "rather", "coin"]}, "judges: 'coin' is a member of one panel twice"),
    "a gate by its given name": (
        [{"members": ["coin", "rather"], "name": "rather"}, "rather"],
        "judges: the gate 'rather' stands twice",
    ),
}


@pytest.mark.parametrize("what", TWICE)
def test_panel_when_a_gate_or_a_member_stands_twice_then_it_is_refused(
    what: str, here: Any, paneled: Callable[..., Path]
) -> None:
    judges, message = TWICE[what]
    done = here("run", "-c", paneled(judges))
    assert (done.code, message in done.stderr) == (1, True), done.stderr
