"""Recorded sessions: all files of one import are one run, told apart, paired, and nothing else is kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sessions_made import SECRET, tau2_results, tau2_run, tau2_task, tau_run
from sqlalchemy import Engine, text

from audit.doors.db import open_database, reading, writing
from audit.pipeline.gating import give_gates
from audit.pipeline.importing import import_file
from audit.pipeline.reporting import report
from audit.pipeline.scoring import score_run
from audit.pipeline.wishes import Wish
from audit.words.errors import BadFile
from audit.words.records import Run
from audit.words.schema import metadata


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    engine = open_database(database_url, create=True)
    yield engine
    engine.dispose()


@pytest.fixture
def blank(sqlite_url: str) -> Iterator[Engine]:
    """SQLite alone, where nothing hangs on the database."""
    engine = open_database(sqlite_url, create=True)
    yield engine
    engine.dispose()


def wish(folder: Path, format_name: str, *contents: Any, **options: Any) -> Wish:
    """Each content as a file `0.json`, `1.json`..; `sessions` as JSON Lines."""
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"{number}.json"
        is_lines = format_name == "sessions"
        path.write_text("\n".join(map(json.dumps, content)) if is_lines else json.dumps(content))
        paths.append(path)
    return Wish(format_name, tuple(paths), **options)


def rows(engine: Engine, query: str) -> list[dict[str, Any]]:
    with reading(engine) as connection:
        return [dict(row) for row in connection.execute(text(query)).mappings()]


def session(task_id: str = "t", agent: str = "x", reward: float | None = 1.0, **more: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "bye"}]
    return {"task_id": task_id, "agent": agent, "reward": reward, "messages": said} | more


def test_import_when_tau2_files_of_two_agents_are_given_then_they_meet_in_one_run(
    engine: Engine, tmp_path: Path
) -> None:
    first = tau2_results("old", tau2_run("a", 1.0), tau2_run("b", 0.0), tau2_run("c", 1.0))
    second = tau2_results("new", tau2_run("c", 1.0), tau2_run("a", 0.0), tau2_run("d", 1.0))

    found = import_file(engine, wish(tmp_path, "tau2", first, second))

    assert (found.sessions, found.pairs, found.unpaired) == (6, 2, ())
    pairs = rows(
        engine,
        "select gate, task_id, category, agent_a, agent_b, success_a, success_b, reward_a, reward_b, "
        "session_gap, agent_gap, reward_gap, gap_bucket, outcome, misselected, pref_ab, judged_at "
        "from audit_pairs order by task_id",
    )
    common = {
        "gate": "unjudged", "category": "shop", "agent_a": "old", "agent_b": "new", "agent_gap": 0.5,
        "reward_gap": 0.5, "gap_bucket": "[0.3,..)", "misselected": None, "pref_ab": None, "judged_at": None,
    }  # fmt: skip
    assert pairs == [
        common
        | {"task_id": "a", "success_a": 1, "success_b": 0, "reward_a": 1.0, "reward_b": 0.0}
        | {"session_gap": 1.0, "outcome": "incomplete"},
        common
        | {"task_id": "c", "success_a": 1, "success_b": 1, "reward_a": 1.0, "reward_b": 1.0}
        | {"session_gap": 0.0, "outcome": "reward_tie"},
    ]
    # Scored anew, nothing changes: what the import stored is what `score` says.
    assert score_run(engine, "latest")[1] == 0


def test_import_when_tau2_is_read_then_both_sides_calls_are_kept_and_nothing_that_may_hold_a_key(
    engine: Engine, tmp_path: Path
) -> None:
    import_file(engine, wish(tmp_path, "tau2", tau2_results("a", tau2_run("t"))))
    import_file(engine, wish(tmp_path, "tau", [tau_run()]))

    tau2, tau = rows(engine, "select * from sessions order by run_id")
    messages = json.loads(tau2["transcript_json"])
    assert [
        (m["role"], [c["id"] for c in m.get("tool_calls", [])], m.get("tool_call_id")) for m in messages
    ] == [
        ("assistant", [], None),
        ("user", [], None),
        ("assistant", ["call_1"], None),
        ("tool", [], "call_1"),
        ("assistant", [], None),
        ("user", ["call_2"], None),
        ("tool", [], "call_2"),
    ]
    assert (tau2["prompt_tokens"], tau2["completion_tokens"], tau2["total_tokens"]) == (200, 20, 220)
    assert json.loads(tau2["source_json"]) == {"goal": "a refund", "policy": "Be fair."}
    assert [check["name"] for check in json.loads(tau2["checks_json"])] == ["database", "nl_assertions 1"]
    assert (tau["category"], tau["agent"], tau["end_reason"]) == ("airline", "0", "user_stop")
    assert json.loads(tau["transcript_json"])[2]["tool_calls"][0]["function"]["arguments"] == {"order": 17}
    for table in metadata.tables:
        assert SECRET not in str(rows(engine, f"select * from {table}"))


def test_import_when_a_reward_is_unknown_capped_or_graded_then_each_is_read_as_what_it_is(
    blank: Engine, tmp_path: Path
) -> None:
    capped = {"reward": 0.0, "reward_basis": ["DB"], "reward_breakdown": None, "info": {"note": "stopped"}}
    runs = [
        tau2_run("broken", 0.0, termination_reason="infrastructure_error"),
        tau2_run("unverified", None),
        tau2_run("capped", reward_info=capped, termination_reason="max_steps"),
        tau2_run("graded", 0.4, reward_info={"reward": 0.4, "reward_breakdown": None}),
        tau2_run("solo", messages=[{"role": "assistant", "content": "done"}]),
    ]

    found = import_file(blank, wish(tmp_path, "tau2", tau2_results("a", *runs)))

    assert found.unknown_rewards == 2
    read = rows(blank, "select task_id, reward, success, end_reason, fault from sessions order by task_id")
    assert [tuple(row.values()) for row in read] == [
        ("broken", None, None, "infrastructure_error", "gateway"),
        ("capped", 0.0, 0, "max_steps", None),
        ("graded", 0.4, 0, "user_stop", None),
        ("solo", 1.0, 1, "user_stop", None),
        ("unverified", None, None, "user_stop", None),
    ]
    agent = report(blank, "latest")["agents"][0]
    assert (agent["sessions"], agent["rewarded"], agent["mean_reward"]) == (5, 3, pytest.approx(1.4 / 3))


def test_import_when_success_at_is_given_then_graded_rewards_succeed_from_there(
    blank: Engine, tmp_path: Path
) -> None:
    lines = [session("a", reward=0.4), session("b", reward=0.39), session("c", reward=0.1, success=True)]
    import_file(blank, wish(tmp_path, "sessions", lines, success_at=0.4))
    assert [row["success"] for row in rows(blank, "select success from sessions order by task_id")] == [
        1,
        0,
        1,
    ]
    assert report(blank, "latest")["agents"][0]["pass_hat_k"] == {"1": pytest.approx(2 / 3)}


def test_import_when_a_tau_run_broke_or_was_capped_then_the_two_are_told_apart(
    blank: Engine, tmp_path: Path
) -> None:
    info = tau_run()["info"]
    runs = [
        tau_run(0, reward=0.0, info={"error": f"401 for {SECRET}", "traceback": SECRET}, traj=[]),
        tau_run(1, reward=0.0, info=info | {"reward_info": None}),
        tau_run(2, reward=None, info=info | {"reward_info": None}),
    ]
    import_file(blank, wish(tmp_path, "tau", runs))
    read = rows(blank, "select reward, end_reason, fault, error from sessions order by task_id")
    assert [tuple(row.values()) for row in read] == [
        (None, "error", "gateway", "the run broke before it was verified"),
        (0.0, "max_steps", None, None),
        (None, None, None, None),
    ]


def test_import_when_a_reward_is_not_the_product_of_its_parts_then_the_session_says_so(
    blank: Engine, tmp_path: Path
) -> None:
    odd = tau2_run("odd")
    odd["reward_info"]["reward_breakdown"] = {"DB": 0.0, "COMMUNICATE": 1.0, "ACTION": 0.0}
    found = import_file(blank, wish(tmp_path, "tau2", tau2_results("a", odd, tau2_run("right"))))
    assert found.odd_rewards == 1
    read = rows(blank, "select reward, error from sessions where error is not null")
    assert read == [
        {"reward": 1.0, "error": "reward 1 is not 0, the product of its parts: DB 0, COMMUNICATE 1"}
    ]
    assert report(blank, "latest")["imported"] == {"clashing_ids": 0, "odd_rewards": 1}


def test_import_when_one_id_is_of_two_tasks_then_they_are_not_paired_and_the_clash_is_counted(
    engine: Engine, tmp_path: Path
) -> None:
    files = [
        tau2_results("x", tau2_run("1"), tau2_run("2")),
        tau2_results("y", tau2_run("1"), tau2_run("2"), reason="another errand"),
        tau2_results("x", tau2_run("1"), reason="another errand"),
    ]
    files[1]["tasks"][1] = tau2_task("2")

    found = import_file(engine, wish(tmp_path, "tau2", *files))

    # Agent x has served both tasks of id 1, in the same trial.
    assert (found.sessions, found.pairs, found.clashing_ids) == (5, 2, 1)
    assert report(engine, "latest")["imported"]["clashing_ids"] == 1
    together = rows(
        engine,
        "select count(*) as n from audit_pairs inner join sessions as a on a.session_id = session_a "
        "inner join sessions as b on b.session_id = session_b where a.task_fingerprint = b.task_fingerprint",
    )
    assert together == [{"n": 2}]


def test_import_when_trials_have_other_numbers_then_they_are_matched_and_counted(
    blank: Engine, tmp_path: Path
) -> None:
    lines = [session(agent="x", trial=0), session(agent="x", trial=1), session(agent="y", trial=4, reward=0)]
    found = import_file(blank, wish(tmp_path, "sessions", lines))
    assert (found.pairs, found.other_trials) == (1, 1)


def test_import_when_agents_share_no_task_then_the_sessions_are_kept_and_it_is_said(
    blank: Engine, tmp_path: Path
) -> None:
    found = import_file(blank, wish(tmp_path, "sessions", [session("a", "x"), session("b", "y")]))
    assert (found.sessions, found.pairs, found.unpaired) == (2, 0, (("x", "y"),))


def test_import_when_two_sessions_contradict_each_other_then_both_places_are_named_and_nothing_is_stored(
    engine: Engine, tmp_path: Path
) -> None:
    files = [[session("a"), session("b")], [session("b", reward=0.0)]]
    with pytest.raises(BadFile) as caught:
        import_file(engine, wish(tmp_path, "sessions", *files))
    assert str(caught.value) == (
        f"{tmp_path / '1.json'}, line 1: task 'b', agent 'x', trial 0 did something else at "
        f"{tmp_path / '0.json'}, line 2: give each session its own trial, or each file its own --agent"
    )
    assert rows(engine, "select run_id from audit_runs") == []


def test_import_when_files_overlap_then_the_same_session_is_stored_once(
    blank: Engine, tmp_path: Path
) -> None:
    files = [[session("a"), session("b")], [session("b"), session("c")]]
    assert import_file(blank, wish(tmp_path, "sessions", *files)).sessions == 3


def test_import_when_the_same_files_come_again_then_nothing_is_added_in_whichever_order(
    engine: Engine, tmp_path: Path
) -> None:
    first = wish(tmp_path, "sessions", [session("a", "x")], [session("a", "y")])
    found = import_file(engine, first)
    again = import_file(engine, first._replace(paths=first.paths[::-1]))
    assert (again.is_new, again.run_id) == (False, found.run_id)
    assert import_file(engine, first._replace(success_at=0.5)).is_new
    assert import_file(engine, first._replace(name="other")).is_new


def test_import_when_agents_are_named_then_they_stand_for_the_file_but_not_over_a_row(
    blank: Engine, tmp_path: Path
) -> None:
    tau2 = wish(tmp_path, "tau2", tau2_results("m", tau2_run("a")), tau2_results("m", tau2_run("a", 0.0)))
    with pytest.raises(BadFile, match="did something else"):
        import_file(blank, tau2)
    assert import_file(blank, tau2._replace(agents=("old", "new"))).pairs == 1
    nameless = {key: value for key, value in session("b").items() if key != "agent"}
    import_file(blank, wish(tmp_path, "sessions", [session("a", "own"), nameless], agents=("given",)))
    found = rows(blank, "select agent from sessions order by session_id")
    assert sorted(row["agent"] for row in found) == ["given", "new", "old", "own"]


def test_import_when_tau2_holds_lists_or_no_tasks_then_it_is_read_too(blank: Engine, tmp_path: Path) -> None:
    bare = [tau2_run("a"), tau2_run("b", messages=None)]
    grouped = tau2_run("c")
    grouped["messages"][3] = {"role": "tool", "tool_messages": [grouped["messages"][3]]}
    several = [tau2_results("x", grouped), tau2_results("y", tau2_run("c"))]
    assert import_file(blank, wish(tmp_path, "tau2", bare)).sessions == 2
    assert import_file(blank, wish(tmp_path, "tau2", several)).pairs == 1
    assert import_file(blank, wish(tmp_path, "tau", tau_run())).sessions == 1


def test_give_gates_when_judges_come_then_each_pair_is_one_row_a_gate_and_the_first_keeps_its_id(
    engine: Engine, tmp_path: Path
) -> None:
    lines = [session(task, agent, float(agent == "x")) for task in "abc" for agent in "xy"]
    import_file(engine, wish(tmp_path, "sessions", lines))
    before = rows(engine, "select pair_id from audit_pairs order by pair_id")
    run = Run(*rows(engine, f"select {', '.join(Run._fields)} from audit_runs")[0].values())

    for gates in (["one"], ["one", "two"], ["two", "one"]):
        with writing(engine) as connection:
            give_gates(connection, run, gates)
    score_run(engine, run.run_id)

    assert rows(engine, "select pair_id from audit_pairs where gate = 'one' order by pair_id") == before
    found = rows(
        engine,
        "select gate, count(*) as n, count(distinct session_a) as sessions, min(agent_gap) as gap, "
        "min(outcome) as outcome from audit_pairs group by gate order by gate",
    )
    common = {"n": 3, "sessions": 3, "gap": 1.0, "outcome": "incomplete"}
    assert found == [{"gate": "one"} | common, {"gate": "two"} | common]


def test_command_when_sessions_are_imported_then_it_says_what_they_are(cli: Any, tmp_path: Path) -> None:
    broken = tau2_run("c", 0.0, termination_reason="infrastructure_error")
    first = tau2_results("x", tau2_run("a"), tau2_run("b"), broken)
    second = tau2_results("y", tau2_run("a", 0.0), tau2_run("b"), tau2_run("c"), reason="another errand")
    second["tasks"][0] = tau2_task("a")
    paths = wish(tmp_path, "tau2", first, second).paths

    done = cli("import", "tau2", *paths, "--agent", "old", "--agent", "new")

    assert (done.code, done.stderr) == (0, "")
    assert done.stdout.splitlines()[1:] == [
        "1 session of unknown reward: in no rate and no mean",
        "2 task ids of several tasks each, told apart by scenario and criteria: only",
        "sessions of the same task are paired",
        "waiting for a judge: 1 pair",
        "next: reward-audit report, or reward-audit judge --run latest -c FILE",
    ]
    shown = cli("report").stdout
    assert "Waiting for a judge: 1 pair." in shown
    assert "new           3  0.667" in shown
    assert max(map(len, shown.splitlines())) <= 80
    agents = json.loads(cli("report", "--json").stdout)["agents"]
    assert [(one["agent"], one["sessions"], one["pass_hat_k"]) for one in agents] == [
        ("new", 3, {"1": pytest.approx(2 / 3)}),
        ("old", 3, {"1": 1.0}),
    ]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("tau", "f", "g", "h", "--agent", "a", "--agent", "b"), "2 --agent for 3 files"),
        (("tau", "f", "--reread"), "tau holds no replies of a judge"),
        (("tau", "f", "--success-at", "nan"), "--success-at must be a finite number"),
        (("tau", "f", "--grammar", "json"), "tau says itself how its replies are read"),
        (
            ("jsonl", "f", "--agent", "a"),
            "--agent and --success-at go with tau, tau2, inspect, sessions only",
        ),
        (("rewards", "f", "--run", "latest", "--agent", "a"), "rewards takes no --agent"),
    ],
)
def test_command_when_options_do_not_fit_then_it_is_a_usage_error(options, problem) -> None:
    from click.testing import CliRunner

    from audit.faces.cli import cli

    done = CliRunner().invoke(cli, ["import", *options])
    assert done.exit_code == 2
    assert problem in done.output
