"""The judge stage against a fast local server: what it adds to the time, processor and memory of its calls.

The sessions are stored beforehand: made by arithmetic, of the size that the embedded models write, 8 agents a
task, so 28 pairs. Judged is what `reward-audit judge` judges, through the same function: each pair in both
orders, then the satisfaction question to each session, every pair durably stored as soon as it is done (WAL).
Measured is the call phase, from the first call to the last result stored, in a process of its own; the server
is in another. `--pairs` is rounded up to whole tasks; each 28 pairs take 64 calls.

    pace     seconds of the call phase over the ideal, calls x latency / concurrency
    cpu      processor time a call at no latency, over that of the same requests by the bare
             `client.post(..., cast_to=object)` on the SDK's aiohttp client, and over that of
             `chat.completions.create` on the client that the SDK makes by itself, all in the same process;
             `create_aiohttp_ms` is `create` on the aiohttp client
    memory   peak of the whole process, over that with a tenth of the pairs
    rate     calls a second against a server that takes only 300, and what it had to refuse
    ray      calls a second at no latency with one and with two Ray workers, over this process alone; what a
             call takes longer than here, and what of the driver's processor time it takes (only where asked
             for by --parts; a cluster of its own, started before the call phase)

Goals: pace at most 1.10 at 500 ms x 64, 1.5 at 500 ms x 256, 1.35 at 50 ms x 64; cpu at most 1.5 times the
bare call and 0.55 times `create`; memory at most 1.1 times; under the limit no call lost, at least 0.95 of it
reached, at most 0.10 rejections a completed call.
"""

import argparse
import asyncio
import json
import os
import sqlite3
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import llm_server
import measure

AGENTS = [f"agent-{letter}" for letter in "stuvwxyz"]
PAIRS_A_TASK, CALLS_A_TASK = 28, 64
PACES = ((500, 64, 1.10), (500, 256, 1.5), (50, 64, 1.35))  # latency in ms, concurrency, limit
LIMIT_RPS, LIMIT_LATENCY_MS = 300, 50
GREETING = "I cannot find what became of my order, and I want the larger size instead of the one I chose. "
# What every call is answered with: a judge's verdict that is also a satisfaction.
SIDE = {"evidence": "result of find_order: the order is open and has the larger size now", "done": True}
VERDICT = {"first": SIDE, "second": SIDE, "score_first": 4, "score_second": 3.5, "winner": "first"}
ANSWER = json.dumps(VERDICT | {"evidence": SIDE["evidence"], "done": True, "satisfaction": 0.7})


def make(database: Path, base_url: str, tasks: int) -> None:
    """A run with its sessions, ready to be judged."""
    from audit.doors import store_live
    from audit.doors.db import open_database, writing
    from audit.doors.tasks import load_tasks
    from audit.pipeline import planning

    config = _config(base_url)
    engine = open_database(f"sqlite:///{database}", create=True)
    with writing(engine) as connection:
        shop = load_tasks([Path(path) for path in config.tasks])
        run, _ = planning.begin(connection, config, shop, planning.Wish(new=True))
        for task in range(tasks):
            rows = [_session(run.run_id, task, agent) for agent in AGENTS]
            store_live.save_sessions(connection, rows)
    engine.dispose()


def judge(database: Path, base_url: str, concurrency: int, workers: int | None = None) -> dict[str, Any]:
    """Judge all of it. Calls, and the seconds of the call phase. Raises SystemExit where a call failed."""
    from audit.doors.db import open_database
    from audit.pipeline.ray_workers import RayEngine
    from audit.pipeline.run import Order, run

    times: list[measure.Spent] = []

    def tell(meter: Any) -> None:
        times[1:] = [measure.Spent.by_now()]  # the beginning stays, the end is the last one told

    engine = open_database(f"sqlite:///{database}", create=False)
    ray = None if workers is None else RayEngine(workers=workers)
    order = Order(_config(base_url), ("judge",), concurrency, ray=ray)
    meter = run(engine, order, tell, lambda _run, _is_new: None).meter
    engine.dispose()
    with closing(sqlite3.connect(database)) as connection:
        stored = dict(connection.execute("select parse_status, count(*) from judge_logs group by 1"))
    if stored != {"ok": meter.calls}:
        raise SystemExit(f"{meter.calls} calls were made and {stored} stored")
    return {"calls": meter.calls, **times[1].since(times[0])._asdict()}


