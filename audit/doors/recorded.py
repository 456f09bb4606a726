"""The door to checks for recorded sessions: the file that holds them, and what such a session left behind.

A recorded session has messages and tool calls, and no world of ours: checks that look into one are refused.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from audit.doors.limited import FUNCTION_SECONDS, importable_from, within
from audit.doors.task_yaml import Place, from_yaml
from audit.doors.tasks import read_checks
from audit.doors.world import load_function
from audit.doors.world_sql import Row, WorldError
from audit.words.errors import BadFile
from audit.words.tasks import Check, CheckKind

_OF_A_WORLD: tuple[CheckKind, ...] = ("sql", "unchanged", "file", "http")
_NO_WORLD = "a recorded session has no world"


def load_checks(path: Path) -> dict[str, tuple[Check, ...]]:
    """task_id -> its checks, from YAML or JSON: a mapping of lists, each check as in a tasks.yaml.

    Raises BadFile naming file, key path and value; with more than one fault, all of them.
    """
    faults: list[BadFile] = []
    importable_from(path.parent)
    found = from_yaml(path, faults)
    place = Place(str(path), "", faults)
    checks: dict[str, tuple[Check, ...]] = {}
    if not faults and not isinstance(found, dict):
        place.wrong("expected a mapping: task_id: [check, ...]")
    for task_id, raw in found.items() if isinstance(found, dict) else ():
        at = place.at(str(task_id))
        if not isinstance(task_id, str):
            at.wrong("expected the task id as text: put it in quotes")
        elif not isinstance(raw, list):
            at.wrong("expected a list of checks")
        else:
            read = read_checks(at, raw)
            for number, check in read:
                of = str(check.spec.get("of", ""))
                if check.kind in _OF_A_WORLD or of == "state" or of.startswith("file:"):
                    at.at(number).wrong(
                        f"{check.kind}: {_NO_WORLD}; use tool_called, transcript, json of a tool"
                    )
            checks[task_id] = tuple(check for _, check in read)
    if faults:
        raise faults[0] if len(faults) == 1 else BadFile(str(path), "", "; ".join(_told(f) for f in faults))
    return checks


def _told(fault: BadFile) -> str:
    return str(fault).partition(", ")[2] or str(fault)


class RecordedEvidence:
    """What a recorded session left behind (`verbs.verify.Evidence`)."""

    files: Mapping[str, Mapping[str, Any]] = {}
    http: Sequence[Mapping[str, Any]] = ()

    def __init__(
        self, messages: Sequence[Mapping[str, Any]], tool_calls: Sequence[Mapping[str, Any]]
    ) -> None:
        self.messages = messages
        self.tool_calls = tool_calls

    def query(self, sql: str, /) -> list[Row]:
        raise WorldError(_NO_WORLD)

    def initial_query(self, sql: str, /) -> list[Row]:
        raise WorldError(_NO_WORLD)

    def tables(self) -> dict[str, list[str]]:
        return {}

    def run_python(self, function: str, /) -> Any:
        """What the check `module:function` says of this evidence. Raises Overrun, or what it raises."""
        return within(FUNCTION_SECONDS, function, load_function(function), self)
