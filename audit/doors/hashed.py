"""A file that is written from its beginning to its end, and its SHA-256 in the same time."""

import hashlib
from pathlib import Path
from queue import Queue
from threading import Thread

from audit.doors.tables import settle

_PIECE_BYTES = 1 << 17


class HashedFile:
    """A thread of its own takes the SHA-256 of what is written: after it is, that is a tenth of an export."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._piece = bytearray()
        self._digest = hashlib.sha256()
        self._pieces: Queue[bytearray | None] = Queue(2)
        self._thread = Thread(target=self._take, daemon=True)
        self._thread.start()

    def write(self, data: bytes | bytearray) -> None:
        """Add the bytes."""
        self._piece += data
        if len(self._piece) >= _PIECE_BYTES:
            self._pass_on()

    def finish(self) -> str:
        """All is on the disk: the SHA-256 as hex digits."""
        self._pass_on()
        settle(self._file)
        self.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Let the file go, finished or not."""
        if not self._file.closed:
            self._pieces.put(None)
            self._thread.join()
            self._file.close()

    def _pass_on(self) -> None:
        self._file.write(self._piece)
        self._pieces.put(self._piece)
        self._piece = bytearray()

    def _take(self) -> None:
        while (piece := self._pieces.get()) is not None:
            self._digest.update(piece)
