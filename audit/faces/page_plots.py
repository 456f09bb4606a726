"""The pictures of the HTML page, as inline SVG: drawn by matplotlib, coloured by the page's style sheet.

A picture is given what its words say of it (title and alt text); its text is text, so that it can be read,
searched and scaled. Nothing in it comes from a transcript.
"""

import io
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import erfc, sqrt
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from audit.faces.output import real
from audit.words.errors import MissingExtra
from audit.words.names import UNKNOWN_BUCKET

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Colours that matplotlib writes and the page's style sheet then decides, for light and for dark.
_INK, _BAD, _GOOD, _MUTED = "#010203", "#a10001", "#a10002", "#a10003"
_COLOURS = {_INK: "currentColor", _BAD: "var(--bad)", _GOOD: "var(--good)", _MUTED: "var(--muted)"}
_STYLE: dict[str, Any] = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.size": 9,
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color", "lines.color"), _INK
    ),
}
# In inches: as wide as a phone, so that text is as large there as in the page.
_WIDTH = 4.8
_NO_METADATA: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
# As many stand side by side under the axis.
_CHARACTERS = 62


def require_matplotlib(purpose: str = "a report as HTML") -> None:
    """Raises MissingExtra where there is none."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingExtra("matplotlib", "html", purpose) from error
    # It speaks of its fonts and folders on stderr; nothing that a reader of reports can do anything about.
    logging.getLogger(matplotlib.__name__).setLevel(logging.ERROR)


def by_gap(found: Mapping[str, Any]) -> Markup:
    """Misselected of decided by gap bucket, then of agent pairs with the noise floor."""
    buckets = [one for one in found["gap_buckets"] if one["label"] != UNKNOWN_BUCKET or one["pairs"]]
    rates = [(one["label"], one["misselected_of_decided"]) for one in buckets]
    colours = [_BAD if one["is_near"] else _GOOD for one in buckets]
    pairs = found["agent_pairs"]
    halves = [half for half in ("near", "wide") if pairs and pairs[half]["n"]]
    agent_rates = [(f"{half}\nagents", pairs[half]) for half in halves]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        _rates(axes, rates, colours)
        _rates(axes, agent_rates, [_BAD if half == "near" else _GOOD for half in halves], len(rates))
        for at, half in enumerate(halves, len(rates)):
            floor = pairs[f"noise_floor_{half}"]
            if floor is not None:
                axes.plot([at - 0.42, at + 0.42], [100 * floor] * 2, "--", color=_INK, linewidth=1.6)
        if halves:
            axes.axvline(len(rates) - 0.5, color=_MUTED, linewidth=0.7)
            axes.plot([], [], "--", color=_INK, linewidth=1.6, label="noise floor of agent pairs")
        axes.plot([], [], "o", color=_BAD, label="near tie")
        axes.plot([], [], "o", color=_GOOD, label="wide gap")
        _slots(axes, [*rates, *agent_rates])
        if not any(rate["n"] for _, rate in [*rates, *agent_rates]):
            axes.set_ylim(0, 100)
        axes.set_ylabel("misselected, %")
        axes.set_xlabel(
            "reward gap of the pair, then pairs of agents" if halves else "reward gap of the pair"
        )
        figure.legend(loc="outside lower center", ncols=3)

    said = [f"{label.replace(chr(10), ' ')}: {_told(rate)}" for label, rate in [*rates, *agent_rates]]
    floors = [f"noise floor {half}: {_percent(pairs[f'noise_floor_{half}'])}" for half in halves]
    return _picture("Misselection by reward gap", [*said, *floors], draw)


def error_curve(found: Mapping[str, Any]) -> Markup:
    """Phi(-gap/s), what was seen, and the gap from which on the judge is to be trusted."""
    curve = found["error_curve"]
    gaps = [(level, curve[name]) for level, name in ((25, "gap_at_25"), (10, "gap_at_10"), (5, "gap_at_5"))]
    last = gaps[-1][1]
    ends = [end for end in (last["value"], last["high"]) if end is not None]
    # An interval without an end in sight is cut off where the curve is flat.
    right = 1.15 * min(max(ends), 2.5 * last["value"])

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        seen = min(curve["largest_gap"], right)
        for start, end, line in ((0.0, seen, "-"), (seen, right, ":")):
            xs = [start + (end - start) * step / 100 for step in range(101)]
            label = "fitted error curve" if line == "-" else "_"
            ys = [50 * erfc(x / curve["s"] / sqrt(2)) for x in xs]
            axes.plot(xs, ys, line, color=_GOOD, label=label)
        if curve["trust"]:
            axes.axvspan(last["low"], last["high"], color=_MUTED, alpha=0.25, linewidth=0, label="95% of it")
            axes.axvline(last["value"], color=_INK, linewidth=1.4, label="trustworthy gap")
        values = [gap["value"] for _, gap in gaps]
        levels = ", ".join(f"{real(value)}" for value in values)
        axes.plot(
            values,
            [level for level, _ in gaps],
            "o",
            color=_INK,
            markersize=4,
            label=f"25, 10, 5% at {levels}",
        )
        _seen(axes, found, right)
        axes.set_xlim(0, right)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("gap between agents' means" if _is_of_agents(curve) else f"{curve['gap_source']} gap")
        axes.set_ylabel("picks the worse one, %")
        figure.legend(loc="outside lower center", ncols=2)

    told = [f"{level}% errors at a gap of {real(gap['value'])} ({_range(gap)})" for level, gap in gaps]
    trust = f"trustworthy gap {real(last['value'])}" if curve["trust"] else "no gap to trust is named"
    return _picture("Fitted error curve", [*told, trust], draw)


def _is_of_agents(curve: Mapping[str, Any]) -> bool:
    return bool(curve["unit"] == "agent_pairs" or curve["gap_source"] == "agent")


def _seen(axes: "Axes", found: Mapping[str, Any], right: float) -> None:
    """What was seen: the buckets' rates where pairs were fitted, else each agent pair as a tick."""
    if found["error_curve"]["unit"] == "agent_pairs":
        rows = [row for row in found["agent_pairs"]["rows"] if row["misselected"] is not None]
        for wrong, colour, at, label in (
            (1, _BAD, 52.0, "agent pair, wrong"), (0, _GOOD, 0.8, "agent pair, right"),
        ):  # fmt: skip
            xs = [row["gap"] for row in rows if row["misselected"] == wrong and row["gap"] <= right]
            axes.plot(xs, [at] * len(xs), "|", color=colour, markersize=7, label=label)
        return
    label = "seen, by bucket"
    for bucket in found["gap_buckets"]:
        rate, low = bucket["misselected_of_decided"], bucket["lower"]
        if rate["n"] and low is not None and low < right:
            high = min(right, found["error_curve"]["largest_gap"], bucket["upper"] or right)
            axes.plot([low, high], [100 * rate["value"]] * 2, color=_BAD, linewidth=2.4, label=label)
            label = "_"