def bare(database: Path, base_url: str, concurrency: int) -> dict[str, float]:
    """Milliseconds of processor time a call of the stored requests, by the SDK's own ways."""
    import openai

    with closing(sqlite3.connect(database)) as connection:
        bodies = [json.loads(row[0]) for row in connection.execute("select request_json from judge_logs")]
    sdk = {"api_key": "none", "base_url": base_url, "max_retries": 0}
    fast = openai.AsyncOpenAI(**sdk, http_client=openai.DefaultAioHttpClient())
    usual = openai.AsyncOpenAI(**sdk)

    async def cpu_ms(ask: Callable[[dict[str, Any]], Awaitable[Any]]) -> float:
        left = iter(bodies)

        async def worker() -> None:
            for body in left:
                await ask(body)

        began = time.process_time()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return (time.process_time() - began) * 1000 / len(bodies)

    async def all_ways() -> dict[str, float]:
        async with fast, usual:
            return {
                "post_ms": await cpu_ms(
                    lambda body: fast.post("/chat/completions", cast_to=object, body=body)
                ),
                "create_ms": await cpu_ms(lambda body: usual.chat.completions.create(**body)),
                "create_aiohttp_ms": await cpu_ms(lambda body: fast.chat.completions.create(**body)),
            }

    return asyncio.run(all_ways())


def _config(base_url: str) -> Any:
    from audit.words.config import check_config

    profiles = [
        {"name": "customer", "role": "simulated_user", "base_url": "offline://none", "model": "customer"},
        {"name": "referee", "role": "llm_judge", "base_url": base_url, "model": "asked", "temperature": 0.0},
        *({"name": agent, "role": "agent", "base_url": "offline://none", "model": agent} for agent in AGENTS),
    ]
    shop = str(measure.ROOT / "data" / "tasks" / "shop")
    found = {
        "profiles": profiles,
        "agents": AGENTS,
        "user": "customer",
        "judges": "referee",
        "tasks": [shop],
    }
    return check_config(found, "the benchmark's config")


def _session(run_id: str, task: int, agent: str) -> Any:
    from audit.words.records import Session

    name = f"task-{task:05d}"
    known = {
        "session_id": f"{run_id[-8:]}-{name}-{agent[-1]}",
        "run_id": run_id,
        "task_id": name,
        "category": "change",
        "task_fingerprint": name,
        "agent": agent,
        "trial": 0,
        "transcript_json": json.dumps(list(_messages(task, agent))),
        "end_reason": "user_stop",
        "final_state_json": "{}",
        "source_json": json.dumps({"goal": GREETING, "policy": "An open order may be changed once. " * 60}),
        "created_at": "2026-01-01T00:00:00.000Z",
    }
    return Session(**(dict.fromkeys(Session._fields) | known))


def _messages(task: int, agent: str) -> Iterator[dict[str, Any]]:
    """Some 2.5 kB, no two sessions alike."""
    yield {"role": "user", "content": f"My order is #{task}. {GREETING * 2}"}
    for step, tool in enumerate(("find_order", "change_order")):
        function = {"name": tool, "arguments": json.dumps({"order_id": f"W{task}", "step": step})}
        call = {"id": f"call-{step}", "type": "function", "function": function}
        yield {"role": "assistant", "content": None, "tool_calls": [call]}
        order = {"order": f"W{task}", "by": hash_of(task, agent), "items": ["a shirt, size M"] * 20}
        yield {"role": "tool", "tool_call_id": call["id"], "content": json.dumps(order)}
        yield {
            "role": "assistant",
            "content": f"{tool} is done: your order is open, and it has the size. " * 3,
        }
        yield {"role": "user", "content": "Thank you, and what is left of the credit on my account?"}


def hash_of(task: int, agent: str) -> int:
    """A number that tells the sessions of a task apart."""
    return (task * len(AGENTS) + AGENTS.index(agent)) * 0x9E3779B1 & 0xFFFFFFFF


