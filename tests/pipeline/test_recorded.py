"""Imported sessions under live judges, over HTTP and synthetic ones; and graded anew by checks."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml
from server import ChatServer, Say, refusing
from sessions_made import tau2_results, tau2_run

OFFLINE = "offline://synthetic"
VERDICT = json.dumps(
    {
        "first": {"evidence": "e", "done": True},
        "second": {"evidence": "e", "done": False},
        "score_first": 4,
        "score_second": 1,
        "winner": "first",
    }
)


# A profile that is asked once and not again.
ONCE = {"profile": {"attempts": 1}}


def answered(body: dict[str, Any]) -> Say:
    """Always the first; and satisfied."""
    is_pair = "<<<FIRST" in body["messages"][-1]["content"]
    return Say(text=VERDICT if is_pair else '{"evidence": "e", "done": true, "satisfaction": 0.9}')


class Folder:
    """Two agents' recorded sessions, configs, the command, and what it stored."""

    def __init__(self, folder: Path, here: Callable[..., Any]) -> None:
        self.folder, self.here = folder, here

    def __call__(self, *args: str | Path) -> Any:
        return self.here(*args)

    def files(self, tasks: int = 4, text: str = "Hi!") -> list[Path]:
        """Agent v-1 succeeds on every task, v-2 on every second one."""
        paths = []
        for agent in ("v-1", "v-2"):
            runs = [
                tau2_run(str(number), 1.0 if agent == "v-1" or number % 2 else 0.0) for number in range(tasks)
            ]
            for run in runs:
                run["messages"][0]["content"] = f"{text} I am {agent}."
            path = self.folder / f"{agent}.json"
            path.write_text(json.dumps(tau2_results(agent, *runs)), encoding="utf-8")
            paths.append(path)
        return paths

    def config(self, *judges: tuple[str, str], base_url: str = OFFLINE, **more: Any) -> Path:
        """A config that names judges alone: (name, model); `profile` adds to each."""
        of_profile = more.pop("profile", {})
        profiles = [
            {
                "name": name,
                "role": "llm_judge",
                "base_url": base_url,
                "model": model,
                "seed": 0,
                "timeout_s": 5,
                **of_profile,
            }
            for name, model in judges
        ]
        path = self.folder / "judges.yaml"
        path.write_text(
            yaml.safe_dump({"profiles": profiles, "judges": [name for name, _ in judges]} | more),
            encoding="utf-8",
        )
        return path

    def imported(self, **options: Any) -> None:
        done = self("import", "tau2", *self.files(**options))
        assert done.code == 0, done.stderr

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.folder / "audit.db")) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture
def folder(tmp_path: Path, here: Callable[..., Any]) -> Folder:
    return Folder(tmp_path, here)


def test_judge_when_sessions_were_imported_then_both_orders_and_satisfaction_are_asked_and_the_report_follows(
    folder: Folder, gateway: Callable[..., ChatServer]
) -> None:
    folder.imported()
    server = gateway(answered)
    config = folder.config(("strict", "m-1"), base_url=server.base_url)
    ids = folder.rows("select pair_id from audit_pairs order by 1")
    done = folder("judge", "--run", "latest", "-c", config)
    assert done.code == 0, done.stderr
    assert "Misselection by reward gap" in done.stdout
    assert server.requests == 4 * 2 + 8
    assert folder.rows("select role, count(*) from judge_logs group by 1 order by 1") == [
        ("judge", 8),
        ("satisfaction", 8),
    ]
    assert folder.rows("select pair_id from audit_pairs order by 1") == ids
    assert folder.rows("select distinct gate, pref_ab, pref_ba, is_consistent from audit_pairs") == [
        ("strict", "A", "B", 0)
    ]
    assert folder.rows("select outcome, count(*) from audit_pairs group by 1 order by 1") == [
        ("inconsistent", 2),
        ("reward_tie", 2),
    ]
    assert folder.rows("select distinct satisfaction from sessions") == [(0.9,)]
    assert folder.rows("select status from audit_runs") == [("complete",)]
    again = folder("judge", "--run", "latest", "-c", config)
    assert (again.code, server.requests) == (0, 16)


