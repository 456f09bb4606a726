"""The HTML page: its figures are those of `--json`, nothing in it runs or is loaded, any run has one."""

import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from page_read import Page, at, check, check_inert
from sessions_made import tau2_results, tau2_run

from audit.doors import db
from audit.faces.cli import cli as command
from audit.faces.page import coded, html_page
from audit.pipeline.importing import Wish, import_file
from audit.pipeline.worst import report_with_worst
from audit.verbs.gaps import buckets_from_text

EXAMPLE = Path(__file__).parents[2] / "data" / "judged_pairs.jsonl"
Ask = Callable[..., Any]


class Made:
    """A run's report, its worst pairs, and the page of both."""

    def __init__(self, url: str, wish: Wish, gate: str | None = None) -> None:
        engine = db.open_database(url, create=True)
        try:
            run_id = import_file(engine, wish).run_id
            self.report, self.worst = report_with_worst(engine, run_id, gate)
        finally:
            engine.dispose()
        self.html = html_page(self.report, self.worst)
        self.page = Page(self.html)


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def rate_paths(value: Any, path: str = "") -> Iterator[str]:
    """Where every rate stands in a report."""
    if isinstance(value, dict) and "k" in value and "n" in value:
        yield path.removeprefix(".")
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from rate_paths(item, f"{path}.{name}")


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The shipped example: six agents, 540 pairs, no transcripts."""
    return Made(f"sqlite:///{tmp_path_factory.mktemp('example') / 'a.db'}", Wish("jsonl", (EXAMPLE,)))


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in this process on a database with the example's first tasks."""
    some = tmp_path / "some.jsonl"
    lines = EXAMPLE.read_text(encoding="utf-8").splitlines(keepends=True)
    some.write_text("".join(lines[:150]), encoding="utf-8")
    monkeypatch.setenv("REWARD_AUDIT_DB", f"sqlite:///{tmp_path / 'audit.db'}")
    runner = CliRunner()
    assert runner.invoke(command, ["import", "jsonl", str(some)]).exit_code == 0
    return runner


def test_page_when_written_by_the_command_then_its_figures_are_those_of_json(
    cli: Ask, imported: CliRunner, tmp_path: Path
) -> None:
    """The real command: the page whole, in place of an older file; the same mapping as without it."""
    file = tmp_path / "page.html"
    file.write_text("older", encoding="utf-8")
    done = cli("report", "--html", file, "--json")
    assert (done.code, done.stderr) == (0, "")
    report = json.loads(done.stdout)
    first = file.read_text(encoding="utf-8")
    plain = imported.invoke(command, ["report", "--html", str(file)])
    assert (plain.exit_code, plain.stderr) == (0, "")
    assert plain.stdout == f"wrote the report of run {report['run']['run_id']} to {file}\n"
    assert file.read_text(encoding="utf-8") == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["audit.db", "cwd", "page.html", "some.jsonl"]
    page = Page(file.read_text(encoding="utf-8"))
    assert page.open == []
    seen = check(page, report)
    check_inert(page)
    assert report == json.loads(imported.invoke(command, ["report", "--json"]).stdout)
    # Every rate of the report is on the page, but of empty buckets, and what another table says already.
    elsewhere = ("gap_buckets", "near_vs_wide")
    for path in rate_paths(report):
        if "gap_buckets." in path and not at(report, path)["n"]:
            continue
        if path.endswith(".consistent") and path.split(".")[0] in elsewhere:
            continue
        if path.startswith(("categories.", "judges.")) and path.endswith(".misselected_of_decidable"):
            continue
        assert path in seen, path
    for path in (
        "agent_pairs.noise_floor_near", "agent_pairs.noise_floor_wide", "agent_pairs.regret",
        "error_curve.s", "error_curve.gap_at_25", "error_curve.gap_at_10", "error_curve.gap_at_5.value",
        "position.preference_fairness", "position.mcnemar_p", "position.gap_buckets.0.primacy",
        "agents.0.mean_reward", "cost.calls", "cost.total_tokens", "cost.usd", "near_minus_wide",
        *(f"pairs.{name}" for name in report["pairs"]),
    ):  # fmt: skip
        assert path in seen or at(report, path.split(".")[0]) in (None, []), path


