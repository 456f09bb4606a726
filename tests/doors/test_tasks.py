"""Tasks are checked whole when they load: every slip is told with file and key, and no SQL fails later."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.doors.tasks import fingerprint, load_tasks
from audit.verbs.verify import json_steps
from audit.words.errors import BadFile
from audit.words.tasks import Check, Domain, Task, Tool

WORLD = (
    "create table orders (id integer primary key, status text);\ninsert into orders values (17, 'open');\n"
)
CANCEL: dict[str, Any] = {
    "name": "cancel_order",
    "description": "Cancel an order.",
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "integer"}},
        "required": ["order_id"],
    },
    "sql": ["update orders set status = 'cancelled' where id = :order_id"],
    "must_change": "no such order",
}
DOMAIN = {"name": "shop", "policy": "Be kind.", "world": "world.sql", "tools": [CANCEL]}
TASK = {
    "id": "cancel-1",
    "category": "cancel",
    "goal": "Cancel order 17.",
    "facts": ["The order is 17."],
    "checks": [{"sql": "select status from orders", "rows": [["cancelled"]]}],
}


def write(folder: Path, tasks: Any = (TASK,), domain: Any = DOMAIN, world: str = WORLD) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "world.sql").write_text(world)
    (folder / "domain.yaml").write_text(domain if isinstance(domain, str) else json.dumps(domain))
    (folder / "tasks.yaml").write_text(tasks if isinstance(tasks, str) else json.dumps(tasks))
    return folder


def problem(*paths: Path) -> str:
    with pytest.raises(BadFile) as caught:
        load_tasks(paths)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def changed(document: Any, path: tuple[str | int, ...], value: object) -> Any:
    """A copy of `document` with another value at `path`; `...` takes the key out."""
    document = copy.deepcopy(document)
    inner = document
    for step in path[:-1]:
        inner = inner[step]
    if value is ...:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


def with_check(**check: object) -> Any:
    return changed(TASK, ("checks",), [check])


def test_task_when_every_key_is_written_then_is_read_as_written() -> None:
    tasks = """
- id: cancel-1
  category: cancel
  goal: Cancel order 17.
  facts: ["The order is 17.", 2026-03-01]
  setup: insert into orders values (18, 'late');
  max_turns: 4
  tags: [hard]
  checks:
    - {sql: select id from orders, rows: [[17], [18]], any_order: true, name: ids, weight: 2, required: false}
    - unchanged: all
    - {unchanged: {tables: all, except: [orders]}, name: but orders}
    - tool_called: {name: cancel_order, arguments: {order_id: 17}, times: 1}
    - tool_not_called: {name: cancel_order, arguments: {order_id: 18}}
    - file: {path: out/a.txt, exists: false}
    - json: {path: "$.a[0]", of: "tool:cancel_order", equals: null}
    - transcript: {contains: no}
    - http: {method: POST, url: "https://mail.example/", status: 202}
    - python: json:loads
    - llm: Was it kind?
