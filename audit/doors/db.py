"""The door to the database file or server: connect safely, bring it to this program's version, copy it.

On SQLite the driver's own transaction handling is switched off and every transaction is begun here, because
otherwise a failed migration stays half done and two writers overwrite each other's plans: a writing
transaction begins IMMEDIATE and waits for its turn.
"""

import os
import re
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError

from audit.doors.shipped import shipped, view_texts, views_digest
from audit.words.errors import BadDatabase, MissingExtra

# The newest revision in migrations/versions; a test holds the two together. Known here so that an ordinary
# command need not load alembic to see that there is nothing to migrate.
HEAD = "0003"
BUSY_SECONDS = 30
_LOGS = ("wal", "journal")
_WRITE_BITS = 0o222


def connect(url: str | URL) -> Engine:
    """An engine for `sqlite:///FILE` or `postgresql+psycopg://...`, not yet opened.

    Raises BadDatabase for an address of another kind, MissingExtra where the driver is absent.
    """
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        file = str(parsed.database)
        if is_frozen(file):
            engine = create_engine(parsed, creator=lambda: _open_frozen(file))
        else:
            engine = create_engine(parsed, connect_args={"timeout": BUSY_SECONDS})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    try:
        return create_engine(parsed)
    except ModuleNotFoundError as error:
        raise MissingExtra("psycopg", "postgres", "a PostgreSQL database") from error


def open_database(url: str, *, create: bool) -> Engine:
    """An engine on a database at this program's version, migrated where it was older.

    Raises BadDatabase where it is missing (and `create` is false), newer than this program, or not ours.
    """
    if not create:
        existing(url)
    engine = connect(url)
    try:
        with reading(engine) as connection:
            current = standing(connection, url)
        if current != (HEAD, views_digest()):
            migrate(engine)
        _use_wal(engine)
    except BaseException as error:
        engine.dispose()
        if isinstance(error, DBAPIError):
            advice = _advice(engine.url)
            raise BadDatabase(f"{show_url(url)} cannot be opened: {first_line(error)}{advice}") from error
        raise
    return engine


@contextmanager
def opened(url: str, *, create: bool = False) -> Iterator[Engine]:
    """`open_database`, let go of at the end."""
    engine = open_database(url, create=create)
    try:
        yield engine
    finally:
        engine.dispose()


def is_frozen(file: str) -> bool:
    """Is this SQLite file one that nobody can change: read-only with its folder, or on a read-only volume?

    SQLite wants to keep an index beside a database in WAL mode, and where it cannot, must be told that the
    file will not change under it. Not where rows are still in a log beside it, which it would then pass over.
    """
    path = Path(file)
    if any(Path(f"{file}-{log}").exists() and Path(f"{file}-{log}").stat().st_size for log in _LOGS):
        return False
    places = (path, path.absolute().parent)
    if not path.exists() or any(os.access(place, os.W_OK) for place in places):
        return False
    is_on_readonly_volume = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    return is_on_readonly_volume or not any(place.stat().st_mode & _WRITE_BITS for place in places)


def reading_uri(file: str) -> str:
    """The address by which SQLite opens a file to read it only."""
    return f"file:{quote(file)}?mode=ro" + ("&immutable=1" if is_frozen(file) else "")


def migrate(
    engine: Engine, revision: str = "head", *, down: bool = False, scripts: Path | None = None
) -> None:
    """Bring the database up (or `down`) to `revision` and make the views anew; all of it or nothing.

    `scripts` is another folder of migrations than the shipped one. Raises BadDatabase for a database that is
    newer than the scripts, before anything is changed.
    """
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util import CommandError

    config = Config()
    config.set_main_option("script_location", str(scripts or shipped("migrations")).replace("%", "%%"))
    known = ScriptDirectory.from_config(config)
    head = known.get_current_head()
    with _migrating(engine) as connection:
        version, digest = standing(connection, engine.url)
        if version is not None and version not in {script.revision for script in known.walk_revisions()}:
            raise BadDatabase(
                f"{show_url(engine.url)} was written by a newer reward-audit (its revision {version}, this "
                f"program knows up to {head}): upgrade the program; the database was left untouched"
            )
        if not down and revision == "head" and (version, digest) == (head, views_digest()):
            return  # another process did it while this one waited
        config.attributes["connection"] = connection
        try:
            (command.downgrade if down else command.upgrade)(config, revision)
        except CommandError as error:
            raise BadDatabase(f"{show_url(engine.url)}: {error}") from error


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection in a transaction that only reads: on SQLite it takes no write lock, PostgreSQL refuses
    all that writes.

    All its queries see the same rows, whoever writes meanwhile.
    """
    options: dict[str, Any] = {"reads_only": True}
    if engine.dialect.name != "sqlite":  # where it is always so
        options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with engine.connect().execution_options(**options) as connection:
        yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A connection in one writing transaction: committed at the end, rolled back on any error.

    Raises BadDatabase where the database is read-only, full, gone, or locked for longer than BUSY_SECONDS.
    """
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    except OperationalError as error:
        raise BadDatabase(f"{show_url(engine.url)} cannot be written: {first_line(error)}") from error


