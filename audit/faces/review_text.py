"""What `review` tells a person: what went out, what came back, how judges stand against people."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.output import (
    counted,
    interval,
    print_json,
    print_part,
    print_rows,
    say,
    share,
    shown,
    titled,
    visible,
)

if TYPE_CHECKING:
    from audit.pipeline.review_export import Exported
    from audit.pipeline.reviewing import Stored

# So many conflicts are shown where not all are asked for.
_CONFLICTS = 20
_DONES = {"1": "done", "0": "not done"}


def tell_export(found: "Exported", n: int, *, as_json: bool) -> None:
    """What was picked of how many, and where it was written."""
    count = sum(found.picked.values())
    if as_json:
        told = {"run_id": found.run_id, "gate": found.gate, "files": [str(file) for file in found.files]}
        reasons = [
            {"reason": reason, "picked": picked, "of": found.sizes[reason]}
            for reason, picked in sorted(found.picked.items())
        ]
        print_json(told | {"items": count, "reasons": reasons, "exported_before": found.before})
        return
    what = "sessions" if found.gate is None else "pairs"
    click.echo(f"wrote {count:,} {what} of run {found.run_id} to {', '.join(map(str, found.files))}")
    if len(found.picked) > 1:
        click.echo(f"of each kind, a {what[:-1]} being of the first that applies to it:")
    for reason, picked in sorted(found.picked.items()):
        click.echo(f"  {reason:<16} {picked:>6,} of {found.sizes[reason]:,}")
    if count < n:
        click.echo(f"there are no more: {found.before:,} went out before (--again writes those as well)")


def tell_import(path: Path, stored: "Stored") -> None:
    """How many labels of the file were new."""
    file = visible(str(path))
    if stored == (0, 0):
        say(
            f"nobody filled in anything in {file}: "
            "preference, first_done, second_done and note are empty in all its rows"
        )
    else:
        click.echo(f"stored {counted(stored.stored, 'label')} of {file}; {stored.known:,} said nothing new")


def tell_status(status: Mapping[str, Any], *, verbose: bool) -> None:
    """How far people came with a run, and where they contradict each other."""
    conflicts = status["conflicts"]
    click.echo(
        f"run {status['run_id']}: {counted(status['exported'], 'item')} exported, "
        f"{status['labelled']:,} labelled, {status['done']:,} of them wholly, "
        f"{counted(len(conflicts), 'conflict')}"
    )
    if not status["exported"] and status["newest_exported"]:
        click.echo(f"the newest run with items is {status['newest_exported']}: name it")
    if status["by_reason"]:
        columns = ["reason", "exported", "labelled"]
        print_rows(columns, [[row[name] for name in columns] for row in status["by_reason"]])
    if status["annotators"]:
        columns = ["annotator", "items", "done", "labels"]
        print_rows(columns, [[row[name] for name in columns] for row in status["annotators"]])
    for one in conflicts if verbose else conflicts[:_CONFLICTS]:
        words = _DONES if one["kind"] == "success" else {}
        said = ", ".join(
            f"{shown(who)}: {words.get(value, value)}" for who, value in sorted(one["said"].items())
        )
        click.echo(f"conflict: {one['kind']} of {one['subject']}: {said}")
    if len(conflicts) > _CONFLICTS and not verbose:
        click.echo(f"{len(conflicts) - _CONFLICTS:,} conflicts more: review status {status['run_id']} -v")


def tell_judges(found: Mapping[str, Any], *, named: bool) -> None:
    """Each judge against what people said. `named`: the runs were asked for, and none is passed over."""
    agree = titled(
        f"Judges against people, on {counted(found['anchors'], 'anchor')} "
        f"({found['common']:,} of them all have)"
    )
    against = titled("Where both name a side; and on the anchors that all have")
    for table, names in (
        (agree, ("anchors", "as people", "95%", "kappa", "of")),
        (against, ("other side", "as people", "lost", "won", "p")),
    ):
        # Two lines: a run's id is broken nowhere, as people copy it.
        table.add_column("run, gate", overflow="fold", min_width=27, max_width=27)
        for name in names:
            table.add_column(name, justify="right", no_wrap=name not in ("as people", "other side"))
    for judge in found["judges"]:
        value, other = judge["kappa"]["value"], judge["against_first"]
        who = f"{judge['run_id']}\n{shown(judge['gate'])}"
        agree.add_row(
            who,
            f"{judge['anchors']:,}",
            share(judge["agree"]),
            interval(judge["agree"]),
            "-" if value is None else f"{value:.2f}",
            f"{judge['kappa']['n']:,}",
        )
        against.add_row(
            who,
            share(judge["misselected"]),
            share(judge["on_common"]["agree"]),
            f"{other['lost']:,}",
            f"{other['won']:,}",
            "-" if other["mcnemar_p"] is None else f"{other['mcnemar_p']:.2g}",
        )
    changed = sum(judge["changed"] for judge in found["judges"])
    notes = ["kappa: of the pairs with a verdict of the judge"]
    if many := found["undecided"]:
        notes.append(
            f"{counted(many, 'pair')} more that people saw {'is' if many == 1 else 'are'} none: "
            "they cannot tell, or are divided"
        )
    if changed:
        notes.append(
            f"{counted(changed, 'pair')} left out: their sessions went another way than those that people saw"
        )
    print_part(agree, "; ".join(notes))
    print_part(against)
    for run in found["without"]:
        if named or run["changed"]:
            why = (
                f"{counted(run['changed'], 'pair')} of it that people compared went another way there"
                if run["changed"]
                else "it holds no pair that people compared"
            )
            say(f"run {run['run_id']} is not among them: {why}")
