"""Review export: picks what people should look at, and writes it without names and verdicts."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, ask_review, review_files, store_review
from audit.doors.db import writing
from audit.doors.fresh_files import write_fresh
from audit.doors.review_files import Form
from audit.pipeline.reviewing import shown
from audit.pipeline.standing import choose_gate
from audit.verbs import picking
from audit.words import clock
from audit.words.errors import BadRequest
from audit.words.records import ReviewItem, Run


class Exported(NamedTuple):
    """What was written: how many items of each reason, of how many; and how many went out before."""

    run_id: str
    gate: str | None
    files: tuple[Path, ...]
    picked: Mapping[str, int]
    sizes: Mapping[str, int]
    before: int


def export_review(
    engine: Engine,
    wanted: str,
    path: Path,
    n: int,
    *,
    gate: str | None,
    seed: int,
    form: Form | None,
    again: bool,
) -> Exported:
    """Pick `n` items of a run and gate and write them to `path`; files and rows together, or neither.

    What went out before does not come again, unless `again`. Of a run without pairs single sessions go out.
    Raises BadRequest where no transcript is stored or nothing is left, BadFile where `path` is there already.
    """
    form = review_files.form_of(path, form)
    with writing(engine) as connection:
        run = ask.run_named(connection, wanted)
        gates = ask.gates(connection, run.run_id)
        chosen = choose_gate(connection, run, gate) if gates or gate else None
        queue = _queue(connection, run, chosen)
        items = _pick(queue, run, chosen, n, seed, again=again)
        store_review.add_items(connection, items)
        weights = _weights(queue, items)
        exported = {row.review_id: row.reason for row in queue if row.review_id} | {
            item.review_id: item.reason for item in items
        }
        store_review.set_weights(connection, [(weights[reason], name) for name, reason in exported.items()])
        # An item that went out before keeps the side that people saw first.
        stored = ask_review.items_named(connection, [item.review_id for item in items])
        texts = review_files.texts(path, form, list(shown(connection, run, list(stored.values()))))
        write_fresh(texts)
    return Exported(
        run.run_id,
        chosen,
        tuple(texts),
        Counter(item.reason for item in items),
        Counter(row.reason for row in queue),
        sum(row.review_id is not None for row in queue),
    )


def _queue(connection: Connection, run: Run, gate: str | None) -> list[ask_review.Waiting]:
    if gate is None:
        found = list(ask_review.session_queue(connection, run.run_id))
    else:
        found = list(ask_review.pair_queue(connection, run.run_id, gate))
    if not found:
        raise BadRequest(
            f"run {run.run_id} stores no transcripts: there is nothing that people could look at"
        )
    return found


def _pick(
    queue: list[ask_review.Waiting], run: Run, gate: str | None, n: int, seed: int, *, again: bool
) -> list[ReviewItem]:
    """The items picked now, also those that went out before where that is allowed."""
    by_reason: dict[str, list[str]] = {}
    for row in queue:
        if again or row.review_id is None:
            by_reason.setdefault(row.reason, []).append(row.subject)
    if not by_reason:
        raise BadRequest(f"all of run {run.run_id} was exported before: --again writes it once more")
    places = picking.places({reason: len(keys) for reason, keys in by_reason.items()}, n)
    now = clock.now()
    found = [
        ReviewItem(
            picking.review_id(run.run_id, key),
            run.run_id,
            None if gate is None else key,
            key if gate is None else None,
            reason,
            1.0,
            None if gate is None else picking.first_side(key, seed),
            now,
        )
        for reason, keys in by_reason.items()
        for key in picking.picked(keys, places[reason], seed)
    ]
    return sorted(found, key=lambda item: item.review_id)


def _weights(queue: list[ask_review.Waiting], items: list[ReviewItem]) -> dict[str, float]:
    """reason -> one over the share of its stratum that went out, now and before."""
    sizes = Counter(row.reason for row in queue)
    out = {row.subject: row.reason for row in queue if row.review_id}
    out |= {item.pair_id or item.session_id or "": item.reason for item in items}
    return {reason: sizes[reason] / count for reason, count in Counter(out.values()).items()}
