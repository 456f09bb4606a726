"""Doctor: the env file, the database, the room on its disk, and the clock."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from audit.doors.db_ready import Ready, readiness
from audit.doors.environment import Environment
from audit.words.errors import AuditError
from audit.words.findings import Finding, error, fine, warning
from audit.words.keys import names_a_key

# When this version was written: no clock that tells an earlier time can be right.
RELEASED = datetime(2026, 11, 1, tzinfo=UTC)
_SLACK = timedelta(minutes=5)
_LEAST, _LITTLE = 100 * 2**20, 2**30  # bytes


def machine_findings(url: str, source: str) -> Iterator[Finding]:
    """How the database at the address stands; `source` says where the address was written."""
    try:
        ready = readiness(url)
    except AuditError as problem:
        yield error(
            "database",
            source,
            str(problem),
            "look at the file and its rights, name another by --db, or restore a backup",
        )
        yield clock(datetime.now(UTC), None)
        return
    yield _database(ready, source)
    if ready.cannot_write is not None:
        yield error(
            "database_unwritable",
            source,
            f"{ready.url} cannot be written: {ready.cannot_write}",
            "name a place that can be written by --db",
        )
    if ready.free_bytes is not None:
        yield disk(ready.url, ready.free_bytes)
    yield clock(datetime.now(UTC), ready.newest)


def _database(ready: Ready, source: str) -> Finding:
    if ready.revision is None:
        what = "is empty" if ready.exists else "is not there yet"
        return fine("database", source, f"{ready.url} {what}: the first command makes its tables")
    if ready.revision > ready.head:
        return error(
            "database_newer",
            source,
            f"{ready.url} is of a newer version (revision {ready.revision}, known up to {ready.head})",
            "upgrade reward-audit",
        )
    if not ready.is_current:
        stands = f"at revision {ready.revision}" if ready.revision != ready.head else "with other views"
        return warning(
            "database_older",
            source,
            f"{ready.url} is {stands}: the next command brings it to this version, revision {ready.head}",
            "`reward-audit db backup FILE` first, to be safe",
        )
    return fine("database", source, f"{ready.url} is at revision {ready.revision}, the newest")


def env_file(environ: Environment) -> Iterator[Finding]:
    """Whether the env file, where it holds keys, is for its owner's eyes alone."""
    if environ.file is None or not any(map(names_a_key, environ.of_file)):
        return
    if Path(environ.file).stat().st_mode & 0o077:
        yield warning(
            "env_file",
            environ.file,
            "holds keys, and other users of this machine may open it",
            f"chmod 600 {environ.file}",
        )


def disk(where: str, free_bytes: int) -> Finding:
    """Whether a night's calls, some kilobytes each, have room."""
    room = (
        f"{free_bytes / 2**30:,.1f} GB are free"
        if free_bytes >= _LITTLE
        else (f"{free_bytes / 2**20:,.0f} MB are free")
    )
    if free_bytes < _LEAST:
        return error("disk", where, f"only {room} where the database lies", "make room, or name another --db")
    if free_bytes < _LITTLE:
        return warning("disk", where, f"only {room} where the database lies", "make room before a long run")
    return fine("disk", where, f"{room} where the database lies")


def clock(now: datetime, newest: str | None) -> Finding:
    """Whether this machine's time can be right. Runs are sorted by it, and limits a minute hang on it."""
    shown = f"{now:%Y-%m-%d %H:%M:%S} UTC"
    set_it = "set this machine's clock (`timedatectl`): runs are sorted by it"
    if now < RELEASED:
        return error("clock", "clock", f"it is {shown} here, before this version was written", set_it)
    try:
        last = None if newest is None else datetime.fromisoformat(newest)
    except ValueError:
        last = None
    if last is not None and last.tzinfo is not None and last > now + _SLACK:
        return error("clock", "clock", f"it is {shown} here, before the newest row of {newest}", set_it)
    return fine("clock", "clock", f"it is {shown}")


def server_clock(where: str, now: datetime, server: datetime) -> Finding | None:
    """Whether a gateway's clock says the same; NULL where it does."""
    apart = abs(now - server)
    if apart <= _SLACK:
        return None
    return warning(
        "clock",
        where,
        f"this machine's clock and the gateway's are {apart.total_seconds() / 60:,.0f} minutes apart",
        "set this machine's clock (`timedatectl`)",
    )
