"""The nightly trend as a picture."""

from pathlib import Path
from typing import Any

from audit.words.errors import BadRequest, MissingExtra

ENDINGS = (".svg", ".png", ".pdf")


def draw_trend(found: dict[str, Any], file: Path) -> None:
    """Misselection of all decided pairs and of near ties, run by run, with their 95% intervals.

    Raises BadRequest for another ending or where it cannot be written, MissingExtra without matplotlib.
    """
    if file.suffix.lower() not in ENDINGS:
        raise BadRequest(f"{file}: its ending says no format: use one of {', '.join(ENDINGS)}")
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", "html", "a plot") from error
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
    axes.set_xticks(range(len(found["runs"])))
    axes.set_xticklabels([run["created_at"][5:10] for run in found["runs"]], rotation=45)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_ylabel("misselected of decided")
    axes.legend()
    try:
        figure.savefig(file)
    except OSError as error:
        raise BadRequest(f"{file}: cannot be written: {error.strerror}") from error
