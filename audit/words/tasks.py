"""What a task is: who wants what of whom, in which world, and how it is checked afterwards."""

from dataclasses import dataclass, field
from typing import Any, Literal

CheckKind = Literal[
    "sql",
    "unchanged",
    "tool_called",
    "tool_not_called",
    "file",
    "json",
    "transcript",
    "http",
    "python",
    "llm",
]


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a world: its JSON-schema parameters, and the SQL it runs or the function it calls.

    `sql` statements run in order with the arguments as bound parameters, in one transaction; the rows of the
    last one that gives any are the result. `must_change`: the error where the statements changed no row.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    sql: tuple[str, ...] = ()
    function: str | None = None
    must_change: str | None = None

    def schema(self) -> dict[str, Any]:
        """The tool as a chat-completions request lists it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Check:
    """One criterion on what a session left behind. `spec` holds the fields of its kind."""

    kind: CheckKind
    name: str
    spec: dict[str, Any]
    weight: float = 1.0
    required: bool = True


@dataclass(frozen=True, slots=True)
class Domain:
    """A world that tasks share: its policy, its tools, and the SQL that builds it."""

    name: str
    policy: str
    world_sql: str
    tools: tuple[Tool, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """One customer's errand. `setup_sql` runs on the task's copy of the world before the session.

    The customer is told `goal` and `facts`, never `checks`. `fingerprint`: 16 hex digits of the SHA-256 over
    everything that makes the task what it is.
    """

    task_id: str
    category: str
    domain: Domain
    goal: str
    facts: tuple[str, ...]
    checks: tuple[Check, ...]
    setup_sql: str = ""
    fingerprint: str = ""
    max_turns: int | None = None
    tags: frozenset[str] = field(default_factory=frozenset)
