"""The door to the world: tools act in one transaction, nothing gets out, and what is left comes back."""

import base64
import hashlib
import json
import sqlite3
import tempfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from audit.doors.world import FinalWorld, ToolContext, World, WorldError, load_function
from audit.doors.world_sql import build_image
from audit.words.tasks import Domain, Task, Tool

ORDERS = """
create table orders (id integer primary key, status text not null, note text, check (status <> 'lost'));
insert into orders values (17, 'open', null), (18, 'sent', 'fragile');
"""
ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"
ID = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
NOTE = {"type": "object", "properties": {"id": {"type": "integer"}, "note": {"type": ["string", "array"]}}}
SET_STATUS = "update orders set status = :status where id = :id"
STATUS = {"type": "object", "properties": {"id": {"type": "integer"}, "status": {"type": "string"}}}


def fails(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    connection.execute("update orders set status = 'gone'")
    raise LookupError("no such carrier")


def answers_an_error(
    connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext
) -> object:
    connection.execute("update orders set status = 'gone'")
    return {"error": "the carrier says no"}


def commits(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    connection.execute("update orders set status = 'gone'")
    connection.commit()
    return "done"


def returns_a_set(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    connection.execute("update orders set status = 'gone'")
    return {1}


def writes(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    context.path(arguments["name"]).write_bytes(arguments["text"].encode("latin-1"))
    context.http.append(
        {"method": "POST", "url": "https://mail.example/send", "status": 202, "body": "queued"}
    )
    return {"written": arguments["name"]}


TOOLS = (
    Tool("get", "one order", ID, ("select id, status, note from orders where id = :id",)),
    Tool("set_status", "change it", STATUS, (SET_STATUS,), must_change="no such order"),
    Tool("add_note", "write on it", NOTE, ("update orders set note = :note where id = :id",)),
    Tool("swap", "two steps", STATUS, (SET_STATUS, "select status from orders order by id")),
    Tool(
        "half",
        "a good step, then a bad one",
        STATUS,
        (SET_STATUS, "insert into orders values (17, 'x', null)"),
    ),
    Tool("blob", "bytes", {"type": "object"}, ("select x'00ff' as data, 1.5 as number, 9e999 > 1 as big",)),
    Tool("infinite", "no JSON", {"type": "object"}, ("select 9e999 as number",)),
    Tool("endless", "never ends", STATUS, (SET_STATUS, ENDLESS)),
    Tool("attach", "reaches out", {"type": "object"}, ("attach 'other.db' as other",)),
    Tool("end", "its own end", STATUS, (SET_STATUS, "commit")),
    Tool("count", "of a list", NOTE, ("select count(*) as n from json_each(:note)",)),
    Tool("own_commit", "ours", {"type": "object"}, ("update orders set note = 'y'", "COMMIT")),
    *(
        Tool(name, name, {"type": "object"}, function=f"{__name__}:{name}")
        for name in ("fails", "answers_an_error", "commits", "returns_a_set", "writes", "absent")
    ),
)


def task(world_sql: str = ORDERS, setup_sql: str = "", tools: tuple[Tool, ...] = TOOLS) -> Task:
    return Task("t1", "change", Domain("shop", "Be kind.", world_sql, tools), "goal", (), (), setup_sql)


@pytest.fixture
def world() -> Iterator[World]:
    with World(task(), seconds=0.3) as world:
        yield world


def rows(world: World, sql: str = "select * from orders order by id") -> list[tuple[Any, ...]]:
    with FinalWorld(task(), world.snapshot()) as final:
        return final.query(sql)


CALLS: dict[str, tuple[str, str | dict[str, Any], object]] = {
    "rows": ("get", '{"id": 17}', [{"id": 17, "status": "open", "note": None}]),
    "no rows": ("get", {"id": 99}, []),
    "a write": ("add_note", {"id": 17, "note": "ring twice"}, {"changed": 1}),
    "a write that may change nothing": ("add_note", {"id": 99, "note": "x"}, {"changed": 0}),
    "the rows of the last statement": (
        "swap",
        {"id": 17, "status": "x"},
        [{"status": "x"}, {"status": "sent"}],
    ),
    "absent optional argument is NULL": ("add_note", {"id": 18}, {"changed": 1}),
    "bytes as base64": ("blob", "", [{"data": "AP8=", "number": 1.5, "big": 1}]),
    "a list is JSON text": ("count", {"note": ["a", "b"]}, [{"n": 2}]),
    "a whole float is an integer": ("get", {"id": 17.0}, [{"id": 17, "status": "open", "note": None}]),
    "a function": ("writes", {"name": "a.txt", "text": "hi"}, {"written": "a.txt"}),
}


@pytest.mark.parametrize(("name", "arguments", "result"), CALLS.values(), ids=CALLS)
def test_tool_when_called_then_answers_json(
    world: World, name: str, arguments: str | dict[str, Any], result: object
) -> None:
    assert json.loads(world.call(name, arguments)) == result


AUTH = "ATTACH, PRAGMA, BEGIN and COMMIT are refused here"
ERRORS: dict[str, tuple[str, Any, str]] = {
    "must change": ("set_status", {"id": 99, "status": "x"}, "no such order"),
    "text for a number": ("get", '{"id": "17"}', "$.id: '17' is not of type 'integer'"),
    "true for a number": ("get", '{"id": true}', "$.id: True is not of type 'integer'"),
    "missing": ("get", "", "$: 'id' is a required property"),
    "an array": ("get", "[17]", "the arguments must be a JSON object, found [17]"),
    "null": ("get", "null", "the arguments must be a JSON object, found None"),
    "cut off": (
        "get",
        '{"id": 1',
        "the arguments are not valid JSON: Expecting ',' delimiter: line 1 column 9 (char 8)",
    ),
    "infinity": (
        "get",
        '{"id": 1e999}',
        "the arguments are not valid JSON: Out of range float values are not JSON compliant",
    ),
    "deep": ("get", "[" * 100_000, "the arguments are nested too deep"),
    "too large for the database": (
        "get",
        {"id": 2**70},
        "OverflowError: Python int too large to convert to SQLite INTEGER",
    ),
    "constraint": (
        "set_status",
        {"id": 17, "status": "lost"},
        "CHECK constraint failed: status <> 'lost'",
    ),
    "second step": ("half", {"id": 18, "status": "x"}, "UNIQUE constraint failed: orders.id"),
    "never ends": ("endless", {"id": 17, "status": "x"}, "took longer than 0.3 s"),
    "attach": ("attach", {}, AUTH),
    "commit in SQL": ("end", {"id": 17, "status": "x"}, AUTH),
    "commit in a function": ("commits", {}, AUTH),
    "crash": ("fails", {}, "LookupError: no such carrier"),
    "a function's own error": ("answers_an_error", {}, "the carrier says no"),
    "no JSON value": ("returns_a_set", {}, "TypeError: Object of type set is not JSON serializable"),
    "infinite result": ("infinite", {}, "ValueError: Out of range float values are not JSON compliant"),
    "absent function": (
        "absent",
        {},
        f"'{__name__}:absent' cannot be loaded: module '{__name__}' has no attribute 'absent'",
    ),
    "path traversal": (
        "writes",
        {"name": "../world.db", "text": ""},
        "ValueError: '../world.db' leads out of the session's folder",
    ),
    "absolute path": (
        "writes",
        {"name": "/etc/passwd", "text": ""},
        "ValueError: '/etc/passwd' leads out of the session's folder",
    ),
}


@pytest.mark.parametrize(("name", "arguments", "problem"), ERRORS.values(), ids=ERRORS)
def test_tool_when_it_cannot_be_carried_out_then_says_why_and_nothing_changed(
    world: World, name: str, arguments: Any, problem: str
) -> None:
    before = world.snapshot()
    found = json.loads(world.call(name, arguments))
    assert {"error": found["error"].partition(": inf")[0]} == {"error": problem}
    assert world.snapshot() == before
    assert json.loads(world.call("set_status", {"id": 17, "status": "sent"})) == {"changed": 1}


def test_tool_when_unknown_then_the_known_ones_are_named() -> None:
    with World(task(tools=TOOLS[:2])) as world:
        assert world.call("gett", {}) == """{"error": "unknown tool 'gett'; known are get, set_status"}"""
        assert len(world.call("x" * 1_000_000, {})) < 200


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # which the library gives while it fetches
def test_tool_when_its_schema_points_elsewhere_then_nothing_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "any.json").write_text("{}")
    schema = {"type": "object", "$ref": (tmp_path / "any.json").as_uri()}
    with World(task(tools=(Tool("remote", "", schema, ("select 1 as one",)),))) as world:
        assert "Unresolvable" in json.loads(world.call("remote", {}))["error"]


def test_tool_when_it_commits_in_the_worlds_own_words_then_is_refused_all_the_same(world: World) -> None:
    assert json.loads(world.call("add_note", {"id": 17, "note": "x"})) == {"changed": 1}
    assert json.loads(world.call("own_commit", {})) == {"error": AUTH}
    assert rows(world)[0] == (17, "open", "x")


def test_arguments_when_they_hold_sql_then_it_is_text(world: World) -> None:
    evil = "'; drop table orders; --"
    assert json.loads(world.call("add_note", {"id": 17, "note": evil})) == {"changed": 1}
    assert rows(world) == [(17, "open", evil), (18, "sent", "fragile")]


def test_arguments_when_a_megabyte_long_then_are_stored_whole_and_errors_stay_short(world: World) -> None:
    long = "a" * 1_000_000
    assert json.loads(world.call("add_note", {"id": 17, "note": long})) == {"changed": 1}
    assert rows(world)[0] == (17, "open", long)
    assert len(world.call("get", {"id": long})) < 250
    assert json.loads(world.call("add_note", {"id": 17, "note": "a" * (17 << 20)})) == {
        "error": "string or blob too big"
    }


def test_calls_when_parallel_then_none_is_lost() -> None:
    add = Tool("add", "one more", {"type": "object"}, ("insert into orders (status) values ('new')",))
    with World(task(tools=(add,))) as world, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: world.call("add", {}), range(200))) == {'{"changed": 1}'}
        assert rows(world, "select count(*) from orders") == [(202,)]


def test_world_when_closed_while_a_tool_is_at_work_then_waits_for_it() -> None:
    endless = Tool("endless", "never done", {"type": "object"}, (ENDLESS,))
    world = World(task(tools=(endless,)), seconds=0.4)
    with ThreadPoolExecutor(1) as pool:
        called = pool.submit(world.call, "endless", "{}")
        time.sleep(0.1)
        assert not called.done()
        world.close()
        assert not world.path.exists()
    assert called.result() == '{"error": "took longer than 0.4 s"}'


def test_context_when_read_by_a_tool_then_folder_and_http_are_the_sessions(world: World) -> None:
    world.call("writes", {"name": "a.txt", "text": "hi\x00"})
    world.call("writes", {"name": "b.bin", "text": "\xff"})
    (world.context.folder / "link").symlink_to("/etc/passwd")
    sent = {"method": "POST", "url": "https://mail.example/send", "status": 202, "body": "queued"}
    state = json.loads(json.dumps(world.snapshot()))
    assert state["http"] == [sent, sent]
    assert state["files"] == {
        "a.txt": {"sha256": hashlib.sha256(b"hi\x00").hexdigest(), "text": "hi\x00"},
        "b.bin": {"sha256": hashlib.sha256(b"\xff").hexdigest(), "text": None},
    }


EVERYTHING = """
create table counted (id integer primary key autoincrement, note text);
insert into counted (note) values ('it''s "quoted"'), (null), ('a' || char(0) || 'b'), ('好 👍');
delete from counted where id = 4;
create table bytes (data blob, number real, any_type);
insert into bytes values (x'00ff00', 0.1, 1), (zeroblob(3), -1e300, '1'), (x'', 1, 1.0);
create table keyed (a text, b integer, primary key (a, b)) without rowid;
insert into keyed values ('x', 1), ('x', 2);
create table log (line text);
create view noted as select note from counted where note is not null;
create trigger watch after insert on counted begin insert into log values ('new ' || new.id); end;
create index by_note on counted (note);
"""
DUMPED = (
    "select type, name, sql from sqlite_schema order by name",
    "select id, note, typeof(note), hex(note) from counted",
    "select hex(data), typeof(data), number, any_type, typeof(any_type) from bytes",
    "select * from keyed",
    "select * from noted",
    "select * from sqlite_sequence",
)


def test_snapshot_when_restored_then_everything_is_as_it_was() -> None:
    this = task(
        EVERYTHING, tools=(Tool("add", "", {"type": "object"}, ("insert into counted default values",)),)
    )
    with World(this) as world:
        direct = sqlite3.connect(world.path)
        expected = [direct.execute(sql).fetchall() for sql in DUMPED]
        direct.close()
        state = json.loads(json.dumps(world.snapshot()))
        with FinalWorld(this, state) as final:
            assert [final.query(sql) for sql in DUMPED] == expected
            assert final.query("select hex(note) from counted where id = 3") == [("610062",)]
            assert final.tables() == {
                "bytes": ["data", "number", "any_type"],
                "counted": ["id", "note"],
                "keyed": ["a", "b"],
                "log": ["line"],
            }
        world.call("add", {})
        with FinalWorld(this, world.snapshot()) as final:  # AUTOINCREMENT goes on after 4, the trigger works
            assert final.query("select max(id) from counted") == [(5,)]
            assert final.query("select line from log") == [("new 5",)]


@given(st.text(st.characters(exclude_categories=["Cs"])))
@example("\x00")
@example("'; --")
def test_text_when_written_by_a_tool_then_comes_back_to_the_character(note: str) -> None:
    with World(task()) as world:
        world.call("add_note", {"id": 17, "note": note})
        assert json.loads(world.call("get", {"id": 17}))[0]["note"] == note
        assert rows(world, "select note from orders where id = 17") == [(note,)]


def test_final_world_when_read_then_not_a_byte_changes(world: World) -> None:
    world.call("set_status", {"id": 17, "status": "cancelled"})
    with FinalWorld(task(), world.snapshot(), seconds=0.3) as final:
        before = hashlib.sha256(final.path.read_bytes()).hexdigest()
        assert final.query("select status from orders") == [("cancelled",), ("sent",)]
        assert final.initial_query("select status from orders") == [("open",), ("sent",)]
        for ask in (final.query, final.initial_query):
            for sql in ("update orders set status = 'x'", "drop table orders", "pragma user_version = 3"):
                with pytest.raises(WorldError, match=r"^only reading is allowed here$"):
                    ask(sql)
            with pytest.raises(WorldError, match=r"^took longer than 0\.3 s$"):
                ask(ENDLESS)
        final._final.connection.set_authorizer(None)  # the file itself is opened read-only, too
        with pytest.raises(WorldError, match=r"^only reading is allowed here$"):
            final.query("update orders set status = 'x'")
        assert hashlib.sha256(final.path.read_bytes()).hexdigest() == before
        assert [path.name for path in final.path.parent.iterdir()] == ["final.db"]


def test_world_when_the_task_has_a_set_up_then_both_worlds_hold_it() -> None:
    this = task(setup_sql="update orders set status = 'late' where id = 17;")
    with World(this) as world, FinalWorld(this, world.snapshot()) as final:
        late = [(17, "late", None), (18, "sent", "fragile")]
        assert final.query("select * from orders") == final.initial_query("select * from orders") == late


def test_world_when_empty_then_is_a_world_all_the_same() -> None:
    with World(task("", tools=())) as world, FinalWorld(task("", tools=()), world.snapshot()) as final:
        assert world.tools == []
        assert final.tables() == {}


def test_world_when_its_sql_has_its_own_transaction_then_it_holds() -> None:
    script = "begin; create table a (x); commit; begin; insert into a values (';'); rollback; -- the end;"
    with World(task(script)) as world:
        assert rows(world, "select count(*) from a") == [(0,)]


BAD_WORLDS = {
    "typo": (
        "create table a (x);\n\ncreat table b (\n  x\n);",
        "",
        'world SQL, line 3: near "creat": syntax error',
    ),
    "attach": ("attach 'evil.db' as evil;", "", f"world SQL, line 1: {AUTH}"),
    "vacuum into a file": ("vacuum into 'evil.db';", "", f"world SQL, line 1: {AUTH}"),
    "pragma": ("select 1;\npragma writable_schema = on;", "", f"world SQL, line 2: {AUTH}"),
    "unfinished": ("create table a (x);\ncreate table b (", "", "world SQL, line 2: incomplete input"),
    "two on a line": (
        "create table a (x); insert into b values (1);",
        "",
        "world SQL, line 1: no such table: b",
    ),
    "after a string with semicolons": ("select ';\n;';\nx;", "", 'world SQL, line 3: near "x": syntax error'),
    "open transaction": ("begin;\ncreate table a (x);", "", "world SQL, line 2: BEGIN without COMMIT"),
    "set-up": ("create table a (x);", "insert into b values (1)", "setup SQL, line 1: no such table: b"),
    "foreign key": (
        "create table a (x primary key);\ncreate table b (y references a (x));\ninsert into b values (1);",
        "",
        "world SQL, line 3: FOREIGN KEY constraint failed",
    ),
}


@pytest.mark.parametrize(("world_sql", "setup_sql", "message"), BAD_WORLDS.values(), ids=BAD_WORLDS)
def test_world_when_its_sql_cannot_run_then_the_line_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, world_sql: str, setup_sql: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(WorldError) as caught:
        build_image(world_sql, setup_sql)
    assert str(caught.value) == message
    assert list(tmp_path.iterdir()) == []


def test_worlds_when_closed_or_broken_then_leave_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with World(task()) as world:
        state = world.snapshot()
        assert len(list(tmp_path.iterdir())) == 1
    with FinalWorld(task(), state) as final:
        final.query("select 1")
    with pytest.raises(KeyError, match="stop"), World(task()):
        raise KeyError("stop")
    with pytest.raises(WorldError):
        World(task("creat table"))
    for bad in (
        {**state, "world": "AAAA"},
        {**state, "world": state["world"][:40]},
        {"world": state["world"]},
    ):
        with pytest.raises(WorldError, match=r"^the final state cannot be read: "):
            FinalWorld(task(), bad)
    no_database = base64.b64encode(zlib.compress(b"no database" * 1000)).decode()
    with pytest.raises(WorldError, match=r"^the world cannot be opened: file is not a database$"):
        FinalWorld(task(), {**state, "world": no_database})
    assert list(tmp_path.iterdir()) == []


def long_text(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    connection.execute("update orders set status = 'gone'")
    return "x" * arguments["length"]


# Who reads all of it needs gigabytes.
FLOOD = (
    "with recursive n(i) as (select 1 union all select i + 1 from n limit 100000000) select {} as t from n"
)
OVER = "the result is too long: over 100,000 characters, ask for less"
LONG: dict[str, tuple[Tool, dict[str, Any], str | None]] = {
    f"rows of {value}": (
        Tool("read", "rows", {"type": "object"}, ("update orders set note = 'y'", FLOOD.format(value))),
        {},
        OVER,
    )
    for value in ("zeroblob(1000000)", "i", "'text'")
} | {
    f"a text of {length}": (
        Tool("read", "text", {"type": "object"}, function=f"{__name__}:long_text"),
        {"length": length},
        problem,
    )
    for length, problem in (
        (99_998, None),
        (99_999, "the result is too long: 100,001 characters, at most 100,000"),
    )
}


@pytest.mark.parametrize("case", LONG)
def test_call_when_its_result_is_too_long_then_the_agent_is_told_and_the_world_is_as_before(
    case: str,
) -> None:
    tool, arguments, problem = LONG[case]
    with World(task(tools=(tool,)), seconds=10) as world:
        before = rows(world)
        found = json.loads(world.call("read", arguments))
        assert found == ("x" * 99_998 if problem is None else {"error": problem})
        assert (rows(world) == before) == (problem is not None)


def test_call_when_a_function_closed_the_database_then_it_raises_and_nothing_can_be_kept() -> None:
    tool = Tool("close", "ends all", {"type": "object"}, function=f"{__name__}:closes")
    with World(task(tools=(tool,))) as world:
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            world.call("close", {})
        with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
            world.snapshot()


def closes(connection: sqlite3.Connection, arguments: dict[str, Any], context: ToolContext) -> object:
    connection.close()
    return "closed"


@pytest.mark.parametrize(
    "kind", ["SystemExit(0)", "KeyboardInterrupt", "GeneratorExit", "OSError('no disk')"]
)
def test_function_when_its_module_raises_on_import_then_it_cannot_be_loaded(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_that_raises.py").write_text(f"raise {kind}")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(WorldError, match=r"^'module_that_raises:f' cannot be loaded: "):
        load_function("module_that_raises:f")
