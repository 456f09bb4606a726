"""What `plan` found, as a table that fits 80 columns."""

from typing import Any

from audit.faces.output import print_part, say, share, shown, titled


def print_plan(found: dict[str, Any]) -> None:
    """What it takes, and what that leans on."""
    each = found["each"]
    say(f"run {found['run_id']}  {shown(found['name'])}, gate {shown(found['gate'])}")
    say(f"{each['pairs']:,} pairs in {each['tasks']:,} tasks; of more tasks like these it takes:")
    table = titled("Judge calls and tokens of the whole run, not of what is still missing")
    table.add_column("to")
    for name in ("decided", "pairs", "tasks", "calls", "tokens", "x this run"):
        table.add_column(name, justify="right", no_wrap=True)
    for rate in found["rates"]:
        which = "near ties" if rate["rate"].startswith("near") else "all pairs"
        for part, words in (
            ("to_know", f"know {which} to +-{100 * found['within']:g} points"),
            ("to_see_change", f"see {which} change by {100 * found['change']:g}"),
        ):
            table.add_row(words, *_cells(rate[part]))
    print_part(table)
    for rate in found["rates"]:
        _leans_on(rate, found["earlier"])
    say(f"Changes: in a run of the same pairs, with a power of {found['power']:.0%}, at 5%.")


def _cells(cost: dict[str, Any] | None) -> list[str]:
    if cost is None:
        return ["-"] * 6
    names = ("decided", "pairs", "tasks", "calls", "tokens")
    numbers = ["-" if cost[name] is None else _number(cost[name]) for name in names]
    return [*numbers, f"{cost['times_this_run']:.1f}"]


def _number(value: int) -> str:
    """Whole up to a million; beyond, what matters is the size."""
    return f"{value:,}" if value < 1_000_000 else f"{value / 1e6:,.1f}M"


def _leans_on(rate: dict[str, Any], earlier: str | None) -> None:
    if "why" in rate:
        say(f"{rate['rate']}: {rate['why']}.")
        return
    effect = "unknown, taken as 1" if rate["design_effect"] is None else f"{rate['design_effect']:.2f}"
    guess = f", taken as {rate['taken_as']:.2%}" if "taken_as" in rate else ""
    say(
        f"{rate['rate']}: {share(rate)} in this run{guess}; design effect of tasks {effect}; verdicts "
        f"that differ between two runs: {rate['discordant']:.1%} "
        + (f"(as against run {earlier})." if rate["is_discordant_measured"] else "(as if independent).")
    )
