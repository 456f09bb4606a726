"""The report's tables on what people say: corrected rates, agreement, how many more labels it would take."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from audit.faces.output import counted, interval, print_part, say, shown, titled
from audit.faces.report_more import percent
from audit.statistics.corrected import FEW_LABELS
from audit.statistics.intervals import FEW_CLUSTERS

_PARTS = (
    ("misselected", "Misselected, by people"),
    ("satisfied_failed", "Satisfied but failed, by people"),
)
_OF = {
    "decided": "of decided pairs",
    "sided": "of pairs in which the judge names a side, as no reward tells any apart",
}


def people(found: dict[str, Any]) -> None:
    """Both rates as they are told without people and set right by them, overall and by gap; then kappas."""
    part = found["review"]
    if part is None:
        return
    say(
        f"People labelled {part['labelled']:,} of {part['exported']:,} exported items "
        f"({counted(len(part['annotators']), 'annotator')}, {counted(part['conflicts'], 'conflict')})."
    )
    click.echo()
    for name, title in _PARTS:
        if part[name] is not None and part[name]["labels"]:
            of = f" ({_OF[part['of']]})" if name == "misselected" else " (of satisfied sessions)"
            _rates(part, name, title + of)
    for line in (*_kappas(part["kappa"]), *_rule(part)):
        say(line)
    click.echo()


def _rates(part: Mapping[str, Any], name: str, title: str) -> None:
    table = titled(title)
    table.add_column("gap", overflow="fold")
    for column in ("rows", "labels", "untouched", "PPI++", "95%", "Rogan-Gladen", "95%"):
        table.add_column(column, justify="right", no_wrap=column != "Rogan-Gladen")
    is_few = False
    for bucket in part["gap_buckets"]:
        if bucket[name] is not None and bucket[name]["labels"]:
            table.add_row(bucket["label"], *_cells(bucket[name]))
            is_few |= bucket[name]["ppi"] is not None and bucket[name]["ppi"]["low"] is None
    table.add_row("all", *_cells(part[name]))
    whole = part[name]
    notes = [f"{whole['disagree']:,} of {whole['labels']:,} labels deny what is told without people"]
    notes += [f"{_METHODS[method]}: {why}" for method, why in whole["why"].items()]
    if part["unheard"][name]:
        kinds, rows = ", ".join(part["unheard"][name]), sum(part["unheard"][name].values())
        notes.append(
            f"no label is of the kinds {kinds}: their {rows:,} pairs are taken to be like the others"
        )
    if is_few and "ppi" not in whole["why"]:
        notes.append(f"under {FEW_LABELS} labels PPI++ has no 95%, and its value says little")
    more = whole["ppi"] and whole["ppi"]["more_to_halve"]
    if more:
        beyond = " (more than there are)" if whole["labels"] + more > whole["rows"] else ""
        notes.append(f"{more:,} more labels{beyond} would halve the interval of PPI++")
    elif whole["ppi"] and whole["ppi"]["low"] is not None:
        notes.append("no number of labels would halve the interval of PPI++: that takes more tasks")
    clusters = f"{whole['clusters']:,} task{'' if whole['clusters'] == 1 else 's'}"
    if whole["clusters"] < FEW_CLUSTERS:
        notes.append(
            f"only {clusters} with labels: how much tasks differ is hardly known, so take every interval as "
            "a rough one"
        )
    else:
        notes.append(f"95%: over {clusters} with labels")
    if name == "satisfied_failed" and table.row_count > 2:
        notes.append("a session counts in each gap that its pairs have, and once in all")
    print_part(table, note="; ".join(notes))


_METHODS = {"ppi": "PPI++", "rogan_gladen": "Rogan-Gladen"}


def _cells(rate: Mapping[str, Any]) -> Iterator[str]:
    yield f"{rate['rows']:,}"
    yield f"{rate['labels']:,}"
    yield percent(rate["uncorrected"])
    for method in _METHODS:
        found = rate[method]
        yield percent(found and found["value"])
        yield interval(found) if found else ""


def _kappas(kappas: Mapping[str, Any]) -> Iterator[str]:
    for name, words in (
        ("judge_people", "judge and people on which side"),
        ("satisfaction_people", "satisfaction and people on done"),
        ("verifier_people", "verifier and people on done"),
    ):
        if kappas[name]["n"]:
            yield f"kappa of {words}: {_kappa(kappas[name])}"
    for one in kappas["between_people"]:
        yield f"kappa of {' and '.join(map(shown, one['annotators']))} on {one['kind']}: {_kappa(one)}"


def _kappa(one: Mapping[str, Any]) -> str:
    agreed = f"{one['agreed']:,}/{one['n']:,} the same"
    if one["value"] is None:
        return f"- ({agreed}; {one['why']})"
    ends = "" if one["low"] is None else f" (95%: {one['low']:.2f} to {one['high']:.2f})"
    return f"{one['value']:.2f}{ends}, {agreed}"


def _rule(part: Mapping[str, Any]) -> Iterator[str]:
    if part["rule_disagrees"]:
        sessions = counted(part["rule_disagrees"], "session")
        yield (
            f"Most people contradict the rule's success of {sessions}: the rule's stands; "
            "flagged_pairs has them as human_disagrees."
        )
    if part["overruled"]:
        yield (
            f"Most people overrule the success of {counted(part['overruled'], 'session')}, told by no rule: "
            "pass^k and satisfied but failed go by people, rewards and so misselected stay as they are."
        )
