"""The report as terminal tables that fit 80 columns."""

from typing import Any

import click

from audit.faces import report_more, report_people
from audit.faces.output import interval, print_part, say, share, shown, titled
from audit.pipeline.report_words import headline, judge_lines
from audit.words.names import UNJUDGED, UNKNOWN_BUCKET

_NOTHING: dict[str, Any] = {"n": 0, "low": None, "high": None}
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


def print_report(found: dict[str, Any], *, is_whole: bool = False) -> None:
    """All parts, one after the other; `is_whole`: with every row and every cut."""
    run = found["run"]
    say(f"run {run['run_id']}  {shown(run['name'])}")
    gates = len(found["judges"])
    if run["gate"] is not None:
        _gate_and_scale(run, gates)
    if run["status"] != "complete":
        say(f"This run is {run['status']}, not complete: what follows is of what there is so far.")
    click.echo()
    say(shown(headline(found)))
    _oddities(found["imported"])
    click.echo()
    _agents(found["agents"], found["why"].get("pass_hat_k"))
    if run["gate"] == UNJUDGED:
        pairs = found["pairs"]
        decidable, equal, unknown = pairs["decidable"], pairs["reward_tie"], pairs["unverified"]
        say(f"{decidable:,} are decidable, {equal:,} have equal rewards, of {unknown:,} a reward is unknown.")
        click.echo()
    elif found["pairs"]["total"]:
        report_more.agent_pairs(found, is_whole=is_whole)
        _pairs(found)
        _buckets(found, is_whole=is_whole)
        report_more.error_curve(found)
        report_more.position(found)
    report_more.satisfaction(found, is_whole=is_whole)
    report_people.people(found)
    if found["pairs"]["total"] and run["gate"] != UNJUDGED:
        _groups("category", "By category", found["categories"])
        if gates > 1:
            _groups("gate", "By judge (--gate shows one whole)", found["judges"])
        _answers(found)
        if found["notes"]:
            click.echo()
    for note in found["notes"]:
        say(shown(f"Note: {note}"))


def _gate_and_scale(run: dict[str, Any], gates: int) -> None:
    say(f"gate {shown(run['gate'])}" + (f" (one of {gates}: --gate shows another)" if gates > 1 else ""))
    for line in judge_lines(run):
        say(line)
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


def _agents(agents: list[dict[str, Any]], why: str | None) -> None:
    if not agents:
        return
    most = max(len(agent["pass_hat_k"] or {}) for agent in agents)
    powers = [str(k) for k in range(1, most + 1)][:4]
    table = titled("Agents: mean verified reward" + (", pass^k" if powers else ""))
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
            "" if agent["low"] is None else f"{agent['low']:.3f} to {agent['high']:.3f}",
            *(_places(passed.get(k)) for k in powers),
        )
    print_part(table, note=why)


def _has_verdict(pairs: dict[str, int]) -> bool:
    """Did any decidable pair get an answer to its question? Of none at all, 0% right says nothing."""
    return any(pairs[name] for name in ("correct", "misselected", "judge_tie", "inconsistent", "unreadable"))


