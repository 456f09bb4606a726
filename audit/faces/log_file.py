"""What a run does, as JSON lines in a file: for whoever looks the next morning, or a log collector."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audit.doors.tables import refuse_database
from audit.words import clock
from audit.words.errors import BadRequest

if TYPE_CHECKING:
    from audit.pipeline.live import Meter

EVERY_SECONDS = 10.0


class LogFile:
    """Events, one object a line: `at` (UTC), `event`, and what belongs to it. Each is in the file at once."""

    def __init__(self, write: Callable[[str], Any]) -> None:
        self.run_id: str | None = None  # of each line, so that two commands can share a file
        self._write = write
        self._said = 0.0

    def event(self, event: str, **more: Any) -> None:
        """One line."""
        line = {"at": clock.now(), "event": event, "run_id": self.run_id} | more
        self._write(json.dumps(line, ensure_ascii=False) + "\n")

    def progress(self, meter: "Meter") -> None:
        """A stage begins, is done, or goes on for some seconds more."""
        now = time.monotonic()
        if meter.done in (0, meter.total) or now - self._said >= EVERY_SECONDS:
            self._said = now
            counts = {name: getattr(meter, name) for name in ("done", "total", "calls", "tokens", "errors")}
            self.event("stage", stage=meter.stage, **counts)


@contextmanager
def log_file(path: Path | None) -> Iterator[LogFile]:
    """The file, to which lines are added; without a path they go nowhere. Raises BadRequest."""
    if path is None:
        yield LogFile(lambda _line: None)
        return
    try:
        if path.is_file():
            refuse_database(path)
        out = path.open("a", encoding="utf-8", errors="backslashreplace", buffering=1)
    except OSError as error:
        raise BadRequest(f"--log-file {path}: cannot be written: {error.strerror}") from error
    with out:
        log = LogFile(out.write)
        try:
            yield log
        except KeyboardInterrupt:
            log.event("interrupted")
            raise
        except Exception as error:
            log.event("error", kind=type(error).__name__, message=str(error))
            log.event("end", exit_code=1)
            raise