def test_judge_when_it_reads_imported_sessions_then_it_reads_no_agents_name(
    folder: Folder,
) -> None:
    folder.imported()
    assert folder("judge", "--run", "latest", "-c", folder.config(("j", "judge-80"))).code == 0
    requests = folder.rows("select request_json from judge_logs")
    assert len(requests) == 16
    assert not any("v-1" in text or "v-2" in text for (text,) in requests)
    assert all("I am [name]" in text for (text,) in requests)


def test_judge_when_a_second_one_comes_then_it_has_all_pairs_too_and_nothing_is_asked_twice(
    folder: Folder,
) -> None:
    folder.imported()
    assert folder("judge", "--run", "latest", "-c", folder.config(("j", "judge-80"))).code == 0
    both = folder.config(("j", "judge-80"), ("perfect", "judge-100"))
    done = folder("judge", "--run", "latest", "-c", both)
    assert done.code == 0, done.stderr
    assert folder.rows("select gate, count(*), count(judged_at) from audit_pairs group by 1 order by 1") == [
        ("j", 4, 4),
        ("perfect", 4, 4),
    ]
    assert folder.rows("select profile, count(*) from judge_logs where role = 'judge' group by 1") == [
        ("j", 8),
        ("perfect", 8),
    ]
    report = json.loads(folder("report", "--json").stdout)
    assert report["run"]["gate"] == "j"


def test_judge_when_another_model_comes_under_the_same_name_then_it_is_refused(folder: Folder) -> None:
    folder.imported()
    assert folder("judge", "--run", "latest", "-c", folder.config(("j", "judge-80"))).code == 0
    done = folder("judge", "--run", "latest", "-c", folder.config(("j", "judge-100")))
    assert done.code == 1
    assert "the pairs of gate 'j'" in done.stderr
    assert "give this one a name of its own" in done.stderr


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
@pytest.mark.parametrize("wanted", ["latest", "the id"])
def test_judge_when_no_config_says_who_judges_imported_sessions_then_nobody_does(
    folder: Folder, wanted: str, more: tuple[str, ...]
) -> None:
    folder.imported()
    (run_id,) = folder.rows("select run_id from audit_runs")[0]

    done = folder("judge", "--run", run_id if wanted == "the id" else wanted, *more)

    assert (done.code, folder.rows("select count(*) from judge_logs")) == (1, [(0,)])
    assert "was imported: who is to judge it? Name a config with -c FILE, or write audit.yaml" in done.stderr
    folder.config(("j", "judge-80")).rename(folder.folder / "audit.yaml")
    assert folder("judge", "--run", "latest").code == 0


@pytest.mark.parametrize("text", ["Hi!", "word " * 3000])
def test_dry_run_when_sessions_are_recorded_then_their_own_characters_are_counted(
    folder: Folder, text: str
) -> None:
    folder.imported(text=text)
    config = folder.config(("j", "judge-80"))
    asked = ("judge", "--run", "latest", "-c", config)

    told = json.loads(folder("--json", *asked, "--dry-run").stdout)
    few = json.loads(folder("--json", *asked, "--dry-run", "--limit", "1").stdout)

    assert folder("--json", *asked).code == 0
    ((calls, characters),) = folder.rows(
        "select count(*), sum(length(request_json) + length(raw_output)) from judge_logs"
    )
    assert told["judge calls"] + told["satisfaction calls"] == calls
    # A request is its prompt in JSON, with a schema beside it.
    assert 0.5 * characters / 4 < told["tokens"] < 1.1 * characters / 4
    assert (few["pairs"], few["judge calls"], few["satisfaction calls"]) == (1, 2, 1)
    left = json.loads(folder("--json", *asked, "--dry-run").stdout)
    assert set(left.values()) == {0}
    more = folder.config(("j", "judge-80"), ("k", "judge-100"))
    assert (
        json.loads(folder("--json", "judge", "--run", "latest", "-c", more, "--dry-run").stdout)[
            "judge calls"
        ]
        == 8
    )


