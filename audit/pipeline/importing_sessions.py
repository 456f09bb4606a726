"""Import of recorded sessions: all files of one command become one run, its sessions paired but not judged.

The pairs stand under the gate `unjudged`. When judges come, `pipeline.gating` hands these very rows to the
first gate and copies them for further ones, so that no pair is ever counted beside itself.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import store
from audit.doors.files import Progress
from audit.doors.formats import gauge_csv, inspect_logs, sessions, tau, tau2
from audit.pipeline.rows import gauge_session_row, id_tail, session_pair_row, session_row
from audit.pipeline.scoring import set_agent_gaps
from audit.pipeline.wishes import Imported, Wish, batches
from audit.verbs.gaps import GAUGE, SCORES
from audit.verbs.pairing import Held, clashing_ids, pair_sessions
from audit.verbs.score import Scale
from audit.words.errors import BadFile
from audit.words.records import ImportedSession, Pair, Run
from audit.words.text import as_json

FORMATS = ("tau", "tau2", "inspect", "sessions")
Slot = tuple[str, str | None, str, int]


class Seen(NamedTuple):
    """One session that was taken: where it stood, and a digest of what it holds."""

    file: str
    place: str
    digest: bytes


def sessions_of(
    wish: Wish, index: int, progress: Progress | None, passed_over: set[str]
) -> Iterator[ImportedSession]:
    """The sessions of one of the wish's files."""
    path, agent = wish.paths[index], wish.agent_of(index)
    if wish.format == "sessions":
        return sessions.read(path, agent, progress, passed_over)
    read = {"tau": tau.read, "tau2": tau2.read, "inspect": inspect_logs.read}[wish.format]
    return read(path, agent, progress)


def import_sessions(connection: Connection, wish: Wish, blank: Run, progress: Progress | None) -> Imported:
    """All files as one run. Raises BadFile with both places where two sessions contradict each other."""
    run, scale = _scaled(wish, blank)
    store.add_run(connection, run)
    store.add_buckets(connection, scale.buckets.name, scale.buckets.with_unknown())
    taken = Taken(connection, run, wish.success_at)
    passed_over: set[str] = set()
    for index, path in enumerate(wish.paths):
        if not taken.file(path, sessions_of(wish, index, progress, passed_over)):
            raise BadFile(str(path), "", "holds no sessions")
    found = taken.pair(scale)
    config = json.loads(run.config_json) | {
        "clashing_ids": found.clashing_ids,
        "odd_rewards": found.odd_rewards,
    }
    store.set_config(connection, run.run_id, as_json(config))
    store.finish_run(connection, run.run_id, "complete")
    return found._replace(passed_over=tuple(sorted(passed_over)))


def _scaled(wish: Wish, blank: Run) -> tuple[Run, Scale]:
    swap_rule = wish.swap_rule or "both_agree"
    gap_source = wish.gap_source or "agent"
    buckets = wish.buckets or (SCORES if gap_source == "judge" else GAUGE)
    run = blank._replace(
        swap_rule=swap_rule, gap_source=gap_source, gap_scope=wish.gap_scope, bucket_set=buckets.name
    )
    return run, Scale(swap_rule, gap_source, buckets)


class Taken:
    """The sessions of a run, stored as they come; what pairing needs of them is kept."""

    def __init__(self, connection: Connection, run: Run, success_at: float) -> None:
        self.connection = connection
        self.run = run
        self.success_at = success_at
        self.held: list[Held] = []
        self.seen: dict[Slot, Seen] = {}
        self.odd = 0

    def file(self, path: Path, found: Iterator[ImportedSession]) -> int:
        """Store one file's sessions; how many it holds."""
        count = 0
        try:
            for batch in batches(found, 100):
                count += len(batch)
                new = [item for item in batch if self._is_new(path, item)]
                rows = [session_row(self.run, item, self.success_at) for item in new]
                store.add_sessions(self.connection, rows)
                for item, row in zip(new, rows, strict=True):
                    self.odd += item.is_odd
                    self.held.append(
                        Held(
                            row.session_id,
                            str(row.task_id),
                            row.task_fingerprint,
                            item.agent,
                            row.trial,
                            row.category,
                            row.reward,
                            row.success,
                        )
                    )
        except RecursionError as error:
            raise BadFile(str(path), "", "JSON that is nested too deep to be read") from error
        return count

    def _is_new(self, path: Path, item: ImportedSession) -> bool:
        """False for the very same session once more, as when two files overlap."""
        slot = (str(item.task_id), item.task_fingerprint, item.agent, item.trial)
        digest = hashlib.blake2b(as_json(list(item._replace(place=""))).encode(), digest_size=16).digest()
        earlier = self.seen.setdefault(slot, Seen(str(path), item.place, digest))
        if earlier.digest != digest:
            where = earlier.place if earlier.file == str(path) else f"{earlier.file}, {earlier.place}"
            raise BadFile(
                str(path),
                item.place,
                f"task {item.task_id!r}, agent {item.agent!r}, trial {item.trial} did something else at "
                f"{where}: give each session its own trial, or each file its own --agent",
            )
        return earlier.place == item.place and earlier.file == str(path)

    def pair(self, scale: Scale) -> Imported:
        """Store the pairs that the sessions make, scored as far as that goes without a judge."""
        number = other_trials = 0
        met: set[tuple[str, str]] = set()
        for batch in batches(pair_sessions(self.held)):
            rows: list[Pair] = []
            for a, b in batch:
                number += 1
                other_trials += a.trial != b.trial
                met.add((a.agent, b.agent))
                rows.append(session_pair_row(self.run, scale, a, b, f"{id_tail(self.run)}-p{number:07d}"))
            store.add_pairs(self.connection, rows)
        if number:
            set_agent_gaps(self.connection, self.run, scale)
        agents = list(dict.fromkeys(held.agent for held in self.held))
        return Imported(
            run_id=self.run.run_id,
            is_new=True,
            pairs=number,
            sessions=len(self.held),
            clashing_ids=len(clashing_ids((held.task_id, held.task_fingerprint) for held in self.held)),
            odd_rewards=self.odd,
            unknown_rewards=sum(held.reward is None for held in self.held),
            other_trials=other_trials,
            unpaired=tuple(pair for pair in combinations(agents, 2) if pair not in met),
        )


def import_gauge(connection: Connection, wish: Wish, run: Run, progress: Progress | None) -> Imported:
    """The sessions of a gauge-csv file, which say nothing of what was done in them."""
    path = wish.paths[0]
    store.add_run(connection, run)
    trials: Counter[tuple[str | None, str]] = Counter()
    stored = 0
    for batch in batches(gauge_csv.read(path, progress)):
        rows: list[Any] = []
        for item in batch:
            key = (item.task_id, item.agent)
            stored += 1
            rows.append(gauge_session_row(run, item, stored, trials[key]))
            trials[key] += 1
        store.add_sessions(connection, rows)
    if not stored:
        raise BadFile(str(path), "", "holds no sessions")
    store.finish_run(connection, run.run_id, "complete")
    return Imported(run.run_id, True, 0, stored)
