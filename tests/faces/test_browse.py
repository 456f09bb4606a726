"""`browse`: Datasette on the real database over real HTTP; every column is told, nothing is written."""

import asyncio
import html
import json
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from chromium import chromium, needs_chromium
from hostile_sessions import HOSTILE, hostile_replies, hostile_sessions
from local_server import Served, served

from audit.doors.db import columns_of, open_database
from audit.doors.shipped import view_texts
from audit.faces.browse import metadata, words
from audit.words.schema import metadata as schema

# What would be alive, did it stand in a page.
LIVE = (
    "<script>alert", "<img src=/gone", "<svg onload", "<iframe", "<base", "<meta http-equiv",
    "<form action=//", "<link rel=stylesheet href=/gone", "<style>body", 'href="https://gone',
)  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, command_in: Callable[..., Any]) -> Path:
    """A database of hostile sessions and replies."""
    folder = tmp_path_factory.mktemp("browse a b")
    hostile_sessions(folder / "sessions.jsonl")
    hostile_replies(folder / "replies.jsonl")
    run = command_in(folder)
    for args in (("sessions", folder / "sessions.jsonl"), ("jsonl", folder / "replies.jsonl")):
        more = ("--grammar", "mtbench_3way") if args[0] == "jsonl" else ()
        ran = run("import", *args, *more, db=url_of(folder))
        assert ran.code == 0, ran
    return folder


def url_of(folder: Path) -> str:
    return f"sqlite:///{urllib.parse.quote(str(folder))}/audit.db"


@pytest.fixture(scope="module")
def page(folder: Path) -> Iterator[Served]:
    with served(url_of(folder), "browse", cwd=folder) as one:
        yield one


def rows(page: Served, query: str, **params: str) -> list[dict[str, Any]]:
    answered = page.ask(f"/audit/{query}.json?{urllib.parse.urlencode({'_shape': 'objects', **params})}")
    assert answered.status == 200, answered.text
    return json.loads(answered.text)["rows"]


def test_words_when_held_to_the_database_then_every_column_of_it_is_told_and_no_other(tmp_path: Path) -> None:
    engine = open_database(f"sqlite:///{tmp_path}/a.db", create=True)
    columns = columns_of(engine)
    engine.dispose()
    told = metadata(columns)["databases"]["audit"]["tables"]
    ours = {*schema.tables, *view_texts()} - {"view_digest"}

    assert ours <= columns.keys()
    untold = {name: set(columns[name]) - told[name]["columns"].keys() for name in ours}
    assert {name: missing for name, missing in untold.items() if missing} == {}, "say it in browse.yaml"
    said = words()
    assert {name for name in ours if not told[name].get("title")} == set(), "say it in browse.yaml"
    assert said["tables"].keys() <= ours
    for name, about in said["tables"].items():
        assert {*about.get("columns", {}), *about.get("facets", [])} <= set(columns[name]), name
    used = {column for name in ours for column in columns[name]}
    assert said["columns"].keys() <= used


def test_browse_when_asked_then_tables_views_and_questions_have_titles_and_every_column_its_meaning(
    page: Served,
) -> None:
    home = page.ask("/audit").text
    for name in ("audit_pairs", "judge_logs", "misselection_by_gap"):
        assert f'href="/audit/{name}"' in home
    for query in words()["queries"].values():
        assert query["title"] in home
    pairs = page.ask("/audit/audit_pairs").text
    assert "The first that applies: unverified, reward_tie, incomplete" in pairs
    assert "One row per run, gate and gap bucket." in page.ask("/audit/misselection_by_gap").text
    assert 'data-column="outcome"' in pairs
    assert '<div class="facet-info facet-audit-audit_pairs-outcome"' in pairs


def test_questions_when_their_fields_are_left_empty_then_they_are_about_the_newest_run(
    page: Served, folder: Path
) -> None:
    newest = sqlite3.connect(folder / "audit.db")
    ((run_id,),) = newest.execute("select max(run_id) from audit_runs")
    wrong = newest.execute(
        "select pair_id from audit_pairs where run_id = ? and outcome in ('misselected', 'inconsistent')",
        [run_id],
    ).fetchall()
    newest.close()
    assert {row["pair_id"] for row in rows(page, "worst_pairs", run_id="", gate="")} == {
        one for (one,) in wrong
    }
    assert rows(page, "worst_pairs", run_id="none", gate="") == []