def _places(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _pairs(found: dict[str, Any]) -> None:
    pairs = found["pairs"]
    table = titled(f"{pairs['total']:,} pairs, {pairs['decidable']:,} of them decidable")
    table.add_column("outcome")
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("meaning", style="dim")
    for outcome, meaning in _PAIR_MEANINGS.items():
        if pairs[outcome] or outcome in ("correct", "misselected"):
            table.add_row(outcome, f"{pairs[outcome]:,}", meaning)
    print_part(table)
    rates = found["rates"]
    table = titled("Rates, with their 95% intervals in %")
    table.add_column("rate", no_wrap=True)
    table.add_column("k/n", justify="right")
    table.add_column("95%", justify="right", no_wrap=True)
    table.add_column("of", style="dim")
    for name, denominator in (
        ("accuracy", "all decidable pairs"),
        ("misselected_of_decidable", "all decidable pairs"),
        ("misselected_of_decided", "those with a verdict for a side"),
        ("error_calls", "all calls of the judge"),
    ):
        rate = _NOTHING if name == "accuracy" and not _has_verdict(pairs) else rates[name]
        table.add_row(name, share(rate), interval(rate), denominator)
    method, clusters = (rates["accuracy"][key] for key in ("method", "clusters"))
    other = rates["error_calls"]["method"]
    note = method and f"95%: {method} over {clusters:,} task{'' if clusters == 1 else 's'}"
    if note and other not in (None, method):
        note += f"; of error_calls {other}"
    print_part(table, note=note)


def _buckets(found: dict[str, Any], *, is_whole: bool) -> None:
    table = titled("Misselection by reward gap")
    table.add_column("gap", overflow="fold")
    table.add_column("", style="dim")
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("misselected\nof decidable", justify="right")
    table.add_column("misselected\nof decided", justify="right")
    table.add_column("95% of\ndecided", justify="right", no_wrap=True)
    table.add_column("un-\ndecided", justify="right", no_wrap=True)
    for row in _bucket_rows(found):
        if row is None:
            table.add_section()
            continue
        label, kind, bucket = row
        decided = bucket["misselected_of_decided"]
        table.add_row(
            label,
            kind,
            f"{bucket['pairs']:,}",
            share(bucket["misselected_of_decidable"]),
            share(decided),
            interval(decided),
            f"{bucket['undecided']:,}",
        )
    print_part(table)
    if is_whole:
        _bucket_intervals(found)


def _bucket_intervals(found: dict[str, Any]) -> None:
    table = titled("The same, all decidable pairs and consistency with their 95% intervals in %")
    table.add_column("gap", overflow="fold")
    table.add_column("", style="dim")
    for name in ("misselected\nof decidable", "95%", "consistent", "95%"):
        table.add_column(name, justify="right")
    for row in _bucket_rows(found):
        if row is None:
            table.add_section()
            continue
        label, kind, bucket = row
        rates = bucket["misselected_of_decidable"], bucket["consistent"]
        table.add_row(label, kind, *(cell for rate in rates for cell in (share(rate), interval(rate))))
    print_part(table)


def _bucket_rows(found: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]] | None]:
    """(label, near or wide, bucket); NULL where the single ones end."""
    rows: list[tuple[str, str, dict[str, Any]] | None] = [
        (bucket["label"], {1: "near", 0: "wide"}.get(bucket["is_near"], ""), bucket)
        for bucket in found["gap_buckets"]
        if bucket["label"] != UNKNOWN_BUCKET or bucket["pairs"]
    ]
    return [*rows, None, *(("all", kind, found["near_vs_wide"][kind]) for kind in ("near", "wide"))]


def _groups(key: str, title: str, groups: list[dict[str, Any]]) -> None:
    if len(groups) == 1 and groups[0][key] is None:
        return
    table = titled(title)
    table.add_column(key, overflow="fold", max_width=26)
    table.add_column("pairs", justify="right", no_wrap=True)
    table.add_column("correct of\ndecidable", justify="right")
    table.add_column("misselected\nof decided", justify="right")
    table.add_column("95% of\ndecided", justify="right", no_wrap=True)
    table.add_column("consis-\ntent", justify="right", no_wrap=True)
    for group in groups:
        table.add_row(
            shown(group[key]),
            f"{group['pairs']['total']:,}",
            share(group["accuracy"] if _has_verdict(group["pairs"]) else _NOTHING),
            share(group["misselected_of_decided"]),
            interval(group["misselected_of_decided"]),
            report_more.percent(group["consistent"]["value"]),
        )
    print_part(table)


def _answers(found: dict[str, Any]) -> None:
    answers, cost = found["answers"], found["cost"]
    parts = [f"{count:,} {status}" for status, count in answers.items() if status != "total" and count]
    say(f"{answers['total']:,} answers of the judge: {', '.join(parts) or 'none'}")
    tokens = cost["total_tokens"]
    price = "" if cost["usd"] is None else f", {cost['usd']:.2f} USD"
    unknown = f", unknown for {cost['unknown_calls']:,} calls" if tokens and cost["unknown_calls"] else ""
    say(f"tokens of the judge: {'unknown' if tokens is None else f'{tokens:,}'}{unknown}{price}")
    others = {role: calls for role, calls in cost["run_calls"].items() if role != "judge"}
    if others:
        calls = ", ".join(f"{count:,} {role}" for role, count in sorted(others.items()))
        spent = "unknown" if cost["agents_tokens"] is None else f"{cost['agents_tokens']:,}"
        say(f"other calls of the run: {calls}; agents' tokens: {spent}")
