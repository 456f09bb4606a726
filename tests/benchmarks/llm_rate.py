"""Calls a second against a server that takes only so many: is its limit reached, and at what price?

The server refuses what comes beyond `--rps` with status 429 and `Retry-After: 1`; it lets one second's worth
through at once. `--pairs` is how many calls are made.

Goals: no call lost, at least 0.95 of the limit reached, at most 0.10 rejections a completed call. The limit
is reached by the calls a second over the whole run; `sustained_a_second` leaves out the first burst, and is
short by what the server had not yet given at the end.
"""

import asyncio
import time
from collections import Counter
from pathlib import Path

import llm_server
import measure

from audit.doors.llm import Models
from audit.words.profiles import Endpoint

MESSAGES = [{"role": "user", "content": "Which of the two did the task? " * 50}]


async def asked(base_url: str, calls: int, concurrency: int) -> tuple[Counter[str], list[float]]:
    """How the calls ended, and when, in seconds from the start."""
    endpoint = Endpoint("judge", base_url, None, "asked", "llm_judge")
    ended: Counter[str] = Counter()
    times: list[float] = []
    left = iter(range(calls))
    async with Models({}, concurrency) as models:

        async def worker() -> None:
            for _ in left:
                reply = await models.chat(endpoint, MESSAGES)
                ended[reply.error or reply.status] += 1
                times.append(time.perf_counter() - began)

        began = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
    return ended, times


def main() -> None:
    parser = measure.arguments(__doc__, pairs=3300)
    parser.add_argument("--rps", type=float, default=300, help="the server's limit a second (%(default)s)")
    parser.add_argument("--latency-ms", type=float, default=50, help="%(default)s")
    parser.add_argument("--concurrency", type=int, default=64, metavar="N", help="%(default)s")
    llm_server.add_options(parser)
    options = parser.parse_args()
    load = {"latency_ms": options.latency_ms, "rps": options.rps}
    with measure.scratch(options) as folder, llm_server.running(options, Path(folder), **load) as server:
        ended, times = asyncio.run(asked(server.base_url, options.pairs, options.concurrency))
        stats = server.stats()
    goals = [
        measure.Goal("answered", ended["ok"], options.pairs, "at_least", 1),
        measure.Goal("calls_a_second", len(times) / times[-1], options.rps, "at_least", 0.95),
        measure.Goal("rejections", stats["refused"], ended["ok"], "at_most", 0.10),
    ]
    burst = int(options.rps)
    sustained = (len(times) - burst) / (times[-1] - times[burst - 1]) if len(times) > burst else None
    facts = {"seconds": times[-1], "sustained_a_second": sustained, "ended": dict(ended)}
    measure.finish(options, "llm_rate", goals, server=server.name, requests=stats["requests"], **facts)


if __name__ == "__main__":
    main()