def test_report_when_a_judge_is_synthetic_then_every_form_of_it_says_so(
    folder: Folder, gateway: Callable[..., ChatServer]
) -> None:
    folder.imported()
    assert folder("judge", "--run", "latest", "-c", folder.config(("play", "judge-80"))).code == 0
    server = gateway(answered)
    real = folder.config(("real", "m-1"), base_url=server.base_url)
    assert folder("judge", "--run", "latest", "-c", real).code == 0

    found = json.loads(folder("report", "--json", "--gate", "play").stdout)
    play = [{"profile": "play", "model": "judge-80", "base_url": OFFLINE, "is_synthetic": True}]
    assert found["run"]["models"] == play
    assert {judge["gate"]: judge["models"] for judge in found["judges"]} == {
        "play": play,
        "real": [{"profile": "real", "model": "m-1", "base_url": server.base_url, "is_synthetic": False}],
    }
    for gate, is_synthetic in (("play", True), ("real", False)):
        assert folder("report", "--gate", gate, "--html", "page.html").code == 0
        page = (folder.folder / "page.html").read_text(encoding="utf-8")
        said = " ".join(folder("report", "--gate", gate).stdout.split())
        for text in (page, said):
            assert ("judge-80 is a synthetic judge of this program" in text) == is_synthetic
            assert f"judge model: {'judge-80' if is_synthetic else 'm-1'} at" in text


@pytest.mark.parametrize("changed", ["base_url", "model"])
def test_judge_when_every_call_failed_then_the_corrected_one_takes_its_gate_over(
    folder: Folder, gateway: Callable[..., ChatServer], changed: str
) -> None:
    folder.imported()
    server = gateway(lambda body: answered(body) if body["model"] == "m" else refusing("no such model", 404))
    wrong = ("m", "http://127.0.0.1:9/v1") if changed == "base_url" else ("n", server.base_url)
    first = folder(
        "judge", "--run", "latest", "-c", folder.config(("j", wrong[0]), base_url=wrong[1], **ONCE)
    )
    assert (first.code, folder.rows("select count(pref_ab) from audit_pairs")) == (4, [(0,)])

    right = folder.config(("j", "m"), base_url=server.base_url)
    done = folder("judge", "--run", "latest", "-c", right)

    assert done.code == 0, done.stderr
    assert folder.rows("select gate, count(*), count(pref_ab), count(pref_ba) from audit_pairs") == [
        ("j", 4, 4, 4)
    ]
    assert folder.rows("select count(satisfaction), count(*) from sessions") == [(8, 8)]
    assert folder.rows("select status from audit_runs") == [("complete",)]
    assert json.loads(folder("judge", "--run", "latest", "-c", right, "--json").stdout)["calls"] == 0


@pytest.mark.parametrize("more", [(), ("--retry-errors",)])
def test_judge_when_another_one_failed_before_then_it_counts_by_its_own_calls(
    folder: Folder, gateway: Callable[..., ChatServer], more: tuple[str, ...]
) -> None:
    folder.imported()
    dead = folder.config(("a-dead", "m"), base_url="http://127.0.0.1:9/v1", **ONCE)
    assert folder("judge", "--run", "latest", "-c", dead).code == 4
    calls = folder.rows("select count(*) from judge_logs")

    server = gateway(answered)
    done = folder(
        "judge", "--run", "latest", "-c", folder.config(("new", "m"), base_url=server.base_url), *more
    )

    assert done.code == 0, done.stderr
    assert server.requests == 4 * 2 + 8
    assert folder.rows("select count(*) from judge_logs where profile = 'a-dead'") == calls
    assert folder.rows("select gate, count(pref_ab) from audit_pairs group by 1 order by 1") == [
        ("a-dead", 0),
        ("new", 4),
    ]
    assert folder.rows("select status from audit_runs") == [("complete",)]
    report = json.loads(folder("report", "--json").stdout)
    assert (report["run"]["gate"], report["answers"]["ok"]) == ("new", 8)
    held = folder.folder / "limits.yaml"
    held.write_text("gate: {error_calls: {max: 0.01, on_unknown: pass}}", encoding="utf-8")
    # Both orders had the same answer, so that it decides nothing: its calls all the same are its own.
    own, of_dead = folder("gate", "-c", held), folder("gate", "-c", held, "--gate", "a-dead")
    assert ("error_calls: 0/8 = " in own.stdout, "calls failed" in own.stdout) == (True, False)
    assert ("error_calls: 8/8 = " in of_dead.stdout, "calls failed" in of_dead.stdout) == (True, True)
    assert folder("export", "dpo", "-o", "clean.jsonl").code == 0
    assert json.loads((folder.folder / "clean.jsonl.manifest.json").read_text())["run"]["gate"] == "new"


