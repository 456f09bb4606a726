"""The command line: which command lies where, the options all share, and how errors end.

Commands are loaded when they are called: `--help` must not wait for a database library.
"""

import importlib
import io
import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from audit import __version__
from audit.words.errors import EXIT_ERROR, EXIT_INTERRUPTED, EXIT_OK, AuditError
from audit.words.nearest import did_you_mean

if TYPE_CHECKING:
    from pathlib import Path

    from audit.doors.environment import Environment

DEFAULT_DB = "sqlite:///reward_audit.db"
DEFAULT_CONFIG = "audit.yaml"

# command -> (module, one line of help); a test holds the lines to the commands' own.
COMMANDS = {
    "init": ("doctoring", "Write a commented audit.yaml and a small set of tasks to begin with."),
    "doctor": (
        "doctoring",
        "Look at everything that can be known before a token is spent; exit 1 where something is wrong.",
    ),
    "run": ("running", "Simulate sessions, judge every pair in both orders, verify, score; then report."),
    "simulate": ("running", "Let every agent serve every task's simulated customer; stores sessions."),
    "judge": ("running", "Ask the judges about every pair of sessions, in both orders."),
    "batch": ("batching", "Carry a judge's questions to a batch API, and its answers back, by hand."),
    "verify": ("running", "Check each session's final world, read-only; gives rewards and successes."),
    "import": ("importing", "Import recorded judgments, sessions or outside rewards as a run."),
    "score": ("scoring", "Settle, bucket and score a run's pairs again; calls nothing."),
    "report": ("reporting", "Show where a run's judge picks the side with the lower reward."),
    "compare": ("comparing", "Compare two runs pair by pair: did the judge get worse, and what changed?"),
    "gate": ("comparing", "Hold a run to the thresholds of its config; exit 3 where one is crossed."),
    "plan": (
        "comparing",
        "Say how many pairs, calls and tokens it takes to know a rate, or to see it change.",
    ),
    "runs": ("looking", "List the runs, newest first."),
    "show": ("looking", "Show one run, pair, session or call by its id."),
    "sql": ("asking", "Ask the database one read-only question in SQL."),
    "views": ("asking", "List the views to ask, or show the rows of one."),
    "browse": (
        "browsing",
        "Look at the database in a browser: Datasette, read-only, on this machine alone.",
    ),
    "export": ("exporting", "Write pairs, calls or sessions to a file, or a clean set for DPO."),
    "review": (
        "reviewing",
        "Let people look at a sample of a run, and hold judge and verifier to what they say.",
    ),
    "prompts": ("looking", "List the prompts that were sent, or show the one whose hash begins with HASH."),
    "prune": ("pruning", "Delete old runs, each one's raw calls written to DIR/RUN.logs.jsonl first."),
    "reproduce": ("reproducing", "Compute a published finding again, from its published figures."),
    "db": ("database", "Upgrade, check, back up or copy the database."),
}


class Settings(NamedTuple):
    """The options that every command knows. `config`: the file named by --config, NULL where none is."""

    db: str
    as_json: bool
    verbose: bool
    config: "Path | None"
    environ: "Environment"


class LazyGroup(click.Group):
    """A group that loads a command's module when the command is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"audit.faces.commands.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            ctx.fail(f"No such command {name!r}{did_you_mean(name, COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of our output went away, as `| head` does: that is no error, as click would have it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(EXIT_OK)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_line) for name, (_, help_line) in COMMANDS.items()])


def _store(name: str) -> Any:
    def keep(ctx: click.Context, _param: click.Parameter, value: Any) -> None:
        settings = ctx.ensure_object(dict)
        if value is not None and value is not False:
            settings[name] = value

    return keep


def shared_options(command: Any) -> Any:
    """What every command knows; the options may stand before the command's name or after it."""
    for decorator in (
        click.option(
            "--env-file", metavar="FILE", type=click.Path(), expose_value=False,
            callback=_store("env_file"),
            help="Variables that the environment does not set (default: .env, where there is one).",
        ),
        click.option(
            "-v", "--verbose", is_flag=True, expose_value=False, callback=_store("verbose"),
            help="Show more, and a traceback where something fails.",
        ),
        click.option(
            "--json", "as_json", is_flag=True, expose_value=False, callback=_store("as_json"),
            help="Print JSON, for a script.",
        ),
        click.option(
            "-c", "--config", metavar="FILE", type=click.Path(), expose_value=False,
            callback=_store("config"),
            help=f"The config, for the commands that read one (default {DEFAULT_CONFIG}).",
        ),
        click.option(
            "--db", metavar="URL", expose_value=False, callback=_store("db"),
            help=f"The database (env REWARD_AUDIT_DB; default {DEFAULT_DB}).",
        ),
    ):  # fmt: skip
        command = decorator(command)
    return command


