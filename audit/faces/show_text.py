"""One run, pair, session or call for a person to read: what came of it, the replies, then the rest."""

import json
from collections.abc import Iterator
from typing import Any

import click
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from audit.faces.output import print_table, shown, visible

_REPLY = "raw_output"
_TRANSCRIPT = "transcript_json"
# Known first, of a pair.
_OUTCOME = ("outcome", "misselected", "judge_pref")
# A database, packed: of no use to a reader.
_IMAGE = "world"
_LONGEST = 1200
_DEEPEST = 20
_SHORT = 60


def print_found(found: dict[str, Any]) -> None:
    """Each record of what `ask.by_id` found; the judge's replies stand before the sessions they are about."""
    for kind in sorted(found, key=lambda kind: kind == "sessions"):
        for record in found[kind] if isinstance(found[kind], list) else [found[kind]]:
            click.secho(kind.rstrip("s"), bold=True)
            _print_record(record)
            click.echo()


def _print_record(record: dict[str, Any]) -> None:
    """Short fields, then the reply, long JSON, and at last what was said."""
    first = next(iter(record))
    in_order = dict.fromkeys((first, *(name for name in _OUTCOME if name in record), *record))
    known = {name: record[name] for name in in_order if record[name] is not None}
    long = {name for name, value in known.items() if _is_long(name, value)}
    table = Table.grid(padding=(0, 2))
    table.add_column(width=2 + max(map(len, known)), no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in known.items():
        if name not in long:
            table.add_row(f"  {name}", Text(shown(value)))
    print_table(table)
    if _REPLY in known:
        _print_lines(_REPLY, known[_REPLY].splitlines())
    for name in known:
        if name in long and name not in (_REPLY, _TRANSCRIPT):
            _print_lines(name, _cut(known[name]))
    if _TRANSCRIPT in known:
        _print_lines(_TRANSCRIPT, _messages(known[_TRANSCRIPT]))


def _is_long(name: str, value: Any) -> bool:
    return name in (_REPLY, _TRANSCRIPT) or (name.endswith("_json") and len(value) > _SHORT)


def _print_lines(name: str, lines: list[str]) -> None:
    click.echo(f"  {name}:")
    for line in lines:
        text = line.lstrip(" ")
        indent = 4 + min(len(line) - len(text), _DEEPEST)
        print_table(Padding(Text(visible(text), overflow="fold"), (0, 0, 0, indent)))


def _cut(text: str) -> list[str]:
    """JSON an item a line, as much of it as is read at a glance; a packed database is its size alone."""
    try:
        value = json.loads(text)
        if isinstance(value, dict) and isinstance(value.get(_IMAGE), str):
            value[_IMAGE] = f"(an image of {len(value[_IMAGE]):,} characters; --json has all)"
        pretty = _pretty(value)
    except (ValueError, RecursionError):
        pretty = text
    if len(pretty) <= _LONGEST:
        return pretty.splitlines()
    return [*pretty[:_LONGEST].splitlines(), f"... ({len(text):,} characters; --json has all)"]


def _pretty(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(json.dumps(item, ensure_ascii=False) for item in value)
    return json.dumps(value, ensure_ascii=False, indent=2)


def _messages(text: str) -> list[str]:
    """What was said and called, a line each; of what is no list of messages the JSON."""
    try:
        return list(_said(json.loads(text)))
    except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
        return _cut(text)


def _said(messages: Any) -> Iterator[str]:
    for message in messages:
        content = message.get("content")
        calls = message.get("tool_calls") or []
        body = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        if content is not None or not calls:
            yield from f"[{message['role']}] {body}".splitlines()
        for call in calls:
            yield f"[{message['role']}] calls {_called(call)}"


def _called(call: dict[str, Any]) -> str:
    function = call.get("function")
    if isinstance(function, dict) and isinstance(function.get("arguments"), str):
        return f"{function.get('name')} {function['arguments']}"
    return json.dumps(call, ensure_ascii=False)
