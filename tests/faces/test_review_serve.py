"""`review serve`: people label by keyboard in a real browser, over real HTTP; strangers are refused."""

import asyncio
import html
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.parse
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from chromium import Page, chromium, label_by_keyboard, needs_chromium
from hostile_sessions import HOSTILE, hostile_sessions
from local_server import Served, served

JSON = {"accept": "application/json"}


@pytest.fixture(scope="module")
def picked(tmp_path_factory: pytest.TempPathFactory, command_in: Callable[..., Any]) -> Path:
    """A database of hostile sessions, all their pairs picked for people. Not to be written."""
    folder = tmp_path_factory.mktemp("picked")
    hostile_sessions(folder / "sessions.jsonl")
    run = command_in(folder)
    for args in (
        ("import", "sessions", folder / "sessions.jsonl"),
        ("review", "export", "-o", folder / "look.csv", "--n", "100"),
    ):
        ran = run(*args)
        assert (ran.code, ran.stderr) == (0, ""), ran
    return folder / "audit.db"


@pytest.fixture
def file(picked: Path, tmp_path: Path) -> Path:
    """A copy of it for one test."""
    return Path(shutil.copy(picked, tmp_path / "audit.db"))


def serving(file: Path, *args: str) -> Any:
    return served(f"sqlite:///{file}", "review", "serve", "--annotator", "ann", *args, cwd=file.parent)


def labels(file: Path) -> list[tuple[Any, ...]]:
    """(subject, kind, value, note) in the order they were stored."""
    connection = sqlite3.connect(file)
    try:
        return connection.execute(
            "select coalesce(pair_id, session_id), kind, value, note from human_labels order by label_id"
        ).fetchall()
    finally:
        connection.close()


def items(file: Path) -> list[dict[str, str]]:
    """The items in the page's order: task, pair, the session shown first and the one shown second."""
    connection = sqlite3.connect(file)
    connection.row_factory = sqlite3.Row
    try:
        found = connection.execute(
            "select p.task_id, p.pair_id, p.session_a, p.session_b, r.shown_first from review_items as r "
            "join audit_pairs as p on p.pair_id = r.pair_id order by r.review_id"
        ).fetchall()
    finally:
        connection.close()
    sides = {"A": ("session_a", "session_b"), "B": ("session_b", "session_a")}
    return [
        {"task": row["task_id"], "pair": row["pair_id"], "side": row["shown_first"]}
        | dict(zip(("first", "second"), (row[name] for name in sides[row["shown_first"]]), strict=True))
        for row in found
    ]


def post(page: Served, path: str, headers: dict[str, str] | None = None, **fields: str) -> Any:
    """A form sent with the token in its header."""
    told = {"x-review-token": page.token, **JSON} if headers is None else headers
    return page.ask(path, "POST", urllib.parse.urlencode(fields), told)


def cookie(page: Served) -> str:
    answered = page.ask(f"/?token={page.token}")
    assert (answered.status, answered.headers["location"]) == (303, "/")
    assert "HttpOnly" in answered.headers["set-cookie"]
    assert "SameSite=lax" in answered.headers["set-cookie"]
    return answered.headers["set-cookie"].partition(";")[0]


def test_post_when_it_is_not_from_the_page_then_it_is_refused_and_nothing_is_stored(file: Path) -> None:
    with serving(file) as page:
        mine = cookie(page)
        here = f"http://127.0.0.1:{page.port}"
        refused = {
            "no token": {},
            "no token, own origin": {"origin": here, "sec-fetch-site": "same-origin"},
            "wrong token": {"x-review-token": "A" * len(page.token)},
            "wrong cookie": {"cookie": f"reward_audit_{page.port}=x", "origin": here},
            "token of another port": {"cookie": mine.replace(str(page.port), "1"), "origin": here},
            "another origin": {"cookie": mine, "origin": "https://evil.example"},
            "another port": {"cookie": mine, "origin": "http://127.0.0.1:1"},
            "no origin at all": {"cookie": mine},
            "hidden origin": {"cookie": mine, "origin": "null"},
            "another site": {"cookie": mine, "sec-fetch-site": "cross-site"},
            "another server here": {"cookie": mine, "origin": here, "sec-fetch-site": "same-site"},
            "another origin, header": {"x-review-token": page.token, "origin": "https://evil.example"},
        }
        for path in ("/items/1", "/undo"):
            for why, headers in refused.items():
                assert post(page, path, headers, answer="preference:tie").status == 403, why
            for host in ("evil.example", f"evil.example:{page.port}", f"127.0.0.1.evil.example:{page.port}"):
                headers = {"cookie": mine, "origin": f"http://{host}", "host": host}
                assert post(page, path, headers, answer="preference:tie").status == 400, host
        assert labels(file) == []
        for headers in ({"cookie": mine, "origin": here}, {"cookie": mine, "sec-fetch-site": "same-origin"}):
            assert post(page, "/items/1", headers, answer="preference:tie").status == 303
        assert [label[1:3] for label in labels(file)] == [("preference", "tie")]


