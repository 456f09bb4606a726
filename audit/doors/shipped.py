"""Files that ship beside the code: migrations, views, example data; in a checkout or inside a wheel."""

import hashlib
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def shipped(folder: str) -> Path:
    """The folder `migrations`, `sql` or `data`, wherever this installation keeps it."""
    installed = _PACKAGE / "shipped" / folder
    return installed if installed.is_dir() else _PACKAGE.parent / folder


def view_texts() -> dict[str, str]:
    """View name -> the text of its file in `sql/`, in the order in which they can be created.

    A view may read another one; its file then names it, and stands after it. Order: those that read no
    other view first, then the rest, each group by name.
    """
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(shipped("sql").glob("*.sql"))}
    return dict(
        sorted(texts.items(), key=lambda item: (_reads_another(item[0], item[1], set(texts)), item[0]))
    )


def views_digest() -> str:
    """A fingerprint of all view files."""
    joined = "\0".join(f"{name}\0{body}" for name, body in view_texts().items())
    return hashlib.sha256(joined.encode()).hexdigest()[:16]


def _reads_another(name: str, text: str, names: set[str]) -> bool:
    code = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))
    return any(other != name and other in code.split() for other in names)
