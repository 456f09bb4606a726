"""Import: a file of recorded judgments becomes one run, scored, whole or not at all."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import IntegrityError

from audit.doors import ask, store
from audit.doors.db import reading, writing
from audit.doors.files import Progress, sha256, stem
from audit.doors.formats import judgebench, llmbar, pandalm, plain
from audit.pipeline.importing_sessions import FORMATS as SESSION_FORMATS
from audit.pipeline.importing_sessions import import_gauge, import_sessions
from audit.pipeline.rows import id_tail, log_row, pair_row, session_rows, session_slots, two_agents
from audit.pipeline.scoring import rescore, set_agent_gaps
from audit.pipeline.wishes import Imported, Wish, batches
from audit.verbs.answers import read_answer
from audit.verbs.gaps import GAUGE, SCORES
from audit.verbs.score import Scale
from audit.words import clock
from audit.words.errors import BadFile
from audit.words.names import GapSource
from audit.words.records import ImportedPair, JudgeLog, Pair, Run, Session
from audit.words.text import as_json

__all__ = ["Imported", "Wish", "import_file", "pairs_of"]


class Held(NamedTuple):
    """What the pairs of a file hold: the most orders one of them was asked in, two named agents, gaps."""

    orders: int = 0
    has_agents: bool = False
    has_gaps: bool = False

    def and_of(self, item: ImportedPair, orders: int = 0) -> "Held":
        """With one more pair, asked in so many orders."""
        return Held(
            max(self.orders, orders),
            self.has_agents or two_agents(item),
            self.has_gaps or item.external_gap is not None,
        )


def import_file(engine: Engine, wish: Wish, progress: Progress | None = None) -> Imported:
    """Take the file in one transaction. Raises BadFile with file, line and field: nothing is stored then."""
    blank = _blank_run(wish)
    try:
        with writing(engine) as connection:
            earlier = ask.imported_before(connection, blank.name, blank.config_hash)
            if earlier is None:
                return _taker(wish.format)(connection, wish, blank, progress)
    except IntegrityError:
        # PostgreSQL shows the same import by another process only when that one is done.
        with reading(engine) as connection:
            earlier = ask.imported_before(connection, blank.name, blank.config_hash)
        if earlier is None:
            raise
    return Imported(earlier, False, 0, 0)


def _taker(format_name: str) -> Callable[[Connection, Wish, Run, Progress | None], Imported]:
    if format_name in SESSION_FORMATS:
        return import_sessions
    return import_gauge if format_name == "gauge-csv" else _import_pairs


def pairs_of(
    wish: Wish, progress: Progress | None = None, passed_over: set[str] | None = None
) -> Iterator[ImportedPair]:
    """The pairs of the wish's file or files, in their order; foreign columns are added to `passed_over`."""
    strange = set() if passed_over is None else passed_over
    path = wish.paths[0]
    if wish.format == "pandalm":
        return pandalm.read(wish.paths)
    if wish.format == "judgebench":
        return judgebench.read(path, progress)
    if wish.format == "llmbar":
        return llmbar.read(path)
    if wish.format == "jsonl":
        return plain.read_jsonl(path, wish.grammar, progress, strange)
    return plain.read_csv(path, wish.grammar, progress, strange)


def _blank_run(wish: Wish) -> Run:
    """The run before its file is read.

    Two imports are the same by the bytes of their files and how they are read, not by what the files are
    called or which was named first.
    """
    digests = [sha256(path) for path in wish.paths]
    names = [path.name for path in wish.paths]
    files = [{"name": name, "sha256": digest} for name, digest in zip(names, digests, strict=True)]
    config: dict[str, Any] = {"format": wish.format, "files": files}
    if wish.format in SESSION_FORMATS:
        agents = [wish.agent_of(index) for index in range(len(files))]
        config |= {"agents": agents, "success_at": wish.success_at}
        told = sorted([digest, agent or ""] for digest, agent in zip(digests, agents, strict=True))
        sameness = as_json(config | {"files": told, "agents": None})
    else:
        config |= {"grammar": wish.grammar, "reread": wish.reread}
        sameness = as_json(config | {"files": sorted(digests)})
    return Run(
        run_id=store.new_run_id(),
        name=wish.name or _name(wish),
        kind="import",
        config_json=as_json(config),
        config_hash=hashlib.sha256(sameness.encode()).hexdigest()[:16],
        task_set_hash=None,
        prompt_set_hash=None,
        swap_rule="both_agree",
        gap_source="session",
        gap_scope="run",
        bucket_set=GAUGE.name,
        status="running",
        created_at=clock.now(),
        finished_at=None,
    )


def _name(wish: Wish) -> str:
    """The file's name; of several files of sessions all their names, whichever was named first."""
    if wish.format not in SESSION_FORMATS:
        return stem(wish.paths[-1])
    stems = sorted(stem(path) for path in wish.paths)
    return "+".join(stems) if len(stems) < 4 else f"{stems[0]} and {len(stems) - 1} more"