def test_page_when_drawn_then_its_pictures_show_the_counts_of_the_report(example: Made) -> None:
    report, page = example.report, example.page
    check(page, report)
    pictures = {title: (alt, texts) for title, alt, texts in page.pictures}
    assert list(pictures) == [
        "Misselection by reward gap",
        "Fitted error curve",
        "Position bias by reward gap",
    ]
    alt, texts = pictures["Misselection by reward gap"]
    for bucket in report["gap_buckets"]:
        if bucket["label"] != "unknown":
            rate = bucket["misselected_of_decided"]
            assert bucket["label"] in texts
            assert f"{rate['k']:,}/{rate['n']:,}" in texts
            assert f"{bucket['label']}: {rate['k']:,} of {rate['n']:,}, {rate['value']:.1%}" in alt
    assert "noise floor of agent pairs" in texts
    assert f"noise floor near: {report['agent_pairs']['noise_floor_near']:.1%}" in alt
    alt, texts = pictures["Fitted error curve"]
    gap = report["error_curve"]["gap_at_5"]["value"]
    assert f"5% errors at a gap of {gap:.3f}" in alt
    assert any(f"{gap:.3f}" in text for text in texts)
    assert ("trustworthy gap" in texts) == bool(report["error_curve"]["trust"])
    alt, _ = pictures["Position bias by reward gap"]
    for bucket in report["position"]["gap_buckets"]:
        if bucket["both_read"]:
            assert f"{bucket['consistent']['k']:,} of {bucket['consistent']['n']:,}" in alt


def test_page_when_read_then_it_is_for_light_and_dark_phone_and_print(example: Made) -> None:
    html = example.html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html
    assert "width=device-width" in html
    assert "default-src 'none'" in html
    # No colour of a picture is fixed, but those that mean nothing: each follows the page.
    drawn = html[html.index("<svg") : html.rindex("</svg>")]
    assert "currentColor" in drawn
    assert "var(--bad)" in drawn
    assert [part for part in drawn.split("#")[1:] if part[:6].isalnum() and part[6] in ';"'] == []
    assert "http:" not in html


def test_page_when_the_rows_are_hostile_then_they_make_no_tag_and_drive_nothing(tmp_path: Path) -> None:
    """The same run with plain and with hostile text: tag for tag the same page."""
    nasty = (
        "<script>alert(1)</script></style></title></pre></details></textarea>--><svg onload=alert(2)>"
        "<img src=x onerror=alert(3)>{{ 7*7 }}{% raw %}&lt;\x00\x1b[2J\u202etxt.exe\u2066\u200f\ud800'\"`"
    )
    long = "y" * 100_000
    # An id may hold neither of these.
    nasty_id = nasty.replace("\x00", "").replace("\ud800", "")

    def made(folder: str, text: str, name: str, line: str) -> Made:
        (tmp_path / folder).mkdir()
        rows = []
        for number in range(30):
            reply = json.dumps({"winner": "B" if number % 2 else "A", "reason": f"since {text}"})
            rows.append(
                {
                    "pair_id": f"{number} {name}",
                    "task_id": f"t{number // 3} {name}",
                    "category": f"c {name}",
                    "trial": number,
                    "judge": f"j {name}",
                    "agent_a": f"a{number % 3} {name}",
                    "agent_b": f"b {name}",
                    "reward_a": 1,
                    "reward_b": 0.5 if number % 3 else 0,
                    "prompt": f"ask {text}",
                    "response_a": f"{text}\n{line}\n{text}",
                    "response_b": [
                        {"role": "assistant", "content": f"done {text}"},
                        {
                            "role": "assistant",
                            "content": None,
                            "tool_calls": [{"id": "1", "function": {"name": text, "arguments": text}}],
                        },
                        {"role": "tool", "tool_call_id": "1", "content": line + text},
                    ],
                    "raw_ab": reply + f"\n{text}",
                    "raw_ba": reply,
                }
            )
        file = jsonl(tmp_path / folder / "pairs.jsonl", rows)
        wish = Wish("jsonl", (file,), grammar="json", name=f"run {name}")
        return Made(f"sqlite:///{tmp_path / folder / 'a.db'}", wish)

    plain, hostile = made("plain", "word", "word", "line"), made("hostile", nasty, nasty_id, long)

    def tags(page: Page) -> list[tuple[str, tuple[str, ...]]]:
        # A name that is cut has the whole as its title.
        return [
            (tag, tuple(name for name in held if tag != "bdi" or name != "title")) for tag, held in page.tags
        ]

    assert len(hostile.worst) == 20
    assert tags(hostile.page) == tags(plain.page)
    check_inert(hostile.page)
    check(hostile.page, hostile.report)
    assert hostile.page.open == []
    # Seen as text, and nothing that cannot be seen.
    assert "<script>alert(1)</script></style>" in hostile.page.text
    assert "{{ 7*7 }}{% raw %}&lt;" in hostile.page.text
    assert "\\x1b[2J\\u202etxt.exe\\u2066\\u200f" in hostile.page.text
    for unseen in "\x00\x1b\u202e\u2066\u200f\ud800":
        assert unseen not in hostile.html
    assert len(hostile.html) < 2_000_000
    assert "y" * 20_000 not in hostile.html
    assert "characters are left out here" in hostile.page.text
    hostile.html.encode()


