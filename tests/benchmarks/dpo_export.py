"""The command `export dpo`, against a bare cursor and orjson, or bare pyarrow batches, over the same queries.

The database holds one run of 20 agents, every two of them a pair on every task: a session is in 19 pairs, as
in a live run. A session is a customer and an agent who talk, look an order up with a tool, and refund it or
not; 5 kB (tau2-bench's have 13, the embedded run's 2.6), and the first words are the same in all sessions of
a task. With `--own-sessions` every pair has two sessions of its own, as files of judged pairs have.

The export runs as the command in a process of its own, from start to exit: noise and error curve measured,
flags read, sessions cleaned and cut, rows, ledger and manifest written and on the disk. The bare loop is a
process too: it reads each pair with both transcripts (a join) and, from the same view in the same order, the
flags from sqlite3, parses both transcripts of each pair with orjson, and writes as many pairs as the export
found to be rows, with the same columns, cut at a fixed place; with nothing cleaned, compared or counted,
without a ledger, and without waiting for the disk. The Parquet loop does the same with record batches. Both
run once a round, one after the other, and the medians of the rounds are compared.

The export does not join: it reads 32 pairs and then their sessions, but for those it still holds.

Goals: as JSON Lines at least 0.8 of the bare loop's pairs a second, in at most 80 MB, at 200,000 pairs and
at a million; as Parquet at least 0.75 of bare pyarrow's, in at most 300 MB.
"""

import argparse
import json
import sqlite3
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from typing import Any

import made
import measure

PEAKS = {"jsonl": 80, "parquet": 300}
RATIOS = {"jsonl": 0.8, "parquet": 0.75}
BATCH = 5000
# In the order of pair_id without sorting; see `audit.doors.ask_dpo`.
PAIRS_SQL = """
select p.pair_id, p.task_id, p.gap_bucket, p.reward_gap, p.reward_a, p.reward_b, p.judge_pref,
    p.session_a, p.session_b, a.transcript_json, b.transcript_json
from audit_pairs as p
left join sessions as a on a.session_id = p.session_a
left join sessions as b on b.session_id = p.session_b
where p.run_id || '' = :run_id and p.gate = :gate
order by p.pair_id
"""
_TALK = (
    "The parcel came on Tuesday with one corner pushed in, and the glass inside is cracked from side to "
    "side. I have kept the box and all the papers, and I can send a picture if that is of any use to you. "
    "What I would like is my money back on the card that I paid with, or else a new one before the summer."
)


def fill(path: Path, pairs: int, *, own_sessions: bool) -> None:
    """The run with its sessions."""
    from audit.doors import store
    from audit.doors.db import open_database, writing

    engine = open_database(f"sqlite:///{path}", create=True)
    with writing(engine) as connection:
        store.add_run(connection, made.RUN)
        store.add_buckets(connection, made.SCALE.buckets.name, made.SCALE.buckets.with_unknown())
        for sessions, rows in _batches(pairs, own_sessions):
            store.add_sessions(connection, sessions)
            store.add_pairs(connection, rows)
    engine.dispose()


def _batches(pairs: int, own_sessions: bool) -> Iterator[tuple[list[Any], list[Any]]]:
    number = 0
    for rows, _ in made.rows(pairs):
        sessions, changed = {}, []
        for row in rows:
            drawn = made.draw(number)
            ids = []
            for side, agent, success in (
                ("a", drawn.agent_a, drawn.success_a),
                ("b", drawn.agent_b, drawn.success_b),
            ):
                trial = 2 * number + (side == "b") if own_sessions else 0
                session_id = f"benchmrk-s{drawn.task:06d}{agent:02d}{trial}"
                sessions[session_id] = _session(session_id, drawn.task, agent, trial, success)
                ids.append(session_id)
            changed.append(row._replace(session_a=ids[0], session_b=ids[1]))
            number += 1
        yield list(sessions.values()), changed


def _session(session_id: str, task: int, agent: int, trial: int, success: int) -> Any:
    from audit.words.records import Session
    from audit.words.text import as_json

    blank: dict[str, Any] = dict.fromkeys(Session._fields)
    return Session(
        **blank
        | {
            "session_id": session_id,
            "run_id": made.RUN.run_id,
            "task_id": f"task-{task:06d}",
            "agent": made.AGENTS[agent],
            "trial": trial,
            "transcript_json": as_json(_messages(task, agent, trial, success)),
            "reward": float(success),
            "success": success,
            "label_source": "rule",
            "created_at": made.RUN.created_at,
        }
    )


def _messages(task: int, agent: int, trial: int, success: int) -> list[dict[str, Any]]:
    talk = _TALK * 3
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Order {task} came broken. {talk[:300]}"},
        {"role": "assistant", "content": None, "tool_calls": [_call(1, "get_order", {"order": task})]},
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": json.dumps({"order": task, "notes": [_TALK] * 3}),
        },
        {"role": "assistant", "content": f"I am agent {agent}, attempt {trial}. {talk[:500]}"},
        {"role": "user", "content": f"Yes, please. {talk[200:400]}"},
        {"role": "assistant", "content": None, "tool_calls": [_call(2, "get_policy", {"about": "refund"})]},
        {"role": "tool", "tool_call_id": "call_2", "content": json.dumps({"policy": talk[:900]})},
    ]
    if success:
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [_call(3, "refund", {"order": task})]},
            {
                "role": "tool",
                "tool_call_id": "call_3",
                "content": json.dumps({"ok": True, "note": talk[:400]}),
            },
        ]
    return [*messages, {"role": "assistant", "content": f"Done, says {agent}. {talk[:600]}"}]


def _call(number: int, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"id": f"call_{number}", "type": "function", "function": function}


