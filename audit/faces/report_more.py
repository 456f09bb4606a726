"""The report's tables on agent pairs, the error curve, position and satisfaction."""

from collections.abc import Mapping
from typing import Any

import click

from audit.faces.output import interval, print_part, real, say, share, shown, titled

_LEVELS = (("gap_at_25", "25%"), ("gap_at_10", "10%"), ("gap_at_5", "5%"))
_AT_MOST = 12


def agent_pairs(found: dict[str, Any], *, is_whole: bool) -> None:
    """Of two agents, does the judge pick the one with the lower mean reward?"""
    part = found["agent_pairs"]
    if part is None:
        return
    table = titled(f"Agent pairs: the pick against the mean rewards; near: gap < {part['near_below']:g}")
    table.add_column("")
    table.add_column("misselected", justify="right", no_wrap=True)
    table.add_column("95%", justify="right", no_wrap=True)
    table.add_column("noise floor", justify="right", no_wrap=True)
    table.add_column("too close for the rewards", justify="right")
    for half in ("near", "wide"):
        rate = part[half]
        floor = percent(part[f"noise_floor_{half}"])
        table.add_row(half, share(rate), interval(rate), floor, f"{part[f'unresolved_{half}']:,}")
    counted = [f"{part[name]:,} {words}" for name, words in _LEFT_OUT if part[name]]
    lost = "" if part["regret"] is None else f"; by its picks {shown(part['regret'])} reward is lost a pair"
    print_part(table, note=f"{len(part['rows']):,} pairs, {', '.join(counted) or 'none left out'}{lost}")
    rows = part["rows"] if is_whole else [row for row in part["rows"] if row["misselected"]][:_AT_MOST]
    if rows:
        _agent_pair_rows(rows, "All agent pairs" if is_whole else "The agent pairs that are misselected")


_LEFT_OUT = (
    ("reward_ties", "of equal rewards left out"),
    ("no_pick", "without a verdict left out"),
    ("pick_ties", "tied picks, no error"),
)


