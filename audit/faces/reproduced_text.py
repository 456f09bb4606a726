"""What `reproduce gauge` found, as terminal tables that fit 80 columns."""

from typing import Any

import click
from rich.table import Table

from audit.faces.output import interval, print_table, say, share, shown

_LEVELS = (("gap_at_25", "25%"), ("gap_at_10", "10%"), ("gap_at_5", "5%"))


def print_gauge(found: dict[str, Any]) -> None:
    """All parts, one after the other."""
    say(
        f"{shown(found['source'])}: {found['agents']} agents of {found['families']} base models, "
        f"{found['agent_pairs']:,} pairs, {found['reward_ties']:,} of them with equal rewards and left out. "
        "Misselected: the judge puts the agent with the lower reward first."
    )
    click.echo()
    _near_and_wide(found)
    _thresholds(found["judges"])
    _curves(found["judges"])
    _floor(found)
    if any(judge["paper"] for judge in found["judges"]):
        say(
            "The paper's figures were computed from unrounded rewards, its table gives two decimals. "
            f"With these {found['reward_ties']:,} pairs are equal, and {found['on_the_edge']:,} stand on the "
            f"edge {found['near_below']:g} itself, which is wide; unrounded each has its side."
        )


def _near_and_wide(found: dict[str, Any]) -> None:
    table = _table(f"Misselected of agent pairs; near: gap < {found['near_below']:g}")
    table.add_column("judge", overflow="fold")
    for half in ("near", "wide"):
        table.add_column(half, justify="right", no_wrap=True)
        table.add_column("95%", justify="right", no_wrap=True)
        table.add_column("paper", justify="right", no_wrap=True, style="dim")
    for judge in found["judges"]:
        cells = []
        for half in ("near", "wide"):
            paper = judge["paper"] or {}
            cells += [share(judge[half]), interval(judge[half]), _percent(paper.get(half))]
        table.add_row(shown(judge["judge"]), *cells)
    _print(table)
    methods = sorted({judge[half]["method"] or "" for judge in found["judges"] for half in ("near", "wide")})
    say(f"(95%: {', '.join(method for method in methods if method)}, base models drawn anew)")
    click.echo()


def _thresholds(judges: list[dict[str, Any]]) -> None:
    table = _table("Misselected of the pairs below a gap, and reward lost a pair by the judge's picks")
    table.add_column("judge", overflow="fold")
    for threshold in judges[0]["thresholds"]:
        table.add_column(f"< {threshold['below']:.2f}", justify="right", no_wrap=True)
    table.add_column("lost", justify="right", no_wrap=True)
    for judge in judges:
        shares = [share(threshold["misselected"]) for threshold in judge["thresholds"]]
        table.add_row(shown(judge["judge"]), *shares, shown(judge["regret"]))
    _print(table)
    click.echo()


def _curves(judges: list[dict[str, Any]]) -> None:
    table = _table("Error curve p(err) = Phi(-gap/s): s, and the gap from which on errors are fewer than")
    table.add_column("judge", overflow="fold")
    table.add_column("s", justify="right", no_wrap=True)
    for _, level in _LEVELS:
        table.add_column(level, justify="right")
    for judge in judges:
        curve = judge["error_curve"]
        s = "-" if curve["s"] is None else f"{curve['s']:.4f}"
        table.add_row(shown(judge["judge"]), s, *(_gap(curve[name]) for name, _ in _LEVELS))
    _print(table)
    for judge in judges:
        if "why" in judge["error_curve"]:
            say(f"({shown(judge['judge'])}: {judge['error_curve']['why']})")
    click.echo()


def _floor(found: dict[str, Any]) -> None:
    floor = found["noise_floor"]
    if "why" in floor:
        say(f"Noise floor: unknown, {floor['why']}.")
    else:
        say(
            f"Noise floor: near {_percent(floor['near'])}, wide {_percent(floor['wide'], 2)}: what a judge "
            "that knew the true rewards would still be charged, with agents' errors taken as independent."
        )
    click.echo()


def _gap(gap: dict[str, float | None] | None) -> str:
    if gap is None:
        return "-"
    if gap["low"] is None:
        return f"{gap['value']:.3f}"
    high = ".." if gap["high"] is None else f"{gap['high']:.2f}"
    return f"{gap['value']:.3f} ({gap['low']:.2f}-{high})"


def _percent(value: float | None, digits: int = 1) -> str:
    return "-" if value is None else f"{value:.{digits}%}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)


def _print(table: Table) -> None:
    print_table(table)