def test_judge_when_only_some_calls_failed_then_another_judge_of_its_name_is_still_refused(
    folder: Folder, gateway: Callable[..., ChatServer]
) -> None:
    folder.imported()
    replies = iter([answered])
    server = gateway(lambda body: next(replies, lambda _: refusing("down", 503))(body))
    first = folder(
        "judge",
        "--run",
        "latest",
        "-c",
        folder.config(("j", "m"), base_url=server.base_url, **ONCE),
        "-j",
        "1",
    )
    assert first.code == 4
    other = folder("judge", "--run", "latest", "-c", folder.config(("j", "n"), base_url=server.base_url))
    assert (other.code, "give this one a name of its own" in other.stderr) == (1, True)


def test_score_when_a_panel_took_a_gate_over_then_the_dead_judge_has_no_vote(
    folder: Folder, gateway: Callable[..., ChatServer]
) -> None:
    """An unreadable answer stays unreadable: the call that failed before was not of this panel."""
    folder.imported()
    dead = folder.config(("old", "m"), base_url="http://127.0.0.1:9/v1", **ONCE)
    text = yaml.safe_load(dead.read_text(encoding="utf-8")) | {"judges": {"name": "g", "members": ["old"]}}
    dead.write_text(yaml.safe_dump(text), encoding="utf-8")
    assert folder("judge", "--run", "latest", "-c", dead).code == 4

    server = gateway(lambda _: Say(text="no verdict at all"))
    new = folder.config(("new", "m"), base_url=server.base_url)
    text = yaml.safe_load(new.read_text(encoding="utf-8")) | {"judges": {"name": "g", "members": ["new"]}}
    new.write_text(yaml.safe_dump(text), encoding="utf-8")
    assert folder("judge", "--run", "latest", "-c", new).code == 0
    outcomes = folder.rows("select outcome, count(*) from audit_pairs group by 1 order by 1")
    assert outcomes == [("reward_tie", 2), ("unreadable", 2)]


def test_judge_when_it_was_stopped_or_a_call_failed_then_it_goes_on_where_it_stood(
    folder: Folder, gateway: Callable[..., ChatServer]
) -> None:
    folder.imported()
    replies = iter([refusing("down", 503)] * 4)
    server = gateway(lambda body: next(replies, None) or answered(body))
    config = folder.config(("j", "m"), base_url=server.base_url, max_error_rate=1.0)
    text = yaml.safe_load(config.read_text(encoding="utf-8"))
    text["profiles"][0]["attempts"] = 1
    config.write_text(yaml.safe_dump(text), encoding="utf-8")
    first = folder("judge", "--run", "latest", "-c", config, "--limit", "2", "-j", "1")
    assert first.code == 4
    assert folder.rows("select count(judged_at), status from audit_pairs, audit_runs group by 2") == [
        (2, "stopped")
    ]
    assert folder("judge", "--run", "latest", "-c", config).code == 0
    assert folder("judge", "--run", "latest", "-c", config, "--retry-errors").code == 0
    assert folder.rows("select count(*), count(pref_ab), count(pref_ba) from audit_pairs") == [(4, 4, 4)]
    assert server.requests == 4 + 8 + 8