"""
    (task,) = load_tasks([write(Path("shop"), tasks)])
    checks = (
        Check(
            "sql",
            "ids",
            {"sql": "select id from orders", "rows": [[17], [18]], "any_order": True},
            2.0,
            False,
        ),
        Check("unchanged", "unchanged 2", {"tables": "all"}),
        Check("unchanged", "but orders", {"tables": "all", "except": ["orders"]}),
        Check(
            "tool_called",
            "tool_called 4",
            {"name": "cancel_order", "arguments": {"order_id": 17}, "times": 1},
        ),
        Check(
            "tool_not_called", "tool_not_called 5", {"name": "cancel_order", "arguments": {"order_id": 18}}
        ),
        Check("file", "file 6", {"path": "out/a.txt", "exists": False}),
        Check("json", "json 7", {"path": "$.a[0]", "of": "tool:cancel_order", "equals": None}),
        Check("transcript", "transcript 8", {"contains": "no"}),
        Check("http", "http 9", {"method": "POST", "url": "https://mail.example/", "status": 202}),
        Check("python", "python 10", {"python": "json:loads"}),
        Check("llm", "llm 11", {"llm": "Was it kind?"}),
    )
    domain = Domain(
        "shop",
        "Be kind.",
        WORLD,
        (
            Tool(
                "cancel_order",
                "Cancel an order.",
                CANCEL["parameters"],
                ("update orders set status = 'cancelled' where id = :order_id",),
                None,
                "no such order",
            ),
        ),
    )
    assert task == Task(
        "cancel-1",
        "cancel",
        domain,
        "Cancel order 17.",
        ("The order is 17.", "2026-03-01"),
        checks,
        "insert into orders values (18, 'late');",
        fingerprint(task),
        4,
        frozenset({"hard"}),
    )


Where = tuple[str | int, ...]
ROWS = ("checks", 0, "rows")
TASK_FAULTS: dict[str, tuple[Any, str]] = {
    "misspelt key": (TASK | {"gaol": "x"}, "[0].gaol: is not a known key; did you mean goal?"),
    "strange key": (
        TASK | {"zzz": 1},
        "[0].zzz: is not a known key; known are id, category, goal, facts, checks, setup, max_turns, tags",
    ),
    "id is a number": (TASK | {"id": 17}, "[0].id: expected text, found 17"),
    "id is blank": (TASK | {"id": " "}, "[0].id: expected some text, found ' '"),
    "no goal": (changed(TASK, ("goal",), ...), "[0].goal: is missing"),
    "facts is text": (TASK | {"facts": "x"}, "[0].facts: expected a list, found 'x'"),
    "a fact is a number": (TASK | {"facts": ["a", 2]}, "[0].facts[1]: expected text, found 2"),
    "max_turns is true": (TASK | {"max_turns": True}, "[0].max_turns: expected a whole number, found True"),
    "max_turns is 0": (TASK | {"max_turns": 0}, "[0].max_turns: expected 1 or more, found 0"),
    "task is text": ("x", "[0]: expected a mapping, found 'x'"),
    "no criteria": (TASK | {"checks": []}, "[0].checks: criteria are empty: a task nobody can fail"),
    "no checks": (changed(TASK, ("checks",), ...), "[0].checks: is missing"),
    "nothing required": (
        changed(TASK, ("checks", 0, "required"), False),
        "[0].checks: no check is required: a task nobody can fail",
    ),
    "required is text": (
        changed(TASK, ("checks", 0, "required"), "false"),
        "[0].checks[0].required: expected true or false, found 'false'",
    ),
    "weight 0": (
        changed(TASK, ("checks", 0, "weight"), 0),
        "[0].checks[0].weight: expected more than 0, found 0",
    ),
    "weight is text": (
        changed(TASK, ("checks", 0, "weight"), "2"),
        "[0].checks[0].weight: expected a number, found '2'",
    ),
    "misspelt kind": (
        with_check(tool_caled={"name": "x"}),
        "[0].checks[0].tool_caled: is not a known key; did you mean tool_called?; [0].checks[0]: expected "
        "exactly one of sql, unchanged, tool_called, tool_not_called, file, json, transcript, http, python, "
        "llm, found none",
    ),
    "two kinds": (
        with_check(llm="x", python="json:loads"),
        "[0].checks[0]: expected exactly one of sql, unchanged, tool_called, tool_not_called, file, json, "
        "transcript, http, python, llm, found python and llm",
    ),
    "same names": (
        TASK | {"checks": [{"unchanged": "all", "name": "a"}, {"llm": "x", "name": "a"}]},
        "[0].checks: 2 checks are called 'a'",
    ),
    "rows misspelt": (
        with_check(sql="select 1", rosw=[[1]]),
        "[0].checks[0].rosw: is not a known key; did you mean rows?; [0].checks[0].rows: is missing",
    ),
    "typo in SQL": (
        with_check(sql="select statuz from orders", rows=[]),
        "[0].checks[0].sql: no such column: statuz",
    ),
    "a check that writes": (
        with_check(sql="update orders set status = 'cancelled' returning 1", rows=[[1]]),
        "[0].checks[0].sql: only reading is allowed here",
    ),
    "no query": (with_check(sql="-- x", rows=[]), "[0].checks[0].sql: gives no rows: expected a select"),
    "row too long": (
        changed(TASK, ROWS, [["a"], ["a", 1]]),
        "[0].checks[0].rows[1]: has 2 values, the query gives 1",
    ),
    "boolean in a row": (
        changed(TASK, ROWS, [[True]]),
        "[0].checks[0].rows[0][0]: expected a number, text or null, found True",
    ),
    "no such table": (
        with_check(unchanged=["order"]),
        "[0].checks[0].unchanged: no table 'order'; did you mean orders?",
    ),
    "tables not a list": (
        with_check(unchanged="orders"),
        "[0].checks[0].unchanged.tables: expected all or a list of tables, found 'orders'",
    ),
    "no such tool": (
        with_check(tool_called={"name": "cancel"}),
        "[0].checks[0].tool_called.name: no tool 'cancel'; did you mean cancel_order?",
    ),
    "no such argument": (
        with_check(tool_not_called={"name": "cancel_order", "arguments": {"order": 1}}),
        "[0].checks[0].tool_not_called.arguments: no parameter 'order'; did you mean order_id?",
    ),
    "path out": (
        with_check(file={"path": "../world.db", "exists": True}),
        "[0].checks[0].file.path: expected a plain path inside the folder, found '../world.db'",
    ),
    "file does not say what": (
        with_check(file={"path": "a"}),
        "[0].checks[0].file: expected exactly one of exists, contains and sha256",
    ),
    "short hash": (
        with_check(file={"path": "a", "sha256": "ab"}),
        "[0].checks[0].file.sha256: expected 64 hex digits in lower case, found 'ab'",
    ),
    "json path": (
        with_check(json={"path": "a.b", "of": "stat", "equals": 1}),
        "[0].checks[0].json.path: expected a path like $.a.b[0], found 'a.b'; "
        "[0].checks[0].json.of: expected tool:NAME, file:PATH or state, found 'stat'",
    ),
    "function": (
        with_check(python="json:lods"),
        "[0].checks[0].python: 'json:lods' cannot be loaded: module 'json' has no attribute 'lods'",
    ),
    "set-up": (
        TASK | {"setup": "\ninsert into order values (1)"},
        '[0].setup: line 2: near "order": syntax error',
    ),
    "faults in two places": (
        TASK | {"id": 1, "checks": [{"llm": 2}, {"python": "x"}]},
        "[0].id: expected text, found 1; [0].checks[0].llm: expected text, found 2; "
        "[0].checks[1].python: expected module:function, found 'x'",
    ),
}


@pytest.mark.parametrize(("task", "message"), TASK_FAULTS.values(), ids=TASK_FAULTS)
def test_task_when_it_has_a_fault_then_file_key_and_remedy_are_named(task: Any, message: str) -> None:
    assert problem(write(Path("shop"), [task])) == f"shop/tasks.yaml, {message}"


TOOL: Where = ("tools", 0)
DOMAIN_FAULTS: dict[str, tuple[Any, str]] = {
    "misspelt": (DOMAIN | {"wrld": "x"}, "wrld: is not a known key; did you mean world?"),
    "policy is a list": (DOMAIN | {"policy": ["a"]}, "policy: expected text, found a list"),
    "world elsewhere": (
        DOMAIN | {"world": "/etc/passwd"},
        "world: expected a plain path inside the folder, found '/etc/passwd'",
    ),
    "typo in a tool": (
        changed(DOMAIN, (*TOOL, "sql"), ["select 1", "select x from orders"]),
        "tools[0].sql[1]: no such column: x",
    ),
    "undeclared parameter": (
        changed(DOMAIN, (*TOOL, "sql"), ["select :id"]),
        "tools[0].sql[0]: You did not supply a value for binding parameter :id.",
    ),
    "two statements in one": (
        changed(DOMAIN, (*TOOL, "sql"), ["select 1; select 2"]),
        "tools[0].sql[0]: You can only execute one statement at a time.",
    ),
    "attach": (
        changed(DOMAIN, (*TOOL, "sql"), ["attach 'x.db' as x"]),
        "tools[0].sql[0]: ATTACH, PRAGMA, BEGIN and COMMIT are refused here",
    ),
    "sql is text": (
        changed(DOMAIN, (*TOOL, "sql"), "select 1"),
        "tools[0].sql: expected a list, found 'select 1'",
    ),
    "neither sql nor function": (
        changed(DOMAIN, (*TOOL, "sql"), ...),
        "tools[0]: expected either sql or function",
    ),
    "both": (changed(DOMAIN, (*TOOL, "function"), "json:loads"), "tools[0]: expected either sql or function"),
    "no schema": (
        changed(DOMAIN, (*TOOL, "parameters", "properties", "order_id", "type"), "int"),
        "tools[0].parameters.properties.order_id.type: no valid JSON schema: 'int' is not valid under any of "
        "the given schemas",
    ),
    "schema of no object": (
        changed(DOMAIN, (*TOOL, "parameters"), {"type": "array"}),
        "tools[0].parameters.type: expected object; "
        "tools[0].sql[0]: You did not supply a value for binding parameter :order_id.",
    ),
    "name": (
        changed(DOMAIN, (*TOOL, "name"), "cancel order"),
        "tools[0].name: expected up to 64 letters, digits, _ and -, found 'cancel order'",
    ),
    "same name": (DOMAIN | {"tools": [CANCEL, CANCEL]}, "tools: 2 tools are called 'cancel_order'"),
    "key twice": (
        "name: a\npolicy: b\nname: c\n",
        "line 1 column 1: not valid YAML: the key 'name' stands twice",
    ),
}


@pytest.mark.parametrize(("domain", "message"), DOMAIN_FAULTS.values(), ids=DOMAIN_FAULTS)
def test_domain_when_it_has_a_fault_then_file_key_and_remedy_are_named(domain: Any, message: str) -> None:
    assert problem(write(Path("shop"), domain=domain)) == f"shop/domain.yaml, {message}"


def test_faults_when_in_several_files_then_all_are_told() -> None:
    write(Path("shop"), [TASK | {"id": 1}], DOMAIN | {"name": 2})
    write(Path("travel"), [TASK], world="create table orders (id, status);\ncreat")
    assert problem(Path()) == (
        "shop/domain.yaml, name: expected text, found 2; "
        "shop/tasks.yaml, [0].id: expected text, found 1; "
        'travel/world.sql, line 2: near "creat": syntax error'
    )


FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", "shop/tasks.yaml: is empty"),
    "no tasks": ("[]", "shop/tasks.yaml: holds no tasks"),
    "no list": (
        "tasks: []",
        "shop/tasks.yaml: expected a list of tasks, or a mapping that begins with domain, found a mapping",
    ),
    "no YAML": (
        "- a: [1",
        "shop/tasks.yaml, line 1 column 8: not valid YAML: expected ',' or ']', but got '<stream end>'",
    ),
    "python tag": (
        "!!python/object/apply:os.system [ls]",
        "shop/tasks.yaml, line 1 column 1: not valid YAML: could not determine a constructor for the tag "
        "'tag:yaml.org,2002:python/object/apply:os.system'",
    ),
    "deep": ("[" * 5000, "shop/tasks.yaml: not valid YAML: nested too deep"),
    "no UTF-8": (b"- id: a\n  goal: \xff", "shop/tasks.yaml, line 2: not UTF-8: byte 0xff"),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_file_when_it_holds_no_tasks_then_says_so(content: str | bytes, message: str) -> None:
    folder = write(Path("shop"))
    (folder / "tasks.yaml").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert problem(folder) == message


def test_paths_when_of_every_shape_then_give_the_same_tasks() -> None:
    write(Path("shop"))
    Path("more").mkdir()
    Path("more/own.yaml").write_text(json.dumps({"domain": "../shop", "tasks": [TASK]}))
    expected = load_tasks([Path("shop")])
    assert [task.task_id for task in expected] == ["cancel-1"]
    for path in (Path(), Path("shop/tasks.yaml"), Path("more/own.yaml")):
        assert load_tasks([path]) == expected
    assert problem(Path("nowhere"), Path("more")) == (
        "nowhere: no such file or folder; more: holds no domain.yaml, nor does a folder in it"
    )
    Path("shop/tasks.yaml").unlink()
    assert problem(Path("shop")) == "shop/tasks.yaml: no such file"


def test_task_ids_when_they_stand_twice_then_are_refused() -> None:
    shop, travel = write(Path("shop"), [TASK, TASK]), write(Path("travel"))
    assert problem(shop, travel) == (
        "shop/tasks.yaml, [1].id: 'cancel-1' is taken by shop/tasks.yaml, [0]; "
        "travel/tasks.yaml, [0].id: 'cancel-1' is taken by shop/tasks.yaml, [0]"
    )


PLAIN = {
    "no": "no", "yes": "yes", "on": "on", "10:30": "10:30", "2026-03-01": "2026-03-01", "017": "017",
    "1_000": "1_000", ".nan": ".nan", "0x1f": "0x1f", "17": 17, "-1.50": -1.5, ".5": 0.5, "1e3": 1000.0,
    "null": None, "~": None, "": None,
}  # fmt: skip


@pytest.mark.parametrize(("written", "value"), PLAIN.items(), ids=PLAIN)
def test_plain_value_when_read_then_is_what_yaml_1_2_says(written: str, value: object) -> None:
    tasks = f"""
