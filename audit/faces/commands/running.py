"""`run` and its stages: `simulate`, `judge`, `verify`."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audit.faces.cli import DEFAULT_CONFIG, Settings, settings_of, shared_options
from audit.faces.run_outcome import Told, tell_outcome
from audit.words.errors import EXIT_INTERRUPTED, EXIT_OK, BadRequest

if TYPE_CHECKING:
    from audit.pipeline.live import Meter
    from audit.pipeline.ray_workers import RayEngine
    from audit.pipeline.run import Order
    from audit.words.config import Config
    from audit.words.records import Run


def _seed(_ctx: click.Context, _param: click.Parameter, seed: int | None) -> int | None:
    # As a range of the type, --help would tell its two long numbers.
    if seed is not None and not -(1 << 63) <= seed < 1 << 63:
        raise click.BadParameter("expected a whole number of 64 bits")
    return seed


def stage_options(command: Any) -> Any:
    """What all stages take."""
    for decorator in (
        click.option("--log-file", "log_path", metavar="FILE", type=click.Path(path_type=Path),
                     help="Add what happens to FILE, a JSON object a line."),
        click.option("--dry-run", is_flag=True, help="Say how many calls there would be."),
        click.option("--seed", type=int, callback=_seed, help="Instead of the seeds in the config."),
        click.option("--allow-unknown-cost", is_flag=True, help="Go on where a price is not known."),
        click.option("--max-cost", type=click.FloatRange(0, 1e12, min_open=True), metavar="USD",
                     help="What the run may cost by the config's `prices`, in all; resumable."),
        click.option("--max-tokens", type=click.IntRange(min=1),
                     help="How many tokens the run may use in all; resumable."),
        click.option("--retry-errors", is_flag=True, help="Ask again what failed for good."),
        click.option("--name", help="What a new run is called, instead of the config's name."),
        click.option("--new", is_flag=True, help="A new run, also where one is unfinished."),
        click.option("--resume", "--run", metavar="RUN", help="The run to go on with."),
        click.option("-j", "concurrency", type=click.IntRange(min=1), default=16, show_default=True,
                     help="How many calls at once."),
        click.option("--sample", type=click.IntRange(min=1), metavar="N",
                     help="Look at N pairs only: each category and pair of agents has its share."),
        click.option("--limit", type=click.IntRange(min=1), help="At most so many sessions and pairs."),
        click.option("--workers", type=click.IntRange(1, 10_000), metavar="N",
                     help="With --engine ray: how many processes; default: as many as there are CPUs."),
        click.option("--ray-address", metavar="ADDRESS",
                     help="With --engine ray: a cluster that runs, such as auto or 10.0.0.1:6379."),
        click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True,
                     help="Call models in this process, or in Ray workers."),
    ):  # fmt: skip
        command = decorator(command)
    return shared_options(command)


batch_option = click.option(
    "--batch", is_flag=True, help="Ask the judges by their provider's batch API: cheaper, within a day."
)


@click.command("run")
@click.option(
    "--then", metavar="STEPS",
    help="What follows when all is done: gate, report=FILE.html, export=FILE.jsonl, with commas between.",
)  # fmt: skip
@batch_option
@stage_options
@click.pass_context
def run_command(ctx: click.Context, /, **options: Any) -> None:
    """Simulate sessions, judge every pair in both orders, verify, score; then report.

    Without a config it runs synthetic models on the tasks that ship with this program: no key, no network.
    It goes on with the newest run of the same config where that is not complete, and says so.

    \b
    Examples:
      reward-audit run
      reward-audit run -c audit.yaml -j 64
      reward-audit run --resume latest --retry-errors
      reward-audit run -c audit.yaml --then gate,report=out.html,export=clean.jsonl

    After a gate that failed (exit 3) the steps behind it export nothing; a report is written all the same.
    """
    _stages(ctx, ("simulate", "judge", "verify", "score"), options)


@click.command("simulate")
@stage_options
@click.pass_context
def simulate_command(ctx: click.Context, /, **options: Any) -> None:
    """Let every agent serve every task's simulated customer; stores sessions."""
    _stages(ctx, ("simulate",), options)