def position(found: Mapping[str, Any]) -> Markup:
    """Consistency and fairness by gap bucket."""
    buckets = [one for one in found["position"]["gap_buckets"] if one["both_read"]]
    rates = [(one["label"], one["consistent"]) for one in buckets]
    fair = [(one["preference_fairness"], one["preference_fairness_interval"]) for one in buckets]

    def draw(figure: "Figure") -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        _rates(above, rates, [_GOOD] * len(rates))
        above.set_ylabel("consistent, %")
        above.set_ylim(0, 105)
        for at, (value, ends) in enumerate(fair):
            _point(below, at, value, ends["low"], ends["high"], _BAD)
        below.axhline(0, color=_MUTED, linewidth=0.8)
        below.set_ylabel("fairness")
        low, high = below.get_ylim()
        most = max(abs(low), abs(high), 0.1)
        below.set_ylim(-most, most)
        _slots(below, rates, bottom=None)
        below.set_xlabel("reward gap; fairness < 0 leans to what stands first")

    said = [
        f"{label}: consistent {_told(rate)}, fairness {real(value, '+')}"
        for (label, rate), (value, _) in zip(rates, fair, strict=True)
    ]
    return _picture("Position bias by reward gap", said, draw, height=3.9)


def satisfaction(found: Mapping[str, Any]) -> Markup:
    """How many of those above a cut failed, over the cuts, with the base failure rate."""
    part = found["satisfaction"]
    cuts = [one for one in part["cuts"] if one["satisfied"]]
    rates = [(f"{one['cut']:g}", one["satisfied_failed"]) for one in cuts]
    base = part["base_failure"]

    def draw(figure: "Figure") -> None:
        axes = figure.subplots()
        _rates(axes, rates, [_BAD] * len(rates))
        axes.axhline(100 * base["value"], linestyle="--", color=_INK, linewidth=1.3, label="all sessions")
        axes.plot([], [], "o", color=_BAD, label="satisfied at the cut")
        _slots(axes, rates)
        axes.set_ylabel("failed, %")
        axes.set_xlabel("cut: satisfied from here on")
        figure.legend(loc="outside lower center", ncols=2)

    said = [f"cut {label}: {_told(rate)}" for label, rate in rates]
    return _picture("Satisfied but failed, over cuts", [*said, f"all sessions: {_told(base)}"], draw)


