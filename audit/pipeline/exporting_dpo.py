"""Export a set for DPO: the pairs of a run that can be trained on, and a reason for each that cannot."""

import hashlib
import json
from bisect import bisect_right
from contextlib import ExitStack, closing
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_dpo
from audit.doors.dataset import JsonlRows, Rows, checked, open_rows
from audit.doors.db import reading
from audit.doors.files import sha256
from audit.doors.tables import settle, whole_files
from audit.pipeline.dpo_card import card, may_write
from audit.pipeline.dpo_manifest import Asked, Tally, manifest
from audit.pipeline.dpo_noise import Measured, measure
from audit.pipeline.dpo_rows import Maker, Rules
from audit.pipeline.dpo_sessions import Sessions
from audit.pipeline.standing import choose_gate, config_of
from audit.words.errors import BadRequest
from audit.words.flags import Cut, Form, Prefer, dropping
from audit.words.records import Run

# The tokens by which the simulated users of tau-bench and tau2-bench end a session.
STOP_TOKENS = ("###STOP###", "###TRANSFER###", "###OUT-OF-SCOPE###")

# Pairs whose sessions are read by one query.
_AT_ONCE = 32


class Wish(NamedTuple):
    """What is to be exported, and how; `split`: (name, share) of each part, none for one file."""

    path: Path
    run: str = "latest"
    gate: str | None = None
    prefer: Prefer = "judge"
    cut: Cut = "first-divergence"
    form: Form = "conversational"
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    min_gap: float | None = None
    max_chars: int | None = None
    split: tuple[tuple[str, float], ...] = ()
    card: bool = False

    def told(self) -> dict[str, Any]:
        """The options as they stand in the manifest."""
        return {
            "prefer": self.prefer,
            "cut": self.cut,
            "format": self.form,
            "keep": sorted(self.keep),
            "drop": sorted(self.drop),
            "min_gap": self.min_gap,
            "max_chars": self.max_chars,
            "split": dict(self.split) or None,
        }

    def parts(self) -> dict[str | None, Path]:
        """Part -> its file: `pairs.train.jsonl` beside `pairs.jsonl`; NULL is the whole."""
        names: list[str | None] = [name for name, _ in self.split] or [None]
        return {
            name: self.path
            if name is None
            else self.path.with_name(f"{self.path.stem}.{name}{self.path.suffix}")
            for name in names
        }

    def beside(self, ending: str) -> Path:
        """A file that goes with the set."""
        return self.path.with_name(self.path.name + ending)


