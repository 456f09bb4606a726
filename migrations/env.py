"""Alembic's entry: the views are dropped, the tables migrated, the views made again, in one transaction.

So a changed view needs no revision, and no table is ever changed under a view. Views that someone else made
in the same database are put back as they were.
"""

import re

from alembic import context
from sqlalchemy import Connection, inspect, text

from audit.doors.shipped import view_texts, views_digest
from audit.words.schema import metadata

# Each view and the statement that makes it, oldest first: a view reads only older ones.
VIEWS = {
    "sqlite": "select name, sql from sqlite_master where type = 'view' order by rowid",
    "postgresql": "select relname, 'create view ' || quote_ident(relname) || ' as ' || pg_get_viewdef(oid) "
    "from pg_class where relkind = 'v' and relnamespace = current_schema()::regnamespace order by oid",
}


def drop_views(connection: Connection) -> list[str]:
    """Drop every view, and return the statements that make those again that are not ours."""
    found = connection.execute(text(VIEWS[connection.dialect.name])).all()
    quote = connection.dialect.identifier_preparer.quote
    for name, _ in reversed(found):
        connection.execute(text(f"drop view {quote(name)}"))
    ours = view_texts()
    return [statement for name, statement in found if name not in ours]


def create_views(connection: Connection, others: list[str]) -> None:
    """Create every view from its file, note which wording they have, then put the others back.

    An older revision lacks tables; the views of those are not made.
    """
    if connection.dialect.name == "postgresql":
        # SQLite's name for the order of bytes, so that a view sorts texts alike on both.
        connection.execute(text('create collation if not exists "binary" from pg_catalog."C"'))
    there = set(inspect(connection).get_table_names())
    missing = set(metadata.tables) - there
    for name, body in view_texts().items():
        if missing.isdisjoint(re.findall(r"\w+", body)):
            connection.execute(text(f"create view {name} as\n{body}"))
    connection.execute(text("delete from view_digest"))
    connection.execute(text("insert into view_digest (digest) values (:digest)"), {"digest": views_digest()})
    for statement in others:
        connection.execute(text(statement.replace(":", "\\:")))


def run() -> None:
    connection = context.config.attributes["connection"]
    others = drop_views(connection)
    context.configure(
        connection=connection,
        target_metadata=metadata,
        render_as_batch=True,
        transactional_ddl=True,
    )
    context.run_migrations()
    if connection.dialect.has_table(connection, "view_digest"):
        create_views(connection, others)


run()
