"""`doctor` and `init`: what to do before the first token is spent."""

from pathlib import Path
from typing import Any

import click

from audit.faces.cli import DEFAULT_CONFIG, settings_of, shared_options
from audit.words.errors import EXIT_ERROR
from audit.words.gateways import EXAMPLES, GATEWAYS

_FILE = click.Path(path_type=Path)


@click.command("doctor")
@click.option(
    "--profiles", metavar="PATH", type=_FILE, help="A list of profiles, as users of CC Switch keep it."
)
@click.option("--codex-config", metavar="PATH", type=_FILE, help="Codex's config.toml, to be looked at too.")
@click.option("--claude-settings", metavar="PATH", type=_FILE, help="Claude Code's settings.json, likewise.")
@click.option(
    "--live", is_flag=True, help="Make one tiny call a profile: does it answer, does it take a schema?"
)
@shared_options
@click.pass_context
def doctor_command(ctx: click.Context, /, **options: Any) -> None:
    """Look at everything that can be known before a token is spent; exit 1 where something is wrong.

    For each role: address, model, key (set or not, never shown) and limits, and where each was written. Then
    what is wrong or may not be meant: keys, addresses, variables left over in the environment, prompts, how
    far the judge is from the simulated user, tasks, database, disk, clock. Other tools' files are only read.

    \b
    Examples:
      reward-audit doctor -c audit.yaml
      reward-audit doctor --live
      reward-audit doctor --claude-settings ~/.claude/settings.json
    """
    from audit.doors.shipped import shipped
    from audit.faces.doctor_text import print_examined
    from audit.faces.output import print_json
    from audit.pipeline.doctor import Wish, examine

    settings = settings_of(ctx)
    is_embedded = settings.config is None and not Path(DEFAULT_CONFIG).exists()
    own = settings.config or Path(DEFAULT_CONFIG)
    found = examine(
        Wish(
            config=shipped("data") / "embedded.yaml" if is_embedded else own,
            is_embedded=is_embedded,
            environ=settings.environ,
            db=settings.db,
            db_source=_source_of_db(ctx, settings.environ),
            **options,
        )
    )
    if settings.as_json:
        print_json(found)
    else:
        print_examined(found, verbose=settings.verbose)
    if found["counts"]["error"]:
        ctx.exit(EXIT_ERROR)


def _source_of_db(ctx: click.Context, environ: Any) -> str:
    """Where the database's address was written."""
    if ctx.ensure_object(dict).get("db"):
        return "database (from --db)"
    origin = environ.origin("REWARD_AUDIT_DB") if environ.get("REWARD_AUDIT_DB") else None
    return f"database (from REWARD_AUDIT_DB, {origin})" if origin else "database (the default)"


def _examples(_ctx: click.Context, _param: click.Parameter, value: str | None) -> list[str]:
    names = [name.strip() for name in (value or "").split(",") if name.strip()]
    for name in names:
        if name not in EXAMPLES:
            raise click.BadParameter(f"{name!r} is none of {', '.join(EXAMPLES)}")
    return list(dict.fromkeys(names))


@click.command("init")
@click.argument("folder", metavar="[DIR]", default=".", type=_FILE)
@click.option("--with", "examples", metavar="TOOLS", callback=_examples,
              help=f"Examples for other tools, too: {', '.join(EXAMPLES)}, with commas between.")  # fmt: skip
@click.option("--gateway", type=click.Choice(list(GATEWAYS)), default="custom", show_default=True,
              help="Where the models are.")  # fmt: skip
@shared_options
@click.pass_context
def init_command(ctx: click.Context, /, folder: Path, examples: list[str], gateway: str) -> None:
    """Write a commented audit.yaml and a small set of tasks to begin with.

    Models' names are taken from SIM_USER_MODEL, JUDGE_MODEL and AGENT_MODEL (TAOTOKEN_MODEL for taotoken)
    where those are set; else placeholders are written, which `doctor` names. Nothing that is there is
    overwritten, and no key is written.

    \b
    Examples:
      reward-audit init --gateway taotoken
      reward-audit init nightly --gateway vllm --with claude-code,codex,profiles
    """
    from audit.faces.output import print_json, visible
    from audit.pipeline.starting import start

    settings = settings_of(ctx)
    made = start(folder, gateway, examples, settings.environ)
    if settings.as_json:
        print_json(made)
        return
    for file in made["files"]:
        click.echo(f"wrote {visible(file)}")
    missing = [name for name, model in made["models"].items() if model is None]
    if missing:
        click.echo(f"models: write their names ({', '.join(missing)} were not set)")
    if made["key"] and not settings.environ.get(made["key"], "").strip():
        click.echo(f"key: export {made['key']}=..., or put it into .env")
    where = "" if folder == Path() else f"cd {visible(str(folder))} && "
    click.echo(f"next: {where}reward-audit doctor")
