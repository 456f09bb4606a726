"""`export`: what is stored, as a file; and the set for DPO that is left when the spoiled rows are out."""

import math
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.cli import Settings, check_output, settings_of, shared_options
from audit.faces.usage import Named
from audit.words.flags import FLAGS, STORED, TOLD, no_row

if TYPE_CHECKING:
    from sqlalchemy import Engine

_ENDINGS = {
    "dpo": (".jsonl", ".parquet"),
    "pairs": (".jsonl", ".csv", ".parquet"),
    "logs": (".jsonl", ".csv", ".parquet"),
    "gauge-csv": (".csv",),
}
_OF_DPO = ("gate", "prefer", "cut", "form", "keep", "drop", "min_gap", "max_chars", "split", "card")


class _What(Named):
    """What is exported; of a view it says where its rows are to be had."""

    def get_invalid_choice_message(self, value: object, ctx: click.Context | None) -> str:
        from audit.doors.shipped import view_texts

        views = view_texts()
        meant = next(iter(get_close_matches(str(value), [*self.choices, *views], n=1)), None)
        hint = f"; `reward-audit views {meant} --csv` prints the view" if meant in views else ""
        return super().get_invalid_choice_message(value, ctx) + hint


def _flag_option(name: str, flags: tuple[str, ...], text: str) -> Any:
    return click.option(f"--{name}", metavar="FLAG", multiple=True, type=click.Choice(flags), help=text)


def dpo_options(command: Any) -> Any:
    """The options of `export dpo` alone."""
    for decorator in (
        click.option("--card", is_flag=True, help="dpo: write a dataset card, README.md, too."),
        click.option(
            "--split", metavar="PARTS",
            help="dpo: parts by task, such as train=.9,test=.1, a file each; no task is in two.",
        ),
        click.option("--max-chars", metavar="N", type=click.IntRange(min=1), help="dpo: drop longer rows."),
        click.option(
            "--min-gap", metavar="GAP", type=click.FloatRange(min=0),
            help="dpo: a smaller gap is a near tie (default: where the run's judge errs in one pair of ten).",
        ),
        _flag_option("drop", FLAGS, "dpo: drop pairs with this flag too; may stand several times."),
        _flag_option("keep", STORED, "dpo: keep pairs with this flag; may stand several times."),
        click.option(
            "--format", "form", type=click.Choice(("conversational", "standard", "kto")),
            help="dpo: lists of messages (default), plain strings, or a labelled row for each side.",
        ),
        click.option(
            "--cut", type=click.Choice(("first-divergence", "last-turn", "whole")),
            help="dpo: where the prompt ends: where the agents part (default), before the last turn, or "
            "after the task. All that follows is trained on: tools' words too, and but for `last-turn` the "
            "customer's.",
        ),
        click.option(
            "--prefer", type=click.Choice(("judge", "reward")),
            help="dpo: chosen is what the judge prefers (default), or the side with the higher reward.",
        ),
        click.option("--gate", metavar="GATE", help="dpo: which judge, where the run has several."),
    ):  # fmt: skip
        command = decorator(command)
    return command


@click.command("export")
@click.argument("what", metavar="WHAT", type=_What((*_ENDINGS, "parquet")))
@click.argument("folder", metavar="[DIR]", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "path", metavar="FILE", type=click.Path(path_type=Path),
    help="The file to write; its ending says how: .csv, .jsonl or .parquet. Of `parquet` the folder.",
)  # fmt: skip
@click.option("--run", metavar="RUN", help="Which run (default: latest; of `parquet` all).")
@dpo_options
@shared_options
@click.pass_context
def export_command(
    ctx: click.Context, /, what: str, folder: Path | None, path: Path | None, run: str | None, **options: Any
) -> None:
    """Write pairs, calls or sessions to a file, or a clean set for DPO.

    \b
    WHAT is
      dpo        prompt, chosen, rejected: the pairs that can be trained on
      pairs      audit_pairs, one row a pair
      logs       judge_logs, one row (or JSON object) a call, raw replies as they came
      gauge-csv  sessions, in the columns that `import gauge-csv` reads
      parquet    the tables of all runs into DIR, a folder a run, for DuckDB, Polars or Spark

    The file appears whole or not at all. In CSV, text that a spreadsheet would run as a formula begins
    with an apostrophe; only gauge-csv, which is read in again, has every text as it is.

    dpo takes .jsonl and .parquet, and writes FILE.dropped.jsonl (each dropped pair with every reason) and
    FILE.manifest.json (counts, digests, the noise that is left, how to set TRL) beside FILE. All but
    near_tie and injection_suspected drop a pair, of the judge's flags none under `--prefer reward`.

    \b
    Examples:
      reward-audit export dpo -o clean.jsonl --split train=.9,test=.1 --card
      reward-audit export pairs -o pairs.csv
      reward-audit export logs -o calls.jsonl --run RUN
      reward-audit export parquet columns/
    """
    from audit.doors.db import opened
    from audit.pipeline.outputs import refuse_imported

    settings = settings_of(ctx)
    asked = _asked(what, options)
    path = _target(what, folder, path)
    if what in _ENDINGS:
        check_output(ctx, path, _ENDINGS[what])
    with opened(settings.db) as engine:
        if what == "parquet":
            _export_parquet(engine, settings, path, run)
            return
        refuse_imported(engine, path)
        if what == "dpo":
            _export_dpo(engine, settings, path, run or "latest", asked)
        else:
            _export_rows(engine, settings, what, path, run or "latest")