def bare(database: Path, target: Path, rows: int) -> None:
    """The bare loop, in a process of its own."""
    from audit.doors.ask_dpo import FLAGS_SQL

    values = {"run_id": made.RUN.run_id, "gate": "judge"}
    with closing(sqlite3.connect(database)) as connection:
        for _ in connection.execute(FLAGS_SQL, values):
            pass
        found = connection.execute(PAIRS_SQL, values)
        (_bare_parquet if target.suffix == ".parquet" else _bare_jsonl)(found, target, rows)


def _bare_rows(found: Any, rows: int) -> Iterator[dict[str, Any]]:
    import orjson

    for number, row in enumerate(found):
        a, b = orjson.loads(row[9]), orjson.loads(row[10])
        if number < rows:
            yield {
                "prompt": a[:3],
                "chosen": a[3:],
                "rejected": b[3:],
                "pair_id": row[0],
                "run_id": made.RUN.run_id,
                "reward_gap": row[3],
                "gap_bucket": row[2],
                "margin": 1.0,
                "flip_rate": 0.0,
                "weight": 1.0,
            }


def _bare_jsonl(found: Any, target: Path, rows: int) -> None:
    import orjson

    with target.open("wb") as file:
        for row in _bare_rows(found, rows):
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))


def _bare_parquet(found: Any, target: Path, rows: int) -> None:
    import orjson
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = {"pair_id": pa.utf8(), "run_id": pa.utf8(), "reward_gap": pa.float64(), "gap_bucket": pa.utf8()}
    kinds |= dict.fromkeys(("margin", "flip_rate", "weight"), pa.float64())
    messages = ("prompt", "chosen", "rejected")
    schema = pa.schema([*((name, pa.list_(pa.utf8())) for name in messages), *kinds.items()])
    held: list[dict[str, Any]] = []

    def write(writer: Any) -> None:
        arrays = []
        for name in messages:
            texts = pa.array([orjson.dumps(one) for row in held for one in row[name]], type=pa.utf8())
            starts = pa.array([0, *accumulate(len(row[name]) for row in held)], type=pa.int32())
            arrays.append(pa.ListArray.from_arrays(starts, texts))
        arrays += [pa.array([row[name] for row in held], type=kind) for name, kind in kinds.items()]
        writer.write_batch(pa.record_batch(arrays, schema=schema))
        held.clear()

    with pq.ParquetWriter(target, schema) as writer:
        for row in _bare_rows(found, rows):
            held.append(row)
            if len(held) == BATCH:
                write(writer)
        if held:
            write(writer)


def main() -> None:
    parser = measure.arguments(__doc__, pairs=200_000)
    parser.add_argument("--own-sessions", action="store_true", help="no session in two pairs")
    parser.add_argument("--rounds", type=int, default=3, help="each way is timed so often (%(default)s)")
    parser.add_argument("--formats", nargs="+", choices=("jsonl", "parquet"), default=["jsonl", "parquet"])
    parser.add_argument("--bare", nargs=3, metavar=("DB", "FILE", "ROWS"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.bare:
        bare(Path(options.bare[0]), Path(options.bare[1]), int(options.bare[2]))
        return
    with measure.scratch(options) as folder:
        goals, facts = _measured(Path(folder), options)
    name = "dpo_export --own-sessions" if options.own_sessions else "dpo_export"
    measure.finish(options, name, goals, pairs=options.pairs, **facts)


def _measured(folder: Path, options: argparse.Namespace) -> tuple[list[measure.Goal], dict[str, Any]]:
    database = folder / "run.db"
    here = [sys.executable, Path(__file__)]
    began = time.perf_counter()
    measure.child(_fill_command(database, options))
    facts: dict[str, Any] = {
        "database_mb": database.stat().st_size / 1e6,
        "filled_in": time.perf_counter() - began,
    }
    goals = []
    for ending in options.formats:
        ours, bares, peak = [], [], 0.0
        target = folder / f"set.{ending}"
        command = [
            sys.executable,
            "-m",
            "audit",
            "--db",
            f"sqlite:///{database}",
            "--json",
            "export",
            "dpo",
            "-o",
        ]
        for _ in range(options.rounds):
            done = measure.child([*command, target])
            counts = json.loads(done.output)["counts"]
            ours.append(done.spent)
            peak = max(peak, done.peak_mb)
            facts[f"{ending}_mb"] = target.stat().st_size / 1e6
            loop = [*here, "--bare", database, folder / f"bare.{ending}", str(counts["exported"])]
            bares.append(measure.child(loop).spent)
        facts |= {f"{ending}_spent": ours, f"{ending}_bare_spent": bares, "counts": counts}
        speed, bare_speed = (
            options.pairs / statistics.median(spent.wall for spent in ways) for ways in (ours, bares)
        )
        busy, bare_busy = (statistics.median(spent.cpu for spent in ways) for ways in (ours, bares))
        facts[f"{ending}_ratio_by_processor_time"] = bare_busy / busy
        goals += [
            measure.Goal(f"{ending}_pairs_per_second", speed, bare_speed, "at_least", RATIOS[ending]),
            measure.Goal(f"{ending}_peak_mb", peak, PEAKS[ending], "at_most", 1),
        ]
    return goals, facts


def _fill_command(database: Path, options: argparse.Namespace) -> list[str | Path]:
    code = (
        "import sys; from pathlib import Path; import dpo_export; "
        f"dpo_export.fill(Path(sys.argv[1]), {options.pairs}, own_sessions={options.own_sessions})"
    )
    here = str(Path(__file__).parent)
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r}); {code}", database]


if __name__ == "__main__":
    main()
