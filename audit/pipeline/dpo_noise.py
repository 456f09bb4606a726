"""How sure the label of an exported row is, before any row is written: measured on the run as it is."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import ask_dpo
from audit.statistics.noise import flip_rates
from audit.statistics.rates import Rate, clustered_rate
from audit.words.flags import Prefer
from audit.words.names import TOLERANCE
from audit.words.records import Run

# A reward under these flags vouches for nothing.
UNSURE = frozenset({"llm_labelled", "verifier_fault", "simulator_fault", "gateway_fault"})


class Measured(NamedTuple):
    """The judge's flips by gap bucket and over all, the verifier's error, the error curve, people's words.

    `verifier` is NULL where no person has looked at a pair that a verified reward vouches for: the error is
    then taken as 0. `said`: pair_id -> the side, or tie, that people prefer.
    """

    by_bucket: Mapping[str, Rate]
    overall: Rate
    verifier: Rate | None
    curve: Mapping[str, Any]
    said: Mapping[str, str]

    def verified(self) -> "Backing":
        """What stands behind a label that a verified reward vouches for."""
        rate = self.verifier
        return _RIGHT if rate is None else Backing("verifier", rate["value"], rate["high"])

    def denied(self) -> "Backing":
        """What stands behind a label that a verified reward denies."""
        return Backing("denied", 1 - (self.verified().rate or 0.0), 1.0)

    def judge(self, bucket: str) -> Rate:
        """The judge's flip rate in a bucket; over all where no pair of the bucket is decidable."""
        return self.by_bucket.get(bucket, self.overall)


class Backing(NamedTuple):
    """What stands behind a row's label: `kind`, and the rate of such labels that are flipped.

    person      people said the same, or the opposite: `rate` is 0 or 1
    verifier    a verified reward says the same: the verifier's error
    denied      a verified reward says the opposite, and the row is kept even so
    judge       nobody but the judge: its flip rate in the row's gap bucket
    """

    kind: str
    rate: float | None
    upper: float | None


_RIGHT = Backing("verifier", 0.0, 0.0)


def measure(
    connection: Connection, run: Run, gate: str, prefer: Prefer, dropped_by: frozenset[str]
) -> Measured:
    """Everything about labels that must be known before the first row is written."""
    tasks = ask_dpo.count_tasks(connection, run.run_id, gate)
    by_bucket, overall, curve = flip_rates(ask_dpo.decided(connection, run.run_id, gate), tasks)
    said = ask_dpo.said_of_pairs(connection, run.run_id, gate)
    verifier = _verifier_error(connection, said, prefer, dropped_by - {"human_disagrees"})
    return Measured(by_bucket, overall, verifier, curve, said)


def _verifier_error(
    connection: Connection, said: Mapping[str, str], prefer: Prefer, dropped_by: frozenset[str]
) -> Rate | None:
    """Of the pairs that would be exported on a verified reward and that people compared: the share they deny.

    On exactly those, because where judge and verifier agree both are wrong far less often than either alone.
    """
    counts: dict[str, list[int]] = {}
    for looked_at, flags in ask_dpo.looked_at(connection, list(said)):
        side = chosen_side(looked_at, prefer)
        is_out = side is None or flags & (dropped_by | UNSURE)
        if is_out or side != better_side(looked_at.reward_a, looked_at.reward_b):
            continue
        if said[looked_at.pair_id] != "tie":
            counted = counts.setdefault(looked_at.task_id, [0, 0])
            counted[0] += said[looked_at.pair_id] != side
            counted[1] += 1
    if not counts:
        return None
    return clustered_rate([k for k, _ in counts.values()], [n for _, n in counts.values()])


def better_side(reward_a: float | None, reward_b: float | None) -> str | None:
    """The side with the higher verified reward; NULL where they tie or one is unknown."""
    if reward_a is None or reward_b is None or abs(reward_a - reward_b) <= TOLERANCE:
        return None
    return "A" if reward_a > reward_b else "B"


def chosen_side(pair: Any, prefer: Prefer) -> str | None:
    """The side that is chosen: the judge's, or the verifier's. NULL where there is none."""
    if prefer == "reward":
        return better_side(pair.reward_a, pair.reward_b)
    side: str | None = pair.judge_pref
    return side if side in ("A", "B") else None


def backing(measured: Measured, pair_id: str, bucket: str, side: str, better: str | None) -> Backing:
    """What stands behind the label of this row; `better` is NULL where no verified reward vouches at all."""
    said = measured.said.get(pair_id, "tie")
    if said != "tie":
        flipped = float(said != side)
        return Backing("person", flipped, flipped)
    if better is not None:
        return measured.verified() if better == side else measured.denied()
    rate = measured.judge(bucket)
    return Backing("judge", rate["value"], rate["high"])
