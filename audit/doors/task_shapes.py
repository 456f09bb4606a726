"""What may stand in a domain.yaml and a tasks.yaml, key by key."""

import json
import re
from pathlib import PurePosixPath
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue
from pydantic_core import PydanticCustomError

from audit.words.tasks import CheckKind

# Kinds whose fields stand in the check itself, beside its name and weight.
BESIDE: tuple[CheckKind, ...] = ("sql", "python", "llm")


def _wrong(problem: str) -> PydanticCustomError:
    return PydanticCustomError("wrong", "{problem}", {"problem": problem})


def _cell(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise _wrong(f"expected a number, text or null, found {shown(value)}")
    return value


def _table_names(value: object) -> object:
    is_list = isinstance(value, list) and bool(value) and all(isinstance(name, str) for name in value)
    if value != "all" and not is_list:
        raise _wrong(f"expected all or a list of tables, found {shown(value)}")
    return value


def _relative(value: str) -> str:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or str(path) != value or "\\" in value:
        raise _wrong(f"expected a plain path inside the folder, found {shown(value)}")
    return value


def _finite(value: Any) -> Any:
    try:
        json.dumps(value, allow_nan=False)
    except ValueError:
        raise _wrong("expected finite numbers") from None
    return value


def _like(pattern: str, words: str) -> AfterValidator:
    def check(value: str) -> str:
        if re.fullmatch(pattern, value, re.DOTALL) is None:
            raise _wrong(f"expected {words}, found {shown(value)}")
        return value

    return AfterValidator(check)


Text = Annotated[str, _like(r".*\S.*", "some text")]
Function = Annotated[str, _like(r"[^\W\d][\w.]*:[^\W\d]\w*", "module:function")]
RelativePath = Annotated[Text, AfterValidator(_relative)]
Json = Annotated[JsonValue, AfterValidator(_finite)]
Object = Annotated[dict[str, JsonValue], AfterValidator(_finite)]


class Shape(BaseModel):
    """A mapping as it is written in YAML. What an optional key defaults to is the reader's business."""

    model_config = ConfigDict(strict=True, extra="forbid")


class DomainShape(Shape):
    name: Text
    policy: Text
    world: RelativePath
    tools: list[Any]


class ToolShape(Shape):
    name: Annotated[str, _like("[A-Za-z0-9_-]{1,64}", "up to 64 letters, digits, _ and -")]
    description: Text
    parameters: Object
    sql: list[Text] = []
    function: Function = ""
    must_change: Text = ""


class TasksShape(Shape):
    domain: Text
    tasks: list[Any]


class TaskShape(Shape):
    id: Text
    category: Text
    goal: Text
    facts: list[Text]
    checks: list[Any]
    setup: str = ""
    max_turns: Annotated[int, Field(ge=1)] = 0
    tags: list[Text] = []


class CheckShape(Shape):
    name: Text = ""
    weight: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    required: bool = True


class _Sql(Shape):
    sql: Text
    rows: list[list[Annotated[Any, AfterValidator(_cell)]]]
    any_order: bool = False


class _Unchanged(Shape):
    tables: Annotated[Any, AfterValidator(_table_names)]
    but: list[Text] = Field(default=[], alias="except")


class _NotCalled(Shape):
    name: Text
    arguments: Object = {}


class _Called(_NotCalled):
    times: Annotated[int, Field(ge=1)] = 1


class _File(Shape):
    path: RelativePath
    exists: bool = True
    contains: Text = ""
    sha256: Annotated[str, _like("[0-9a-f]{64}", "64 hex digits in lower case")] = ""


class _Json(Shape):
    path: Annotated[str, _like(r"""\$(\.[^.\[\]"]+|\[\d+\]|\["[^"]*"\])*""", "a path like $.a.b[0]")]
    of: Annotated[str, _like("tool:.+|file:.+|state", "tool:NAME, file:PATH or state")]
    equals: Json


class _Transcript(Shape):
    contains: Text
    role: Annotated[str, _like("assistant|user|tool", "assistant, user or tool")] = "assistant"


class _Http(Shape):
    method: Text
    url: Text
    status: int = 0
    body_contains: Text = ""


class _Python(Shape):
    python: Function


class _Llm(Shape):
    llm: Text


BODIES: dict[CheckKind, type[Shape]] = {
    "sql": _Sql,
    "unchanged": _Unchanged,
    "tool_called": _Called,
    "tool_not_called": _NotCalled,
    "file": _File,
    "json": _Json,
    "transcript": _Transcript,
    "http": _Http,
    "python": _Python,
    "llm": _Llm,
}


def keys_of(kind: CheckKind) -> list[str]:
    """The keys of a check that belong to its kind."""
    return list(BODIES[kind].model_fields) if kind in BESIDE else [kind]


def shown(value: object) -> str:
    """A value for an error's text, cut where it is long."""
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    shown = repr(value)
    return shown if len(shown) <= 60 else shown[:57] + "..."