@click.command("judge")
@batch_option
@stage_options
@click.pass_context
def judge_command(ctx: click.Context, /, **options: Any) -> None:
    """Ask the judges about every pair of sessions, in both orders.

    With --batch the requests go to the provider as files, and the answers come within a day. Interrupted or
    killed, the same command goes on: nothing is submitted twice. What failed or could not be read is asked
    again in a next round. `reward-audit batch` carries the files by hand, for example to `vllm run-batch`.

    \b
    Examples:
      reward-audit judge -c audit.yaml
      reward-audit judge --run latest -c judges.yaml --batch
    """
    _stages(ctx, ("judge",), options)


@click.command("verify")
@click.option(
    "--checks",
    "checks_path",
    type=click.Path(path_type=Path),
    help="Checks for the tasks of an imported run (--run): task_id: [check, ...].",
)
@stage_options
@click.pass_context
def verify_command(ctx: click.Context, /, checks_path: Path | None, **options: Any) -> None:
    """Check each session's final world, read-only; gives rewards and successes.

    With --checks the sessions of an imported run are graded anew. The verdicts that they came with are kept,
    and what flips is told by agent.

    \b
    Examples:
      reward-audit verify -c audit.yaml
      reward-audit verify --run latest --checks checks.yaml
    """
    if checks_path is None:
        _stages(ctx, ("verify",), options)
        return
    if options["resume"] is None:
        raise click.UsageError("--checks needs --run RUN: the imported run whose sessions are graded")
    _regrade(ctx, options["resume"], checks_path)


def _regrade(ctx: click.Context, wanted: str, path: Path) -> None:
    from audit.doors.db import opened
    from audit.faces.output import print_json
    from audit.faces.regrade_text import print_flips
    from audit.pipeline.regrade import flips, regrade

    settings = settings_of(ctx)
    with opened(settings.db) as engine:
        found = regrade(engine, wanted, path)
        moved = flips(engine, found.run.run_id)
    counts = {"run_id": found.run.run_id, "sessions": found.sessions, "changed": found.changed}
    if settings.as_json:
        print_json(counts | moved)
    else:
        print_flips(counts, moved)


def _stages(ctx: click.Context, stages: tuple[str, ...], options: dict[str, Any]) -> None:
    from audit.faces.following import check_files, read_steps
    from audit.faces.log_file import log_file

    steps = read_steps(options.get("then"))
    check_files(ctx, steps, options["log_path"])
    with log_file(options["log_path"]) as log:
        code = _run_stages(settings_of(ctx), stages, options, Told(log, steps))
        log.event("end", exit_code=code)
    ctx.exit(code)


def _run_stages(settings: Settings, stages: tuple[str, ...], options: dict[str, Any], told: Told) -> int:
    """Do the stages; the exit code."""
    from audit.doors.db import opened
    from audit.faces import output
    from audit.faces.following import Limits
    from audit.faces.progress import live_progress
    from audit.pipeline.live import refuse_keys
    from audit.pipeline.run import Order, run

    config = _config(settings, options, judges_only=stages == ("judge",))
    refuse_keys(config, options["name"])
    if any(step.name == "gate" for step in told.steps) and not config.gate:
        raise BadRequest(
            "--then gate: the config has no thresholds: write some under `gate:`, or leave it out"
        )
    order = Order(
        config=config,
        stages=stages,
        concurrency=options["concurrency"],
        resume=options["resume"],
        new=options["new"],
        name=options["name"],
        retry_errors=options["retry_errors"],
        limit=options["limit"],
        batch=options.get("batch", False),
        ray=_ray(options),
        is_named=_path(settings) is not None,
    )
    if options["dry_run"]:
        _dry_run(order, settings)
        return EXIT_OK
    _print_roles(config)

    def announce(run: "Run", is_new: bool) -> None:
        _tell_run(run, is_new, config.name if order.resume is None and order.name is None else run.name)
        told.log.run_id = run.run_id
        told.log.event("run", name=run.name, status=run.status, is_new=is_new)

    try:
        # What a user's own tool or check prints must not get among the report.
        with opened(settings.db, create=True) as engine:
            with live_progress() as tell, redirect_stdout(sys.stderr), _terminated_like_interrupted():

                def tell_both(meter: "Meter") -> None:
                    tell(meter)
                    told.log.progress(meter)

                ran = run(engine, order, tell_both, announce)
            limits = Limits(_path(settings), tuple(panel.gate for panel in config.judges))
            return tell_outcome(engine, ran, settings.as_json, stages, told, limits)
    except KeyboardInterrupt:
        output.tell("stopped: what was done is stored; the same command goes on from there", err=True)
        told.log.event("interrupted")
        return EXIT_INTERRUPTED


