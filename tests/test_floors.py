"""The floors: imports only go down, each library has one door, files and functions stay small."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "audit"
FILES = sorted(PACKAGE.rglob("*.py"))
TREES = {path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
# What each floor may import; `root` is audit/__init__.py, which holds the version.
BELOW = {
    "root": set(),
    "words": {"words"},
    "verbs": {"words", "verbs"},
    # Verbs too, a floor's width beside the others: they know nothing of judges and tasks.
    "statistics": {"words", "statistics"},
    "doors": {"words", "doors"},
    # The synthetic models: a door too, with nothing behind it but themselves.
    "offline": {"words", "offline"},
    "pipeline": {"words", "verbs", "statistics", "doors", "offline", "pipeline"},
    "faces": {"words", "verbs", "statistics", "doors", "pipeline", "faces", "root"},
    "__main__": {"faces"},
}
# library -> the only files that may import it.
DOORS = {
    "sqlalchemy": {
        "words/schema.py",
        "doors/db.py",
        "doors/db_ready.py",
        "doors/store.py",
        "doors/copying.py",
        "doors/db_copy.py",
        "doors/ask.py",
        "doors/ask_dpo.py",
        "doors/query.py",
        "doors/store_live.py",
        "doors/store_pruned.py",
        "doors/store_batches.py",
        "doors/ask_batches.py",
        "doors/troubles.py",
        "doors/lease.py",
        "doors/waiting.py",
        "doors/failed.py",
        "doors/counts.py",
        "doors/ask_worst.py",
        "doors/matched.py",
        "doors/store_review.py",
        "doors/ask_review.py",
        "doors/ask_labelled.py",
        "doors/ask_anchors.py",
        "pipeline/",
        # The type of the database that commands hand on, for the type checker alone.
        "faces/commands/importing.py",
        "faces/commands/reporting.py",
        "faces/commands/exporting.py",
        "faces/commands/browsing.py",
        "faces/following.py",
    },
    "alembic": {"doors/db.py"},
    "sqlite3": {
        "doors/db.py",
        "doors/db_ready.py",
        "doors/ask_dpo.py",
        "doors/lease.py",
        "doors/query.py",
        "doors/world.py",
        "doors/world_sql.py",
        "doors/tasks.py",
    },
    "psycopg": {"doors/query.py", "doors/copying.py"},
    "ray": {"doors/cluster.py"},
    "inspect_ai": {"doors/formats/inspect_logs.py"},
    "pyarrow": {"doors/tables.py", "doors/dataset.py"},
    "rich": {"faces/"},
    "jinja2": {"doors/prompts.py", "faces/page.py", "faces/review_page.py"},
    "markupsafe": {
        "faces/page.py",
        "faces/page_plots.py",
        "faces/legible.py",
        "faces/browse_cells.py",
    },
    "datasette": {"faces/browse.py", "faces/browse_cells.py"},
    "starlette": {"faces/local_web.py", "faces/local_token.py", "faces/review_page.py"},
    "uvicorn": {"faces/local_web.py"},
    "matplotlib": {"faces/page_plots.py", "faces/trend_plot.py"},
    "click": {"faces/"},
    "scipy": {"statistics/"},
    "json_repair": {"verbs/"},
    "dotenv": {"doors/environment.py"},
    "pandas": set(),
    "numpy": {"statistics/"},
    "openai": {"doors/llm.py", "doors/llm_client.py", "doors/llm_batch.py"},
    "httpx2": {"doors/llm.py", "doors/llm_client.py", "doors/llm_batch.py", "offline/transport.py"},
    "requests": set(),
    "httpx": set(),
}
# All that the pipeline, which tells the story, may know of the database library.
PIPELINE_NAMES = {"Engine", "Connection", "IntegrityError", "Table", "Text", "Float"}


def imports(tree: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """(module, names taken from it) of every import, also of those within functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, set()) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: a relative import hides the floor"
            names = {alias.name for alias in node.names}
            yield node.module or "", names
            # `from audit import words` names a floor too.
            yield from ((f"audit.{name}", set()) for name in names if node.module == "audit")


def floor_of(file: str) -> str:
    first = file.split("/")[0]
    return {"__init__.py": "root", "__main__.py": "__main__"}.get(first, first)


def floor_named(module: str) -> str | None:
    parts = module.split(".")
    if parts[0] != "audit":
        return None
    return parts[1] if len(parts) > 1 and parts[1] in BELOW else "root"


@pytest.mark.parametrize("file", TREES)
def test_file_when_it_imports_from_our_floors_then_only_from_those_below(file: str) -> None:
    floor = floor_of(file)
    named = {floor_named(module) for module, _ in imports(TREES[file])} - {None}

    assert named <= BELOW[floor], f"{file} reaches up or across"


def test_floors_when_counted_then_every_file_stands_on_one() -> None:
    assert {floor_of(file) for file in TREES} == BELOW.keys()


@pytest.mark.parametrize("library", DOORS)
def test_library_when_it_is_used_then_only_behind_its_door(library: str) -> None:
    users = {
        file
        for file, tree in TREES.items()
        if any(module.split(".")[0] == library for module, _ in imports(tree))
    }
    strangers = {file for file in users if not any(file.startswith(door) for door in DOORS[library])}

    assert strangers == set()


def test_pipeline_when_it_names_the_database_library_then_only_its_types_and_the_error_of_a_clash() -> None:
    for file, tree in TREES.items():
        for module, names in imports(tree):
            if file.startswith("pipeline/") and module.split(".")[0] == "sqlalchemy":
                assert names, f"{file} imports all of {module}"
                assert names <= PIPELINE_NAMES, file


def test_faces_when_they_name_the_database_library_then_only_for_the_type_checker() -> None:
    for file, tree in TREES.items():
        if file.startswith("faces/"):
            checked = {
                id(inner)
                for node in ast.walk(tree)
                if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
                for inner in ast.walk(node)
            }
            for node in ast.walk(tree):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("sqlalchemy"):
                    assert id(node) in checked, f"{file} line {node.lineno}"


def functions() -> Iterator[tuple[str, int]]:
    for file, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                yield f"{file}:{node.name}", (node.end_lineno or first) - first + 1


def test_functions_when_measured_then_each_fits_a_screen() -> None:
    assert {name: lines for name, lines in functions() if lines > 60} == {}


def test_files_when_measured_then_each_is_read_at_one_sitting() -> None:
    lengths = {path.name: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}

    assert {name: lines for name, lines in lengths.items() if lines > 400} == {}


def test_names_when_read_then_none_is_one_that_says_nothing() -> None:
    vague = ("Manager", "Handler", "Base", "Helper", "Util", "utils", "helpers")
    named = [
        f"{file}:{node.name}"
        for file, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and any(word in node.name for word in vague)
    ]

    assert named == []


def test_modules_when_opened_then_each_says_what_it_is_for() -> None:
    assert [file for file, tree in TREES.items() if not ast.get_docstring(tree)] == []
