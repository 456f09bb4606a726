"""A user's own function in limited time: tools and checks of the form `module:function`."""

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from audit.doors.world_sql import named
from audit.words.errors import AuditError

Value = TypeVar("Value")
FUNCTION_SECONDS = 60.0
_ENDS = "the program ends"
_folders: list[str] = []
# What calls of `within` wait for, and whether none is to begin any more.
_waited_for: set[Future[Any]] = set()
_is_over = threading.Event()


def importable_from(folder: Path) -> None:
    """Modules in the folder can be named by `module:function`; what is installed comes first."""
    place = str(folder.resolve())
    if place not in _folders:
        _folders.append(place)
    if place not in sys.path:
        sys.path.append(place)


def importable_folders() -> list[str]:
    """The folders of `importable_from`, for another process."""
    return list(_folders)


class Overrun(AuditError):
    """A function was still at work when its time was up."""


def within(seconds: float, name: str, function: Callable[..., Value], *arguments: object) -> Value:
    """The function's value, or what it raises: always an Exception. Raises Overrun after `seconds`, and at
    once after `give_up`.

    Python cannot stop a thread: a function that is late is left to itself, and dies with the process.
    """
    found: Future[Value] = Future()

    def work() -> None:
        # Nobody waits any more for what comes after `give_up`.
        with suppress(InvalidStateError):
            _do(found, name, function, arguments)

    _waited_for.add(found)
    try:
        # Looked at after it is waited for: `give_up` misses none that begins meanwhile.
        if _is_over.is_set():
            raise Overrun(_ENDS)
        threading.Thread(target=work, name=name, daemon=True).start()
        return found.result(timeout=seconds)
    except TimeoutError as error:
        if found.done():
            raise
        raise Overrun(f"{name} took longer than {seconds:g} s") from error
    finally:
        _waited_for.discard(found)


def take_up() -> None:
    """After `give_up`: functions may be called again."""
    _is_over.clear()


def give_up() -> None:
    """The program wants to end: each `within` raises Overrun, those under way and those to come."""
    _is_over.set()
    for found in tuple(_waited_for):
        with suppress(InvalidStateError):
            found.set_exception(Overrun(_ENDS))


def _do(
    found: Future[Value], name: str, function: Callable[..., Value], arguments: tuple[object, ...]
) -> None:
    try:
        value = function(*arguments)
    except SystemExit as error:
        found.set_exception(RuntimeError(f"{name} wanted to exit: {error}"))
    except Exception as error:
        found.set_exception(error)
    except BaseException as error:
        # Raised again in the caller, such as an interrupt or a cancelled task would end the program.
        found.set_exception(RuntimeError(f"{name} raised {named(error)}"))
    else:
        found.set_result(value)
