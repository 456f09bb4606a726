"""The report as terminal tables that fit 80 columns."""

from typing import Any

import click
from rich.table import Table

from audit.faces.output import interval, print_table, say, share, shown
from audit.pipeline.reporting import headline
from audit.words.names import UNJUDGED

_PAIR_MEANINGS = {
    "correct": "the settled preference is the higher-reward side",
    "misselected": "the settled preference is the lower-reward side",
    "judge_tie": "every order read says tie",
    "inconsistent": "the orders name different sides: no preference",
    "unreadable": "no side, and an answer could not be read",
    "incomplete": "an order was not asked, or its call failed",
    "reward_tie": "the rewards are equal: not decidable",
    "unverified": "a reward is unknown: not decidable",
}


def print_report(found: dict[str, Any]) -> None:
    """All parts, one after the other."""
    run = found["run"]
    say(f"run {run['run_id']}  {shown(run['name'])}")
    gates = len(found["judges"])
    if run["gate"] is not None:
        _gate_and_scale(run, gates)
    click.echo()
    say(shown(headline(found)))
    _oddities(found["imported"])
    click.echo()
    _agents(found["agents"])
    if not found["pairs"]["total"]:
        return
    if run["gate"] == UNJUDGED:
        pairs = found["pairs"]
        decidable, equal, unknown = pairs["decidable"], pairs["reward_tie"], pairs["unverified"]
        say(f"{decidable:,} are decidable, {equal:,} have equal rewards, of {unknown:,} a reward is unknown.")
        return
    _pairs(found)
    _buckets(found)
    _position(found)
    _groups("category", "By category", found["categories"])
    if gates > 1:
        _groups("gate", "By judge (--gate shows one whole)", found["judges"])
    _answers(found)


def _gate_and_scale(run: dict[str, Any], gates: int) -> None:
    say(f"gate {shown(run['gate'])}" + (f" (one of {gates}: --gate shows another)" if gates > 1 else ""))
    say(
        f"swap rule {run['swap_rule']}, gap source {run['gap_source']}"
        + (f" by {run['gap_scope']}" if run["gap_source"] == "agent" else "")
        + f", buckets {run['bucket_set']}"
    )


def _oddities(imported: dict[str, int] | None) -> None:
    found = imported or {}
    if found.get("clashing_ids"):
        say(f"{found['clashing_ids']:,} task ids stand for several tasks each, told apart by fingerprint.")
    if found.get("odd_rewards"):
        say(f"{found['odd_rewards']:,} sessions hold a reward that its parts do not give: see their error.")


def _agents(agents: list[dict[str, Any]]) -> None:
    if not agents:
        return
    most = max(len(agent["pass_hat_k"] or {}) for agent in agents)
    powers = [str(k) for k in range(1, most + 1)][:4]
    table = _table("Agents: mean verified reward, and pass^k (all of k trials succeed)")
    table.add_column("agent", overflow="fold", max_width=26)
    table.add_column("sessions", justify="right", no_wrap=True)
    table.add_column("mean", justify="right", no_wrap=True)
    table.add_column("95%", justify="right", no_wrap=True)
    for k in powers:
        table.add_column(f"^{k}", justify="right", no_wrap=True)
    for agent in agents:
        passed = agent["pass_hat_k"] or {}
        table.add_row(
            shown(agent["agent"]),
            f"{agent['sessions']:,}",
            _places(agent["mean_reward"]),
            "" if agent["low"] is None else f"{agent['low']:.3f}-{agent['high']:.3f}",
            *(_places(passed.get(k)) for k in powers),
        )
    _print(table)