def test_calls_of_a_pair_when_asked_then_both_orders_are_there(page: Served) -> None:
    (pair,) = rows(page, "audit_pairs", source_pair_id="pair-script")
    found = rows(page, "calls_of_a_pair", pair_id=pair["pair_id"])
    assert [row["presented_order"] for row in found] == ["AB", "BA"]


def test_flips_when_counted_then_they_are_the_pairs_whose_orders_name_different_sides(page: Served) -> None:
    found = rows(page, "flips_by_prompt_version", run_id="")
    assert sum(row["pairs"] for row in found) == len(HOSTILE)
    both = rows(page, "audit_pairs", _size="max")
    assert (
        sum(row["flips"] for row in found) == sum(row["is_consistent"] == 0 for row in both) == len(HOSTILE)
    )


def test_browse_when_it_is_asked_to_write_then_it_does_not(page: Served, folder: Path) -> None:
    before = (folder / "audit.db").read_bytes()
    for sql in ("delete from judge_logs", "pragma user_version = 5", "attach 'x.db' as x"):
        assert page.ask(f"/audit.json?{urllib.parse.urlencode({'sql': sql})}").status == 400
    assert page.ask("/audit/audit_pairs", "POST", "x=1").status == 405
    assert (folder / "audit.db").read_bytes() == before


def test_browse_when_a_statement_makes_one_huge_value_then_it_is_refused(folder: Path) -> None:
    sql = urllib.parse.urlencode({"sql": "select zeroblob(900000000)"})
    with served(url_of(folder), "browse", cwd=folder) as page:
        answered = page.ask(f"/audit.json?{sql}")
        assert (answered.status, "too big" in answered.text) == (400, True)
        # Datasette tells the terminal of a statement that failed.
        page.process.send_signal(signal.SIGINT)
        _, err = page.process.communicate(timeout=20)
    assert re.fullmatch(r"ERROR: conn=.*: string or blob too big\n", err)


def test_browse_when_another_sites_page_asks_then_only_a_link_that_a_person_follows_is_answered(
    page: Served,
) -> None:
    def ask(site: str, dest: str) -> int:
        return page.ask("/audit", headers={"sec-fetch-site": site, "sec-fetch-dest": dest}).status

    assert [ask("cross-site", dest) for dest in ("image", "iframe", "script", "empty")] == [403] * 4
    assert ask("same-site", "empty") == 403
    assert [ask(site, "document") for site in ("cross-site", "none", "same-origin")] == [200] * 3
    assert [ask("same-origin", dest) for dest in ("empty", "style")] == [200] * 2


def test_runs_of_one_name_when_counted_in_a_facet_then_they_are_told_apart(page: Served) -> None:
    ids = {row["run_id"] for row in rows(page, "audit_runs")}
    assert len(ids) == 2
    facets = page.ask("/audit/audit_pairs?_facet=run_id").text.split("facet-results")[1].split("</ul>")
    assert {run_id for run_id in ids if any(f">{run_id}</a>" in facet for facet in facets)} == ids


def test_browse_when_a_run_writes_meanwhile_then_its_rows_are_seen(page: Served, folder: Path) -> None:
    before = len(rows(page, "human_labels"))
    writer = sqlite3.connect(folder / "audit.db")
    writer.execute(
        "insert into human_labels (pair_id, annotator, kind, value, created_at) "
        "select pair_id, 'ann', 'preference', 'A', '2026-01-01T00:00:00.000Z' from audit_pairs limit 1"
    )
    writer.commit()
    assert len(rows(page, "human_labels")) == before + 1
    writer.close()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
def test_browse_when_it_is_asked_under_another_name_then_it_refuses(page: Served, host: str) -> None:
    assert page.ask("/audit.json", headers={"Host": host}).status == 400
    assert page.ask("/audit.json", headers={"Host": f"localhost:{page.port}"}).status == 200


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_when_shown_by_browse_then_it_is_text(page: Served, name: str) -> None:
    (pair,) = rows(page, "audit_pairs", source_pair_id=f"pair-{name}")
    calls = rows(page, "calls_of_a_pair", pair_id=pair["pair_id"])
    for path in (
        f"/audit/judge_logs?pair_id={pair['pair_id']}",
        f"/audit/judge_logs/{calls[0]['log_id']}",
        f"/audit/judge_logs/{calls[1]['log_id']}",
        f"/audit/calls_of_a_pair?pair_id={pair['pair_id']}",
        f"/audit/sessions?task_id=task-{name}",
        "/audit/sessions?_facet=category",
    ):
        shown = page.ask(path)
        assert shown.status == 200
        for sign in LIVE:
            assert sign not in shown.text, (path, sign)
    whole = html.unescape(page.ask(f"/audit/judge_logs/{calls[0]['log_id']}").text)
    if name != "unseen":
        assert HOSTILE[name] in whole
    else:
        assert "turned \\u202e round, zero\\u200bwidth, bell \\x07" in whole
        assert "\u202e" not in whole


