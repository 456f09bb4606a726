"""YAML read without guessing, and every fault in it told with file and key path."""

import difflib
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from audit.doors import files
from audit.doors.sound import SoundLoader, unsound
from audit.doors.task_shapes import Shape, shown
from audit.words.errors import BadFile

# What pydantic calls a fault, in words; `{}` is the value that was found.
_WORDS = {
    "missing": "is missing",
    "string_type": "expected text, found {}",
    "bool_type": "expected true or false, found {}",
    "int_type": "expected a whole number, found {}",
    "float_type": "expected a number, found {}",
    "list_type": "expected a list, found {}",
    "dict_type": "expected a mapping, found {}",
    "model_type": "expected a mapping, found {}",
    "greater_than": "expected more than 0, found {}",
    "greater_than_equal": "expected 1 or more, found {}",
    "finite_number": "expected a finite number, found {}",
    "invalid-json-value": "expected text, a number, true, false, null, a list or a mapping, found {}",
}
S = TypeVar("S", bound=Shape)


class _Yaml(SoundLoader):
    """YAML with the plain values of its version 1.2; a key that stands twice in a mapping is refused."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - typeshed's

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        for key, count in keys.items():
            if count > 1:
                problem = f"the key {key!r} stands twice"
                raise yaml.constructor.ConstructorError(None, None, problem, node.start_mark)
        return super().construct_mapping(node, deep)


for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", "~|null|Null|NULL|", "~nN"),
    ("int", "[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
    ("merge", "<<", "<"),
):
    _starts = [*_first, *([""] if _tag == "null" else [])]
    _Yaml.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_pattern})$"), _starts)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in which file something stands, and the list that takes its faults."""

    file: str
    path: str
    faults: list[BadFile]

    def at(self, *steps: str | int) -> "Place":
        path = self.path
        for step in steps:
            path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
        return replace(self, path=path)

    def wrong(self, problem: str) -> None:
        self.faults.append(BadFile(self.file, self.path, problem))

    def none_of(self, what: str, name: str, known: Iterable[str]) -> None:
        """Says that no such thing has the name `name`, and which was meant perhaps."""
        self.wrong(f"no {what} {name!r}; {_hint(name, known)}")

    def read(self, shape: type[S], found: object, *others: str) -> S | None:
        """`found` as `shape`, or None with every fault told. `others` are keys that were read before."""
        known = [*(info.alias or name for name, info in shape.model_fields.items()), *others]
        try:
            return shape.model_validate(found)
        except ValidationError as error:
            for fault in error.errors(include_url=False):
                place = self.at(*fault["loc"])
                if fault["type"] == "extra_forbidden":
                    place.wrong(f"is not a known key; {_hint(str(fault['loc'][-1]), known)}")
                else:
                    words = _WORDS.get(fault["type"], fault["msg"].replace("{", "").replace("}", ""))
                    place.wrong(words.format(shown(fault["input"])))
        return None


def _hint(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(names) or 'none'}"


def from_text(file: Path) -> str:
    data = b"".join(line for _, line in files.lines(file))
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(str(file), f"line {line}", f"not UTF-8: byte {data[error.start]:#04x}") from error


def from_yaml(file: Path, faults: list[BadFile]) -> Any:
    """What the file holds, None where a fault was told."""
    try:
        text = from_text(file)
        found = yaml.load(text, _Yaml)  # noqa: S506 - a SafeLoader
    except BadFile as fault:
        faults.append(fault)
    except (yaml.YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        place = f"line {mark.line + 1} column {mark.column + 1}" if mark else ""
        faults.append(BadFile(str(file), place, f"not valid YAML: {problem}"))
    except RecursionError:
        faults.append(BadFile(str(file), "", "not valid YAML: nested too deep"))
    else:
        if found is None:
            faults.append(BadFile(str(file), "", "is empty"))
        wrong = unsound(found, len(text))
        if wrong is None:
            return found
        faults.append(BadFile(str(file), *wrong))
    return None
