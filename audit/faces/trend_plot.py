"""The nightly trend as a picture."""

from pathlib import Path
from typing import Any

from audit.doors.tables import whole_files
from audit.faces.output import visible

ENDINGS = (".svg", ".png", ".pdf")


_MOST_LABELS = 20


def draw_trend(found: dict[str, Any], file: Path) -> None:
    """Misselection of all decided pairs and of near ties, run by run, with their 95% intervals.

    The file appears whole or not at all. Raises BadFile where it cannot be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.add_subplot()
    for key, label, colour, shift in (
        ("misselected_of_decided", "all decided pairs", "#1f5fa8", -0.06),
        ("near", "near ties", "#c2410c", 0.06),
    ):
        rates = [
            (place, run[key]) for place, run in enumerate(found["runs"]) if run[key]["value"] is not None
        ]
        values = [rate["value"] for _, rate in rates]
        ends = [
            [rate["value"] - rate["low"] for _, rate in rates],
            [rate["high"] - rate["value"] for _, rate in rates],
        ]
        places = [place + shift for place, _ in rates]
        axes.errorbar(places, values, yerr=ends, fmt="o-", color=colour, label=label, capsize=3)
    labels = _labels([run["created_at"] for run in found["runs"]])
    every = -(-len(labels) // _MOST_LABELS)
    axes.set_xticks(range(0, len(labels), every), labels[::every], rotation=45, ha="right")
    axes.set_title(f"Misselection of {len(labels)} runs named {visible(found['name'])}", wrap=True)
    axes.set_xlabel("begun (UTC)")
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("misselected of decided")
    axes.legend()
    with whole_files() as beside:
        figure.savefig(beside(file), format=file.suffix.lower()[1:])


def _labels(begun: list[str]) -> list[str]:
    """The day of each run, with the minute where two began on one day, and the year where there are two."""
    days = [time[:10] for time in begun]
    first = 5 if len({day[:4] for day in days}) == 1 else 0
    last = 10 if len(set(days)) == len(days) else 16
    return [time[first:last].replace("T", " ") for time in begun]
