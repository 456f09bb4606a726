"""Datasette's plugin: how a cell looks. Long text folds up in a table, JSON is a list that can be read.

Everything is escaped, characters that cannot be seen are shown, and no text becomes a link.
"""

import json
from contextvars import ContextVar
from typing import Any

from datasette.utils import tilde_encode
from markupsafe import Markup
from pluggy import HookimplMarker

from audit.doors.query import limit_values
from audit.faces.legible import legible

hookimpl = HookimplMarker("datasette")
_SHORT = 120
# What a folded cell of a table holds at most: a page of 25 rows is not megabytes. A row's own page has all.
_FOLDED = 3000
_DEEPEST = 12
# column -> the table whose row it names
_ROWS = {
    "run_id": "audit_runs",
    "pair_id": "audit_pairs",
    "log_id": "judge_logs",
    "session_id": "sessions",
    "session_a": "sessions",
    "session_b": "sessions",
    "chosen_session": "sessions",
    "rejected_session": "sessions",
}
# What may look like JSON and is none: the bucket `[0,0.2]`.
_INTERVALS = ("gap_bucket", "label")
_on_row_page: ContextVar[bool] = ContextVar("_on_row_page", default=False)


@hookimpl
def asgi_wrapper() -> Any:
    """Tells a row's own page (/database/table/row) from a table's."""

    def wrap(app: Any) -> Any:
        async def marked(scope: Any, receive: Any, send: Any) -> None:
            _on_row_page.set(scope["type"] == "http" and scope["path"].strip("/").count("/") == 2)
            await app(scope, receive, send)

        return marked

    return wrap


@hookimpl
def prepare_connection(conn: Any) -> None:
    """Datasette limits a statement's time alone, in which `zeroblob(900000000)` is made."""
    limit_values(conn)


@hookimpl
def render_cell(value: Any, column: str, table: str | None, database: str, datasette: Any) -> Markup | None:
    """Markup of a text cell or an id; NULL for what Datasette shows well by itself: numbers, keys, NULL."""
    target = _ROWS.get(column)
    if target not in (None, table) and isinstance(value, str | int):
        address = datasette.urls.row(database, target, tilde_encode(str(value)))
        return Markup('<a href="{}">{}</a>').format(address, legible(value))
    if not isinstance(value, str) or not value:
        return None
    is_short = len(value) <= _SHORT and "\n" not in value
    if is_short and (column in _INTERVALS or not isinstance(_parsed(value), dict | list)):
        return Markup("{}").format(legible(value))
    whole = _on_row_page.get()
    body = _body(value, whole)
    if whole:
        return body
    head = " ".join(value[: 2 * _SHORT].split())[:_SHORT]
    return Markup("<details><summary>{}{}</summary>{}</details>").format(
        legible(head), "…" if len(value) > len(head) else "", body
    )


def _body(text: str, whole: bool) -> Markup:
    is_whole = whole or len(text) <= _FOLDED
    parsed = _parsed(text)
    if parsed is not None:
        shown = parsed if is_whole else _beginning(parsed, [_FOLDED])
        body = Markup('<div class="json">{}</div>').format(_tree(shown, 0))
    else:
        body = Markup("<pre>{}</pre>").format(legible(text if is_whole else text[:_FOLDED]))
    if is_whole:
        return body
    return body + Markup('<p class="more">… of {} characters: open the row</p>').format(f"{len(text):,}")


def _beginning(value: Any, left: list[int], depth: int = 0) -> Any:
    """The first part of a JSON value; `left`: so many characters, counted down."""
    if depth >= _DEEPEST:
        value = _flat(value)
    if isinstance(value, str):
        kept = value[: max(left[0], 0)]
        left[0] -= len(value)
        return kept if len(kept) == len(value) else f"{kept}…"
    left[0] -= 1
    if not isinstance(value, dict | list):
        return value
    parts = value.items() if isinstance(value, dict) else enumerate(value)
    found: dict[Any, Any] = {}
    for name, part in parts:
        if left[0] <= 0:
            break
        left[0] -= len(str(name))
        found[name] = _beginning(part, left, depth + 1)
    return found if isinstance(value, dict) else list(found.values())


def _parsed(text: str) -> Any:
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _flat(value: Any) -> Any:
    """An object or a list as JSON, anything else as it is."""
    if not isinstance(value, dict | list):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"


def _tree(value: Any, depth: int) -> Markup:
    """Objects as definition lists, lists as numbered ones; what lies too deep as JSON."""
    if depth >= _DEEPEST:
        value = _flat(value)
    if isinstance(value, dict) and value:
        rows = (
            Markup("<dt>{}</dt><dd>{}</dd>").format(legible(key), _tree(item, depth + 1))
            for key, item in value.items()
        )
        return Markup("<dl>{}</dl>").format(Markup("").join(rows))
    if isinstance(value, list) and value:
        items = (Markup("<li>{}</li>").format(_tree(item, depth + 1)) for item in value)
        return Markup('<ol start="0">{}</ol>').format(Markup("").join(items))
    if isinstance(value, str):
        return Markup("<span>{}</span>").format(legible(value))
    return Markup("<code>{}</code>").format(json.dumps(value))
