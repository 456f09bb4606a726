"""The report as one HTML page that needs nothing else: no script, no file, no address.

Every figure is taken from the mapping of `report --json` by its path, and carries that path (`data-of`) and
how it is written (`data-as`). All text is escaped; characters that would turn or hide writing are shown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from audit.faces import page_plots
from audit.faces.legible import legible
from audit.faces.output import interval, real, share
from audit.pipeline.report_words import headline, judge_lines
from audit.statistics.corrected import FEW_LABELS
from audit.statistics.intervals import FEW_CLUSTERS
from audit.words.names import UNJUDGED

_TEMPLATES = Path(__file__).resolve().parent / "page_templates"
_METHODS = {
    "wilson": "Wilson's interval for a plain share.",
    "cluster_wilson_t": "Wilson's interval for as many trials as the pairs are worth, given how alike those "
    "of one cluster are, with a quantile of t.",
    "wilson_on_clusters": "Wilson's interval with clusters in place of pairs, as no difference between "
    "clusters was seen: wider than need be.",
    "cluster_t": "estimate ± t standard errors, which take the clusters as the units.",
    "cluster_logit_t": "the same on the scale of log odds.",
    "from_two_rates": "from the far ends of two rates' intervals: wider than need be.",
    "from_two_intervals": "from the far ends of two intervals: wider than need be.",
    "bootstrap_of_agents": "agents are drawn again and again with their pairs; the middle 95% of what comes.",
    "ppi++_plus_two": "the standard errors of all rows and of what people say of the labelled ones, "
    "together, with two labels more, a denial each way, and with what the rows of one task have in common.",
    "rogan_gladen_fieller": "Fieller's interval of the ratio that sensitivity and specificity make of the "
    "rate, of the labelled rows themselves and with what the rows of one task have in common.",
    "wilson_on_agents": "Wilson's interval with agents in place of pairs, as drawing them again shows "
    "nothing new.",
}
# An agent pair's row and an agent's column that are shown at most.
_ROWS = 200
_POWERS = 8
_LONGEST_NAME = 80


def html_page(found: dict[str, Any], worst: Sequence[Mapping[str, Any]]) -> str:
    """The page, from the mapping of `report` and the pairs of `worst`. Raises MissingExtra for matplotlib."""
    page_plots.require_matplotlib()
    is_judged = bool(found["pairs"]["total"]) and found["run"]["gate"] != UNJUDGED
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=legible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja").render(
        found=found,
        few_clusters=FEW_CLUSTERS,
        few_labels=FEW_LABELS,
        headline=headline(found),
        judge_lines=judge_lines(found["run"]),
        is_judged=is_judged,
        pictures=_pictures(found) if is_judged else {"satisfaction": _satisfaction(found)},
        cell=_cells(found, "td"),
        span=_cells(found, "span"),
        named=named,
        coded=coded,
        powers=_powers(found),
        powers_heads=[f"pass^{k}" for k in _powers(found)],
        agent_pair_rows=_agent_pair_rows(found),
        methods={name: words for name, words in _METHODS.items() if name in _methods_in(found)},
        worst=worst,
        real=real,
    )


def named(text: Any) -> Markup:
    """A name that comes from a file, cut where it would break a table; the whole is its title."""
    whole = str(legible(text))
    if len(whole) <= _LONGEST_NAME:
        return Markup("<bdi>{}</bdi>").format(whole)
    return Markup('<bdi title="{}">{}…</bdi>').format(whole, whole[:_LONGEST_NAME])


def coded(text: str) -> Markup:
    """A sentence in which what stands between backticks is code."""
    parts = re.split(r"`([^`\n]+)`", text)
    return Markup("").join(
        Markup("<code>{}</code>").format(legible(part)) if index % 2 else escape(legible(part))
        for index, part in enumerate(parts)
    )


def at(found: Any, path: str) -> Any:
    """What stands at `path`, names and indexes with dots between them."""
    for step in path.split("."):
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found


def _cells(found: Mapping[str, Any], tag: str) -> Callable[[str, str], Markup]:
    template = Markup('<{tag} class="n" data-of="{path}" data-as="{form}">{text}</{tag}>')

    def cell(path: str, form: str) -> Markup:
        text = _FORMS[form](at(found, path))
        return template.format(tag=tag, path=path, form=form, text=text)

    return cell


def _number(write: Callable[[Any], str]) -> Callable[[float | None], str]:
    return lambda value: "–" if value is None else _minus(write(value))


def _minus(text: str) -> str:
    """The number with a sign as wide as its plus; an exponent keeps its hyphen."""
    return f"−{text[1:]}" if text.startswith("-") else text


def _ends(ends: Mapping[str, Any]) -> str:
    low, high = ends["low"], ends["high"]
    if low is None and high is None:
        return ""
    return " to ".join("…" if end is None else _minus(real(end)) for end in (low, high))


# How a figure is written: a rate as k/n and percent, its interval in percent, a number to some places.
_FORMS: dict[str, Callable[[Any], str]] = {
    "share": lambda rate: share(rate).replace("/ ", "/") if rate["n"] else "–",
    "interval": lambda rate: interval(rate).replace("-", "–"),
    "ends": _ends,
    "count": _number("{:,}".format),
    "percent": _number("{:.1%}".format),
    "places": _number(real),
    "signed": _number(lambda value: real(value, "+")),
    "short": _number("{:.2g}".format),
    "money": _number("{:,.2f}".format),
}


def _pictures(found: Mapping[str, Any]) -> dict[str, Markup | None]:
    curve, position = found["error_curve"], found["position"]
    return {
        "by_gap": page_plots.by_gap(found),
        "error_curve": page_plots.error_curve(found) if curve and curve["s"] is not None else None,
        "position": page_plots.position(found) if position and position["both_read"] else None,
        "satisfaction": _satisfaction(found),
    }


def _satisfaction(found: Mapping[str, Any]) -> Markup | None:
    part = found["satisfaction"]
    is_seen = part is not None and any(cut["satisfied"] for cut in part["cuts"])
    return page_plots.satisfaction(found) if is_seen else None


def _powers(found: Mapping[str, Any]) -> list[str]:
    most = max((len(agent["pass_hat_k"] or {}) for agent in found["agents"]), default=0)
    return [str(k) for k in range(1, min(most, _POWERS) + 1)]


def _agent_pair_rows(found: Mapping[str, Any]) -> list[int]:
    """The indexes of the agent pairs to show: the misselected first, then by gap."""
    rows = found["agent_pairs"]["rows"] if found["agent_pairs"] else []
    order = sorted(range(len(rows)), key=lambda at: (not rows[at]["misselected"], rows[at]["gap"]))
    return order[:_ROWS]


def _methods_in(value: Any) -> set[str]:
    """The names of all methods that any interval in the report was made by."""
    if isinstance(value, list):
        return set().union(*map(_methods_in, value))
    if not isinstance(value, Mapping):
        return set()
    own = {value["method"]} if isinstance(value.get("method"), str) else set()
    return own.union(*map(_methods_in, value.values()))
