"""A user's own function in limited time: tools and checks of the form `module:function`."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

from audit.doors.world_sql import named
from audit.words.errors import AuditError

Value = TypeVar("Value")
FUNCTION_SECONDS = 60.0


def importable_from(folder: Path) -> None:
    """Modules in the folder can be named by `module:function`; what is installed comes first."""
    place = str(folder.resolve())
    if place not in sys.path:
        sys.path.append(place)


class Overrun(AuditError):
    """A function was still at work when its time was up."""


def within(seconds: float, name: str, function: Callable[..., Value], *arguments: object) -> Value:
    """The function's value, or what it raises: always an Exception. Raises Overrun after `seconds`.

    Python cannot stop a thread: a function that is late is left to itself, and dies with the process.
    """
    found: Future[Value] = Future()

    def work() -> None:
        try:
            found.set_result(function(*arguments))
        except SystemExit as error:
            found.set_exception(RuntimeError(f"{name} wanted to exit: {error}"))
        except Exception as error:
            found.set_exception(error)
        except BaseException as error:
            # Raised again in the caller, such as an interrupt or a cancelled task would end the program.
            found.set_exception(RuntimeError(f"{name} raised {named(error)}"))

    threading.Thread(target=work, name=name, daemon=True).start()
    try:
        return found.result(timeout=seconds)
    except TimeoutError as error:
        if found.done():
            raise
        raise Overrun(f"{name} took longer than {seconds:g} s") from error