class Loads:
    """Runs of the judge stage, each in a process of its own, against a server of its own."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.server = ""
        self.runs: list[dict[str, Any]] = []
        self.engines: dict[str, dict[str, float]] = {}

    def judged(
        self,
        pairs: int,
        concurrency: int,
        *,
        latency_ms: float = 0,
        rps: float = 0,
        with_bare: bool = False,
        workers: int | None = None,
    ) -> dict[str, Any]:
        """What the judging process told, its peak in MB, the server's counts, and the load before."""
        database = self.folder / "judged.db"
        load = {"latency_ms": latency_ms, "rps": rps}
        busy = os.getloadavg()[0]
        with llm_server.running(self.options, self.folder, text=ANSWER, **load) as server:
            self.server = server.name
            this: list[str | Path] = [sys.executable, __file__, "--of", database, "--url", server.base_url]
            measure.child([*this, "--make", str(-(-pairs // PAIRS_A_TASK))])
            command = [*this, "--judge", "--concurrency", str(concurrency)]
            if workers is not None:
                command += ["--workers", str(workers)]
            finished = measure.child([*command, *(["--bare"] if with_bare else [])])
            told = json.loads(finished.output) | {"peak_mb": finished.peak_mb} | server.stats()
        for file in self.folder.glob("judged.db*"):
            file.unlink()
        found = {"concurrency": concurrency, "workers": workers, **load, **told, "load_before": busy}
        self.runs.append(found)
        return found

    def pace(self) -> Iterator[measure.Goal]:
        for latency_ms, concurrency, limit in PACES:
            found = self.judged(self.options.pairs, concurrency, latency_ms=latency_ms)
            ideal = found["calls"] * latency_ms / 1000 / concurrency
            yield measure.Goal(f"pace_{latency_ms}ms_{concurrency}", found["wall"], ideal, "at_most", limit)

    def cpu(self) -> Iterator[measure.Goal]:
        rounds = [self.judged(self.options.pairs, 64, with_bare=True) for _ in range(self.options.rounds)]
        ours = statistics.median(found["cpu"] * 1000 / found["calls"] for found in rounds)
        post, create = (statistics.median(found[way] for found in rounds) for way in ("post_ms", "create_ms"))
        yield measure.Goal("cpu_of_bare_post", ours, post, "at_most", 1.5)
        yield measure.Goal("cpu_of_create", ours, create, "at_most", 0.55)

    def memory(self) -> Iterator[measure.Goal]:
        few, many = (self.judged(pairs, 64) for pairs in (self.options.pairs // 10, self.options.pairs))
        yield measure.Goal("peak_mb", many["peak_mb"], few["peak_mb"], "at_most", 1.1)

    def rate(self) -> Iterator[measure.Goal]:
        found = self.judged(self.options.pairs, 64, latency_ms=LIMIT_LATENCY_MS, rps=LIMIT_RPS)
        completed = found["requests"] - found["refused"]
        yield measure.Goal("answered", completed, found["calls"], "at_least", 1)
        yield measure.Goal("calls_a_second", found["calls"] / found["wall"], LIMIT_RPS, "at_least", 0.95)
        yield measure.Goal("rejections", found["refused"], completed, "at_most", 0.10)

    def ray(self) -> Iterator[measure.Goal]:
        """No goal: it says what workers cost, and from which load on they pay."""
        for workers in (None, 1, 2):
            found = [self.judged(self.options.pairs, 64, workers=workers) for _ in range(self.options.rounds)]
            calls = found[0]["calls"]
            wall, cpu = (statistics.median(one[kind] for one in found) for kind in ("wall", "cpu"))
            self.engines["local" if workers is None else f"ray_{workers}"] = {
                "calls_per_second": calls / wall,
                "ms_a_call": wall * 1000 / calls,
                "driver_cpu_ms_a_call": cpu * 1000 / calls,
            }
        local = self.engines["local"]
        for engine in self.engines.values():
            engine["throughput_ratio"] = engine["calls_per_second"] / local["calls_per_second"]
            engine["more_ms_a_call"] = engine["ms_a_call"] - local["ms_a_call"]
        yield from ()


def main() -> None:
    parser = measure.arguments(__doc__, pairs=4396)
    parts = ("pace", "cpu", "memory", "rate")
    parser.add_argument(
        "--parts", nargs="+", choices=(*parts, "ray"), default=parts, help="what to measure (all)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="cpu is measured so often (%(default)s)")
    parser.add_argument("--of", type=Path, help="the database to --make or to --judge")
    parser.add_argument("--url", help="the server")
    parser.add_argument("--make", type=int, metavar="TASKS", help="store sessions in the database --of")
    parser.add_argument("--judge", action="store_true", help="judge the database --of")
    parser.add_argument("--concurrency", type=int, default=64, metavar="N", help="%(default)s")
    parser.add_argument("--workers", type=int, metavar="N", help="judge in so many Ray workers")
    parser.add_argument("--bare", action="store_true", help="and make the same calls by the bare SDK")
    llm_server.add_options(parser)
    options = parser.parse_args()
    if options.make:
        make(options.of, options.url, options.make)
    elif options.judge:
        found = judge(options.of, options.url, options.concurrency, options.workers)
        found |= bare(options.of, options.url, options.concurrency) if options.bare else {}
        print(json.dumps(found))
    else:
        with measure.scratch(options) as folder:
            loads = Loads(options, Path(folder))
            goals = [goal for part in options.parts for goal in getattr(loads, part)()]
        measure.finish(options, "judging", goals, server=loads.server, runs=loads.runs, engines=loads.engines)


if __name__ == "__main__":
    main()