def test_page_when_the_sessions_alone_are_there_then_it_tells_of_agents_and_satisfaction(
    tmp_path: Path,
) -> None:
    rows = [
        {
            "agent": f"model-{number % 3}",
            "task_id": f"t{number // 6}",
            "trial": number // 3 % 2,
            "reward": (number % 5) / 4,
            "satisfaction": (number % 7) / 6,
            "messages": [{"role": "user", "content": "hi"}],
        }
        for number in range(72)
    ]
    file = jsonl(tmp_path / "s.jsonl", rows)
    made = Made(f"sqlite:///{tmp_path / 'a.db'}", Wish("sessions", (file,)))
    assert made.report["run"]["gate"] == "unjudged"
    assert made.worst == []
    seen = check(made.page, made.report)
    check_inert(made.page)
    assert [title for title, _, _ in made.page.pictures] == ["Satisfied but failed, over cuts"]
    cuts = made.report["satisfaction"]["cuts"]
    assert {f"satisfaction.cuts.{at}.satisfied_failed" for at in range(len(cuts))} <= seen
    assert {"satisfaction.satisfied_failed", "satisfaction.base_failure", "satisfaction.auc"} <= seen
    assert {"agents.0.mean_reward", "agents.2.pass_hat_k.2"} <= seen
    assert "pairs wait for a judge" in made.page.text
    assert "error curve, and" not in made.page.text.lower().split("methods:")[0]
    _, alt, texts = made.page.pictures[0]
    for cut in cuts:
        if cut["satisfied"]:
            rate = cut["satisfied_failed"]
            assert f"{rate['k']}/{rate['n']}" in texts
            assert f"cut {cut['cut']:g}: {rate['k']} of {rate['n']}" in alt


def rows_of(count: int, **changes: Any) -> list[dict[str, Any]]:
    usual = {"reward_a": 1, "reward_b": 0, "pref_ab": "B", "pref_ba": "B", "task_id": "t"}
    return [usual | {"pair_id": str(number)} | changes for number in range(count)]


