"""The report's parts about pairs: outcomes, rates, gap buckets, position, categories. Work over tasks."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection

from audit.doors import ask, counts
from audit.statistics.groups import Groups
from audit.statistics.intervals import change_interval
from audit.statistics.position import position
from audit.statistics.power import smallest_seen
from audit.statistics.rates import clustered_pair_rates, clustered_rate
from audit.words.names import PARSE_STATUSES
from audit.words.records import Run

ONE_ORDER = "the swap rule is first_order: one order tells nothing of position"
_OUTCOMES = (
    "correct",
    "misselected",
    "judge_tie",
    "inconsistent",
    "unreadable",
    "incomplete",
    "reward_tie",
    "unverified",
)
Bucket = tuple[str, float | None, float | None, int | None]


class Pairs:
    """The pairs of one run and gate, as counts by task."""

    def __init__(self, connection: Connection, run: Run, gate: str | None) -> None:
        found = () if gate is None else counts.pair_counts(connection, run.run_id, gate)
        self.groups = Groups(found, counts.PAIR_KEYS, counts.PAIR_COUNTS)
        stored = ask.bucket_rows(connection, run.bucket_set)
        self.buckets: list[Bucket] = [(row[0], row[1], row[2], row[4]) for row in stored]
        # Pairs that were never scored are in no bucket of the run's set.
        known = {label for label, *_ in self.buckets}
        more = [label for label in self.groups.values("gap_bucket") if label not in known]
        self.buckets += [(label, None, None, None) for label in more]
        self.swap_rule = run.swap_rule

    def labels(self, is_near: int) -> list[str]:
        """The buckets that are near (1), or wide (0)."""
        return [label for label, _, _, near in self.buckets if near == is_near]

    def outcomes(self) -> dict[str, int]:
        """The part `pairs`."""
        return _outcomes(self.groups.totals())

    def rates(self) -> dict[str, Any]:
        """The part `rates`, but for the failed calls."""
        found = clustered_pair_rates(self.groups.by_cluster())
        return {name: rate for name, rate in found.items() if name != "consistent"}

    def near_vs_wide(self) -> dict[str, Any]:
        """The part `near_vs_wide`: each the buckets of its kind as one."""
        return {
            kind: self._together([row for row in self.buckets if row[3] == is_near])
            for kind, is_near in (("near", 1), ("wide", 0))
        }

    def near_minus_wide(self) -> dict[str, Any]:
        """How much oftener a near pair's verdict is wrong: over the tasks, which have pairs of both kinds."""
        near, wide = (self.groups.on_all_clusters(gap_bucket=self.labels(is_near)) for is_near in (1, 0))
        value, interval = change_interval(
            wide["misselected"],
            wide["misselected"] + wide["correct"],
            near["misselected"],
            near["misselected"] + near["correct"],
        )
        return {
            "of": "misselected_of_decided",
            "value": value,
            **interval._asdict(),
            "smallest_seen": smallest_seen(interval.low, interval.high),
        }

    def gap_buckets(self) -> list[dict[str, Any]]:
        """The part `gap_buckets`: a bucket without pairs is there too."""
        return [self._together([row]) for row in self.buckets] if self.groups.values("task_id") else []

    def position(self) -> dict[str, Any] | None:
        """The part `position`, with the same for each bucket; NULL where one order alone was asked."""
        if self.swap_rule == "first_order" or not self.groups.values("task_id"):
            return None
        whole = _position(self.groups.by_cluster())
        ends = whole["preference_fairness_interval"]
        return whole | {
            "smallest_seen": smallest_seen(ends["low"], ends["high"]),
            "gap_buckets": [
                {"label": label} | _position(self.groups.by_cluster(gap_bucket=[label]))
                for label, *_ in self.buckets
            ],
        }

    def categories(self) -> list[dict[str, Any]]:
        """The part `categories`, by name; pairs without one last."""
        names = sorted(self.groups.values("category"), key=lambda name: (name is None, name))
        return [{"category": name} | self._group(category=[name]) for name in names]

    def judge(self, gate: str) -> dict[str, Any]:
        """One entry of the part `judges`."""
        return {"gate": gate} | self._group()

    def _group(self, **where: Sequence[Any]) -> dict[str, Any]:
        rates = clustered_pair_rates(self.groups.by_cluster(**where))
        return {"pairs": _outcomes(self.groups.totals(**where)), **rates}

    def _together(self, rows: Sequence[Bucket]) -> dict[str, Any]:
        """Several buckets as one: from the lowest edge to the highest."""
        labels = [row[0] for row in rows]
        uppers = [row[2] for row in rows]
        total = self.groups.totals(gap_bucket=labels)
        rates = clustered_pair_rates(self.groups.by_cluster(gap_bucket=labels))
        return {
            "label": " ".join(labels),
            "lower": min((row[1] for row in rows if row[1] is not None), default=None),
            "upper": None if None in uppers else max((upper for upper in uppers if upper), default=None),
            "is_near": rows[0][3] if rows else None,
            **{name: total[name] for name in ("pairs", "decidable", "correct", "misselected")},
            "undecided": total["decidable"] - total["correct"] - total["misselected"],
            "misselected_of_decidable": rates["misselected_of_decidable"],
            "misselected_of_decided": rates["misselected_of_decided"],
            "consistent": rates["consistent"],
        }


def answers(connection: Connection, run: Run, gate: str | None) -> dict[str, int]:
    """The part `answers`: the judge calls of the gate, by what could be read."""
    found = {} if gate is None else ask.answer_counts(connection, run.run_id, gate)
    return {"total": sum(found.values())} | {status: found.get(status, 0) for status in PARSE_STATUSES}


def error_calls(connection: Connection, run: Run, gate: str | None) -> dict[str, Any]:
    """The rate of calls that failed, over tasks."""
    rows = [] if gate is None else counts.calls_by_task(connection, run.run_id, gate)
    return clustered_rate([failed for _, _, failed in rows], [calls for _, calls, _ in rows])


def _outcomes(total: Mapping[str, int]) -> dict[str, int]:
    return {"total": total["pairs"], "decidable": total["decidable"]} | {
        name: total[name] for name in _OUTCOMES
    }


def _position(by_task: Mapping[str, Any]) -> dict[str, Any]:
    names = {"both_read": "both_named", "consistent": "agree"}
    return position(
        {
            name: by_task[names.get(name, name)]
            for name in ("both_read", "consistent", "primacy", "recency", "first_named", "side_named")
        }
    )
