"""A tool's arguments against its JSON schema, in bounded time: an agent writes them, a pattern reads them.

Patterns run on the engine that pydantic brings, whose time is linear in the text. Python's own can take years
for forty characters, and no other thread of the process moves meanwhile.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend
from pydantic_core import SchemaError as PatternError
from pydantic_core import SchemaValidator, core_schema
from referencing import Registry

from audit.doors.world_sql import WorldError, cut

LONGEST = 1_000_000
# Keywords under which names of the user's own stand, not keywords.
_NAMED = ("properties", "$defs", "definitions", "dependentSchemas")
_VALUES = ("const", "enum", "default", "examples")


def schema_faults(schema: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """(path, what is wrong) of each place where this is no schema that arguments can be held against."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        yield tuple(error.absolute_path), f"no valid JSON schema: {error.message}"
    else:
        yield from _pattern_faults(schema, ())


def _pattern_faults(schema: object, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(schema, list):
        for index, item in enumerate(schema):
            yield from _pattern_faults(item, (*path, index))
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        if key == "$schema" and path:
            yield (*path, key), "has its place at the top only"
        elif key == "patternProperties":
            yield (*path, key), "is not supported: name the properties"
        elif key == "pattern":
            try:
                _pattern(value)
            except PatternError as error:
                yield (*path, key), f"cannot be run in limited time: {_reason(error)}"
        elif key in _NAMED:
            for name, inner in value.items():
                yield from _pattern_faults(inner, (*path, key, name))
        elif key not in _VALUES:
            yield from _pattern_faults(value, (*path, key))


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> SchemaValidator:
    return SchemaValidator(core_schema.str_schema(pattern=pattern, regex_engine="rust-regex"))


def _reason(error: PatternError) -> str:
    """The last line says what is wrong, those before it show where."""
    return str(error).splitlines()[-1].strip().removeprefix("error: ").removeprefix("SchemaError: ")


def _matches(_: Any, pattern: str, found: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(found, str) and not _pattern(pattern).isinstance_python(_clean(found)):
        yield ValidationError(f"{cut(repr(found), 60)} does not match {pattern!r}")


def _clean(text: str) -> str:
    # The engine takes no half of a character; what stands for it matches as any other would.
    return text.encode("utf-8", "replace").decode()


def _is_set(_: Any, wanted: bool, found: Any, __: Any) -> Iterator[ValidationError]:
    # The library compares each item with each other one where they cannot be sorted.
    if wanted and isinstance(found, list) and len({_canonical(item) for item in found}) < len(found):
        yield ValidationError(f"{cut(repr(found), 60)} has non-unique elements")


def _canonical(value: Any) -> str:
    """One text for each JSON value: 1 and 1.0 are one value, true another."""

    def whole(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: whole(item) for key, item in value.items()}
        if isinstance(value, list):
            return [whole(item) for item in value]
        return int(value) if isinstance(value, float) and value.is_integer() else value

    return json.dumps(whole(value), sort_keys=True)


_Validator = extend(Draft202012Validator, {"pattern": _matches, "uniqueItems": _is_set})  # type: ignore[no-untyped-call]


def validator_of(schema: Mapping[str, Any]) -> Any:
    """What `read_arguments` takes.

    Its registry is its own and empty: a "$ref" never reaches for the network. "$schema" is left out, because
    the library would go on with its own validator for that version.
    """
    held = {key: value for key, value in schema.items() if key != "$schema"}
    return _Validator(held, registry=Registry())


def read_arguments(validator: Any, arguments: object) -> dict[str, Any]:
    """The arguments as an object that meets the schema. Raises WorldError."""
    try:
        if isinstance(arguments, str):
            if len(arguments) > LONGEST:
                raise WorldError(
                    f"the arguments are too long: {len(arguments):,} characters, at most {LONGEST:,}"
                )
            # Some gateways send an empty text for a call without arguments.
            arguments = json.loads(arguments) if arguments.strip() else {}
        json.dumps(arguments, allow_nan=False)
    except (ValueError, TypeError) as error:
        raise WorldError(f"the arguments are not valid JSON: {error}") from error
    except RecursionError as error:
        raise WorldError("the arguments are nested too deep") from error
    if not isinstance(arguments, dict):
        raise WorldError(f"the arguments must be a JSON object, found {cut(repr(arguments), 60)}")
    wrong = sorted(validator.iter_errors(arguments), key=lambda error: error.json_path)
    if wrong:
        raise WorldError("; ".join(f"{error.json_path}: {cut(error.message, 150)}" for error in wrong[:3]))
    return arguments
