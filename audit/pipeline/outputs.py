"""What no output may take the place of: a file whose judgments or sessions are in the database."""

from pathlib import Path

from sqlalchemy import Engine

from audit.doors import ask
from audit.doors.db import reading
from audit.doors.files import sha256
from audit.words.errors import BadFile


def refuse_imported(engine: Engine, path: Path) -> None:
    """Raises BadFile where `path` is a file, byte for byte, that a run was imported from."""
    if not path.is_file():
        return
    with reading(engine) as connection:
        run_id = ask.imported_from(connection, sha256(path))
    if run_id is not None:
        raise BadFile(
            str(path), "", f"run {run_id} was imported from it, and it would be replaced: name another"
        )
