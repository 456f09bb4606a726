"""The door to variables: those of the environment, and those of an env file that it leaves unset."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from audit.words.errors import BadFile

DEFAULT_FILE = Path(".env")


class Environment(Mapping[str, str]):
    """Variable -> value. An empty variable is as good as none: it hides no value of the file."""

    def __init__(
        self, environ: Mapping[str, str], of_file: Mapping[str, str] | None = None, file: str = ""
    ) -> None:
        """`of_file`: what the env file `file` holds."""
        self._environ = environ
        self._of_file = of_file or {}
        self._file = file

    @property
    def file(self) -> str | None:
        """The env file, NULL where none is read."""
        return self._file or None

    @property
    def of_file(self) -> tuple[str, ...]:
        """The variables that the env file holds."""
        return tuple(self._of_file)

    def __getitem__(self, name: str) -> str:
        if self._environ.get(name) or name not in self._of_file:
            return self._environ[name]
        return self._of_file[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._of_file, **self._environ})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def origin(self, name: str) -> str | None:
        """`environment`, the name of the env file, or NULL where nobody sets the variable."""
        if self._environ.get(name):
            return "environment"
        if name in self._of_file:
            return self._file
        return "environment" if name in self._environ else None


def read_environment(file: Path | None = None) -> Environment:
    """The environment, with `file` (default: `.env`, where there is one) behind it.

    No value is put into the process's own environment, so that no library can find it there. Raises BadFile.
    """
    path = file or DEFAULT_FILE
    if file is None and not path.is_file():
        return Environment(os.environ)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise BadFile(
            str(path), "", "no such file: --env-file names a file of lines such as JUDGE_KEY=..."
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadFile(str(path), "", f"cannot be read: {type(error).__name__}") from None
    return Environment(os.environ, _parsed(path, text), str(path))


def _parsed(path: Path, text: str) -> dict[str, str]:
    """Raises BadFile with the number of each line that is none, and never with what it holds."""
    from io import StringIO

    from dotenv.parser import parse_stream

    found: dict[str, str] = {}
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            raise BadFile(str(path), f"line {binding.original.line}", "expected NAME=value")
        if binding.key is not None and binding.value is not None:
            found[binding.key] = binding.value
    return found
