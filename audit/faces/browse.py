"""Datasette on the database, for this machine's browser: what each column means, questions to begin with."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from audit.doors.shipped import view_texts
from audit.faces.local_web import guarded, require
from audit.words.errors import BadRequest

_FILES = Path(__file__).resolve().parent / "browse_files"
# The name in every address, whatever the file is called.
DATABASE = "audit"
_HIDDEN = ("alembic_version", "view_digest", "sqlite_stat1")
_SETTINGS = {
    "default_page_size": 25,
    "sql_time_limit_ms": 10_000,
    "facet_time_limit_ms": 2_000,
    "suggest_facets": False,
    "allow_download": False,
    "default_cache_ttl": 0,  # a run may be writing
}
# Datasette's own pages hold scripts and styles; nothing may be fetched from, or sent to, elsewhere.
_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)


def browse_app(file: Path, columns: Mapping[str, list[str]]) -> Any:
    """The ASGI application on a SQLite file; `columns`: table or view -> its columns.

    The file is opened read-only, and not as immutable: a run may be writing to it. Raises MissingExtra, and
    BadRequest for a path that Datasette cannot open.
    """
    # Whole: a part of it that is imported first finds the others half made.
    require("datasette.app", "browse", "browse")
    if set(str(file.resolve())) & set("?#%"):
        # It puts the path into an address as it is, and would open another file.
        raise BadRequest(f"{file}: Datasette cannot open a path with ?, # or %: browse a copy elsewhere")
    from datasette import handle_exception
    from datasette.app import Datasette
    from datasette.database import Database
    from datasette.plugins import pm

    from audit.faces import browse_cells

    # For a page not found it would print all local variables, other people's text too, to the terminal.
    handle_exception.rich = None
    if not pm.is_registered(browse_cells):
        pm.register(browse_cells)
    datasette = Datasette(
        [],
        metadata=metadata(columns),
        settings=_SETTINGS,
        template_dir=str(_FILES / "templates"),
        static_mounts=[("browse", str(_FILES / "static"))],
    )
    datasette.remove_database("_memory")
    datasette.add_database(Database(datasette, path=str(file.resolve()), is_mutable=True), name=DATABASE)
    return guarded(datasette.app(), _POLICY, reads_only=True)


def words() -> dict[str, Any]:
    """What browse.yaml says: title, description, columns, tables, queries."""
    read: dict[str, Any] = yaml.safe_load((_FILES / "browse.yaml").read_text(encoding="utf-8"))
    return read


def metadata(columns: Mapping[str, list[str]]) -> dict[str, Any]:
    """Datasette's metadata for these tables and views: what each column means, where that is known."""
    said = words()
    grains = {name: text.splitlines()[0].removeprefix("-- ") for name, text in view_texts().items()}
    queries = {name: {"hide_sql": True, **query} for name, query in said["queries"].items()}
    tables: dict[str, Any] = {name: {"hidden": True} for name in _HIDDEN}
    for name, own in columns.items():
        if name in _HIDDEN:
            continue
        about = dict(said["tables"].get(name, {}))
        known = said["columns"] | about.get("columns", {})
        about["columns"] = {column: known[column] for column in own if column in known}
        about.setdefault("description", grains.get(name, ""))
        tables[name] = about
    return {
        "title": said["title"],
        "description": said["description"],
        "extra_css_urls": ["/browse/browse.css"],
        "databases": {DATABASE: {"title": said["title"], "tables": tables, "queries": queries}},
    }
