"""Gating: the pairs of imported sessions become the pairs of judges, each pair one row a gate."""

import hashlib

from sqlalchemy import Connection

from audit.doors import ask, store
from audit.words.names import UNJUDGED
from audit.words.records import JUDGED, Pair, Run
from audit.words.text import as_json


def give_gates(connection: Connection, run: Run, gates: list[str]) -> None:
    """See to it that every gate has a row for each pair of the run; one that has some is left as it is.

    Pairs that wait (gate `unjudged`) become the first gate's, under the ids they have: so none is counted
    beside itself, and what refers to one still does. Further gates get copies that nobody has judged.
    """
    held = ask.gates(connection, run.run_id)
    for gate in gates:
        if gate in held or not held:
            continue
        if UNJUDGED in held:
            store.set_gate(connection, run.run_id, UNJUDGED, gate)
            held = [gate if name == UNJUDGED else name for name in held]
            continue
        for batch in ask.pairs(connection, run.run_id):
            rows = [_copied(pair, gate) for pair in batch if pair.gate == held[0]]
            store.add_pairs(connection, rows)
        held.append(gate)


def _copied(pair: Pair, gate: str) -> Pair:
    """The pair for another gate, which has not seen it; to be scored."""
    digest = hashlib.blake2b(as_json([gate, pair.pair_id]).encode(), digest_size=8).hexdigest()
    blank = dict.fromkeys(JUDGED)
    return pair._replace(pair_id=f"{pair.run_id[-8:]}-p{digest}", gate=gate, **blank)  # type: ignore[arg-type]