def test_long_text_when_in_a_table_then_it_is_folded_and_cut_and_whole_on_its_own_page(page: Served) -> None:
    (pair,) = rows(page, "audit_pairs", source_pair_id="pair-script")
    call = rows(page, "calls_of_a_pair", pair_id=pair["pair_id"])[1]
    table = page.ask(f"/audit/judge_logs?pair_id={pair['pair_id']}").text
    assert re.search(r"… of \d,\d{3} characters: open the row", table)
    assert "x" * 4000 not in table
    assert "x" * 4000 in page.ask(f"/audit/judge_logs/{call['log_id']}").text
    session = rows(page, "sessions", task_id="task-template", agent="dunlin-3")[0]
    own = page.ask(f"/audit/sessions/{session['session_id']}").text
    assert "<dt>role</dt><dd><span>assistant</span></dd>" in own


@pytest.mark.parametrize(
    ("value", "shown", "hidden"),
    [
        ([{"role": "user", "content": "a\nb"}] * 200, "<dt>content</dt><dd><span>a\nb</span></dd>", "[{"),
        ({"text": "y" * 9000, "late": 1}, "<dt>text</dt>", "late"),
        ({"deep": json.loads("[" * 30 + '"' + "z" * 9000 + '"' + "]" * 30)}, "<dt>deep</dt>", "z" * 3000),
        ([7] * 5000, "<li><code>7</code></li>", "7, 7"),
    ],
)
def test_long_json_when_in_a_table_then_its_beginning_is_read_like_a_short_one(
    value: Any, shown: str, hidden: str
) -> None:
    from audit.faces.browse_cells import render_cell

    text = json.dumps(value)
    cell = str(render_cell(text, "transcript_json", "sessions", "audit", None))
    body = cell.partition("</summary>")[2]
    assert shown in body
    assert hidden not in body
    assert f"… of {len(text):,} characters: open the row" in body
    assert len(body) < 100_000


@pytest.mark.parametrize(
    ("column", "value", "shown"),
    [
        ("gap_bucket", "[0,0.05)", "[0,0.05)"),
        ("gap_bucket", "[0,0.2]", "[0,0.2]"),
        ("label", "[0.3,..)", "[0.3,..)"),
        ("raw_output", "[[A>>B]]", "[[A&gt;&gt;B]]"),
        ("raw_output", "{so to speak}", "{so to speak}"),
        ("raw_output", "[0, 1]", None),
        ("checks_json", '[{"passed": true}]', None),
        ("config_json", "{}", None),
    ],
)
def test_short_text_when_in_a_table_then_it_folds_only_if_it_is_an_object_or_a_list(
    column: str, value: str, shown: str | None
) -> None:
    from audit.faces.browse_cells import render_cell

    found = str(render_cell(value, column, "audit_pairs", "audit", None))
    assert found.startswith("<details>") if shown is None else found == shown