def state(url: str) -> dict[str, Any]:
    """What `db check` tells: where the database is, its revision, whether it is sound, its row counts."""
    from audit.words.schema import metadata  # loads PostgreSQL's dialect, which no other command needs

    engine = connect(existing(url))
    try:
        with reading(engine) as connection:
            revision, views = standing(connection, url)
            present = set(inspect(connection).get_table_names())
            counts = {
                table.name: connection.execute(text(f"select count(*) from {table.name}")).scalar_one()  # noqa: S608 - our own table names
                for table in metadata.sorted_tables
                if table.name in present and table.name != "view_digest"
            }
            faults = _faults(connection)
            if (revision, views) == (HEAD, views_digest()):
                present |= set(inspect(connection).get_view_names())
                ours = [*metadata.tables, *view_texts()]
                faults += [f"{name} is missing" for name in ours if name not in present]
    except DBAPIError as error:
        raise BadDatabase(
            f"{show_url(url)} cannot be read: {first_line(error)}{_advice(engine.url)}"
        ) from error
    finally:
        engine.dispose()
    return {
        "url": show_url(url),
        "revision": revision,
        "head": HEAD,
        "is_current": (revision, views) == (HEAD, views_digest()),
        "faults": faults,
        "rows": counts,
    }


def columns_of(engine: Engine) -> dict[str, list[str]]:
    """Table or view -> its columns, of all there are."""
    with reading(engine) as connection:
        seen = inspect(connection)
        names = [*seen.get_table_names(), *seen.get_view_names()]
        return {name: [column["name"] for column in seen.get_columns(name)] for name in names}


def backup(url: str, target: Path) -> None:
    """Copy a SQLite database whole, with what is still in its write-ahead log, by SQLite's own backup.

    Raises BadDatabase where `target` exists, and for PostgreSQL, whose own pg_dump does this.
    """
    parsed = existing(url)
    if parsed.get_backend_name() != "sqlite":
        raise BadDatabase(f"{show_url(url)} is a PostgreSQL database: back it up with pg_dump")
    if target.exists():
        raise BadDatabase(f"{target} exists already: name a new file for the backup")
    partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        with (
            closing(_source(str(parsed.database))) as source,
            closing(sqlite3.connect(partial)) as copy,
        ):
            source.backup(copy)  # in one step: in several, it starts again after each write of another
            copy.execute("pragma journal_mode = delete")
        partial.rename(target)
    except (OSError, sqlite3.Error) as error:
        raise BadDatabase(f"backup to {target} failed: {error}") from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def show_url(url: str | URL) -> str:
    """The address without its password, and without its query, which may hold one too."""
    return make_url(url).set(query={}).render_as_string(hide_password=True)


def _parse(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError) as error:
        shown = re.sub(r":(?!//).*@", ":***@", str(url))
        raise BadDatabase(
            f"{shown!r} is no database address: write sqlite:///FILE or postgresql+psycopg://HOST/NAME"
        ) from error
    backend = parsed.get_backend_name()
    if backend == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise BadDatabase(
            f"{show_url(parsed)!r}: only sqlite and postgresql are supported, "
            "write sqlite:///FILE or postgresql+psycopg://HOST/NAME"
        )
    if parsed.database in (None, "", ":memory:"):
        raise BadDatabase("an in-memory database is gone when the command ends: write sqlite:///FILE")
    return parsed