def _export_rows(engine: "Engine", settings: Settings, what: str, path: Path, run: str) -> None:
    from audit.faces.output import print_json
    from audit.pipeline.exporting import export_gauge_csv, export_table

    if what == "gauge-csv":
        run_id, count = export_gauge_csv(engine, run, path)
    else:
        run_id, count = export_table(engine, what, run, path)
    if settings.as_json:
        print_json({"run_id": run_id, "file": str(path), "rows": count})
    else:
        click.echo(f"wrote {count:,} rows of run {run_id} to {path}")


def _target(what: str, folder: Path | None, path: Path | None) -> Path:
    """What is written to: a file after -o, of `parquet` a folder, which may stand alone."""
    if what != "parquet" and folder is not None:
        raise click.UsageError(f"{folder}: only `export parquet` takes a folder; name the file after -o")
    if folder is not None and path is not None:
        raise click.UsageError("name the folder once: as DIR, or after -o")
    target = folder or path
    if target is None:
        raise click.UsageError(
            "name the folder to write to" if what == "parquet" else "Missing option '-o' / '--output'."
        )
    return target


def _export_parquet(engine: "Engine", settings: Settings, folder: Path, run: str | None) -> None:
    from audit.faces.output import print_json
    from audit.pipeline.exporting_parquet import Written, export_parquet

    def tell(written: Written) -> None:
        if not settings.as_json:
            click.echo(f"{written.rows:>12,} rows  {written.file}")

    found = export_parquet(engine, folder, run, tell)
    if settings.as_json:
        print_json({"files": [one._asdict() | {"file": str(one.file)} for one in found]})


def _asked(what: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that were given; only `dpo` has any."""
    given = {name: value for name, value in options.items() if value not in (None, (), False)}
    if what == "dpo":
        return _dpo_options(given)
    if given:
        names = ", ".join("--" + ("format" if name == "form" else name.replace("_", "-")) for name in given)
        raise click.UsageError(f"{names}: only for `export dpo`")
    return {}


def _dpo_options(given: dict[str, Any]) -> dict[str, Any]:
    impossible = no_row(given.get("prefer", "judge")) & set(given.get("keep", ()))
    if impossible:
        names = ", ".join(sorted(impossible))
        raise click.UsageError(f"--keep {names}: such a pair has no side to call chosen, and gives no row")
    both = set(given.get("keep", ())) & set(given.get("drop", ()))
    if both:
        raise click.UsageError(f"{', '.join(sorted(both))}: --keep or --drop, not both")
    if "split" in given:
        given["split"] = _split(given["split"])
    return given


def _split(text: str) -> tuple[tuple[str, float], ...]:
    parts = []
    for part in text.split(","):
        name, _, share = part.strip().partition("=")
        try:
            size = float(share)
        except ValueError:
            size = math.nan
        if not re.fullmatch(r"[A-Za-z0-9_]+", name) or not 0 < size <= 1:
            raise click.BadParameter(f"{part.strip()!r}: write train=.9,test=.1", param_hint="--split")
        parts.append((name, size))
    if len({name for name, _ in parts}) < len(parts):
        raise click.BadParameter("a part is named twice", param_hint="--split")
    total = sum(size for _, size in parts)
    if abs(total - 1) > 1e-6:
        raise click.BadParameter(f"the parts add up to {total:g}, not to 1", param_hint="--split")
    return tuple(parts)


def _named(file: dict[str, Any]) -> str:
    """A file of rows; of several parts, with how many it has."""
    return f"{file['file']} ({file['rows']:,} rows)" if "split" in file else str(file["file"])


def _export_dpo(engine: "Engine", settings: Settings, path: Path, run: str, asked: dict[str, Any]) -> None:
    from audit.faces.output import print_json, say
    from audit.pipeline.dpo_card import backed
    from audit.pipeline.exporting_dpo import Wish, export_dpo

    found = export_dpo(engine, Wish(path, run, **asked))
    if settings.as_json:
        print_json(found)
        return
    counts, trl = found["counts"], found["trl"]
    click.echo(
        f"exported {counts['exported']:,} of {counts['candidates']:,} pairs of run {found['run']['run_id']} "
        f"to {', '.join(map(_named, (file for file in found['files'] if file['holds'] == 'rows')))}"
    )
    if counts["dropped"]:
        reasons = ", ".join(f"{flag} {count:,}" for flag, count in found["reasons"].items())
        say(f"Dropped {counts['dropped']:,}: {reasons}.")
    if counts["candidates"] and not counts["exported"] and "no_preference" in found["reasons"]:
        say(f"Judged pairs are settled by `reward-audit score {found['run']['run_id']}`.")
    told = [f"{flag} {found['told'][flag]['exported']:,}" for flag in TOLD if found["told"][flag]["exported"]]
    if told:
        say(f"Exported all the same: {', '.join(told)}.")
    if not counts["exported"]:
        say("The set is empty: --keep FLAG keeps what a reason dropped.")
        return
    say(backed(found))
    if found["options"]["format"] == "kto":
        say("KTO's loss has no label_smoothing; `weight` is there to choose rows by.")
    elif trl["label_smoothing"] is None:
        say(f"No label_smoothing can be told: {trl['why']}.")
    else:
        say(
            f"TRL: loss_type robust, label_smoothing {trl['label_smoothing']:.4g}; as much as is taught by "
            f"{1 / trl['data_cost']:.0%} of the rows without noise."
        )