def _places(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _pairs(found: dict[str, Any]) -> None:
    pairs = found["pairs"]
    table = _table(f"{pairs['total']:,} pairs, {pairs['decidable']:,} of them decidable")
    table.add_column("outcome")
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    for outcome, meaning in _PAIR_MEANINGS.items():
        if pairs[outcome] or outcome in ("correct", "misselected"):
            table.add_row(outcome, f"{pairs[outcome]:,}", meaning)
    _print(table)
    rates = found["rates"]
    table = _table("Rates, with their 95% intervals in %")
    table.add_column("rate", no_wrap=True)
    table.add_column("k/n", justify="right")
    table.add_column("95%", justify="right")
    table.add_column("of", style="dim")
    for name, denominator in (
        ("accuracy", "all decidable pairs"),
        ("misselected_of_decidable", "all decidable pairs"),
        ("misselected_of_decided", "decidable pairs with a verdict for a side"),
    ):
        table.add_row(name, share(rates[name]), interval(rates[name]), denominator)
    _print(table, note=rates["accuracy"].get("why"))


def _buckets(found: dict[str, Any]) -> None:
    table = _table("Misselection by reward gap")
    table.add_column("gap", overflow="fold")
    table.add_column("", style="dim")
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("misselected\nof decidable", justify="right")
    table.add_column("misselected\nof decided", justify="right")
    table.add_column("95% of\ndecided", justify="right", no_wrap=True)
    table.add_column("un-\ndecided", justify="right", no_wrap=True)
    for bucket in found["gap_buckets"]:
        if bucket["label"] == "unknown" and not bucket["pairs"]:
            continue
        near = {1: "near", 0: "wide"}.get(bucket["is_near"], "")
        table.add_row(*_bucket_cells(bucket["label"], near, bucket))
    table.add_section()
    for kind in ("near", "wide"):
        table.add_row(*_bucket_cells("all", kind, found["near_vs_wide"][kind]))
    _print(table)


def _bucket_cells(label: str, kind: str, bucket: dict[str, Any]) -> tuple[str, ...]:
    decided = bucket["misselected_of_decided"]
    return (
        label,
        kind,
        f"{bucket['pairs']:,}",
        share(bucket["misselected_of_decidable"]),
        share(decided),
        interval(decided),
        f"{bucket['undecided']:,}",
    )


def _position(found: dict[str, Any]) -> None:
    position = found["position"]
    if position is None:
        say(f"Position: {found['why']['position']}.")
        click.echo()
        return
    table = _table(f"Position, over {position['both_read']:,} pairs with both orders read")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("meaning", style="dim")
    p_value = position["mcnemar_p"]
    for name, value, meaning in (
        ("consistent", share(position["consistent"]), "both orders say the same of the sides"),
        ("primacy", f"{position['primacy']:,}", "pairs that lean to what stands first"),
        ("recency", f"{position['recency']:,}", "pairs that lean to what stands second"),
        ("fairness", shown(position["preference_fairness"]), "(recency - primacy) / pairs; 0 is fair"),
        ("first_share", share(position["first_share"]), "first, among answers for a side"),
        ("mcnemar_p", "-" if p_value is None else f"{p_value:.2g}", "primacy against recency"),
    ):
        table.add_row(name, value, meaning)
    _print(table)


def _groups(key: str, title: str, groups: list[dict[str, Any]]) -> None:
    if len(groups) == 1 and groups[0][key] is None:
        return
    table = _table(title)
    table.add_column(key, overflow="fold", max_width=26)
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("correct", justify="right")
    table.add_column("misselected\nof decidable", justify="right")
    table.add_column("of\ndecided", justify="right")
    table.add_column("consis-\ntent", justify="right")
    for group in groups:
        table.add_row(
            shown(group[key]),
            f"{group['pairs']['total']:,}",
            share(group["accuracy"]),
            share(group["misselected_of_decidable"]),
            _percent(group["misselected_of_decided"]),
            _percent(group["consistent"]),
        )
    _print(table)


def _answers(found: dict[str, Any]) -> None:
    answers = found["answers"]
    parts = [f"{count:,} {status}" for status, count in answers.items() if status != "total" and count]
    say(f"{answers['total']:,} answers of the judge: {', '.join(parts) or 'none'}")
    tokens = found["cost"]["total_tokens"]
    say(f"tokens: {'unknown' if tokens is None else f'{tokens:,}'}")


def _percent(rate: dict[str, Any]) -> str:
    return "-" if rate["value"] is None else f"{rate['value']:.1%}"


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)


def _print(table: Table, note: str | None = None) -> None:
    print_table(table)
    if note:
        say(f"({note})")
    click.echo()
