"""The errors a user can cause, each one line: what is wrong, the value, what to do."""

from collections.abc import Sequence

EXIT_OK = 0
EXIT_ERROR = 1
EXIT_USAGE = 2
EXIT_GATE = 3
EXIT_INCOMPLETE = 4
EXIT_INTERRUPTED = 130


class AuditError(Exception):
    """Base of all errors that are shown as one line. `exit_code` is what the command ends with."""

    exit_code = EXIT_ERROR


class BadFile(AuditError):
    """A file that cannot be taken: names the file, the place in it and the field."""

    def __init__(self, file: str, place: str, problem: str, faults: Sequence[str] = ()) -> None:
        """`place` is `line 3`, a JSON path or empty; `problem` says what is wrong and what would be right.

        `faults`: the problem in its parts, where several things are wrong.
        """
        where = f"{file}, {place}" if place else file
        super().__init__(f"{where}: {problem}")
        self.file = file
        self.place = place
        self.problem = problem
        self.faults = tuple(faults) or (problem,)


class BadDatabase(AuditError):
    """A database that cannot be opened, is newer than the program, or is something else altogether."""


class BadRequest(AuditError):
    """A wish that cannot be met with what is stored: an unknown run, an unknown bucket set."""


class Lost(AuditError):
    """Another process that the work needs is gone. It says nothing of the unit of work that met it."""


class MissingExtra(AuditError):
    """An optional library is needed and absent."""

    def __init__(self, library: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs {library}, which is not installed: pip install 'reward-audit[{extra}]'"
        )
