"""Batch by hand: the lines of a run's open questions as files, and results from files; no network."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_batches, counts, store_batches, waiting
from audit.doors.config import with_key
from audit.doors.db import reading, writing
from audit.doors.files import json_lines
from audit.doors.lease import leased
from audit.doors.llm import Models
from audit.doors.llm_batch_lines import request_line, result_in
from audit.doors.tables import settle, whole_files
from audit.doors.tasks import load_tasks
from audit.pipeline import planning, recorded
from audit.pipeline.batch_answers import Result, Taken, take
from audit.pipeline.batch_questions import MOST_BYTES, MOST_LINES, Sheet, Wanted, review, wanted
from audit.pipeline.batch_rounds import UNDER_WAY
from audit.pipeline.budget import Budget
from audit.pipeline.expected import units
from audit.pipeline.live import Live, Meter
from audit.pipeline.run import RECORDED_STAGES
from audit.pipeline.scoring import score_run
from audit.pipeline.standing import config_of, left, settle_status
from audit.pipeline.workplace import gates_of, key_name
from audit.words.config import Config
from audit.words.errors import BadFile, BadRequest
from audit.words.keys import SHOWN_INSTEAD, without_keys
from audit.words.records import ProviderBatch, Run
from audit.words.text import as_json

_AT_ONCE = 256


class Exported(NamedTuple):
    """What was written: (file, profile, lines) each; `under_way` lines are at the provider already.

    `over_budget` says why something was left out.
    """

    run: Run
    files: list[tuple[Path, str, int]]
    under_way: int
    over_budget: str | None


class Ingested(NamedTuple):
    """What became of the lines for one run, and what of it still waits; `status` as `settle_status` says."""

    run: Run
    taken: Taken
    left: int
    status: str


def export_requests(
    engine: Engine,
    wanted_run: str,
    path: Path,
    config: Config | None,
    environ: Mapping[str, str],
    *,
    retry_errors: bool = False,
    most_lines: int = MOST_LINES,
) -> Exported:
    """Write a line for everything of the run that is not answered yet, also for what was written before.

    A file for each profile, and more where one would be too large: then the profile's name and a number
    stand before the ending of `path`. All files appear, or none.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted_run)
    with leased(engine, run.run_id):
        live = _live(engine, run, config, environ, retry_errors)
        _refuse_hidden(live.config)
        if run.kind == "live":
            # A sample is drawn of all that the tasks make.
            tasks = load_tasks([Path(task) for task in live.config.tasks]) if live.config.sample else []
            with writing(engine) as connection:
                planning.plan_pairs(connection, run, live.config, tasks)
        sheet = Sheet(live, "exported", most_lines)
        asyncio.run(review(live, wanted(live), sheet))
        with reading(engine) as connection:
            under_way = ask_batches.count_open(connection, run.run_id)
            parts = _parts(connection, run.run_id, most_lines)
            files = _written(path, parts)
        at_provider = sum(under_way.get(status, 0) for status in UNDER_WAY)
        left_over = (
            f"{sheet.left_over:,} questions are left out: the budget of the run does not reach to them"
        )
        return Exported(live.run, files, at_provider, left_over if sheet.left_over else None)


def ingest_results(
    engine: Engine,
    paths: list[Path],
    only: str | None,
    config: Config | None,
    environ: Mapping[str, str],
) -> list[Ingested]:
    """Take result lines into the runs that they belong to, or into none: all lines are looked at first.

    Raises BadFile for a line that is no result, or whose custom_id nobody was given, with its number.
    """
    with reading(engine) as connection:
        run_id = None if only is None else ask.run_named(connection, only).run_id
        found = _runs_of(connection, paths, run_id)
        runs = [ask.run_named(connection, name) for name in found]
    if not runs:
        raise BadFile(str(paths[0]), "", "holds no result line: did the batch fail?")
    return [_ingest(engine, run, paths, config, environ) for run in runs]


