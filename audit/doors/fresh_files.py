"""The door to files that are written for a user: all of them or none, and never over what is there."""

import errno
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from audit.words.errors import BadFile

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)


def write_fresh(files: Mapping[Path, str]) -> None:
    """Write each text under its path, folders too. Raises BadFile naming the first that is there already.

    After any failure nothing of it is left.
    """
    for path in files:
        _refuse(path)
    made: list[Path] = []
    partial = {path: path.with_name(f".{path.name}.{secrets.token_hex(4)}.partial") for path in files}
    path = next(iter(files))
    try:
        for path, text in files.items():
            _make_folders(path.parent, made)
            made.append(partial[path])
            partial[path].write_text(text, encoding="utf-8")
        for path in files:
            _place(partial[path], path)
            made.append(path)
    except BaseException as error:
        _undo(made)
        if isinstance(error, OSError):
            reason = error.strerror or type(error).__name__
            problem = f"cannot be written: {reason}; nothing was written"
            raise BadFile(str(path), "", problem) from error
        raise
    _undo(list(partial.values()))


def _refuse(path: Path) -> None:
    if os.path.lexists(path):
        raise BadFile(str(path), "", "exists already: name another, or move it away; nothing was written")


def _place(partial: Path, path: Path) -> None:
    """A link is refused where the name is taken meanwhile, where a rename would overwrite."""
    try:
        os.link(partial, path)
    except FileExistsError:
        _refuse(path)
        raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _refuse(path)
        partial.rename(path)


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Makes the folder and those around it, and adds to `made` what was not there."""
    for one in reversed([one for one in (folder, *folder.parents) if not one.exists()]):
        one.mkdir()
        made.append(one)


def _undo(made: list[Path]) -> None:
    for path in reversed(made):
        with suppress(OSError):
            if path.is_dir():
                path.rmdir()
            else:
                path.unlink(missing_ok=True)
