"""One run, pair, session or call for a person to read."""

import json
from typing import Any

import click

from audit.faces.output import shown, visible

_LONG = ("transcript_json", "raw_output", "request_json", "config_json")


def print_found(found: dict[str, Any]) -> None:
    """Each record of what `ask.by_id` found, its known fields first, its long texts after them."""
    for kind, records in found.items():
        for record in records if isinstance(records, list) else [records]:
            click.secho(kind.rstrip("s"), bold=True)
            _fields(record)
            for name in _LONG:
                if record.get(name):
                    _long(name, record[name])
            click.echo()


def _fields(record: dict[str, Any]) -> None:
    width = max(len(name) for name in record)
    for name, value in record.items():
        if value is not None and name not in _LONG:
            click.echo(f"  {name:<{width}}  {shown(value)}")


def _long(name: str, text: str) -> None:
    click.echo(f"  {name}:")
    messages = _messages(text) if name == "transcript_json" else None
    for line in messages if messages is not None else text.splitlines():
        click.echo(f"    {visible(line)}")


def _messages(text: str) -> list[str] | None:
    try:
        messages = json.loads(text)
        lines = []
        for message in messages:
            content = message.get("content")
            body = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
            lines += f"[{message['role']}] {body}".splitlines()
            lines += [
                f"  calls {json.dumps(call, ensure_ascii=False)}" for call in message.get("tool_calls") or []
            ]
    except (ValueError, AttributeError, KeyError, TypeError):
        return None
    return lines
