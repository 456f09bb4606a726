"""`import`: recorded judgments, sessions or outside rewards."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.cli import command_line, settings_of, shared_options
from audit.faces.options import chosen_buckets, scale_options
from audit.faces.usage import Named
from audit.words.errors import BadFile

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from audit.pipeline.wishes import Imported
    from audit.verbs.gaps import BucketSet

_UNREAD = (
    "select raw_output from judge_logs where run_id = '{}' "
    "and parse_status in ('unreadable', 'truncated') limit 5"
)
SESSIONS = ("tau", "tau2", "inspect", "sessions")
FORMATS = ("judgebench", "llmbar", "pandalm", *SESSIONS, "jsonl", "csv", "gauge-csv", "rewards")


def _options(command: Any) -> Any:
    """How files are read and whose they are."""
    for decorator in (
        click.option("--replace", is_flag=True, help="rewards: overwrite rewards that are set."),
        click.option("--run", "run", metavar="RUN", help="rewards: the run whose pairs get them."),
        click.option(
            "--success-at", type=float, metavar="X",
            help="Sessions: a reward from X up is a success, where the file is silent (default: 1 - 1e-6).",
        ),
        click.option(
            "--agent", "agents", metavar="NAME", multiple=True,
            help="Sessions: whose they are; once, or once for each file. sessions: of rows that name none.",
        ),
        click.option("--grammar", help="jsonl, csv: how to read the replies of rows that name no grammar."),
        click.option(
            "--reread", is_flag=True, help="Read the raw replies anew instead of taking recorded decisions."
        ),
        click.option(
            "--name", help="The run's name (default: the file's). The same file under it adds nothing."
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


@click.command("import")
@click.argument("format_name", metavar="FORMAT", type=Named(FORMATS))
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@_options
@scale_options
@shared_options
@click.pass_context
def import_command(ctx: click.Context, /, format_name: str, files: tuple[Path, ...], **options: Any) -> None:
    """Import recorded judgments, sessions or outside rewards as a run.

    A file is taken whole or not at all; .gz is read too. FORMAT is one of

    \b
      judgebench  outputs of JudgeBench: both orders, objective labels
      llmbar      evaluator results of LLMBar: both orders, a person's preference
      pandalm     PandaLM's test set and one judge's file: one order, three people
      tau, tau2   results of tau-bench and tau2-bench: sessions with verified rewards
      inspect     logs of Inspect, .json and .eval (the extra `inspect`)
      sessions    our own: one session a line, as JSON Lines
      jsonl, csv  our own: one judged pair a line
      gauge-csv   one session a line: satisfaction and verified success
      rewards     outside rewards for the pairs of a run (--run)

    All files of sessions (tau, tau2, inspect, sessions) in one command become one run, in which every two
    agents meet on the tasks both served; a judge can then be asked.

    Columns of sessions: task_id, messages (chat messages as OpenAI's API has them), agent; reward or success;
    trial, category, task (what the customer was told), policy, checks (name, passed, evidence),
    task_fingerprint, satisfaction, end_reason, error, fault, label_source, prompt_tokens,
    completion_tokens, total_tokens, simulated_at.

    Columns of jsonl and csv: pair_id; task_id, category, trial, judge, agent_a, agent_b; success_a and
    success_b, or reward_a and reward_b, or label (A, B, tie); raw_ab and raw_ba with a grammar, or
    pref_ab and pref_ba (A, B, tie, unreadable, failed); judge_score_a, judge_score_b, gap, judged_at,
    prompt, response_a, response_b. Columns of rewards: source_pair_id, reward_a, reward_b, gap.

    \b
    Examples:
      reward-audit import judgebench o1-mini.jsonl --swap-rule net_vote
      reward-audit import jsonl pairs.jsonl --grammar mtbench_3way
      reward-audit import tau2 airline.old.json airline.new.json --agent old --agent new
      reward-audit import rewards scores.csv --run latest --replace
    """
    buckets = chosen_buckets(options.pop("buckets"), options.pop("near"))
    _refuse_stray_options(format_name, files, options)
    from audit.doors.db import opened

    settings = settings_of(ctx)
    with opened(settings.db, create=True) as engine:
        if format_name == "rewards":
            _rewards(engine, files[0], options, buckets, settings.as_json)
        elif format_name == "pandalm" or format_name in SESSIONS:
            _file(engine, format_name, files, options, buckets, settings.as_json)
        else:
            for file in files:
                _file(engine, format_name, (file,), options, buckets, settings.as_json)


def _refuse_stray_options(format_name: str, files: tuple[Path, ...], options: dict[str, Any]) -> None:
    if format_name == "rewards":
        stray = [
            name
            for name in ("name", "grammar", "swap_rule", "gap_source", "gap_scope", "agents", "success_at")
            if options[name]
        ]
        if stray or options["reread"]:
            word = (stray or ["reread"])[0].replace("_", "-").replace("agents", "agent")
            raise click.UsageError(f"rewards takes no --{word}")
        if not options["run"]:
            raise click.UsageError("rewards needs --run RUN: the run whose pairs get them")
        if len(files) != 1:
            raise click.UsageError("rewards takes one file at a time")
        return
    if options["grammar"]:
        _check_grammar(options["grammar"])
    if options["run"] or options["replace"]:
        raise click.UsageError("--run and --replace go with rewards only")
    if options["grammar"] and format_name not in ("jsonl", "csv"):
        raise click.UsageError(f"{format_name} says itself how its replies are read: no --grammar")
    if format_name == "pandalm" and len(files) != 2:
        raise click.UsageError("pandalm needs two files: the test set and the judge's results")
    if format_name in SESSIONS:
        if len(options["agents"]) > 1 and len(options["agents"]) != len(files):
            raise click.UsageError(
                f"{len(options['agents'])} --agent for {len(files)} files: name one for each, or one for all"
            )
        if options["success_at"] is not None and not math.isfinite(options["success_at"]):
            raise click.UsageError("--success-at must be a finite number")
        if options["reread"]:
            raise click.UsageError(f"{format_name} holds no replies of a judge: no --reread")
        return
    if options["agents"] or options["success_at"] is not None:
        raise click.UsageError(f"--agent and --success-at go with {', '.join(SESSIONS)} only")
    if options["name"] and len(files) > 1 and format_name != "pandalm":
        raise click.UsageError("--name goes with one file: each file is a run of its own")


def _check_grammar(text: str) -> None:
    from audit.verbs.verdict import grammar

    try:
        grammar(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--grammar") from error


def _file(
    engine: "Engine",
    format_name: str,
    files: tuple[Path, ...],
    options: dict[str, Any],
    buckets: "BucketSet | None",
    as_json: bool,
) -> None:
    from audit.faces.output import file_progress, print_json, say, shown
    from audit.pipeline.importing import import_file
    from audit.pipeline.wishes import Wish
    from audit.words.names import SUCCESS_AT

    wish = Wish(
        format=format_name,
        paths=files,
        name=options["name"],
        swap_rule=options["swap_rule"],
        gap_source=options["gap_source"],
        gap_scope=options["gap_scope"] or "run",
        buckets=buckets,
        grammar=options["grammar"],
        reread=options["reread"],
        agents=options["agents"],
        success_at=SUCCESS_AT if options["success_at"] is None else options["success_at"],
    )
    try:
        with file_progress(files[0]) as progress:
            found = import_file(engine, wish, progress)
    except BadFile as error:
        raise _with_hint(error, format_name, files) from error
    if as_json:
        print_json(found._asdict())
        return
    if not found.is_new:
        click.echo(
            f"{files[0]} is in run {found.run_id} already: nothing was added\n"
            f"  to settle it otherwise: reward-audit score {found.run_id} --swap-rule net_vote"
        )
        return
    if found.sessions:
        _sessions(found)
        return
    click.echo(f"imported {found.pairs:,} pair{'' if found.pairs == 1 else 's'} as run {found.run_id}")
    if found.passed_over:
        say(f"columns passed over: {shown(', '.join(found.passed_over))}")
    _summary(engine, found.run_id)


def _with_hint(error: BadFile, format_name: str, files: tuple[Path, ...]) -> BadFile:
    """The error, and which format the file is plainly of where that is another one."""
    from audit.doors.formats.looks import looks_like

    named = next((looks_like(file) for file in files if str(file) == error.file), None)
    if named in (None, format_name):
        return error
    hint = f"{error.problem}; it looks like {named}: reward-audit import {named}"
    return BadFile(error.file, error.place, hint)


def _sessions(found: "Imported") -> None:
    """What the sessions of an import are, and what is odd about them."""
    from audit.faces.output import say, shown

    click.echo(f"imported {_count(found.sessions, 'session')} as run {found.run_id}")
    if found.passed_over:
        say(f"columns passed over: {shown(', '.join(found.passed_over))}")
    for count, text in (
        (found.unknown_rewards, "of unknown reward: in no rate and no mean"),
        (found.odd_rewards, "whose reward is not what its own parts give: see their `error`"),
    ):
        if count:
            say(f"{_count(count, 'session')} {text}")
    if found.clashing_ids:
        say(
            f"{_count(found.clashing_ids, 'task id')} of several tasks each, told apart by scenario and "
            "criteria: only sessions of the same task are paired"
        )
    for a, b in found.unpaired:
        say(shown(f"agents {a} and {b} share no task: there is no pair of them"))
    if found.pairs:
        say(f"waiting for a judge: {_count(found.pairs, 'pair')}")
    if found.other_trials:
        say(f"{_count(found.other_trials, 'pair')} of trials with different numbers, matched in their order")
    click.echo(
        f"next: {command_line('report')}"
        + (f", or {command_line('judge --run latest -c FILE')}" if found.pairs else "")
    )


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _summary(engine: "Engine", run_id: str) -> None:
    from audit.faces.output import say, shown
    from audit.pipeline.reporting import headline, report

    found = report(engine, run_id)
    answers = found["answers"]
    if not answers["total"]:
        say("No verdict in it: none of the columns raw_ab, raw_ba, pref_ab and pref_ba holds anything.")
    elif unread := answers["unreadable"] + answers["truncated"]:
        doubt = " (is the grammar the right one?)" if unread == answers["total"] else ""
        see = command_line(f'sql "{_UNREAD.format(run_id)}"')
        say(f"{unread:,} of {answers['total']:,} replies could not be read{doubt}. To see some: {see}")
    say(shown(headline(found)))
    click.echo(f"next: {command_line('report')}")


def _rewards(
    engine: "Engine", file: Path, options: dict[str, Any], buckets: "BucketSet | None", as_json: bool
) -> None:
    from audit.faces.output import file_progress, print_json
    from audit.pipeline.rewards import import_rewards

    with file_progress(file) as progress:
        found = import_rewards(
            engine, file, options["run"], replace=options["replace"], buckets=buckets, progress=progress
        )
    if as_json:
        print_json(
            {"run_id": found.run.run_id, "named": found.named, "changed": found.changed, "kept": found.kept}
        )
        return
    is_now = (found.run.gap_source, found.run.bucket_set)
    if not found.changed and is_now == found.was:
        click.echo(f"run {found.run.run_id} holds the rewards of {file} already: nothing was changed")
        return
    click.echo(
        f"set the rewards of {found.changed:,} pairs in run {found.run.run_id} by {found.named:,} ids; "
        f"{found.kept:,} pairs are not in the file and keep theirs"
    )
    for name, now, before in zip(("gap source", "bucket set"), is_now, found.was, strict=True):
        if now != before:
            click.echo(f"the run's {name} is now {now} (it was {before})")
    _summary(engine, found.run.run_id)