def settings_of(ctx: click.Context) -> Settings:
    """What the shared options say: flag, then environment, then env file, then default. Raises BadFile."""
    from pathlib import Path

    from audit.doors.environment import read_environment

    given = ctx.ensure_object(dict)
    environ = read_environment(Path(given["env_file"]) if "env_file" in given else None)
    return Settings(
        db=given.get("db") or environ.get("REWARD_AUDIT_DB") or DEFAULT_DB,
        as_json=given.get("as_json", False),
        verbose=given.get("verbose", False),
        config=Path(given["config"]) if "config" in given else None,
        environ=environ,
    )


def command_line(words: str) -> str:
    """`reward-audit WORDS`, to be typed next, on the database that --db named if it did."""
    import shlex

    from audit.doors.db import show_url

    context = click.get_current_context(silent=True)
    db = context.ensure_object(dict).get("db") if context is not None else None
    # Of an address that cannot be shown whole the rest would name another database.
    return f"reward-audit {words}" + (f" --db {shlex.quote(db)}" if db and show_url(db) == db else "")


def check_output(ctx: click.Context, path: "Path", endings: tuple[str, ...]) -> None:
    """Before anything is computed: may this command write that file? Raises BadFile."""
    from pathlib import Path

    from audit.doors import tables

    given = ctx.ensure_object(dict)
    read = [Path(given[name]) for name in ("config", "env_file") if name in given]
    tables.check_output(path, endings, read)


@click.group(
    cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="reward-audit")
@shared_options
def cli() -> None:
    """Audit an LLM judge that is used as a reward: how often does it prefer the side with the lower
    verified reward, and where?

    Begin with a file of recorded judgments:

    \b
      reward-audit import judgebench FILE.jsonl
      reward-audit report

    A RUN is a run's id, or `latest`. Exit codes: 0 ok, 1 error, 2 wrong command line, 3 gate failed,
    4 incomplete, 130 interrupted.
    """


def main() -> None:
    """Run the command; an error is one line on stderr, with the exit code of its kind."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a character gets its code, not a traceback.
            stream.reconfigure(errors="backslashreplace")
    holder: dict[str, Any] = {}
    try:
        sys.exit(cli.main(obj=holder, standalone_mode=False))
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(error.exit_code)
    except click.ClickException as error:
        from audit.faces.usage import usage_line

        click.echo(f"error: {_one_line(usage_line(error))}", err=True)
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted: what was not finished was not stored", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except Exception as error:
        sys.exit(_ended_by(error, verbose=holder.get("verbose", False)))


def _ended_by(error: Exception, *, verbose: bool) -> int:
    """Say what went wrong in one line, in full where asked; the exit code."""
    if verbose:
        import traceback  # a tenth of the time that --help takes

        traceback.print_exception(error)
    elif isinstance(error, AuditError):
        click.echo(f"error: {_one_line(str(error))}", err=True)
    elif isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        click.echo(f"error: {_one_line(where + (error.strerror or str(error)))}", err=True)
    elif type(error).__module__.startswith(("sqlalchemy.", "sqlite3", "psycopg")):
        why = str(getattr(error, "orig", None) or error)
        click.echo(
            f"error: the database failed: {_one_line(why)}: `reward-audit db check` looks at it", err=True
        )
    else:
        # Nobody foresaw it: its kind is half of what it says.
        click.echo(f"error: {type(error).__name__}: {_one_line(str(error))} (-v shows where)", err=True)
    return error.exit_code if isinstance(error, AuditError) else EXIT_ERROR


def _one_line(message: str) -> str:
    from audit.faces.output import visible

    return visible(" ".join(message.split()))
