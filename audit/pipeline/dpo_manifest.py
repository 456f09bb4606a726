"""The manifest of an exported set: counts that add up, where its noise comes from, and how to train on it."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from audit.pipeline.dpo_noise import Backing, Measured
from audit.statistics.noise import data_cost, label_smoothing
from audit.words.flags import FLAGS, TOLD
from audit.words.records import Run

_NOTHING = "no decidable pair has a verdict for a side: how often the judge flips is unknown"
_EMPTY = "the set holds no rows"


class Tally:
    """What became of the candidates, counted as they come; everything else is summed up from that."""

    def __init__(self) -> None:
        self._alike: Counter[tuple[str, Backing | None, tuple[str, ...], tuple[str, ...]]] = Counter()

    def count(
        self, bucket: str, behind: Backing | None, reasons: tuple[str, ...], told: tuple[str, ...]
    ) -> None:
        """One more candidate; nothing is `behind` one that was dropped."""
        self._alike[bucket, behind, reasons, told] += 1

    @property
    def exported(self) -> int:
        return self.backings.total()

    @property
    def dropped(self) -> int:
        return self._alike.total() - self.exported

    @property
    def backings(self) -> Counter[tuple[str, Backing]]:
        """(bucket, what stands behind the label) -> exported pairs."""
        found: Counter[tuple[str, Backing]] = Counter()
        for (bucket, behind, *_), count in self._alike.items():
            if behind is not None:
                found[bucket, behind] += count
        return found

    def reasons(self, *, first_only: bool = False) -> dict[str, int]:
        """Flag -> dropped pairs that have it, or that have it first."""
        found: Counter[str] = Counter()
        for (_, _, reasons, _), count in self._alike.items():
            found.update(dict.fromkeys(reasons[:1] if first_only else reasons, count))
        return {flag: found[flag] for flag in FLAGS if found[flag]}

    def told(self) -> dict[str, dict[str, int]]:
        """Flag that is only told -> pairs that have it and are exported, or dropped even so."""
        found: dict[str, dict[str, int]] = {flag: {"exported": 0, "dropped": 0} for flag in TOLD}
        for (_, behind, _, told), count in self._alike.items():
            for flag in told:
                found[flag]["dropped" if behind is None else "exported"] += count
        return found


class Asked(NamedTuple):
    """What a set was asked for and from which run, for its manifest and card."""

    run: Run
    gate: str
    options: Mapping[str, Any]
    near_tie: Mapping[str, Any]
    buckets: Sequence[tuple[Any, ...]]


def manifest(
    asked: Asked, tally: Tally, measured: Measured, files: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Everything that is known of the set, as JSON. `files`: name, what it holds, rows, sha256."""
    run = asked.run
    return {
        "kind": "reward-audit dpo set",
        "run": {
            "run_id": run.run_id,
            "name": run.name,
            "gate": asked.gate,
            "swap_rule": run.swap_rule,
            "gap_source": run.gap_source,
            "bucket_set": run.bucket_set,
            "config_hash": run.config_hash,
            "task_set_hash": run.task_set_hash,
            "prompt_set_hash": run.prompt_set_hash,
            "run_hash": hashlib.sha256(f"{run.run_id}\0{run.config_hash}\0{asked.gate}".encode()).hexdigest()[
                :16
            ],
        },
        "options": dict(asked.options),
        "counts": {
            "candidates": tally.exported + tally.dropped,
            "exported": tally.exported,
            "dropped": tally.dropped,
        },
        "reasons": tally.reasons(),
        "first_reasons": tally.reasons(first_only=True),
        "told": tally.told(),
        "near_tie": dict(asked.near_tie),
        "files": [dict(file) for file in files],
        "gap_buckets": _buckets(asked, tally, measured),
        "flip_rate": dict(measured.overall),
        "verifier_error": _verifier(measured),
        "label_noise": label_noise(tally),
        "trl": trl_settings(tally),
    }


def label_noise(tally: Tally) -> dict[str, Any]:
    """Rows by what stands behind their labels, and the mean flip rate over all of them.

    `value` is the mean of the rates, `upper` that of their upper bounds; NULL with a `why` where a row's
    rate is unknown.
    """
    rows: Counter[str] = Counter()
    for (_, behind), count in tally.backings.items():
        rows[behind.kind] += count
    found: dict[str, Any] = {
        "rows": tally.exported,
        "vouched_by_verifier": rows["verifier"],
        "confirmed_by_people": sum(
            count
            for (_, behind), count in tally.backings.items()
            if behind.kind == "person" and not behind.rate
        ),
        "denied": rows["denied"]
        + sum(
            count for (_, behind), count in tally.backings.items() if behind.kind == "person" and behind.rate
        ),
        "by_judge_alone": rows["judge"],
    }
    means = [_mean(tally, [behind.rate for _, behind in tally.backings])]
    means.append(_mean(tally, [behind.upper for _, behind in tally.backings]))
    found |= {"value": means[0], "upper": means[1]}
    if means[0] is None:
        found["why"] = _NOTHING if tally.exported else _EMPTY
    return found


def _mean(tally: Tally, rates: list[float | None]) -> float | None:
    if not tally.exported or None in rates:
        return None
    weighted = zip(tally.backings.values(), rates, strict=True)
    return sum(count * (rate or 0.0) for count, rate in weighted) / tally.exported


def trl_settings(tally: Tally) -> dict[str, Any]:
    """What to give TRL's DPOConfig, and how many times the rows of a clean set this one needs.

    `robust` is rDPO's loss, which reads `label_smoothing`; the plain sigmoid loss passes it over.
    """
    settings: dict[str, Any] = {"loss_type": "robust", "label_smoothing": None, "data_cost": None}
    rates = [behind.rate for _, behind in tally.backings]
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates) or not rates:
        return settings | {"why": _NOTHING if tally.exported else _EMPTY}
    try:
        smoothing = label_smoothing(list(tally.backings.values()), known)
    except ValueError as error:
        return settings | {"why": f"half of the labels or more are wrong: {error}"}
    return settings | {"label_smoothing": smoothing, "data_cost": data_cost(smoothing or 0.0)}


def _verifier(measured: Measured) -> dict[str, Any]:
    if measured.verifier is not None:
        return dict(measured.verifier)
    return {
        "value": 0.0,
        "n": 0,
        "why": "nobody has looked at a row that a verified reward vouches for: taken as 0",
    }


def _buckets(asked: Asked, tally: Tally, measured: Measured) -> list[dict[str, Any]]:
    """Each bucket of the run with the judge's flip rate before filtering and the rows that are in the set."""
    exported: dict[str, Counter[str]] = {}
    for (bucket, behind), count in tally.backings.items():
        exported.setdefault(bucket, Counter())[behind.kind] += count
    empty = {"k": 0, "n": 0, "value": None, "low": None, "high": None, "method": None, "clusters": 0}
    found = []
    for label, lower, upper, _, is_near in asked.buckets:
        rows = exported.get(label, Counter())
        found.append(
            {
                "label": label,
                "lower": lower,
                "upper": upper,
                "is_near": is_near,
                "flip_rate": dict(measured.by_bucket.get(label, empty)),
                "exported": rows.total(),
                "by_judge_alone": rows["judge"],
            }
        )
    return found