def _agent_pair_rows(rows: list[dict[str, Any]], title: str) -> None:
    table = titled(title)
    table.add_column("agent A", overflow="fold")
    table.add_column("agent B", overflow="fold")
    for name in ("gap", "+-1.96 se", "wins A", "wins B", "tasks"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("pick")
    for row in rows:
        table.add_row(
            shown(row["agent_a"]),
            shown(row["agent_b"]),
            f"{row['gap']:.3f}",
            "-" if row["se"] is None else f"{1.96 * row['se']:.3f}",
            f"{row['wins_a']:,}",
            f"{row['wins_b']:,}",
            f"{row['tasks']:,}",
            _pick(row),
        )
    print_part(table)


def _pick(row: dict[str, Any]) -> str:
    pick = row["pick"] or "-"
    return f"{pick} (the worse)" if row["misselected"] else str(pick)


def error_curve(found: dict[str, Any]) -> None:
    """The gaps from which on errors are fewer than a share, with intervals."""
    curve = found["error_curve"]
    if curve is None:
        return
    unit, clusters = "agent pairs", "agents"
    if curve["unit"] == "pairs":
        unit, clusters = f"pairs, by their {curve['gap_source']} gap", "tasks"
    if curve["s"] is None:
        say(f"Error curve over {unit}: none, {curve['why']}.")
        click.echo()
        return
    table = titled(f"Error curve over {unit}")
    table.add_column("errors are fewer than")
    table.add_column("from a gap of", justify="right", no_wrap=True)
    table.add_column("95%", justify="right", no_wrap=True)
    for name, level in _LEVELS:
        gap = curve[name]
        table.add_row(level, real(gap["value"]), _ends(gap))
    note = [f"p(error) = Phi(-gap/s), s = {curve['s']:.3g}"]
    if curve["method"]:
        note.append(f"95%: {curve['method']} over {curve['clusters']:,} {clusters}")
    if curve["gap_at_5"]["value"] > curve["largest_gap"]:
        note.append(f"no pair has a gap above {curve['largest_gap']:.3g}: beyond, the curve only goes on")
    if "instead_of" in curve:
        note.append(f"over pairs, as {curve['instead_of']['why']}")
    if not curve["trust"]:
        note.append(f"no gap to trust is named: {curve['trust_why']}")
    print_part(table, note="; ".join(note))


def position(found: dict[str, Any]) -> None:
    """Where the judge leans when the sides change places, as a whole and by gap."""
    part = found["position"]
    if part is None:
        say(f"Position: {found['why']['position']}.")
        click.echo()
        return
    table = titled(f"Position, over {part['both_read']:,} pairs with both orders read")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("95%", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    p_value = part["mcnemar_p"]
    ends = _ends(part["preference_fairness_interval"])
    for name, value, between, meaning in (
        ("consistent", share(part["consistent"]), interval(part["consistent"]), "same side in both orders"),
        ("primacy", f"{part['primacy']:,}", "", "pairs leaning to what stands first"),
        ("recency", f"{part['recency']:,}", "", "pairs leaning to what stands second"),
        ("fairness", shown(part["preference_fairness"]), ends, "(recency-primacy)/pairs"),
        ("first_share", share(part["first_share"]), interval(part["first_share"]), "of answers for a side"),
        ("mcnemar_p", "-" if p_value is None else f"{p_value:.2g}", "", "primacy against recency"),
    ):
        table.add_row(name, value, between, meaning)
    print_part(table)
    _position_by_gap([bucket for bucket in part["gap_buckets"] if bucket["both_read"]])


def _position_by_gap(buckets: list[dict[str, Any]]) -> None:
    if len(buckets) < 2:
        return
    table = titled("Position by reward gap")
    table.add_column("gap", overflow="fold")
    for name in ("consistent", "95%", "primacy", "recency", "fairness", "95%"):
        table.add_column(name, justify="right", no_wrap=name != "consistent")
    for bucket in buckets:
        table.add_row(
            bucket["label"],
            share(bucket["consistent"]),
            interval(bucket["consistent"]),
            f"{bucket['primacy']:,}",
            f"{bucket['recency']:,}",
            _signed(bucket["preference_fairness"]),
            _ends(bucket["preference_fairness_interval"], places=2),
        )
    print_part(table)


def satisfaction(found: dict[str, Any], *, is_whole: bool) -> None:
    """The judge's pointwise satisfaction against the verified success: 2x2, and other cuts."""
    part = found["satisfaction"]
    if part is None:
        return
    table = titled(f"Satisfaction (from {part['cut']:g}) against verified success")
    table.add_column("")
    for name in ("succeeded", "failed", "failed of all", "95%"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, rate in (
        ("satisfied", part["satisfied_failed"]),
        ("not satisfied", part["not_satisfied_failed"]),
        ("all", part["base_failure"]),
    ):
        table.add_row(name, f"{rate['n'] - rate['k']:,}", f"{rate['k']:,}", share(rate), interval(rate))
    risk = "unknown" if part["relative_risk"] is None else f"{part['relative_risk']:.2f}"
    area = "unknown" if part["auc"] is None else f"{part['auc']:.2f}"
    print_part(
        table,
        note=f"relative risk of a failure {risk} {_ends(part['relative_risk_interval'], 2)}; "
        f"AUC {area} {_ends(part['auc_interval'], 2)}; J {_signed(part['j'])}",
    )
    cuts = part["cuts"] if is_whole else [one for one in part["cuts"] if one["satisfied"]]
    table = titled("The same at other cuts")
    table.add_column("cut", justify="right")
    for name in ("satisfied but failed", "95%", "relative risk", "J"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in cuts:
        risk = "-" if one["relative_risk"] is None else f"{one['relative_risk']:.2f}"
        rate = one["satisfied_failed"]
        table.add_row(f"{one['cut']:g}", share(rate), interval(rate), risk, _signed(one["j"]))
    print_part(table)


def percent(value: float | None) -> str:
    """A share in percent; `-` where it is unknown."""
    return "-" if value is None else f"{value:.1%}"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _ends(ends: Mapping[str, float | None], places: int = 3) -> str:
    """`low to high`; an end that is open is two dots."""
    low, high = ends["low"], ends["high"]
    if low is None and high is None:
        return ""
    return " to ".join(".." if end is None else real(end, places=places) for end in (low, high))
