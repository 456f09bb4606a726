"""CPU that one call of a model costs, beside the SDK's own ways to make it.

The same request is made through `Models.chat`, by the bare `client.post(..., cast_to=object)`, and by
`chat.completions.create`, in turn, at the same concurrency, against a server in a process of its own. The
medians of the rounds are compared. `--pairs` is how many calls a round makes.

Goals: at most 1.5 times the bare call, and at most 0.55 times `create`.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import llm_server
import measure
import openai

from audit.doors.llm import Models
from audit.words.profiles import Endpoint

MESSAGES = [
    {"role": "system", "content": "You compare two sessions of an agent. " * 20},
    {"role": "user", "content": "Customer: I want to change my order. Agent: which one? " * 100},
]
Ask = Callable[[], Awaitable[Any]]


async def cpu_ms(ask: Ask, calls: int, concurrency: int) -> float:
    """Milliseconds of this process a call."""

    left = iter(range(calls))

    async def worker() -> None:
        for _ in left:
            await ask()

    began = time.process_time()
    await asyncio.gather(*(worker() for _ in range(concurrency)))
    return (time.process_time() - began) * 1000 / calls


async def measured(base_url: str, calls: int, concurrency: int, rounds: int) -> dict[str, float]:
    body: dict[str, Any] = {"model": "asked", "messages": MESSAGES, "temperature": 0.0, "max_tokens": 400}
    endpoint = Endpoint("judge", base_url, None, "asked", "llm_judge", temperature=0.0, max_tokens=400)
    client = openai.AsyncOpenAI(
        api_key="none", base_url=base_url, max_retries=0, http_client=openai.DefaultAioHttpClient()
    )

    async with client, Models({}, concurrency) as models:

        async def chat() -> None:
            reply = await models.chat(endpoint, MESSAGES)
            if reply.status != "ok":
                raise SystemExit(f"a call failed: {reply.error}")

        ways: dict[str, Ask] = {
            "chat": chat,
            "post": lambda: client.post("/chat/completions", cast_to=object, body=body),
            "create": lambda: client.chat.completions.create(**body),
        }
        found: dict[str, list[float]] = {name: [] for name in ways}
        for ask in ways.values():
            await cpu_ms(ask, concurrency, concurrency)  # connections, imports
        for _ in range(rounds):
            for name, ask in ways.items():
                found[name].append(await cpu_ms(ask, calls, concurrency))
    return {name: statistics.median(times) for name, times in found.items()}


def main() -> None:
    parser = measure.arguments(__doc__, pairs=1000)
    parser.add_argument("--rounds", type=int, default=7, help="each way is measured so often (%(default)s)")
    parser.add_argument("--concurrency", type=int, default=16, metavar="N", help="%(default)s")
    llm_server.add_options(parser)
    options = parser.parse_args()
    with measure.scratch(options) as folder, llm_server.running(options, Path(folder)) as server:
        found = asyncio.run(measured(server.base_url, options.pairs, options.concurrency, options.rounds))
    goals = [
        measure.Goal("of_bare_post", found["chat"], found["post"], "at_most", 1.5),
        measure.Goal("of_create", found["chat"], found["create"], "at_most", 0.55),
    ]
    facts = {f"{name}_ms": ms for name, ms in found.items()}
    measure.finish(options, "llm_cpu", goals, server=server.name, calls=options.pairs, **facts)


if __name__ == "__main__":
    main()