def drop_lines(engine: Engine, wanted_run: str) -> tuple[Run, int]:
    """Give up every line of the run that waits; how many that were. What comes for them is passed over."""
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted_run)
    with leased(engine, run.run_id), writing(engine) as connection:
        batches = ask_batches.batches(connection, run.run_id, [*UNDER_WAY, "exported"])
        return run, sum(store_batches.drop_open(connection, batch.batch_id, "given up") for batch in batches)


def batches_of(engine: Engine, wanted_run: str) -> tuple[Run, list[ProviderBatch]]:
    """The run's batches, the oldest first."""
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted_run)
        return run, ask_batches.batches(connection, run.run_id, [*UNDER_WAY, "exported", "done"])


def _live(
    engine: Engine, run: Run, config: Config | None, environ: Mapping[str, str], retry_errors: bool
) -> Live:
    """The run without its models. Its own config holds no keys: those in the environment must not be kept."""
    if config is None:
        config = _stored_config(run)
    elif run.kind == "live":
        raise BadRequest(f"run {run.run_id} was begun with a config, which holds for it: leave -c out")
    else:
        run = recorded.judge_now(engine, run.run_id, config)
    profiles = [with_key(profile, environ) for profile in config.profiles]
    keys = {
        key_name(profile) or profile.name: profile.api_key.get_secret_value()
        for profile in profiles
        if profile.api_key is not None
    }
    budget = Budget(config, units(config, []), 1)
    with reading(engine) as connection:
        agents = waiting.agents(connection, run.run_id) if run.kind == "import" else []
        budget.count_before(counts.used(connection, run.run_id))
    meter = Meter()
    return Live(
        engine=engine,
        run=run,
        config=config.model_copy(update={"profiles": profiles}),
        tasks=[],
        models=Models(keys),
        allowance=budget,
        note=meter.note,
        concurrency=1,
        budget=budget,
        meter=meter,
        retry_errors=retry_errors,
        recorded_agents=frozenset(agents),
    )


def _stored_config(run: Run) -> Config:
    """The config that the run was begun, or an imported one judged with."""
    # What is empty was not written: agents and a user need not be there, and may not be there as nothing.
    stored = {name: value for name, value in config_of(run).items() if value not in ([], "", None)}
    if not stored:
        raise BadRequest(
            f"run {run.run_id} was imported and has no judge: name one by -c FILE (profiles, judges)"
        )
    try:
        return Config.model_validate(stored)
    except ValueError as error:
        raise BadRequest(
            f"the config of run {run.run_id} is of another version of this program: use `judge --batch`"
        ) from error


def _refuse_hidden(config: Config) -> None:
    """Raises BadRequest where a judge is sent a key in its body: no file may hold one."""
    for name in config.judge_names():
        extra = config.profile(name).extra
        if without_keys(extra) != extra or SHOWN_INSTEAD in as_json(extra):
            raise BadRequest(
                f"profile {name!r} sends a key in `extra`, which no file may hold: use `judge --batch`"
            )


def _parts(connection: Connection, run_id: str, most_lines: int) -> Iterator[tuple[str, list[bytes]]]:
    """(profile, lines) of each file: what was exported and waits, no more in one than a provider takes."""
    lines: dict[str, list[bytes]] = {}
    size: dict[str, int] = {}
    for batch in ask_batches.batches(connection, run_id, ["exported"]):
        profile = batch.profile
        for custom_id, request_json in ask_batches.open_requests(connection, batch.batch_id):
            line = request_line(custom_id, request_json)
            held = lines.setdefault(profile, [])
            is_full = len(held) >= most_lines or size.get(profile, 0) + len(line) + 1 > MOST_BYTES
            if held and is_full:
                yield profile, lines.pop(profile)
                held, size[profile] = lines.setdefault(profile, []), 0
            held.append(line)
            size[profile] = size.get(profile, 0) + len(line) + 1
    yield from lines.items()


def _written(path: Path, parts: Iterator[tuple[str, list[bytes]]]) -> list[tuple[Path, str, int]]:
    """Write each part; with several, each gets a name of its own."""
    files: list[tuple[Path, str, int]] = []
    waiting_part = next(parts, None)
    with whole_files() as beside:
        while waiting_part is not None:
            (profile, lines), waiting_part = waiting_part, next(parts, None)
            is_only = not files and waiting_part is None
            target = path if is_only else _beside(path, profile, len(files) + 1)
            with beside(target).open("wb") as file:
                file.write(b"\n".join([*lines, b""]))
                settle(file)
            files.append((target, profile, len(lines)))
    return files