def _tell_run(run: "Run", is_new: bool, name: str) -> None:
    """Which run it is, and where a config of another name goes on with it, how to have another one."""
    from audit.faces.output import tell

    tell(f"{'run' if is_new else 'going on with run'} {run.run_id} ({run.status})", err=True)
    if run.name != name:
        tell(
            f"it is called {run.name} and not {name}, but of this config for the rest: --new or --name "
            "begins another",
            err=True,
        )


def _ray(options: dict[str, Any]) -> "RayEngine | None":
    """Where units of work are done; NULL: in this process. Raises UsageError."""
    from audit.pipeline.ray_workers import RayEngine

    address, workers = options["ray_address"], options["workers"]
    if options["engine"] == "ray":
        if options.get("batch"):
            raise click.UsageError("--batch calls no model itself: leave --engine ray out")
        return RayEngine(address, workers)
    if address is not None or workers is not None:
        raise click.UsageError("--ray-address and --workers need --engine ray")
    return None


def _interrupt(*_: object) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it runs with `&`
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.raise_signal(signal.SIGINT)


@contextmanager
def _terminated_like_interrupted() -> Iterator[None]:
    """SIGTERM, as a scheduler sends it, ends a run as Ctrl-C does: what is done is stored first."""
    before = signal.getsignal(signal.SIGTERM)
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _config(settings: Settings, options: dict[str, Any], *, judges_only: bool) -> "Config":
    """The config that is named, else `audit.yaml`, else the embedded one; with what the options change."""
    from audit.doors.config import load_config
    from audit.doors.shipped import shipped
    from audit.faces import output
    from audit.pipeline.live import buckets_of

    path = _path(settings) or shipped("data") / "embedded.yaml"
    config, notes = load_config(path, settings.environ, judges_only=judges_only)
    buckets_of(config)  # raises what a dry run must not pass over
    for note in notes:
        output.tell(f"note: {note}", err=True, hanging=6)
    changes: dict[str, Any] = {}
    if options["seed"] is not None:
        profiles = [
            profile.model_copy(update={"seed": options["seed"]}) if profile.seed is not None else profile
            for profile in config.profiles
        ]
        changes |= {"seed": options["seed"], "profiles": profiles}
    if options["sample"] is not None:
        changes["sample"] = options["sample"]
    limits = {name: options[name] for name in ("max_tokens", "max_cost") if options[name] is not None}
    if options["allow_unknown_cost"]:
        limits["allow_unknown_cost"] = True
    changes["budget"] = config.budget.model_copy(update=limits)
    return config.model_copy(update=changes)


def _path(settings: Settings) -> Path | None:
    """The config that is named, else `audit.yaml`; NULL where it is the embedded one that counts."""
    return settings.config or (Path(DEFAULT_CONFIG) if Path(DEFAULT_CONFIG).exists() else None)


def _print_roles(config: "Config") -> None:
    """Who answers where, before anything is spent; and what judge and user share."""
    from audit.doors.llm_url import shown_url
    from audit.faces import output
    from audit.verbs.isolation import role_isolation

    user = [config.user] if config.user else []
    for role, names in (("user", user), ("agent", config.agents), ("judge", config.judge_names())):
        for name in names:
            profile = config.profile(name)
            key = profile.api_key_env or ("a key in the file" if profile.api_key else "no key")
            url = shown_url(profile.base_url)
            output.tell(f"{role:<6} {name}: {profile.model} at {url}, {key}", err=True, hanging=7)
    for warning in role_isolation(config):
        output.tell(f"warning: {warning}", err=True, hanging=9)


def _dry_run(order: "Order", settings: Settings) -> None:
    from audit.doors.db import opened, reading
    from audit.faces.output import print_json
    from audit.pipeline.estimate import estimate, estimate_left

    if order.resume is None:
        found = estimate(order)
    else:
        with opened(settings.db) as engine, reading(engine) as connection:
            found = estimate_left(connection, order)
    if settings.as_json:
        print_json(found)
        return
    for what, count in found.items():
        click.echo(f"{what:<24} {'about ' if 'tokens' in what or 'simul' in what else ''}{count:,}")
