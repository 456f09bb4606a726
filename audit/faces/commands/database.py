"""`db`: the database itself."""

from pathlib import Path

import click

from audit.faces.cli import settings_of, shared_options


@click.group("db")
@shared_options
def db_command() -> None:
    """Upgrade, check, back up or copy the database."""


@db_command.command("upgrade")
@shared_options
@click.pass_context
def upgrade(ctx: click.Context) -> None:
    """Bring the database to this version.

    Every command does so on first use: this one only does nothing else.
    """
    from audit.doors.db import HEAD, open_database, show_url
    from audit.faces.output import print_json

    settings = settings_of(ctx)
    open_database(settings.db, create=True).dispose()
    if settings.as_json:
        print_json({"url": show_url(settings.db), "revision": HEAD})
    else:
        click.echo(f"{show_url(settings.db)} is at revision {HEAD}")


@db_command.command("check")
@shared_options
@click.pass_context
def check(ctx: click.Context) -> None:
    """Say where the database stands.

    Its revision, whether it is sound, and how many rows it holds. Changes nothing.
    """
    from audit.doors.db import state
    from audit.faces.output import print_json
    from audit.words.errors import BadDatabase

    settings = settings_of(ctx)
    found = state(settings.db)
    if settings.as_json:
        print_json(found)
    else:
        current = "current" if found["is_current"] else "older: any command that opens it upgrades it"
        if found["revision"] is not None and found["revision"] > found["head"]:
            current = "newer than this program: upgrade the program"
        click.echo(f"{found['url']}\nrevision {found['revision']} ({current})")
        width = max(map(len, found["rows"]), default=0)
        for table, count in found["rows"].items():
            click.echo(f"  {table:<{width}} {count:>12,} rows")
        click.echo("sound" if not found["faults"] else "faults:")
        for fault in found["faults"]:
            click.echo(f"  {fault}")
    if found["faults"]:
        raise BadDatabase(f"{found['url']} is damaged: restore a backup")


@db_command.command("backup")
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@shared_options
@click.pass_context
def backup(ctx: click.Context, target: Path) -> None:
    """Copy a SQLite database to FILE.

    The copy is whole and of one moment, also while a run writes: copying the file by hand loses what is
    still in its write-ahead log.

    \b
    Example:
      reward-audit db backup nightly.db
    """
    from audit.doors.db import backup as copy_database
    from audit.faces.output import print_json

    settings = settings_of(ctx)
    copy_database(settings.db, target)
    if settings.as_json:
        print_json({"file": str(target), "bytes": target.stat().st_size})
    else:
        click.echo(f"wrote {target} ({target.stat().st_size:,} bytes)")


@db_command.command("copy")
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@shared_options
@click.pass_context
def copy(ctx: click.Context, source: str, target: str) -> None:
    """Copy the database at SRC to DST, of either kind.

    Both are URLs, so this moves a team from SQLite to PostgreSQL, or back.

    DST is made, or is there and empty. Every table is read again when it is copied, and its rows and their
    digest compared; where they differ nothing is kept.

    \b
    Example:
      reward-audit db copy sqlite:///reward_audit.db postgresql+psycopg://audit@host/audit
    """
    from audit.doors.db_copy import Copied, copy_database
    from audit.faces.output import print_json

    settings = settings_of(ctx)

    def tell(copied: Copied) -> None:
        if not settings.as_json:
            click.echo(f"  {copied.table:<18} {copied.rows:>12,} rows  {copied.digest}")

    found = copy_database(source, target, tell)
    if settings.as_json:
        print_json({"tables": [table._asdict() for table in found]})
    else:
        click.echo("equal on both sides")