ODD: dict[str, tuple[list[dict[str, Any]], dict[str, Any], list[str]]] = {
    "one pair": (rows_of(1), {}, ["Cannot be told", "misselected"]),
    "all right": (rows_of(3, pref_ab="A", pref_ba="A"), {}, ["No pair is misselected or inconsistent."]),
    "no reward known": (rows_of(2, reward_a=None, reward_b=None), {}, ["nothing can be said yet"]),
    "ties alone": (rows_of(2, pref_ab="tie", pref_ba="tie"), {}, ["Cannot be told"]),
    "unread alone": (rows_of(2, pref_ab="unreadable", pref_ba="unreadable"), {}, ["Cannot be told"]),
    "one order": (
        rows_of(4, pref_ba=None),
        {"swap_rule": "first_order"},
        ["Cannot be told: the swap rule is first_order", "not stored, only what was decided"],
    ),
    "huge and tiny gaps": (
        rows_of(3, gap=1e300) + [row | {"pair_id": "x"} for row in rows_of(1, gap=1e-300)],
        {
            "gap_source": "external",
            "buckets": buckets_from_text("[0,1e-6] (1e-6,1e200] (1e200,..)", None),
        },
        ["1e+300"],
    ),
    "many buckets": (
        [row | {"gap": int(row["pair_id"]) / 10} for row in rows_of(20)],
        {
            "gap_source": "external",
            "buckets": buckets_from_text(",".join(f"{at / 10:g}" for at in range(20)), None),
        },
        ["[1.2,1.3)"],
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_page_when_the_run_is_tiny_or_odd_then_it_is_sensible(tmp_path: Path, name: str) -> None:
    rows, wishes, said = ODD[name]
    rows = [{field: value for field, value in row.items() if value is not None} for row in rows]
    file = jsonl(tmp_path / "pairs.jsonl", rows)
    made = Made(f"sqlite:///{tmp_path / 'a.db'}", Wish("jsonl", (file,), **wishes))
    check(made.page, made.report)
    check_inert(made.page)
    assert made.page.open == []
    for words in said:
        assert words in made.page.text
    for name_of_part, why in made.report["why"].items():
        # What stands between backticks is set as code.
        assert f"Cannot be told: {why.replace('`', '')}." in made.page.text, name_of_part
    assert "None" not in made.page.text
    assert "nan" not in made.html.replace("[1.2,1.3)", "").split("<main>")[1].split("Methods:")[0].lower()


def test_page_when_two_judges_judged_then_it_is_of_one_and_compares_both(
    database_url: str, tmp_path: Path
) -> None:
    """On both databases: the order of the worst rows, their sides, and the gate that was asked for."""
    rows = []
    for judge, wrong in (("kind", 2), ("strict", 1)):
        for number in range(9):
            verdict = {"pref_ab": "B", "pref_ba": "B" if number % 2 else "A"} if number < 2 * wrong else {}
            rows.append(
                {
                    "pair_id": f"p{number}",
                    "task_id": f"t{number}",
                    "judge": judge,
                    "reward_a": 1,
                    "reward_b": number / 10,
                    "pref_ab": "A",
                    "pref_ba": "A",
                }
                | verdict
            )
    wish = Wish("jsonl", (jsonl(tmp_path / "pairs.jsonl", rows),))
    made = Made(database_url, wish, "kind")
    check(made.page, made.report)
    assert [(pair["source_pair_id"], pair["outcome"]) for pair in made.worst] == [
        ("p1", "misselected"),
        ("p3", "misselected"),
        ("p0", "inconsistent"),
        ("p2", "inconsistent"),
    ]
    assert [side["reward"] for side in made.worst[0]["sides"]] == [1, 0.1]
    assert [(reply["order"], reply["preference"]) for reply in made.worst[0]["replies"]] == [
        ("AB", "B"),
        ("BA", "B"),
    ]
    assert "one of 2" in made.page.text
    shown = {(figure.path, figure.text) for figure in made.page.figures}
    assert ("judges.0.misselected_of_decided", "2/7 28.6%") in shown
    assert ("judges.1.misselected_of_decided", "1/8 12.5%") in shown


def test_page_when_many_agents_meet_then_its_curve_is_over_agent_pairs(tmp_path: Path) -> None:
    """The judge errs on every two agents that are next to each other; the noise floor lies below."""
    rows = [
        {
            "pair_id": f"{one}-{other}-{task}",
            "task_id": f"t{task}",
            "agent_a": f"agent{one}",
            "agent_b": f"agent{other}",
            "reward_a": one / 20 + (0.01 if (task + one) % 3 else -0.02),
            "reward_b": other / 20 + (0.01 if (task + other) % 3 else -0.02),
            "pref_ab": "A" if other - one == 1 else "B",
            "pref_ba": "A" if other - one == 1 else "B",
        }
        for one in range(8)
        for other in range(one + 1, 8)
        for task in range(4)
    ]
    made = Made(f"sqlite:///{tmp_path / 'a.db'}", Wish("jsonl", (jsonl(tmp_path / "p.jsonl", rows),)))
    assert made.report["error_curve"]["unit"] == "agent_pairs"
    seen = check(made.page, made.report)
    check_inert(made.page)
    assert {"agent_pairs.near", "agent_pairs.noise_floor_near", "agent_pairs.rows.0.gap"} <= seen
    _, alt, texts = made.page.pictures[1]
    assert {"agent pair, wrong", "agent pair, right"} <= set(texts)
    assert f"a gap of {made.report['error_curve']['gap_at_10']['value']:.3f}" in alt
    assert made.page.text.count(", the worse") == 7


def test_page_when_sessions_of_a_benchmark_were_imported_then_it_has_their_agents(tmp_path: Path) -> None:
    paths = []
    for agent in ("old", "new"):
        runs = [tau2_run(f"{at}", 1.0 if at % 2 else 0.0) for at in range(4)]
        path = tmp_path / f"{agent}.json"
        path.write_text(json.dumps(tau2_results(agent, *runs)), encoding="utf-8")
        paths.append(path)
    made = Made(f"sqlite:///{tmp_path / 'a.db'}", Wish("tau2", tuple(paths)))
    check(made.page, made.report)
    assert "Cannot be told: no session holds a satisfaction." in made.page.text
    assert {("agents.0.sessions", "4"), ("agents.1.sessions", "4")} <= {
        (figure.path, figure.text) for figure in made.page.figures
    }


def test_page_when_its_place_is_none_then_the_error_says_so_and_nothing_is_left(
    tmp_path: Path, imported: CliRunner
) -> None:
    os.mkfifo(tmp_path / "pipe.html")
    (tmp_path / "folder.html").mkdir()
    for place, problem in (
        (tmp_path / "folder.html", "cannot be written: Is a directory"),
        (tmp_path / "pipe.html", "is no regular file, and would be replaced by one: name another"),
    ):
        done = imported.invoke(command, ["report", "--html", str(place)])
        assert (done.exit_code, str(done.exception)) == (1, f"{place}: {problem}")
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "audit.db", "folder.html", "pipe.html", "some.jsonl"
    ]  # fmt: skip


def test_page_when_matplotlib_is_not_installed_then_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setenv("REWARD_AUDIT_DB", f"sqlite:///{tmp_path / 'a.db'}")
    done = CliRunner().invoke(command, ["report", "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 1
    assert str(done.exception) == (
        "a report as HTML needs matplotlib, which is not installed: pip install 'reward-audit[html]'"
    )
    assert list(tmp_path.iterdir()) == []


def test_page_when_names_are_endless_then_they_are_cut_and_whole_as_titles(tmp_path: Path) -> None:
    long = "task-" + "x" * 3000
    rows = [
        {"pair_id": f"p{n}", "task_id": long, "category": long, "agent_a": "a" * 3000, "agent_b": "b",
         "reward_a": 0, "reward_b": 1, "pref_ab": "A", "pref_ba": "A"}
        for n in range(3)
    ]  # fmt: skip
    made = Made(f"sqlite:///{tmp_path / 'a.db'}", Wish("jsonl", (jsonl(tmp_path / "x.jsonl", rows),)))

    assert f'<bdi title="{long}">{long[:80]}…</bdi>' in made.html
    assert not re.search(r">[^<]*x{100}", made.html)


def test_page_when_a_note_names_a_command_then_it_is_code_and_nothing_else_becomes_markup() -> None:
    assert coded("see `reward-audit plan` <b>") == "see <code>reward-audit plan</code> &lt;b&gt;"
    assert coded("`<i>` and ` alone") == "<code>&lt;i&gt;</code> and ` alone"


def test_page_when_a_table_is_wider_than_the_screen_then_a_shadow_says_so(example: Made) -> None:
    rule = re.search(r"\.scroll \{[^}]*\}", example.html)[0]
    assert "overflow-x: auto" in rule
    assert rule.count("local") == 2
    assert rule.count("scroll,") + rule.count("scroll;") == 2
    assert "`reward-audit" not in example.html