def test_sessions_that_satisfied_but_failed_when_people_spoke_then_they_are_those_of_the_view(
    folder: Path, tmp_path: Path, command_in: Callable[..., Any]
) -> None:
    """What people say outranks what was given, and no rule: the question counts what the view counts."""
    messages = [{"role": "user", "content": "x"}]
    lines = [
        {"task_id": f"{source}-{success}-{said}", "agent": "a", "messages": messages,
         "success": bool(success), "label_source": source, "satisfaction": 0.8}
        for source in ("rule", "external", "llm") for success in (0, 1) for said in (0, 1, 2)
    ]  # fmt: skip
    (tmp_path / "said.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert command_in(tmp_path)("import", "sessions", tmp_path / "said.jsonl").code == 0
    with closing(sqlite3.connect(tmp_path / "audit.db")) as writer:
        writer.execute(
            "insert into human_labels (session_id, annotator, kind, value, created_at) "
            "select session_id, 'ann', 'success', substr(task_id, -1), '2026-01-01T00:00:00.000Z' "
            "from sessions where task_id not like '%2'"
        )
        writer.commit()
        ((failed,),) = writer.execute("select satisfied_failed from satisfied_but_failed where cut = 0.8")
    with served(url_of(tmp_path), "browse", cwd=tmp_path) as page:
        found = {row["task_id"]: row["people_say"] for row in rows(page, "sessions_satisfied_but_failed")}
    assert found == {
        "rule-0-0": 0, "rule-0-1": 1, "rule-0-2": None, "external-0-0": 0, "external-1-0": 0,
        "external-0-2": None, "llm-0-0": 0, "llm-1-0": 0, "llm-0-2": None,
    }  # fmt: skip
    assert len(found) == failed


@needs_chromium
def test_tables_when_looked_at_on_a_phone_then_no_page_is_wider_than_the_screen(page: Served) -> None:
    async def look() -> dict[str, int]:
        async with chromium() as tab:
            await tab.size(390, 900)
            widths = {}
            for name in ("audit_pairs", "sessions", "judge_logs", "sessions_satisfied_but_failed?run_id="):
                await tab.open(f"http://127.0.0.1:{page.port}/audit/{name}")
                widths[name] = await tab.value("document.documentElement.scrollWidth")
            return widths

    assert set(asyncio.run(look()).values()) == {390}


@needs_chromium
def test_hostile_text_when_opened_in_a_browser_then_nothing_runs_and_nothing_is_loaded(page: Served) -> None:
    async def look() -> tuple[list[str], list[str], list[str]]:
        async with chromium() as tab:
            for path in ("sessions?_size=max&_facet=category", "judge_logs?_size=max", "judge_logs/1"):
                await tab.open(f"http://127.0.0.1:{page.port}/audit/{path}")
                await tab.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
                await asyncio.sleep(0.2)
                assert await tab.value("document.querySelectorAll('td').length") > 20
            return tab.dialogs, tab.errors, tab.requests

    dialogs, errors, requests = asyncio.run(look())
    assert (dialogs, errors) == ([], [])
    local = f"http://127.0.0.1:{page.port}/"
    assert [one for one in requests if not one.startswith((local, "data:image/svg+xml"))] == []
    assert [one for one in requests if "gone" in one] == []


def test_browse_when_the_library_is_absent_then_it_says_what_to_install(folder: Path) -> None:
    code = (
        "import sys\nsys.modules['datasette'] = None\n"
        "from audit.__main__ import main\n"
        f"sys.argv = ['reward-audit', '--db', {url_of(folder)!r}, 'browse', '--no-open']\nmain()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "error: browse needs datasette, which is not installed: pip install 'reward-audit[browse]'\n"
    )


def test_browse_when_the_path_would_be_read_as_another_then_it_says_so(
    folder: Path, tmp_path: Path, cli: Callable[..., Any]
) -> None:
    odd = tmp_path / "50% #1"
    odd.mkdir()
    (odd / "audit.db").write_bytes((folder / "audit.db").read_bytes())
    ran = cli("browse", "--no-open", "--port", "0", db=url_of(odd))
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"error: {odd}/audit.db: Datasette cannot open a path with ?, # or %: browse a copy elsewhere\n"
    )


def test_browse_when_the_port_is_taken_then_it_says_what_to_do(
    page: Served, folder: Path, cli: Callable[..., Any]
) -> None:
    ran = cli("browse", "--no-open", "--port", str(page.port), db=url_of(folder))
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        f"error: port {page.port} cannot be had (Address already in use): "
        "name another with --port, or 0 for a free one\n"
    )


def test_browse_when_the_database_is_a_postgres_then_one_line_says_what_to_use(
    postgres_url: str, cli: Callable[..., Any]
) -> None:
    open_database(postgres_url, create=True).dispose()
    ran = cli("browse", "--no-open", "--port", "0", db=postgres_url)
    assert (ran.code, ran.stdout) == (1, "")
    assert ran.stderr == (
        "error: browse shows SQLite files, this is a PostgreSQL database: "
        "ask it with `reward-audit sql` and `views`, or look at it with psql or pgAdmin\n"
    )
