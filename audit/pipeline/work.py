"""Many units of work at once, each stored as soon as it is done: the workers, the one writer, the stop.

The writer stores what has piled up in one transaction, in a thread of its own, so that no call waits for the
disk and no transaction is held open across a call.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")
_AT_ONCE = 256


class Stopped(Exception):
    """The work was told to stop before all of it was done; what was done is stored."""


class Work(Generic[Item, Result]):
    """`do` turns an item into a result, or NULL where it had to stop; `store` writes results.

    `may_go_on` is asked before each item, and may wait.
    """

    def __init__(
        self,
        do: Callable[[Item], Awaitable[Result | None]],
        store: Callable[[list[Result]], None],
        *,
        concurrency: int,
        may_go_on: Callable[[], Awaitable[bool]],
    ) -> None:
        self.do = do
        self.store = store
        self.concurrency = concurrency
        self.may_go_on = may_go_on
        self.is_stopped = False

    async def through(self, items: Iterable[Item]) -> None:
        """Do all items. Raises Stopped where `may_go_on` said no; cancelled, it stores what is done first."""
        waiting = iter(items)
        done: asyncio.Queue[Result | None] = asyncio.Queue(maxsize=self.concurrency)
        writer = asyncio.create_task(self._write(done))
        workers = [asyncio.create_task(self._work(waiting, done)) for _ in range(self.concurrency)]
        try:
            await _first_failure(workers, writer)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
            if not writer.done():
                await done.put(None)
            await asyncio.shield(writer)
        if self.is_stopped:
            raise Stopped

    async def _work(self, waiting: Iterator[Item], done: asyncio.Queue[Result | None]) -> None:
        for item in waiting:
            if not await self.may_go_on():
                self.is_stopped = True
                return
            result = await self.do(item)
            if result is None:
                self.is_stopped = True
                return
            await done.put(result)

    async def _write(self, done: asyncio.Queue[Result | None]) -> None:
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, "writer") as thread:
            while True:
                results = [await done.get()]
                while not done.empty() and len(results) < _AT_ONCE:
                    results.append(done.get_nowait())
                found = [result for result in results if result is not None]
                if found:
                    await loop.run_in_executor(thread, self.store, found)
                if len(found) < len(results):
                    return


async def _first_failure(workers: list[asyncio.Task[None]], writer: asyncio.Task[None]) -> None:
    """Wait for all workers; raise what the first one, or the writer, failed with."""
    pending: set[asyncio.Task[None]] = {*workers}
    while pending:
        finished, _ = await asyncio.wait({*pending, writer}, return_when=asyncio.FIRST_COMPLETED)
        for task in finished:
            task.result()
        if writer in finished:
            return
        pending -= finished
