"""What `compare` found, as terminal tables that fit 80 columns."""

from collections.abc import Iterator
from typing import Any

import click

from audit.faces.output import interval, print_part, say, share, shown, titled
from audit.words.text import as_json

_SHOWN_KEYS = 12


def print_compared(found: dict[str, Any], *, is_whole: bool) -> None:
    """All parts, one after the other."""
    for which in ("before", "after"):
        run = found[which]
        status = "" if run["status"] == "complete" else f", {run['status']}"
        say(f"{which:<6} {run['run_id']}  {shown(run['name'])}, gate {shown(run['gate'])}{status}")
    click.echo()
    say(shown(found["explanation"]))
    click.echo()
    _pairs(found)
    if found["matched"]["pairs"]:
        _rates(found)
        _smallest(found)
    if found["advice"] is not None:
        say(shown(found["advice"]["text"]))
        click.echo()
    _changed(found, is_whole=is_whole)


def _pairs(found: dict[str, Any]) -> None:
    both, test = found["matched"], found["mcnemar"]
    say(
        f"{both['pairs']:,} pairs of {both['tasks']:,} tasks are in both runs ({both['only_before']:,} only "
        f"before, {both['only_after']:,} only after); {both['same_rewards']:,} have the same rewards."
    )
    p_value = "nothing to test" if test["p"] is None else f"p = {test['p']:.2g}"
    say(
        f"Misselected in both {test['both_misselected']:,}, only before {test['misselected_before']:,}, only "
        f"after {test['misselected_after']:,} of {test['counted']:,}: McNemar {p_value} (takes pairs as "
        "independent)."
    )
    click.echo()


def _rates(found: dict[str, Any]) -> None:
    table = titled("Over the pairs of both runs; change in points, 95% over tasks")
    table.add_column("rate")
    for name in ("before", "after", "change", "95%"):
        table.add_column(name, justify="right", no_wrap=name in ("change", "95%"))
    for rate in found["rates"]:
        table.add_row(
            rate["rate"].replace(".", ": ").replace("_", " "),
            share(rate["before"]),
            share(rate["after"]),
            points(rate["change"]),
            change_ends(rate),
        )
    print_part(table, note="error_calls: of all calls of both runs")


def _smallest(found: dict[str, Any]) -> None:
    unseen = [
        f"{rate['rate']} {100 * rate['smallest_seen']:.1f}"
        for rate in found["rates"]
        if rate["smallest_seen"] is not None and rate["low"] <= 0 <= rate["high"]
    ]
    if unseen:
        say(
            "Not beyond chance, with the smallest change in points that would mostly (80% power) have been "
            f"seen: {', '.join(unseen)}."
        )
        click.echo()


def _changed(found: dict[str, Any], *, is_whole: bool) -> None:
    changed = found["changed"]
    lines = [f"{key['key']}: {_short(key['before'])} -> {_short(key['after'])}" for key in changed["config"]]
    if not is_whole and len(lines) > _SHOWN_KEYS:
        lines = [*lines[:_SHOWN_KEYS], f"and {len(lines) - _SHOWN_KEYS:,} more keys (-v shows them)"]
    if changed["gate"]:
        lines.append(f"gate: {changed['gate']['before']} -> {changed['gate']['after']}")
    # Another gate has other judges: that line says it.
    both = [model for model in changed["models"] if None not in (model["before"], model["after"])]
    lines += _prompts_and_models(changed | {"models": both} if changed["gate"] else changed)
    tasks = changed["tasks"]
    if tasks["only_before"] or tasks["only_after"]:
        lines.append(
            f"tasks: {tasks['both']:,} in both, {tasks['only_before']:,} only before, "
            f"{tasks['only_after']:,} only after, {tasks['edited']:,} edited under one id"
        )
    say("What changed between the runs:" if lines else "Nothing that is recorded changed between the runs.")
    for line in lines:
        say(shown(f"  {line}"))


def _prompts_and_models(changed: dict[str, Any]) -> Iterator[str]:
    for prompt in changed["prompts"]:
        yield f"prompt of {prompt['role']}: {', '.join(prompt['before'])} -> {', '.join(prompt['after'])}"
    for model in changed["models"]:
        ways = " -> ".join(_model(model[which]) for which in ("before", "after"))
        yield f"model of {model['role']} {model['profile']}: {ways}"


def _model(model: dict[str, list[str]] | None) -> str:
    if model is None:
        return "not asked"
    served = [name for name in model["served"] if name not in model["asked"]]
    return ", ".join(model["asked"]) + (f" (served {', '.join(served)})" if served else "")


def _short(value: Any) -> str:
    text = "-" if value is None else as_json(value) if isinstance(value, dict | list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def print_trend(found: dict[str, Any]) -> None:
    """One line a run, the oldest first."""
    table = titled(
        f"{len(found['runs'])} runs named {shown(found['name'])}; change in points, on pairs of both"
    )
    table.add_column("begun", no_wrap=True)
    table.add_column("misselected\nof decided", justify="right")
    table.add_column("95%", justify="right", no_wrap=True)
    table.add_column("change", justify="right", no_wrap=True)
    table.add_column("95%", justify="right", no_wrap=True)
    table.add_column("near ties", justify="right")
    table.add_column("consis-\ntent", justify="right", no_wrap=True)
    for run in found["runs"]:
        rate, change = run["misselected_of_decided"], run["change"]
        table.add_row(
            run["created_at"][5:16].replace("T", " "),
            share(rate),
            interval(rate),
            "" if change is None else points(change["change"]),
            "" if change is None else change_ends(change, to=".."),
            share(run["near"]),
            _percent(run["consistent"]["value"]),
        )
    print_part(table)
    for run in found["runs"]:
        if run["error_calls"]["k"]:
            say(f"{run['run_id']}: {share(run['error_calls'])} of the judge's calls failed")
        for line in _changed_lines(run["changed"] or {"prompts": (), "models": (), "moved": ()}):
            say(shown(f"{run['run_id']}: {line}"))
        if run["advice"] is not None:
            say(shown(f"{run['run_id']}: {run['advice']['text']}"))


def _changed_lines(changed: dict[str, Any]) -> Iterator[str]:
    """What a run has otherwise than the one before it: prompts and models each, the rest by name."""
    yield from _prompts_and_models(changed)
    others = [name for name in changed["moved"] if name not in ("judge", "judge prompt")]
    if others:
        yield f"other than before it: {', '.join(others)}"


def points(change: float | None) -> str:
    """A change of a share in points, with its sign."""
    return "-" if change is None else f"{100 * change:+.1f}"


def change_ends(change: dict[str, Any], to: str = " to ") -> str:
    """The interval of a change in points; empty where there is none."""
    if change["low"] is None:
        return ""
    return f"{100 * change['low']:+.1f}{to}{100 * change['high']:+.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