def test_run_when_the_config_names_sessions_then_they_are_imported_judged_and_reported(
    folder: Folder,
) -> None:
    files = [path.name for path in folder.files()]
    config = folder.config(("j", "judge-80"), sessions={"format": "tau2", "files": files}, name="nightly")
    done = folder("run", "-c", config)
    assert done.code == 0, done.stderr
    assert "Misselection by reward gap" in done.stdout
    assert folder.rows("select name, kind, status from audit_runs") == [("nightly", "import", "complete")]
    again = folder("run", "-c", config, "--json")
    assert json.loads(again.stdout)["calls"] == 0
    assert folder.rows("select count(*) from audit_runs") == [(1,)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"agents": ["a", "b"]}, "agents: has no place beside sessions"),
        ({"trials": 2}, "trials: has no place beside sessions"),
        ({"sessions": {"format": "tua2", "files": ["x"]}}, "sessions.format: expected"),
        ({"sessions": {"format": "tau2", "files": []}}, "sessions.files: "),
        ({"sessions": {"format": "tau2", "files": ["gone.json"]}}, "gone.json"),
    ],
)
def test_run_when_the_sessions_of_a_config_are_wrong_then_it_says_which_key(
    folder: Folder, change: dict[str, Any], problem: str
) -> None:
    files = [path.name for path in folder.files()]
    config = folder.config(("j", "judge-80"), **{"sessions": {"format": "tau2", "files": files}} | change)
    done = folder("run", "-c", config)
    assert done.code == 1
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) <= 2


def test_run_when_nobody_is_named_who_holds_sessions_then_both_keys_are_missed(folder: Folder) -> None:
    done = folder("run", "-c", folder.config(("j", "judge-80")))
    assert (done.code, done.stderr.count("is missing")) == (1, 2)


def test_judge_when_a_session_is_long_then_it_is_cut_to_the_budget_and_the_cut_is_on_record(
    folder: Folder,
) -> None:
    folder.imported(text="a long story " * 2000)
    config = folder.config(("j", "judge-80"), transcript_tokens=1000)
    done = folder("judge", "--run", "latest", "-c", config)
    assert done.code == 0, done.stderr
    assert "is cut for the judge" in done.stderr
    requests = folder.rows("select request_json from judge_logs where role = 'judge'")
    assert all("characters are left out here]" in text and len(text) < 16_000 for (text,) in requests)
    cuts = [json.loads(source)["cut"] for (source,) in folder.rows("select source_json from sessions")]
    assert cuts == [{"transcript_tokens": 1000, "left_out": 3, "clipped": 1}] * 8
    kept = folder.rows("select max(length(transcript_json)) from sessions")
    assert kept[0][0] > 20_000


CHECKS = {
    "0": [{"name": "looked it up", "tool_called": {"name": "lookup"}}],
    "1": [{"transcript": {"contains": "toggle it"}}, {"tool_not_called": {"name": "lookup"}}],
}


def checks_file(folder: Folder, checks: Any) -> Path:
    path = folder.folder / "checks.yaml"
    path.write_text(yaml.safe_dump(checks), encoding="utf-8")
    return path


def test_verify_when_checks_are_given_then_old_verdicts_are_kept_and_flips_are_told_by_agent(
    folder: Folder,
) -> None:
    folder.imported()
    path = checks_file(folder, CHECKS)
    done = folder("--json", "verify", "--run", "latest", "--checks", path)
    assert done.code == 0, done.stderr
    found = json.loads(done.stdout)
    # Task 0: v-2 failed and passes now. Task 1: both succeeded, and now meet one check of two.
    assert (found["sessions"], found["changed"]) == (4, 4)
    numbers = ("sessions", "to_success", "to_failure", "to_unknown", "mean_before", "mean_after")
    assert {row["agent"]: [row[name] for name in numbers] for row in found["agents"]} == {
        "v-1": [4, 0, 1, 0, 1.0, 0.875],
        "v-2": [4, 1, 1, 0, 0.5, 0.625],
    }
    assert found["gaps"] == [{"agent_a": "v-1", "agent_b": "v-2", "before": 0.5, "after": 0.25}]
    rewards = folder.rows("select task_id, reward_a, reward_b, agent_gap from audit_pairs order by 1")
    assert rewards == [("0", 1, 1, 0.25), ("1", 0.5, 0.5, 0.25), ("2", 1, 0, 0.25), ("3", 1, 1, 0.25)]
    sources = folder.rows("select task_id, agent, label_source, source_json from sessions order by 1, 2")
    assert [row[2] for row in sources] == ["rule"] * 4 + ["external"] * 4
    kept = [json.loads(row[3]).get("verdicts") for row in sources]
    assert [verdicts and verdicts[0]["reward"] for verdicts in kept] == [1, 0, 1, 1, None, None, None, None]
    before = folder.rows("select * from sessions order by session_id")
    again = json.loads(folder("--json", "verify", "--run", "latest", "--checks", path).stdout)
    assert (again["changed"], again["agents"]) == (0, found["agents"])
    assert folder.rows("select * from sessions order by session_id") == before


