"""What `doctor` found, for a person: who would be asked what, then what is wrong, the worst last."""

from collections.abc import Iterator
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from audit.faces.output import counted, print_table, say, visible
from audit.words.findings import LEVELS

_WIDE = 13


def print_examined(found: dict[str, Any], *, verbose: bool) -> None:
    """The roles, then the findings from good to bad, then the count."""
    config = found["config"]
    say(f"{config['file']}" + (" (embedded: no audit.yaml here)" if config["is_embedded"] else ""))
    click.echo()
    for row in found["roles"]:
        if row["is_used"] or verbose:
            _print_role(row)
    entries = {
        level: list(_merged([one for one in found["findings"] if one["level"] == level])) for level in LEVELS
    }
    for level in reversed(LEVELS):
        for item in entries[level]:
            _print_finding(item)
    say(", ".join(_counted(level, len(entries[level]), found["counts"][level]) for level in LEVELS))


def _counted(level: str, entries: int, places: int) -> str:
    """How many entries were printed, and of how many findings where one stands for several places."""
    told = f"{entries} ok" if level == "ok" else counted(entries, level)
    return told if entries == places else f"{told} (in {places} places)"


def _merged(findings: list[dict[str, str]]) -> Iterator[dict[str, str]]:
    """What is the same in several places, such as one key unset for four profiles, once."""
    places: dict[tuple[str, str, str], list[dict[str, str]]] = {}
    for item in findings:
        places.setdefault((item["code"], item["what"], item["do"]), []).append(item)
    for items in places.values():
        yield items[0] | {"where": ", ".join(item["where"] for item in items)}


def _print_role(row: dict[str, Any]) -> None:
    """A profile's values; each was written in the place above them unless it says otherwise."""
    say(f"{row['role']} {row['profile']}{'' if row['is_used'] else ' (not used)'}, from {row['from']}")
    table = Table.grid(padding=(0, 2))
    table.add_column(width=_WIDE, no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _values(row):
        table.add_row(f"  {name}", Text(visible(value)))
    print_table(table)


def _values(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for name in ("base_url", "model"):
        yield name, str(row[name]["value"])
    key = row["key"]
    if key["variable"]:
        yield (
            "api_key_env",
            f"{key['variable']}: {'set, from ' + key['from'] if key['is_set'] else 'NOT SET'}",
        )
    elif key["is_set"]:
        yield "api_key", "set, in the file"
    if row["temperature"]["value"] is not None:
        yield "temperature", f"{row['temperature']['value']:g}"
    limits = (row["rpm"]["value"], row["tpm"]["value"])
    shown = ["no limit (default)" if limit is None else f"{limit:,.15g}" for limit in limits]
    yield "rpm, tpm", ", ".join(shown if shown[0] != shown[1] else shown[:1])


def _print_finding(item: dict[str, str]) -> None:
    table = Table.grid(padding=(0, 1))
    table.add_column(width=8, no_wrap=True)
    table.add_column(overflow="fold")
    text = Text(visible(f"{item['where']}: {item['what']}".replace("\n", " ")))
    text.append(f" [{item['code']}]", style="dim")
    table.add_row(item["level"], text)
    if item["do"]:
        table.add_row("", Text(visible(f"-> {item['do']}".replace("\n", " "))))
    print_table(table)
