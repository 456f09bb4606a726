"""The door to a task's world: its own SQLite database, the tools that act on it, and what they left behind.

A final world is kept as SQLite's own image of the file (`serialize`), not as a dump: a dump cuts text at a
NUL, and has to guess at the order of triggers, views, counters of AUTOINCREMENT and virtual tables; the image
is the file itself, byte for byte. World and set-up SQL are trusted to build the same world each time.
"""

import base64
import hashlib
import importlib
import json
import tempfile
import threading
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audit.doors.arguments import read_arguments, validator_of
from audit.doors.limited import FUNCTION_SECONDS, Overrun, within
from audit.doors.world_sql import SECONDS, Database, Row, WorldError, build_image, cut, named
from audit.words.tasks import Task, Tool

__all__ = ["FinalWorld", "Overrun", "ToolContext", "World", "WorldError", "load_function"]

LONGEST_RESULT = 100_000


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a `module:function` tool has besides the database.

    `folder` is the session's own. To `http` the function appends what it asked for and got, one dict each:
    {method, url, status, body}, `body` the response's text.
    """

    folder: Path
    http: list[dict[str, Any]] = field(default_factory=list)

    def path(self, name: str) -> Path:
        """The file `name` in the folder. Raises ValueError for a name that leads out of it."""
        found = (self.folder / name).resolve()
        if not found.is_relative_to(self.folder.resolve()):
            raise ValueError(f"{name!r} leads out of the session's folder")
        return found


class World:
    """One session's copy of a task's world, in a temporary folder that goes with it. Raises WorldError."""

    def __init__(
        self, task: Task, seconds: float = SECONDS, function_seconds: float = FUNCTION_SECONDS
    ) -> None:
        self._function_seconds = function_seconds
        image = build_image(task.domain.world_sql, task.setup_sql)
        self._tools = {tool.name: tool for tool in task.domain.tools}
        self._validators = {tool.name: validator_of(tool.parameters) for tool in task.domain.tools}
        self._lock = threading.Lock()
        self._temporary = tempfile.TemporaryDirectory(prefix="reward-audit-", ignore_cleanup_errors=True)
        try:
            self.path = Path(self._temporary.name, "world.db")
            self.path.write_bytes(image)
            self.context = ToolContext(Path(self._temporary.name, "files"))
            self.context.folder.mkdir()
            self._database = Database(self.path.as_uri(), seconds=seconds)
        except BaseException:
            self._temporary.cleanup()
            raise

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools as a chat-completions request lists them."""
        return [tool.schema() for tool in self._tools.values()]

    def call(self, name: str, arguments: str | dict[str, Any]) -> str:
        """JSON text: the rows as objects, {"changed": n}, the function's value, or {"error": why}.

        One transaction; an error, and so a result over LONGEST_RESULT, leaves the world as it was. Text in,
        text out: never raises for what an agent sends. A call may come from any thread. Raises Overrun for a
        function that does not come back: it still holds the world, so nothing true can be said of this
        session any more; and what SQLite raises where a function has closed the database.
        """
        tool = self._tools.get(name)
        if tool is None:
            return _error(f"unknown tool {cut(repr(name), 60)}; known are {', '.join(self._tools)}")
        with self._lock:
            try:
                given = read_arguments(self._validators[name], arguments)
                self._database.control("BEGIN")
                value = self._act(tool, given)
                text = _as_json(value)
                if not (isinstance(value, dict) and "error" in value):
                    self._database.control("COMMIT")
            except Overrun:
                raise
            except Exception as error:
                text = _error(self._database.reason(error))
            if self._database.connection.in_transaction:
                self._database.control("ROLLBACK")
        return text

    def _act(self, tool: Tool, given: dict[str, Any]) -> Any:
        connection = self._database.connection
        before, value = connection.total_changes, None
        if tool.function is not None:
            self._database.start_clock()
            function = load_function(tool.function)
            value = within(self._function_seconds, tool.function, function, connection, given, self.context)
        names = tool.parameters.get("properties", {})
        bound = {name: _bindable(given.get(name)) for name in names}
        for statement in tool.sql:
            columns, rows = self._database.query(statement, bound, most=LONGEST_RESULT)
            if columns is not None:
                value = [dict(zip(columns, map(_readable, row), strict=True)) for row in rows]
        changed = connection.total_changes - before
        if tool.must_change is not None and not changed:
            raise WorldError(tool.must_change)
        return {"changed": changed} if value is None and tool.function is None else value

    def snapshot(self) -> dict[str, Any]:
        """The JSON-safe final state: {"world", "files", "http"}.

        `world` is the database's image, deflated, in base64. `files`: relative path -> {"sha256", "text"},
        text NULL where it is not UTF-8; links are not followed. `http`: the recorded exchanges. Raises
        WorldError, or what SQLite raises, where a tool's function made it none that can be kept.
        """
        with self._lock:
            image = zlib.compress(self._database.image(), 6)
            return {
                "world": base64.b64encode(image).decode(),
                "files": _files(self.context.folder),
                "http": _exchanges(self.context.http),
            }

    def close(self) -> None:
        """Leaves nothing behind.

        Waits for a call that is at work in another thread, as when a run is stopped: SQLite crashes the
        process where a connection is closed under it.
        """
        with self._lock:
            self._database.close()
            self._temporary.cleanup()

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FinalWorld:
    """What a session left behind, for the verifier (`verbs.verify.Evidence`): nothing in it can be changed.

    `state` is a `World.snapshot()`, the rest is the session's record. The final database is a temporary file
    opened `mode=ro`. Raises WorldError for a state that is none.
    """

    def __init__(
        self,
        task: Task,
        state: Mapping[str, Any],
        messages: Sequence[Mapping[str, Any]] = (),
        tool_calls: Sequence[Mapping[str, Any]] = (),
        seconds: float = SECONDS,
        function_seconds: float = FUNCTION_SECONDS,
    ) -> None:
        self._function_seconds = function_seconds
        try:
            image = zlib.decompress(base64.b64decode(state["world"], validate=True))
            self.files: Mapping[str, Mapping[str, Any]] = state["files"]
            self.http: Sequence[Mapping[str, Any]] = state["http"]
        except (KeyError, TypeError, ValueError, zlib.error) as error:
            raise WorldError(f"the final state cannot be read: {named(error)}") from error
        self.messages = messages
        self.tool_calls = tool_calls
        initial = build_image(task.domain.world_sql, task.setup_sql)
        self._temporary = tempfile.TemporaryDirectory(prefix="reward-audit-")
        try:
            self.path = Path(self._temporary.name, "final.db")
            self.path.write_bytes(image)
            self._final = Database(f"{self.path.as_uri()}?mode=ro", seconds=seconds, reads_only=True)
            self._initial = Database(":memory:", seconds=seconds, reads_only=True, image=initial)
        except BaseException:
            self._temporary.cleanup()
            raise

    def query(self, sql: str) -> list[Row]:
        """Rows of the final world. Raises WorldError."""
        return self._final.query(sql)[1]

    def initial_query(self, sql: str) -> list[Row]:
        """Rows of the world as it was before the session. Raises WorldError."""
        return self._initial.query(sql)[1]

    def tables(self) -> dict[str, list[str]]:
        """Table name -> its columns, in the final world."""
        return self._final.tables()

    def run_python(self, function: str) -> Any:
        """What the check `module:function` says of this evidence. Raises Overrun, or what it raises."""
        return within(self._function_seconds, function, load_function(function), self)

    def close(self) -> None:
        """Leaves nothing behind."""
        self._final.close()
        self._initial.close()
        self._temporary.cleanup()

    def __enter__(self) -> "FinalWorld":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def load_function(path: str) -> Callable[..., Any]:
    """What `module:function` names. Raises WorldError where there is none."""
    module, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), name)
    except BaseException as error:  # a module that exits when it is imported must not end the program
        why = error if isinstance(error, Exception) else named(error)
        raise WorldError(f"{path!r} cannot be loaded: {why}") from error
    if not callable(found):
        raise WorldError(f"{path!r} is no function")
    return found  # type: ignore[no-any-return]


def _bindable(value: object) -> object:
    # SQLite has no lists: as JSON text they can be read with json_each(:name).
    return json.dumps(value) if isinstance(value, dict | list) else value


def _readable(value: object) -> object:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _files(folder: Path) -> dict[str, dict[str, str | None]]:
    found: dict[str, dict[str, str | None]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        name = path.relative_to(folder).as_posix()
        found[name] = {"sha256": hashlib.sha256(data).hexdigest(), "text": text}
    return found


def _exchanges(http: object) -> list[dict[str, Any]]:
    try:
        found = json.loads(json.dumps(http, default=str))
    except (TypeError, ValueError, RecursionError) as error:
        raise WorldError(f"context.http cannot be written as JSON: {named(error)}") from error
    if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
        raise WorldError("context.http holds something else than {method, url, status, body}")
    return found


def _as_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    if len(text) > LONGEST_RESULT:
        raise WorldError(f"the result is too long: {len(text):,} characters, at most {LONGEST_RESULT:,}")
    text.encode()  # a lone surrogate could not be sent
    return text


def _error(problem: str) -> str:
    return json.dumps({"error": cut(problem)}, ensure_ascii=False)
