"""What checks of one's own moved, as terminal tables that fit 80 columns."""

from typing import Any

import click
from rich.table import Table

from audit.faces.output import print_table, shown


def print_flips(counts: dict[str, Any], moved: dict[str, Any]) -> None:
    """The sessions that were checked, the flips by agent, and the gaps before and after."""
    click.echo(
        f"checked {counts['sessions']:,} sessions of run {counts['run_id']}, {counts['changed']:,} anew"
    )
    click.echo()
    table = _table("Against the verdicts they came with")
    table.add_column("agent", overflow="fold")
    for name in ("sessions", "to success", "to failure", "to unknown", "mean before", "mean now"):
        table.add_column(name, justify="right")
    for row in moved["agents"]:
        numbers = ("sessions", "to_success", "to_failure", "to_unknown", "mean_before", "mean_after")
        table.add_row(shown(row["agent"]), *(shown(row[name]) for name in numbers))
    print_table(table)
    if not moved["gaps"]:
        return
    click.echo()
    table = _table("Mean reward of A less that of B")
    for name in ("A", "B"):
        table.add_column(name, overflow="fold")
    for name in ("before", "now"):
        table.add_column(name, justify="right")
    for row in moved["gaps"]:
        table.add_row(shown(row["agent_a"]), shown(row["agent_b"]), shown(row["before"]), shown(row["after"]))
    print_table(table)


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