def _rates(
    axes: "Axes", rates: Sequence[tuple[str, Mapping[str, Any]]], colours: Sequence[str], start: int = 0
) -> None:
    for at, ((_, rate), colour) in enumerate(zip(rates, colours, strict=True), start):
        if rate["value"] is None:
            axes.annotate("none", (at, 0), (0, 2), textcoords="offset points", ha="center", fontsize=8)
        else:
            value, low, high = (_hundredfold(rate[name]) for name in ("value", "low", "high"))
            _point(axes, at, value, low, high, colour)


def _hundredfold(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _point(
    axes: "Axes", at: int, value: float | None, low: float | None, high: float | None, colour: str
) -> None:
    if value is None:
        return
    if low is not None and high is not None:
        axes.plot([at, at], [low, high], color=colour, linewidth=1.6, alpha=0.75)
    axes.plot([at], [value], "o", color=colour, markersize=5)


def _slots(axes: "Axes", rates: Sequence[tuple[str, Mapping[str, Any]]], bottom: float | None = 0) -> None:
    """One slot a rate, its k/n under its name."""
    names = [f"{label}\n{rate['k']:,}/{rate['n']:,}" for label, rate in rates]
    longest = max((len(line) for name in names for line in name.split("\n")), default=0)
    is_crowded = len(names) * (longest + 1) > _CHARACTERS
    turned: dict[str, Any] = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_crowded else {}
    axes.set_xticks(range(len(names)), names, **turned)
    axes.set_xlim(-0.6, len(names) - 0.4)
    if bottom is not None:
        axes.set_ylim(bottom=bottom)


def _picture(
    title: str, told: Iterable[str], draw: Callable[["Figure"], None], height: float = 3.2
) -> Markup:
    """The SVG of a figure, freed of all that would meet the page around it: ids, style sheet, namespaces."""
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        settings: Any = matplotlib.rcParams
        settings.update(_STYLE | {"svg.hashsalt": title})
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        draw(figure)
        written = io.StringIO()
        figure.savefig(written, format="svg", metadata=_NO_METADATA, transparent=True)
    return _inline(written.getvalue(), title, told)


def _inline(text: str, title: str, told: Iterable[str]) -> Markup:
    view_box = re.search(r'viewBox="([\d. ]+)"', text)
    inside = text[text.index(">", text.index("<svg")) + 1 :]
    inside = re.sub(r"<style.*?</style>|<!--.*?-->|<metadata>.*?</metadata>", "", inside, flags=re.DOTALL)
    inside = re.sub(r'<g id="[^"]*"', "<g", inside).replace("xlink:href", "href")
    inside = re.sub(r"font: (?:normal |\d+ )*([\d.]+px)[^;\"]*", r"font-size: \1", inside)
    inside = re.sub(r" ?font-family: [^;\"]*;?", "", inside)
    for drawn, shown in _COLOURS.items():
        inside = inside.replace(drawn, shown)
    alt = f"{title}. {'; '.join(told)}."
    head = Markup('<svg role="img" viewBox="{}" aria-label="{}"><title>{}</title>')
    return head.format(view_box[1] if view_box else "", alt, title) + Markup(inside.strip())  # noqa: S704 - drawn here


def _told(rate: Mapping[str, Any]) -> str:
    if rate["value"] is None:
        return "no pair"
    return f"{rate['k']:,} of {rate['n']:,}, {_percent(rate['value'])} ({_range(rate, 100)})"


def _range(ends: Mapping[str, Any], times: int = 1) -> str:
    low, high = (ends[name] for name in ("low", "high"))
    shown = [
        "open" if end is None else real(end) if times == 1 else f"{times * end:.1f}" for end in (low, high)
    ]
    return f"95%: {shown[0]} to {shown[1]}"


def _percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.1%}"
