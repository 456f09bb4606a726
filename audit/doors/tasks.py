"""The door to tasks: domain folders of YAML and SQL, checked whole before a token is spent on them.

Nothing is guessed: plain YAML values are those of YAML 1.2 (`no`, `10:30` and `2025-03-01` are text), a key
that is not known is refused, and all SQL is tried on the world.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from audit.doors.arguments import schema_faults
from audit.doors.limited import importable_from
from audit.doors.task_shapes import (
    BESIDE,
    BODIES,
    CheckShape,
    DomainShape,
    TaskShape,
    TasksShape,
    ToolShape,
    keys_of,
    shown,
)
from audit.doors.task_yaml import Place, from_text, from_yaml
from audit.doors.world import load_function
from audit.doors.world_sql import Database, WorldError, build_image
from audit.words.errors import BadFile
from audit.words.tasks import Check, Domain, Task, Tool

_NOBODY_FAILS = "criteria are empty: a task nobody can fail"


def load_tasks(paths: Sequence[Path]) -> list[Task]:
    """The tasks of domain folders, of folders of such folders, or of single tasks.yaml files.

    A domain folder holds domain.yaml, world.sql and tasks.yaml; a tasks.yaml elsewhere begins with `domain:`,
    its folder. A check's `spec` is what is written of its kind: for `sql`, `python` and `llm` the keys that
    stand in the check itself, else the mapping under the kind; `unchanged` is always {tables, except}.

    Raises BadFile that names every fault with file and key path.
    """
    faults: list[BadFile] = []
    domains: dict[Path, Domain | None] = {}
    tasks: list[Task] = []
    seen: dict[str, str] = {}
    for path in paths:
        for file in _task_files(path, faults):
            for place, task in _load_file(file, domains, faults):
                if task.task_id in seen:
                    place.at("id").wrong(f"{task.task_id!r} is taken by {seen[task.task_id]}")
                seen.setdefault(task.task_id, f"{place.file}, {place.path}")
                tasks.append(task)
    if faults:
        first, *others = faults
        more = (
            f"{fault.place}: {fault.problem}" if fault.file == first.file else str(fault) for fault in others
        )
        raise BadFile(first.file, first.place, "; ".join([first.problem, *more]))
    return tasks


def _task_files(path: Path, faults: list[BadFile]) -> Iterator[Path]:
    if path.is_file():
        yield path
    elif (path / "domain.yaml").is_file():
        yield path / "tasks.yaml"
    elif path.is_dir():
        folders = sorted(folder for folder in path.iterdir() if (folder / "domain.yaml").is_file())
        if not folders:
            faults.append(BadFile(str(path), "", "holds no domain.yaml, nor does a folder in it"))
        for folder in folders:
            yield folder / "tasks.yaml"
    else:
        faults.append(BadFile(str(path), "", "no such file or folder"))


def _load_file(
    file: Path, domains: dict[Path, Domain | None], faults: list[BadFile]
) -> Iterator[tuple[Place, Task]]:
    place, folder = Place(str(file), "", faults), file.parent
    importable_from(folder)
    found = from_yaml(file, faults)
    if isinstance(found, dict) and next(iter(found), None) == "domain":
        shape = place.read(TasksShape, found)
        found = shape.tasks if shape else None
        folder, place = folder / (shape.domain if shape else ""), place.at("tasks")
    elif found is not None and not isinstance(found, list):
        place.wrong(f"expected a list of tasks, or a mapping that begins with domain, found {shown(found)}")
    if not isinstance(found, list):
        return
    if not found:
        place.wrong("holds no tasks")
    known = folder.resolve()
    if known not in domains:
        domains[known] = _load_domain(folder, faults)
    for number, raw in enumerate(found):
        task = _read_task(place.at(number), raw, domains[known])
        if task is not None:
            yield place.at(number), task


def _load_domain(folder: Path, faults: list[BadFile]) -> Domain | None:
    file = folder / "domain.yaml"
    importable_from(folder)
    place = Place(str(file), "", faults)
    found = from_yaml(file, faults)
    shape = place.read(DomainShape, found) if found is not None else None
    if shape is None:
        return None
    count = len(faults)
    tools = [_read_tool(place.at("tools", number), raw) for number, raw in enumerate(shape.tools)]
    for name, times in Counter(tool.name for tool in tools if tool).items():
        if times > 1:
            place.at("tools").wrong(f"{times} tools are called {name!r}")
    try:
        world_sql = from_text(folder / shape.world)
        image = build_image(world_sql)
    except BadFile as fault:
        faults.append(fault)
        return None
    except WorldError as error:
        faults.append(BadFile(str(folder / shape.world), f"line {error.line}", error.problem))
        return None
    for number, tool in enumerate(tools):
        if tool is not None:
            _try_tool(place.at("tools", number), tool, image)
    if len(faults) > count:
        return None
    return Domain(shape.name, shape.policy, world_sql, tuple(tool for tool in tools if tool))


def _read_tool(place: Place, raw: object) -> Tool | None:
    shape = place.read(ToolShape, raw)
    if shape is None:
        return None
    if bool(shape.sql) == bool(shape.function):
        place.wrong("expected either sql or function")
    if shape.parameters.get("type") != "object":
        place.at("parameters", "type").wrong("expected object")
    faults = list(schema_faults(shape.parameters))
    for path, problem in faults:
        place.at("parameters", *path).wrong(problem)
    if faults:
        return None
    return Tool(
        name=shape.name,
        description=shape.description,
        parameters=shape.parameters,
        sql=tuple(shape.sql),
        function=shape.function or None,
        must_change=shape.must_change or None,
    )


def _try_tool(place: Place, tool: Tool, image: bytes) -> None:
    """Every statement is prepared, and not run, with the declared parameters."""
    bound = dict.fromkeys(tool.parameters.get("properties", {}))
    with closing(Database(":memory:", image=image)) as database:
        for number, statement in enumerate(tool.sql):
            try:
                database.query(f"explain {statement}", bound)
            except WorldError as error:
                place.at("sql", number).wrong(error.problem)
    if tool.function:
        _try_function(place.at("function"), tool.function)


def _try_function(place: Place, path: str) -> None:
    try:
        load_function(path)
    except WorldError as error:
        place.wrong(error.problem)


def _read_task(place: Place, raw: object, domain: Domain | None) -> Task | None:
    count = len(place.faults)
    shape = place.read(TaskShape, raw)
    raw_checks = raw.get("checks") if isinstance(raw, dict) else None
    checks = read_checks(place.at("checks"), raw_checks) if isinstance(raw_checks, list) else []
    if shape is None or domain is None:
        return None
    setup = shape.setup if shape.setup.strip() else ""
    try:
        image = build_image(domain.world_sql, setup)
    except WorldError as error:
        place.at("setup").wrong(f"line {error.line}: {error.problem}")
        return None
    with closing(Database(":memory:", image=image, reads_only=True)) as database:
        for number, check in checks:
            _try_check(place.at("checks", number), check, domain, database)
    if len(place.faults) > count:
        return None
    task = Task(
        task_id=shape.id,
        category=shape.category,
        domain=domain,
        goal=shape.goal,
        facts=tuple(shape.facts),
        checks=tuple(check for _, check in checks),
        setup_sql=setup,
        max_turns=shape.max_turns or None,
        tags=frozenset(shape.tags),
    )
    return replace(task, fingerprint=fingerprint(task))


def read_checks(place: Place, raw: list[Any]) -> list[tuple[int, Check]]:
    """The checks of a task, each with its place in the list; every fault is told to `place`."""
    if not raw:
        place.wrong(_NOBODY_FAILS)
        return []
    read = [(number, _read_check(place.at(number), number, one)) for number, one in enumerate(raw)]
    checks = [(number, check) for number, check in read if check is not None]
    for name, times in Counter(check.name for _, check in checks).items():
        if times > 1:
            place.wrong(f"{times} checks are called {name!r}")
    if len(checks) == len(raw) and not any(check.required for _, check in checks):
        place.wrong("no check is required: a task nobody can fail")
    return checks


def _read_check(place: Place, number: int, raw: object) -> Check | None:
    if not isinstance(raw, dict):
        place.wrong(f"expected a mapping, found {shown(raw)}")
        return None
    kinds = [kind for kind in BODIES if kind in raw]
    own = [key for kind in kinds for key in keys_of(kind)]
    shared = {key: value for key, value in raw.items() if key not in own}
    common = place.read(CheckShape, shared, *(own or BODIES))
    if len(kinds) != 1:
        found = " and ".join(kinds) or "none"
        place.wrong(f"expected exactly one of {', '.join(BODIES)}, found {found}")
        return None
    kind = kinds[0]
    if kind in BESIDE:
        body = place.read(BODIES[kind], {key: raw[key] for key in own if key in raw})
    else:
        is_short = kind == "unchanged" and not isinstance(raw[kind], dict)
        body = place.at(kind).read(BODIES[kind], {"tables": raw[kind]} if is_short else raw[kind])
    if common is None or body is None:
        return None
    spec = body.model_dump(by_alias=True, exclude_unset=True)
    if kind == "file" and len(spec) != 2:
        place.at(kind).wrong("expected exactly one of exists, contains and sha256")
    return Check(kind, common.name or f"{kind} {number + 1}", spec, common.weight, common.required)


def _try_check(place: Place, check: Check, domain: Domain, database: Database) -> None:
    """What the check names must be there, and its query must run on the world as the task begins."""
    spec, tools = check.spec, {tool.name: tool for tool in domain.tools}
    if check.kind == "sql":
        _try_query(place, spec, database)
    elif check.kind == "unchanged":
        tables = database.tables()
        named = [] if spec["tables"] == "all" else spec["tables"]
        for name in (*named, *spec.get("except", [])):
            if name not in tables:
                place.at("unchanged").none_of("table", name, tables)
    elif check.kind in ("tool_called", "tool_not_called"):
        if spec["name"] not in tools:
            place.at(check.kind, "name").none_of("tool", spec["name"], tools)
            return
        parameters = tools[spec["name"]].parameters.get("properties", {})
        for name in spec.get("arguments", {}):
            if name not in parameters:
                place.at(check.kind, "arguments").none_of("parameter", name, parameters)
    elif check.kind == "json" and spec["of"].startswith("tool:"):
        name = spec["of"].removeprefix("tool:")
        if name not in tools:
            place.at("json", "of").none_of("tool", name, tools)
    elif check.kind == "python":
        _try_function(place.at("python"), spec["python"])


def _try_query(place: Place, spec: dict[str, Any], database: Database) -> None:
    try:
        columns, _ = database.query(spec["sql"])
    except WorldError as error:
        place.at("sql").wrong(error.problem)
        return
    if columns is None:
        place.at("sql").wrong("gives no rows: expected a select")
        return
    for number, row in enumerate(spec["rows"]):
        if len(row) != len(columns):
            place.at("rows", number).wrong(f"has {len(row)} values, the query gives {len(columns)}")


def fingerprint(task: Task) -> str:
    """16 hex digits of the SHA-256 over all that decides what a session can do and how it is checked.

    That is policy, world, tools, goal, facts, set-up and checks; ids, category, tags and turns are left out.
    """
    domain = task.domain
    parts = {
        "domain": [domain.policy, domain.world_sql, [asdict(tool) for tool in domain.tools]],
        "task": [task.goal, task.facts, task.setup_sql, [asdict(check) for check in task.checks]],
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
