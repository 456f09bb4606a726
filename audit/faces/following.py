"""What follows a run: `--then gate,report=FILE,export=FILE`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from audit.faces.cli import check_output
from audit.words.errors import BadFile

if TYPE_CHECKING:
    from sqlalchemy import Engine

_STEPS = {"gate": "", "report": "report=out.html", "export": "export=clean.jsonl"}
_ENDINGS = {"report": (".html", ".htm"), "export": (".jsonl", ".parquet")}


class Step(NamedTuple):
    """One thing to do, and the file it writes."""

    name: str
    file: Path | None


class Limits(NamedTuple):
    """The config whose thresholds hold, and the gates, judges or panels, that are held to them."""

    file: Path | None
    gates: tuple[str, ...]


def read_steps(text: str | None) -> list[Step]:
    """The steps as they are written. Raises click.BadParameter for what is none, before anything is begun."""
    steps = [_step(part.strip()) for part in text.split(",")] if text is not None else []
    names = [step.name for step in steps]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise click.BadParameter(f"{twice} stands twice", param_hint="--then")
    return steps


def check_files(ctx: click.Context, steps: list[Step], log_file: Path | None) -> None:
    """Before anything is paid for: can what follows be written? Raises BadFile."""
    for name, file in steps:
        if file is None:
            continue
        check_output(ctx, file, _ENDINGS[name])
        if log_file is not None and file.resolve() == log_file.resolve():
            raise BadFile(str(file), "", "is the log file as well: name another")


def _step(text: str) -> Step:
    name, given, file = text.partition("=")
    if name not in _STEPS:
        raise click.BadParameter(f"{text!r}: expected gate, report=FILE or export=FILE", param_hint="--then")
    if bool(file) != (name in _ENDINGS) or (given and not file):
        raise click.BadParameter(f"{text!r}: write {_STEPS[name] or name}", param_hint="--then")
    if file and not file.lower().endswith(_ENDINGS[name]):
        raise click.BadParameter(
            f"{text!r}: the file ends in {' or '.join(_ENDINGS[name])}", param_hint="--then"
        )
    if name == "report":
        from audit.faces.page_plots import require_matplotlib

        require_matplotlib()
    return Step(name, Path(file) if file else None)


def follow(
    engine: "Engine", run_id: str, steps: list[Step], limits: Limits, *, quiet: bool
) -> tuple[dict[str, Any], bool]:
    """Do the steps one after the other: what each found, by its name, and whether no gate failed.

    After a gate that failed nothing is exported: nobody should train on what it stands for. A report is
    written all the same.
    """
    from audit.faces.commands.reporting import write_page
    from audit.faces.gate_text import print_held
    from audit.pipeline.exporting_dpo import Wish, export_dpo
    from audit.pipeline.holding import hold, keep_outcome

    found: dict[str, Any] = {}
    passed = True
    for name, file in steps:
        if name == "gate":
            held = [hold(engine, run_id, limits.file, gate) for gate in limits.gates]
            passed = all(one["passed"] for one in held)
            keep_outcome(engine, run_id, held)
            found[name] = {"passed": passed, "gates": held}
            for one in () if quiet else held:
                print_held(one)
        elif name == "report" and file is not None:
            found[name] = {"file": str(file)}
            write_page(engine, run_id, None, file)
            _say(f"wrote the report to {file}", quiet=quiet)
        elif file is not None and not passed:
            found[name] = None
            there = ", what is there is older" if file.exists() else ""
            _say(f"{file} is not written{there}: the gate failed", quiet=quiet)
        elif file is not None:
            exported = export_dpo(engine, Wish(file, run_id))
            found[name] = {"file": str(file), "counts": exported["counts"]}
            counts = exported["counts"]
            _say(f"exported {counts['exported']:,} of {counts['candidates']:,} pairs to {file}", quiet=quiet)
    return found, passed


def _say(text: str, *, quiet: bool) -> None:
    from audit.faces.output import visible

    if not quiet:
        click.echo(visible(text))