def test_page_when_the_token_is_missing_then_nothing_is_shown(file: Path) -> None:
    with serving(file) as page:
        for path in ("/", "/items/1", "/static/review.js", "/?token=", "/?token=wrong", "/items/1?token="):
            answered = page.ask(path)
            assert answered.status == 403, path
            assert answered.text == (
                "Open the address that `reward-audit review serve` printed: this one lacks its token.\n"
            )
        assert page.ask("/", headers={"host": "evil.example", "cookie": cookie(page)}).status == 400


@pytest.mark.parametrize(
    ("path", "fields", "why"),
    [
        ("/items/1", {"answer": "preference:A"}, "'A' is no answer to 'preference' of item 1"),
        ("/items/1", {"answer": "x:first"}, "'x' is no question: preference, first_done, second_done are"),
        ("/items/1", {}, "'' is no question: preference, first_done, second_done are"),
        ("/items/99", {"answer": "preference:tie"}, "there is no item 99: they go from 1 to 11"),
        ("/items/abc", {"answer": "preference:tie"}, "'abc' is no number of an item"),
        ("/items/" + "9" * 5000, {"answer": "preference:tie"}, f"'{'9' * 40}' is no number of an item"),
        ("/undo", {"number": "\u00b2"}, "'\u00b2' is no number of an item"),
        ("/undo", {"number": "99"}, "there is no item 99: they go from 1 to 11"),
        ("/items/0", {"answer": "preference:tie"}, "there is no item 0: they go from 1 to 11"),
        ("/items/1", {"answer": "note", "note": "x"}, "a note is stored with an answer: give one first"),
        (
            "/items/1",
            {"answer": "preference:tie", "note": "x" * 5001},
            "the note has 5,001 characters: at most 5,000",
        ),
        ("/items/1", {"answer": "preference:tie", "note": "x" * 100_001}, "too long: at most 100,000 bytes"),
    ],
)  # fmt: skip
def test_answer_when_it_is_none_then_it_is_refused_in_words(
    shared_page: Served, picked: Path, path: str, fields: dict[str, str], why: str
) -> None:
    answered = post(shared_page, path, **fields)
    assert (answered.status, answered.text) == (400, why + "\n")
    assert labels(picked) == []


@pytest.fixture(scope="module")
def shared_page(picked: Path) -> Any:
    """A page at which nothing is stored."""
    with serving(picked) as page:
        yield page