- {{id: a, category: b, goal: c, facts: [], checks: [{{sql: select 1, rows: [[{written or "!!null ''"}]]}}]}}
"""
    (task,) = load_tasks([write(Path("shop"), tasks)])
    (found,) = task.checks[0].spec["rows"][0]
    assert (found, type(found)) == (value, type(value))


CHANGES: dict[str, Callable[[], Path]] = {
    "policy": lambda: write(Path("shop"), domain=DOMAIN | {"policy": "Be strict."}),
    "world": lambda: write(Path("shop"), world=WORLD + "-- more"),
    "tool": lambda: write(Path("shop"), domain=changed(DOMAIN, (*TOOL, "must_change"), "gone")),
    "goal": lambda: write(Path("shop"), [TASK | {"goal": "x"}]),
    "facts": lambda: write(Path("shop"), [TASK | {"facts": []}]),
    "setup": lambda: write(Path("shop"), [TASK | {"setup": "delete from orders"}]),
    "rows": lambda: write(Path("shop"), [changed(TASK, ROWS, [["open"]])]),
    "weight": lambda: write(Path("shop"), [changed(TASK, ("checks", 0, "weight"), 2)]),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_fingerprint_when_what_matters_changes_then_it_changes(change: Callable[[], Path]) -> None:
    before = load_tasks([write(Path("shop"))])[0].fingerprint
    assert len(before) == 16
    assert int(before, 16) >= 0
    renamed = TASK | {"id": "other", "category": "x", "tags": ["y"], "max_turns": 3}
    assert load_tasks([write(Path("shop"), [renamed])])[0].fingerprint == before
    reordered = changed(DOMAIN, (*TOOL, "parameters"), dict(reversed(CANCEL["parameters"].items())))
    assert load_tasks([write(Path("shop"), domain=reordered)])[0].fingerprint == before
    assert load_tasks([change()])[0].fingerprint != before


@given(st.text(alphabet='$.ab[]"01 ', max_size=8).map(lambda tail: "$" + tail))
def test_json_path_when_the_loader_takes_it_then_the_verifier_reads_it(path: str) -> None:
    task = with_check(json={"path": path, "of": "state", "equals": 1})
    try:
        load_tasks([write(Path("shop"), [task])])
        is_taken = True
    except BadFile:
        is_taken = False
    try:
        list(json_steps(path))
        is_read = True
    except ValueError:
        is_read = False
    assert is_taken == is_read