def test_verify_when_other_checks_come_later_then_flips_are_against_what_the_sessions_came_with(
    folder: Folder,
) -> None:
    folder.imported()
    folder("verify", "--run", "latest", "--checks", checks_file(folder, CHECKS))
    lenient = {task: [{"tool_called": {"name": "lookup"}}] for task in "0123"}
    done = folder("--json", "verify", "--run", "latest", "--checks", checks_file(folder, lenient))
    found = json.loads(done.stdout)
    assert [(row["to_success"], row["mean_after"]) for row in found["agents"]] == [(0, 1.0), (2, 1.0)]
    verdicts = folder.rows("select source_json from sessions where task_id = '0' and agent = 'v-2'")
    assert [one["reward"] for one in json.loads(verdicts[0][0])["verdicts"]] == [0.0, 1.0]


@pytest.mark.parametrize(
    ("checks", "problem"),
    [
        (
            {"0": [{"sql": "select 1", "rows": [[1]]}]},
            "checks.yaml, 0[0]: sql: a recorded session has no world",
        ),
        ({"0": []}, "checks.yaml, 0: criteria are empty"),
        ({"0": {"tool_called": 1}}, "checks.yaml, 0: expected a list of checks"),
        ({0: [{"tool_called": {"name": "x"}}]}, "checks.yaml, 0: expected the task id as text"),
        ([1], "checks.yaml: expected a mapping"),
        ({"nope": [{"tool_called": {"name": "x"}}]}, "has checks for none of the tasks"),
        ({"0": [{"llm": "was it kind?"}]}, "a check of kind llm asks a model"),
    ],
)
def test_verify_when_the_checks_are_wrong_then_it_says_where_and_nothing_changes(
    folder: Folder, checks: Any, problem: str
) -> None:
    folder.imported()
    before = folder.rows("select * from sessions order by session_id")
    done = folder("verify", "--run", "latest", "--checks", checks_file(folder, checks))
    assert (done.code, done.stderr.count("\n")) == (1, 1)
    assert problem in done.stderr
    assert folder.rows("select * from sessions order by session_id") == before


@pytest.mark.parametrize("is_live", [True, False])
def test_judge_when_the_published_airline_pair_is_judged_then_report_and_rows_follow(
    folder: Folder, gateway: Callable[..., ChatServer], shared: Path, *, is_live: bool
) -> None:
    files = [shared / "data" / "tau2" / f"airline.{agent}.json" for agent in ("gpt-4.1", "gpt-4.1-ft")]
    assert folder("import", "tau2", *files).code == 0
    server = gateway(answered)
    config = folder.config(("j", "judge-80"), base_url=server.base_url if is_live else OFFLINE)
    done = folder("judge", "--run", "latest", "-c", config)
    assert done.code == 0, done.stderr
    assert server.requests == (2 * 20 + 40) * is_live
    assert "Misselection by reward gap" in done.stdout
    report = json.loads(folder("report", "--json").stdout)
    assert (report["pairs"]["total"], report["pairs"]["decidable"]) == (20, 9)
    assert sum(report["pairs"][name] for name in ("correct", "misselected", "inconsistent", "judge_tie")) == 9
    gaps = [gap for (gap,) in folder.rows("select agent_gap from audit_pairs")]
    assert gaps == pytest.approx([0.15] * 20)
    # No model's name, vendor's call id or agent is in what a judge reads.
    for (request,) in folder.rows("select request_json from judge_logs"):
        assert "gpt-4.1" not in json.dumps(json.loads(request)["messages"])