def _import_pairs(connection: Connection, wish: Wish, blank: Run, progress: Progress | None) -> Imported:
    passed_over: set[str] = set()
    found = pairs_of(wish, progress, passed_over)
    first = next(found, None)
    if first is None:
        raise BadFile(str(wish.paths[0]), "", "holds no pairs")
    run, scale = _scaled(wish, blank, Held().and_of(first, len(first.answers)))
    store.add_run(connection, run)
    store.add_buckets(connection, scale.buckets.name, scale.buckets.with_unknown())
    writer = PairWriter(connection, run, scale, wish)
    for batch in batches(chain((first,), found)):
        writer.write(batch)
    # The first pair need not be like the others: what the whole file holds decides.
    whole, scale = _scaled(wish, blank, writer.held)
    if whole != run:
        store.set_scale(
            connection, run.run_id, whole.swap_rule, whole.gap_source, whole.gap_scope, whole.bucket_set
        )
        rescore(connection, whole, scale)
    elif writer.held.has_agents:
        set_agent_gaps(connection, whole, scale)
    store.finish_run(connection, run.run_id, "complete")
    return Imported(run.run_id, True, writer.pairs, 0, tuple(sorted(passed_over)))


def _scaled(wish: Wish, blank: Run, held: Held) -> tuple[Run, Scale]:
    """The run and its scale: what was asked for, else what the kind of record calls for."""
    swap_rule = wish.swap_rule or ("first_order" if held.orders == 1 else "both_agree")
    gap_source = wish.gap_source or _gap_source(wish.format, held)
    buckets = wish.buckets or (SCORES if gap_source == "judge" else GAUGE)
    run = blank._replace(
        swap_rule=swap_rule, gap_source=gap_source, gap_scope=wish.gap_scope, bucket_set=buckets.name
    )
    return run, Scale(swap_rule, gap_source, buckets)


def _gap_source(format_name: str, held: Held) -> GapSource:
    if format_name not in ("jsonl", "csv"):
        return "session"
    if held.has_gaps:
        return "external"
    return "agent" if held.has_agents else "session"


class PairWriter:
    """Turns imported pairs into rows and stores them batch by batch; numbers pairs from 1."""

    def __init__(self, connection: Connection, run: Run, scale: Scale, wish: Wish) -> None:
        self.connection = connection
        self.run = run
        self.scale = scale
        self.wish = wish
        self.pairs = 0
        self.held = Held()

    def write(self, batch: Sequence[ImportedPair]) -> None:
        """Store one batch. Raises BadFile where a pair, or a session of one, contradicts an earlier one."""
        sessions: list[Session] = []
        pairs: list[Pair] = []
        logs: list[JudgeLog] = []
        for item in batch:
            self._add(item, sessions, pairs, logs)
        try:
            store.add_sessions(self.connection, sessions)
            store.add_pairs(self.connection, pairs)
        except IntegrityError as error:
            raise self._twice(batch) from error
        store.add_logs(self.connection, logs)

    def _add(
        self, item: ImportedPair, sessions: list[Session], pairs: list[Pair], logs: list[JudgeLog]
    ) -> None:
        self.pairs += 1
        pair_id = f"{id_tail(self.run)}-p{self.pairs:07d}"
        session_a, session_b = self._sessions(item, sessions)
        try:
            judgments = [read_answer(raw, reread=self.wish.reread) for raw in item.answers]
        except ValueError as error:
            raise BadFile(str(self.wish.paths[0]), item.place, f"grammar: {error}") from error
        asked = sum(judgment.answer != "missing" for judgment in judgments)
        self.held = self.held.and_of(item, asked)
        pairs.append(pair_row(self.run, self.scale, item, pair_id, session_a, session_b, judgments))
        for raw, judgment in zip(item.answers, judgments, strict=True):
            if judgment.answer != "missing":
                logs.append(log_row(self.run, item.gate, pair_id, raw, judgment))

    def _sessions(self, item: ImportedPair, sessions: list[Session]) -> tuple[str | None, str | None]:
        """Both sides' sessions, where the file says what they did; the same session is one row."""
        if item.transcript_a is None and item.transcript_b is None:
            return None, None
        rows = session_rows(self.run, item)
        sessions.extend(rows)
        return rows[0].session_id, rows[1].session_id

    def _twice(self, batch: Sequence[ImportedPair]) -> BadFile:
        """Which two lines clash: the file is read again, because no list of all its ids is kept."""
        wanted = {(item.gate, item.source_pair_id) for item in batch}
        slots = {slot for item in batch for slot in session_slots(self.run, item)}
        seen: dict[tuple[str, str], str] = {}
        held: dict[tuple[object, ...], tuple[str, str]] = {}
        for item in pairs_of(self.wish):
            key = (item.gate, item.source_pair_id)
            if key in wanted and key in seen:
                return self._wrong(
                    item,
                    f"pair_id {item.source_pair_id!r} of judge {item.gate!r} stands at {seen[key]} already",
                )
            if key in wanted:
                seen[key] = item.place
            for slot, session_id in session_slots(self.run, item).items():
                if slot in slots and held.setdefault(slot, (session_id, item.place))[0] != session_id:
                    return self._wrong(
                        item,
                        f"task {slot[0]!r}, agent {slot[1]!r}, trial {slot[2]} did something else at "
                        f"{held[slot][1]}: give each session its own `trial`",
                    )
        return self._wrong(batch[0], "a pair or a session from here on stands in the file twice")

    def _wrong(self, item: ImportedPair, problem: str) -> BadFile:
        return BadFile(str(self.wish.paths[0]), item.place, problem)