def existing(url: str) -> URL:
    """The address of a database that is there. Raises BadDatabase."""
    parsed = _parse(url)
    file = parsed.database
    if parsed.get_backend_name() == "sqlite" and file and not Path(file).exists():
        raise BadDatabase(
            f"there is no database {file}: make one with `reward-audit import`, or name one with --db"
        )
    return parsed


def _open_frozen(file: str) -> sqlite3.Connection:
    return sqlite3.connect(reading_uri(file), uri=True, check_same_thread=False)


def _source(file: str) -> sqlite3.Connection:
    return _open_frozen(file) if is_frozen(file) else sqlite3.connect(file)


def _advice(url: URL) -> str:
    """What to do where the place of a SQLite file is read-only, and the file itself is not all there is."""
    if url.get_backend_name() != "sqlite":
        return ""
    file = Path(str(url.database))
    if not file.exists() or (os.access(file, os.W_OK) and os.access(file.absolute().parent, os.W_OK)):
        return ""
    if not os.access(file, os.R_OK):
        return ": you may not read it"
    return (
        f": its place is read-only for you: copy {file.name}, with {file.name}-wal where there is one, to a "
        "folder of yours and name the copy with --db"
    )


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None
    connection.execute("pragma foreign_keys = on")


def _use_wal(engine: Engine) -> None:
    """Readers and the writer do not wait for each other. Kept in the file, so set only once it is ours.

    SQLite refuses while another process writes, and in a read-only place: then it stays as it is, and the
    next command sets it.
    """
    if engine.dialect.name == "sqlite":
        with engine.connect() as connection, suppress(sqlite3.OperationalError):
            _driver(connection).execute("pragma journal_mode = wal")


def _begin_sqlite(connection: Connection) -> None:
    reads_only = connection.get_execution_options().get("reads_only", False)
    connection.exec_driver_sql("BEGIN" if reads_only else "BEGIN IMMEDIATE")


@contextmanager
def _migrating(engine: Engine) -> Iterator[Connection]:
    """One writing transaction, one process at a time, with foreign keys off and checked before the commit.

    With them on, SQLite rebuilds a parent table by deleting the children of an ON DELETE CASCADE in silence.
    """
    with engine.connect() as connection:
        on_sqlite = connection.dialect.name == "sqlite"
        if on_sqlite:
            _driver(connection).execute("pragma foreign_keys = off")
        try:
            with connection.begin():
                if not on_sqlite:
                    connection.execute(text(f"set local lock_timeout = '{BUSY_SECONDS}s'"))
                    connection.execute(text("select pg_advisory_xact_lock(hashtext('reward-audit'))"))
                yield connection
                if on_sqlite:
                    broken = connection.execute(text("pragma foreign_key_check")).all()
                    if broken:
                        raise BadDatabase(f"migration would break {len(broken)} references: rolled back")
        finally:
            if on_sqlite:
                _driver(connection).execute("pragma foreign_keys = on")


def _driver(connection: Connection) -> sqlite3.Connection:
    driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
    return driver


def standing(connection: Connection, url: str | URL) -> tuple[str | None, str | None]:
    """Revision and view fingerprint; both None for an empty database. Raises for a foreign one."""
    tables = set(inspect(connection).get_table_names())
    if tables <= {"alembic_version"}:
        return None, None
    version = None
    if {"alembic_version", "audit_runs"} <= tables:  # others use alembic too
        version = connection.execute(text("select version_num from alembic_version")).scalar()
    if version is None:
        raise BadDatabase(
            f"{show_url(url)} holds tables of another program ({', '.join(sorted(tables)[:3])}): "
            "name another one"
        )
    digest = None
    if "view_digest" in tables:
        digest = connection.execute(text("select digest from view_digest")).scalar()
    return version, digest


def _faults(connection: Connection) -> list[str]:
    if connection.dialect.name != "sqlite":
        return []
    integrity = [
        str(row[0]) for row in connection.execute(text("pragma integrity_check(10)")) if row[0] != "ok"
    ]
    orphans = connection.execute(text("pragma foreign_key_check")).all()
    return integrity + [f"{row[0]} row {row[1]} refers to a missing row of {row[2]}" for row in orphans[:10]]


def first_line(error: DBAPIError) -> str:
    """What the database itself said."""
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