def export_dpo(engine: Engine, wish: Wish) -> dict[str, Any]:
    """Write the set, its ledger, its manifest and, where it is wished for, its card; the manifest.

    All files appear when the last row is in, or none does. Raises BadFile for a place or an ending that
    cannot be written, BadRequest for a run without such a gate, and where no row would replace older ones.
    """
    checked(wish.path)
    if wish.card:
        may_write(wish.path.with_name("README.md"))
    with reading(engine) as connection, whole_files() as beside, ExitStack() as opened:
        run = ask.run_named(connection, wish.run)
        gate = choose_gate(connection, run, wish.gate)
        dropped_by = dropping(wish.prefer, wish.keep, wish.drop)
        measured = measure(connection, run, gate, wish.prefer, dropped_by)
        near_tie = _near_tie(wish, measured)
        rules = _rules(connection, run, wish, dropped_by, near_tie["below"])
        partials = {name: beside(path) for name, path in wish.parts().items()}
        ledger_partial = beside(wish.beside(".dropped.jsonl"))
        parts: dict[str | None, Rows] = {}
        for name, path in wish.parts().items():
            parts[name] = open_rows(path, partials[name], rules.fields())
            opened.callback(parts[name].close)
        ledger = JsonlRows(ledger_partial)
        opened.callback(ledger.close)
        tally = _write(connection, gate, rules, measured, parts, ledger, wish.split)
        if not tally.exported and any(
            path.exists() and path.stat().st_size for path in wish.parts().values()
        ):
            reasons = ", ".join(f"{flag} {count:,}" for flag, count in tally.reasons().items())
            raise BadRequest(f"nothing is left to export ({reasons}): the older set at {wish.path} stays")
        for rows in (*parts.values(), ledger):
            rows.finish()
        files = [
            _file(path, "rows", parts[name], partials[name]) | ({} if name is None else {"split": name})
            for name, path in wish.parts().items()
        ]
        files.append(_file(wish.beside(".dropped.jsonl"), "dropped", ledger, ledger_partial))
        buckets = ask.bucket_rows(connection, run.bucket_set)
        found = manifest(Asked(run, gate, wish.told(), near_tie, buckets), tally, measured, files)
        if wish.card:
            _put(beside(wish.path.with_name("README.md")), card(found, _headline(engine, run, gate)))
        _put(beside(wish.beside(".manifest.json")), json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    return found


def _write(
    connection: Connection,
    gate: str,
    rules: Rules,
    measured: Measured,
    parts: dict[str | None, Rows],
    ledger: Rows,
    split: tuple[tuple[str, float], ...],
) -> Tally:
    """Every candidate into a part or into the ledger."""
    tally = Tally()
    part_of = _Parts(split)
    sessions = Sessions(rules.stop_tokens)
    maker = Maker(rules, measured, sessions)
    with (
        closing(ask_dpo.candidates(connection, rules.run_id, gate)) as rows,
        closing(ask_dpo.flags(connection, rules.run_id, gate)) as flags,
    ):
        flagged = _Flags(flags)
        while pairs := [ask_dpo.Candidate._make(row) for row in islice(rows, _AT_ONCE)]:
            missing = sessions.missing(pairs)
            sessions.take(ask_dpo.sessions(connection, missing, with_source=rules.cut == "whole"))
            for pair in pairs:
                made = maker.make(pair, flagged.of(pair.pair_id))
                tally.count(pair.gap_bucket, made.backing, made.reasons, made.told)
                if made.backing is None:
                    ledger.add({"pair_id": pair.pair_id, "reasons": made.reasons, "told": made.told})
                    continue
                target = parts[part_of(pair.task_id)]
                for one, kinds in zip(made.rows, made.kinds, strict=True):
                    target.add(one, kinds)
    return tally


class _Flags:
    """The flags of one pair after the other: both come in the same order, pairs without flags in one only."""

    def __init__(self, rows: ask_dpo.Streamed) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def of(self, pair_id: str) -> list[str]:
        following = self._next
        if following is None or following[0] != pair_id:
            return []
        flags = [following[1]]
        for following in self._rows:
            if following[0] != pair_id:
                self._next = following
                return flags
            flags.append(following[1])
        self._next = None
        return flags


class _Parts:
    """Task -> the part it is in: by a digest of its id, so that it never depends on what else there is."""

    def __init__(self, split: tuple[tuple[str, float], ...]) -> None:
        self._names = [name for name, _ in split]
        self._ends = list(accumulate(share for _, share in split))

    def __call__(self, task_id: str) -> str | None:
        if not self._names:
            return None
        digest = hashlib.blake2b(task_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        place = int.from_bytes(digest) / 2**64
        return self._names[min(bisect_right(self._ends, place), len(self._names) - 1)]


def _near_tie(wish: Wish, measured: Measured) -> dict[str, Any]:
    """Under which gap a pair is called a near tie, and why; NULL: in a bucket that is near."""
    if wish.min_gap is not None:
        return {"below": wish.min_gap, "from": "--min-gap"}
    level, why = measured.curve["gap_at_10"], measured.curve.get("why")
    largest = measured.curve.get("largest_gap")
    if level is not None and largest is not None and level["value"] > largest:
        # There the curve only continues what was seen, and every pair would be a near tie.
        why = f"the judge errs in one pair of ten from a gap of {level['value']:.3g}, larger than any seen"
        level = None
    if level is None:
        return {"below": None, "from": "the run's near buckets", "why": why}
    return {"below": level["value"], "from": "the gap at which the judge errs in one pair of ten", **level}


def _rules(
    connection: Connection, run: Run, wish: Wish, dropped_by: frozenset[str], near_below: float | None
) -> Rules:
    tokens = tuple(dict.fromkeys((*STOP_TOKENS, *config_of(run).get("stop_tokens", ()))))
    known: dict[str, str] = {}
    tools: dict[str, str] = {}
    for task_id, _, request_json in ask_dpo.tools_by_task(connection, run.run_id):
        found = json.loads(request_json or "{}").get("tools")
        if found:
            text = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
            tools[task_id] = known.setdefault(text, text)
    return Rules(
        run_id=run.run_id,
        prefer=wish.prefer,
        cut=wish.cut,
        form=wish.form,
        dropped_by=dropped_by,
        near_below=near_below,
        max_chars=wish.max_chars,
        stop_tokens=tokens,
        tools=tools,
    )


def _headline(engine: Engine, run: Run, gate: str) -> str:
    from audit.pipeline.reporting import headline, report  # only a card needs them

    return headline(report(engine, run.run_id, gate))


def _file(path: Path, holds: str, rows: Rows, partial: Path) -> dict[str, Any]:
    return {"file": path.name, "holds": holds, "rows": rows.count, "sha256": sha256(partial)}


def _put(partial: Path, text: str) -> None:
    with partial.open("w", encoding="utf-8", errors="backslashreplace", newline="") as file:
        file.write(text)
        settle(file)