def _beside(path: Path, profile: str, number: int) -> Path:
    safe = "".join(char if char.isalnum() or char in "._-" else "_" for char in profile)
    return path.with_name(f"{path.stem}.{number}-{safe}{path.suffix}")


def _runs_of(connection: Connection, paths: list[Path], only: str | None) -> list[str]:
    """The runs that the files' lines belong to."""
    runs: dict[str, None] = {}
    for path in paths:
        places: list[tuple[int, str]] = []
        for number, line in json_lines(path):
            places.append((number, _custom_id(path, number, line)))
            if len(places) == _AT_ONCE:
                runs |= dict.fromkeys(_known(connection, path, places, only))
                places = []
        runs |= dict.fromkeys(_known(connection, path, places, only))
    return list(runs)


def _custom_id(path: Path, number: int, line: dict[str, Any]) -> str:
    custom_id = line.get("custom_id")
    if not isinstance(custom_id, str):
        raise BadFile(str(path), f"line {number}", "no custom_id: expected the results of a batch")
    if "response" not in line and "error" not in line:
        raise BadFile(
            str(path), f"line {number}", "no response and no error: expected results, not the requests"
        )
    return custom_id


def _known(
    connection: Connection, path: Path, places: list[tuple[int, str]], only: str | None
) -> Iterator[str]:
    named = ask_batches.lines_named(connection, [custom_id for _, custom_id in places])
    for number, custom_id in places:
        run_id = named[custom_id][0] if custom_id in named else None
        if run_id is None or only not in (None, run_id):
            whose = "no line of this database" if run_id is None else f"a line of run {run_id}"
            raise BadFile(
                str(path), f"line {number}", f"custom_id {custom_id!r} is {whose}: nothing is taken"
            )
        yield run_id


def _ingest(
    engine: Engine, run: Run, paths: list[Path], config: Config | None, environ: Mapping[str, str]
) -> Ingested:
    with leased(engine, run.run_id):
        live = _live(engine, run, config, environ, retry_errors=False)
        taken = Taken()
        for path in paths:
            for some in _results(engine, run, path):
                more = take(live, some)
                taken.stored += more.stored
                taken.failed += more.failed
                taken.passed_over += more.passed_over
        with reading(engine) as connection:
            pairs = waiting.unjudged(connection, run.run_id, False, list(gates_of(live.config)))
        asyncio.run(review(live, Wanted(pairs, [], 0), None))
        return _standing(live, taken)


def _results(engine: Engine, run: Run, path: Path) -> Iterator[list[Result]]:
    """The file's lines for one run, some at a time."""
    some: list[Result] = []
    for _, line in json_lines(path):
        some.append(Result(line["custom_id"], result_in(line)))
        if len(some) == _AT_ONCE:
            yield _of_run(engine, run, some)
            some = []
    yield _of_run(engine, run, some)


def _of_run(engine: Engine, run: Run, results: list[Result]) -> list[Result]:
    with reading(engine) as connection:
        named = ask_batches.lines_named(connection, [result.custom_id for result in results])
    return [result for result in results if named[result.custom_id][0] == run.run_id]


def _standing(live: Live, taken: Taken) -> Ingested:
    """Where the run stands now; scored, where its judging was all that it waited for."""
    run_id = live.run.run_id
    with writing(live.engine) as connection:
        for batch in ask_batches.batches(connection, run_id, ["exported"]):
            if next(ask_batches.open_requests(connection, batch.batch_id, 1), None) is None:
                store_batches.set_batch(connection, batch.batch_id, status="done")
        todo = left(connection, live.run)["judge"]
    stages: tuple[str, ...] = ("judge",)
    if not todo and live.run.kind == "import":
        score_run(live.engine, run_id)
        stages = RECORDED_STAGES
    with writing(live.engine) as connection:
        return Ingested(live.run, taken, todo, settle_status(connection, live.run, stages))
