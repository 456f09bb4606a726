"""How fast one endpoint is asked: a window of requests under way, a time before which none is sent, rates.

Calls of one endpoint share all three. When a gateway says `429`, every call of that endpoint waits, not only
the one that was refused: otherwise each would find out for itself, at the price of a refusal each.
"""

import asyncio
import random
from collections import deque

from aiolimiter import AsyncLimiter

from audit.words.calls import Usage
from audit.words.profiles import Endpoint

RETRY_AFTER_CAP_S = 60.0
_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 8.0
_JITTER = 0.05
_KEPT = 0.8  # of the window, after one refusal
_MOST_LOST = 0.75  # of the window, by refusals in one go
_GROWTH = 0.05  # a second, of the window
_LEAST_GROWTH = 0.5  # slots a second
_TOKEN_BURST_S = 10.0
_EXPECTED_COMPLETION = 512
_BYTES_A_TOKEN = 4


def wait_s(attempt: int, retry_after: float | None) -> float:
    """Seconds to wait after the attempt with this number (1 is the first) failed, before jitter."""
    if retry_after is not None:
        return min(retry_after, RETRY_AFTER_CAP_S)
    doubled: float = _FIRST_WAIT_S * 2 ** min(attempt - 1, 10)
    return min(doubled, _LONGEST_WAIT_S)


def jittered(wait: float) -> float:
    """The wait or a little more, so that several calls or programs do not come back as one."""
    return wait * (1 + random.uniform(0, _JITTER))  # noqa: S311 - spreads load, guards nothing


class Window:
    """Requests of one endpoint under way: at most `size`, which a refusal shrinks and time grows back.

    Shrinks in proportion: one slot for each request refused in one go, at least a fifth and at most three
    quarters of it. Grows by a twentieth a second, and not with each answer: a fast server would then be
    probed a thousand times a second.
    """

    def __init__(self, cap: int) -> None:
        self.cap = cap
        self.size = float(cap)
        self.not_before = 0.0
        self._under_way = 0
        self._again: deque[asyncio.Future[None]] = deque()
        self._fresh: deque[asyncio.Future[None]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._grown_at = 0.0
        self._shrunk_at = 0.0
        self._size_before = self.size
        self._refused_in_a_go = 0

    async def enter(self, *, is_retry: bool) -> None:
        """Wait for a slot, a retried call before all fresh ones."""
        loop = asyncio.get_running_loop()
        is_free = self._under_way < int(self.size) and loop.time() >= self.not_before
        if is_free and not (self._again or self._fresh):
            self._under_way += 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        (self._again if is_retry else self._fresh).append(turn)
        self._wake()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.leave()  # the slot was given and the call cancelled in the same moment
            raise

    def leave(self) -> None:
        """Give the slot back."""
        self._under_way -= 1
        self._wake()

    def succeeded(self, now: float) -> None:
        """A request was answered: the window grows by the time that passed since it last did."""
        if self.size < self.cap and now > self._grown_at:
            grown = (now - self._grown_at) * max(_LEAST_GROWTH, self.size * _GROWTH)
            self.size = min(float(self.cap), self.size + grown)
            self._grown_at = now

    def refused(self, now: float, sent_at: float, wait: float) -> None:
        """A request that was sent at `sent_at` was refused: shrink, and let none go for `wait` seconds."""
        if sent_at >= self._shrunk_at:
            self._shrunk_at, self._size_before, self._refused_in_a_go = now, self.size, 0
            wait = jittered(wait)  # once: the longest of many draws would be no jitter
        self._refused_in_a_go += 1
        kept = min(self._size_before * _KEPT, self._size_before - self._refused_in_a_go)
        self.size = max(1.0, min(self.size, max(kept, self._size_before * (1 - _MOST_LOST))))
        self.not_before = max(self.not_before, now + wait)
        self._grown_at = self.not_before

    def _wake(self) -> None:
        """Give free slots to those who wait, or set a timer for the time from which that is allowed."""
        for queue in (self._again, self._fresh):
            while queue and queue[0].done():
                queue.popleft()
        if not (self._again or self._fresh):
            return
        loop = asyncio.get_running_loop()
        wait = self.not_before - loop.time()
        if wait > 0:
            if self._timer is None:
                self._timer = loop.call_later(wait, self._timer_ended)
            return
        for queue in (self._again, self._fresh):
            while queue and self._under_way < int(self.size):
                turn = queue.popleft()
                if not turn.done():
                    self._under_way += 1
                    turn.set_result(None)

    def _timer_ended(self) -> None:
        self._timer = None
        self._wake()


class Pace:
    """The window of one endpoint together with its `rpm` and `tpm`."""

    def __init__(self, endpoint: Endpoint, concurrency: int) -> None:
        self.window = Window(max(1, endpoint.concurrency or concurrency))
        self._requests = _limiter(endpoint.rpm, burst_s=1.0)
        self._tokens = _limiter(endpoint.tpm, burst_s=_TOKEN_BURST_S)
        self._expected = endpoint.max_tokens or _EXPECTED_COMPLETION
        self._most_owed = endpoint.tpm or 0.0
        self._owed = 0.0

    async def enter(self, size: int, *, is_retry: bool) -> None:
        """Wait until a request of so many bytes may be sent."""
        if self._requests is not None:
            await self._requests.acquire()
        if self._tokens is not None:
            await self._take_tokens(self._estimate(size))
        await self.window.enter(is_retry=is_retry)

    def leave(self) -> None:
        """The request is no longer under way."""
        self.window.leave()

    def correct(self, size: int, usage: Usage) -> None:
        """Charge the following requests with what this one took more than was estimated, or less.

        At most a minute's worth either way: a gateway that counts wrongly must not halt a run, or free it.
        """
        if self._tokens is not None and usage.total_tokens is not None:
            owed = self._owed + usage.total_tokens - self._estimate(size)
            self._owed = max(-self._most_owed, min(owed, self._most_owed))

    def _estimate(self, size: int) -> float:
        return size / _BYTES_A_TOKEN + self._expected

    async def _take_tokens(self, estimate: float) -> None:
        """A limiter cannot be given anything back: what was taken too much is taken less the next time."""
        assert self._tokens is not None  # noqa: S101 - asked by the only caller
        wanted = min(estimate + self._owed, self._most_owed)
        self._owed = min(wanted, 0.0)
        while wanted > 0:
            part = min(wanted, self._tokens.max_rate)
            await self._tokens.acquire(part)
            wanted -= part


def _limiter(a_minute: float | None, burst_s: float) -> AsyncLimiter | None:
    """A bucket that holds the worth of `burst_s` seconds, at least one.

    A minute sees at most `1 + burst_s / 60` times the rate. With a bucket of a minute it would be twice.
    """
    if not a_minute:
        return None
    held = max(1.0, a_minute * burst_s / 60)
    return AsyncLimiter(held, held * 60 / a_minute)