class Tags(HTMLParser):
    """Every tag of a page, and the attributes that it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.attributes: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes.update(name for name, _ in attrs)


def test_hostile_sessions_when_shown_then_every_page_has_the_same_tags_and_the_text_whole(
    shared_page: Served, picked: Path
) -> None:
    headers = {"cookie": cookie(shared_page)}
    seen = {}
    for number, item in enumerate(items(picked), 1):
        answered = shared_page.ask(f"/items/{number}", headers=headers)
        policy = answered.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
        assert "unsafe" not in policy
        parsed = Tags(answered.text)
        assert parsed.tags["script"] == 1
        assert not [name for name in parsed.attributes if name.startswith("on")]
        if 1 < number < len(HOSTILE):
            seen[item["task"]] = parsed.tags - Counter(p=parsed.tags["p"])
        text = html.unescape(answered.text)
        hostile = HOSTILE[item["task"].removeprefix("task-")]
        if "\u202e" in hostile:
            assert "turned \\u202e round, zero\\u200bwidth, bell \\x07" in text
            assert "\u202e" not in text
        else:
            # the goal, the rules, and in each session the customer; the agent's words are in one of them
            assert text.count(hostile) >= 5
    assert len(seen) > 5
    assert all(tags == next(iter(seen.values())) for tags in seen.values())


def test_page_when_shown_then_it_tells_neither_agents_nor_rewards_nor_which_side_is_which(
    shared_page: Served, picked: Path
) -> None:
    headers = {"cookie": cookie(shared_page)}
    for number, item in enumerate(items(picked), 1):
        text = shared_page.ask(f"/items/{number}", headers=headers).text
        assert re.findall(r"bittern|dunlin|reward_|outcome|misselected", text) == []
        assert not [id_ for id_ in (item["pair"], item["first"], item["second"]) if id_ in text]
        first, second = (
            one.split("</section>")[0] for one in text.split('<section aria-labelledby="side-')[1:]
        )
        says = {item["first"]: first, item["second"]: second}
        dunlin = next(session for session, part in says.items() if "agent: Done." in part)
        connection = sqlite3.connect(picked)
        ((agent,),) = connection.execute("select agent from sessions where session_id = ?", [dunlin])
        connection.close()
        assert agent == "dunlin-3"


def test_answers_when_stored_then_they_are_of_the_sides_that_were_shown(file: Path) -> None:
    with serving(file) as page:
        for number in (1, 2, 3):
            told = post(page, f"/items/{number}", answer="preference:first", note="")
            assert told.status == 200
            post(page, f"/items/{number}", answer="first_done:done", note="")
            last = post(page, f"/items/{number}", answer="second_done:not done", note="a\r\nb ")
        assert last.text.startswith('{"number":3,"answers":{"preference":"first","first_done":"done",')
        assert '"done":3,"total":11,"next_open":4,"is_done":true' in last.text
    expected = []
    for item in items(file)[:3]:
        expected += [
            (item["pair"], "preference", item["side"], None),
            (item["first"], "success", "1", None),
            (item["second"], "success", "0", "a\nb"),
        ]
    assert labels(file) == expected
    assert {item["side"] for item in items(file)} == {"A", "B"}


def test_undo_when_asked_then_rows_are_added_and_what_was_said_before_counts(file: Path) -> None:
    with serving(file) as page:
        (pair,) = [item["pair"] for item in items(file)[:1]]
        turn = {"A": ("A", "B"), "B": ("B", "A")}[items(file)[0]["side"]]
        for value in ("first", "second", "tie"):
            post(page, "/items/1", answer=f"preference:{value}", note="why")
        post(page, "/items/2", answer="first_done:done", note="")
        answered = [post(page, "/undo", number="1") for _ in range(5)]
        assert [re.search(r'"number":(\d+)', one.text)[1] for one in answered] == ["2", "1", "1", "1", "1"]
        said = [re.search(r'"preference":("[a-z ]+"|null)', one.text)[1] for one in answered]
        assert said == ["null", '"second"', '"first"', "null", "null"]
        assert ['"undone":true' in one.text for one in answered] == [True, True, True, True, False]
    values = [value for subject, _, value, _ in labels(file) if subject == pair]
    assert values == [turn[0], turn[1], "tie", turn[1], turn[0], "withdrawn"]
    notes = [note for subject, _, _, note in labels(file) if subject == pair]
    assert notes == ["why"] * 5 + [None]


def test_serve_when_killed_midway_then_the_next_time_goes_on_and_nothing_is_lost(file: Path) -> None:
    with serving(file) as page:
        for answer in ("preference:tie", "first_done:done", "second_done:done"):
            assert post(page, "/items/1", answer=answer, note="n").status == 200
        assert post(page, "/items/2", answer="preference:cannot tell", note="").status == 200
        page.process.send_signal(signal.SIGKILL)
        page.process.communicate()
    before = labels(file)
    assert len(before) == 4
    with serving(file) as page:
        headers = {"cookie": cookie(page)}
        assert page.ask("/", headers=headers).headers["location"] == "/items/2"
        first = page.ask("/items/1", headers=headers).text
        assert '<span id="done">1</span> of 11 done' in first
        assert len(re.findall(r'aria-pressed="true"', first)) == 3
        assert "\nn</textarea>" in first
        assert post(page, "/undo", number="2").status == 200
    assert labels(file) == before
    with served(f"sqlite:///{file}", "review", "serve", "--annotator", "bob", cwd=file.parent) as page:
        assert page.ask("/", headers={"cookie": cookie(page)}).headers["location"] == "/items/1"


def test_serve_when_the_database_cannot_be_written_then_the_answer_is_refused(
    file: Path,
) -> None:
    with serving(file) as page:
        connection = sqlite3.connect(file)
        connection.execute(
            "create trigger full before insert on human_labels begin insert into gone values (1); end"
        )
        connection.commit()
        connection.close()
        answered = post(page, "/items/1", answer="preference:tie", note="")
        assert answered.status == 400
        assert re.fullmatch(
            r"sqlite:///.*audit.db cannot be written: no such table: main.gone\n", answered.text
        )


def test_serve_when_ended_while_another_program_writes_then_the_answer_under_way_is_stored_and_told(
    file: Path,
) -> None:
    with serving(file) as page, closing(sqlite3.connect(file, isolation_level=None)) as writer:
        writer.execute("begin immediate")
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(post, page, "/items/1", answer="preference:tie", note="")
            time.sleep(1)
            page.process.send_signal(signal.SIGINT)
            time.sleep(2.5)
            assert page.process.poll() is None
            writer.execute("rollback")
            assert answered.result().status == 200
        _, err = page.process.communicate(timeout=20)
        assert (page.process.returncode, err) == (0, "")
    assert [label[1:3] for label in labels(file)] == [("preference", "tie")]


@needs_chromium
def test_hostile_sessions_when_labelled_by_keyboard_then_answers_are_the_persons_and_nothing_runs(
    file: Path,
) -> None:
    def judged(said: str) -> str:
        return "a15" if "agent: Done." in said else "b24"

    async def label(page: Served) -> Page:
        async with chromium() as tab:
            await tab.open(page.url)
            await tab.until("document.getElementById('answers')")
            assert "token" not in await tab.value("location.href")
            # a slip, taken back; a note, in which keys are letters
            await tab.press("t")
            await tab.until("document.getElementById('told').textContent.startsWith('Stored.')")
            await tab.press("u")
            await tab.until("document.getElementById('told').textContent.startsWith('Taken back.')")
            assert await tab.value("document.querySelectorAll('[aria-pressed=true]').length") == 0
            await tab.press("n")
            await tab.until("document.activeElement.id === 'note'")
            for key in "abt1":
                await tab.press(key)
            await tab.press("Escape")
            assert await tab.value("document.getElementById('note').value") == "abt1"
            await label_by_keyboard(tab, judged)
            assert (
                await tab.value("document.getElementById('told').textContent")
                == "Stored. All items are done."
            )
            for number in range(1, len(HOSTILE) + 1):
                await tab.open(f"http://127.0.0.1:{page.port}/items/{number}")
            return tab

    with serving(file) as page:
        tab = asyncio.run(label(page))
        assert (tab.dialogs, tab.errors) == ([], [])
        local = f"http://127.0.0.1:{page.port}/"
        assert [one for one in tab.requests if not one.startswith((local, "data:,"))] == []
        assert [one for one in tab.requests if "gone" in one] == []
    connection = sqlite3.connect(file)
    wins = connection.execute(
        "select p.pair_id, case when a.agent = 'dunlin-3' then 'A' else 'B' end from audit_pairs as p "
        "join sessions as a on a.session_id = p.session_a"
    ).fetchall()
    dunlin = dict(connection.execute("select session_id, agent = 'dunlin-3' from sessions"))
    connection.close()
    stored = {(subject, kind): (value, note) for subject, kind, value, note in labels(file)}
    assert {key: value for key, (value, _) in stored.items()} == {
        **{(pair, "preference"): side for pair, side in wins},
        **{(session, "success"): str(is_dunlin) for session, is_dunlin in dunlin.items()},
    }
    assert "abt1" in {note for _, note in stored.values()}
    assert len(labels(file)) == 3 * len(HOSTILE) + 2


@needs_chromium
def test_page_when_mouse_and_keys_take_turns_then_enter_goes_on_and_every_word_of_the_page_is_true(
    file: Path,
) -> None:
    def reads(words: str) -> str:
        return f"document.getElementById('told').textContent === '{words}'"

    async def label(page: Served) -> list[str]:
        first, second = "location.pathname === '/items/1'", "location.pathname === '/items/2'"
        async with chromium() as tab:
            await tab.size(1280, 900)
            await tab.open(page.url)
            await tab.until(f"document.getElementById('answers') && {first}")
            await tab.press("u")
            await tab.until(reads("Nothing to take back: nothing was answered since this sitting began."))
            await tab.press("n")
            await tab.write("why")
            await tab.press("Escape")
            await tab.until(reads("The note waits: it is stored with your first answer."))
            for key in "a15":
                await tab.click(f"[data-key='{key}']")
                await tab.until(f"document.querySelector('[data-key={json.dumps(key)}][aria-pressed=true]')")
            await tab.until(reads("Stored. Done: Enter goes on."))
            await tab.press("Enter")
            await tab.until(second)
            await tab.press("u")
            await tab.until(f"{first} && {reads('Taken back.')} && location.hash === ''")
            await tab.press("4")
            await tab.until(reads("Stored. Done: Enter goes on."))
            # the note is emptied, and the button that keeps it, reached by Tab, does not hold Enter
            await tab.press("n")
            await tab.value("document.getElementById('note').select()")
            await tab.write("")
            await tab.press("Tab")
            await tab.until(reads("Note stored. Done: Enter goes on."))
            await tab.press("Enter")
            await tab.until("document.activeElement === document.body")
            await tab.press("Enter")
            await tab.until(second)
            await tab.press("ArrowLeft")
            await tab.until(first)
            assert await tab.value("document.getElementById('note').value") == ""
            page.process.send_signal(signal.SIGKILL)
            page.process.communicate()
            await tab.press("t")
            nobody = "nobody answers. Is `reward-audit review serve` still running?"
            await tab.until(f"document.getElementById('trouble').textContent === 'Not stored: {nobody}'")
            return tab.dialogs

    with serving(file) as page:
        assert asyncio.run(label(page)) == []
    item = items(file)[0]
    newest = {(subject, kind): (value, note) for subject, kind, value, note in labels(file)}
    assert newest == {
        (item["pair"], "preference"): (item["side"], None),
        (item["first"], "success"): ("1", None),
        (item["second"], "success"): ("1", None),
    }


@needs_chromium
@pytest.mark.parametrize("width", [1280, 390])
def test_page_when_looked_at_then_nothing_is_wider_than_the_screen_and_every_control_has_a_name(
    shared_page: Served, width: int
) -> None:
    async def look() -> None:
        async with chromium() as tab:
            await tab.size(width, 900)
            await tab.open(shared_page.url)
            await tab.until("document.getElementById('answers')")
            for number in (1, 6, 11):
                await tab.open(f"http://127.0.0.1:{shared_page.port}/items/{number}")
                assert await tab.value("document.documentElement.scrollWidth <= innerWidth")
                tree = (await tab.ask("Accessibility.getFullAXTree"))["nodes"]
                controls = [node for node in tree if node.get("role", {}).get("value") in CONTROLS]
                assert len(controls) > 10
                assert [node for node in controls if not node.get("name", {}).get("value")] == []
            # the keyboard alone reaches the answers, and what has the focus is seen
            await tab.press("Tab")
            outline = await tab.value("getComputedStyle(document.activeElement).outlineStyle")
            assert outline == "solid"

    asyncio.run(look())


CONTROLS = {"button", "link", "textbox", "checkbox", "progressbar", "region"}


def test_serve_when_ended_by_ctrl_c_then_it_says_how_far_it_came(file: Path) -> None:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("REWARD_AUDIT_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "audit", "--db", f"sqlite:///{file}", "review", "serve", "--port", "0",
         "--no-open", "--annotator", "ann\x1b[2J"],
        cwd=file.parent,
        env={**environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )  # fmt: skip
    first, out = process.stdout.readline(), process.stdout.readline()
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{32}\n", first)
    process.send_signal(signal.SIGINT)
    rest, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")
    assert out + rest == (
        "11 items for ann\\x1b[2J; Ctrl-C ends it\n0 of 11 items are done; every answer is stored\n"
    )


def test_serve_when_nothing_was_picked_then_it_says_what_to_do(
    tmp_path: Path, cli: Callable[..., Any]
) -> None:
    judged = tmp_path / "judged.csv"
    judged.write_text("pair_id,label,pref_ab\np1,A,A\n", encoding="utf-8")
    assert cli("import", "csv", judged).code == 0
    ran = cli("review", "serve", "--no-open", "--port", "0")
    assert (ran.code, ran.stdout) == (1, "")
    assert re.fullmatch(
        r"error: run \S+ has nothing to look at yet: "
        r"`reward-audit review export -o FILE --n 40` picks what people should see\n",
        ran.stderr,
    )
    ran = cli("review", "serve", "--no-open", "--annotator", " ")
    assert ran.code == 2
    assert "it is empty: say who answers" in ran.stderr


def test_serve_when_the_library_is_absent_then_it_says_what_to_install(picked: Path) -> None:
    code = (
        "import sys\nsys.modules['uvicorn'] = None\n"
        "from audit.__main__ import main\n"
        f"sys.argv = ['reward-audit', '--db', 'sqlite:///{picked}', 'review', 'serve', '--no-open']\nmain()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "error: review serve needs uvicorn, which is not installed: pip install 'reward-audit[review]'\n"
    )
