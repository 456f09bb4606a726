"""Report: what a run says of its judge, as the mapping of `report --json`; counting is left to SQL."""

import json
from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection, Engine

from audit.doors import ask
from audit.doors.db import reading
from audit.pipeline.standing import config_of
from audit.statistics.achieved import TaskSum, agent_row
from audit.statistics.agreement import mcnemar_p
from audit.statistics.rates import pair_rates, rate
from audit.words.config import Panel
from audit.words.errors import BadRequest
from audit.words.names import PARSE_STATUSES, SUCCESS_AT, UNJUDGED
from audit.words.records import Run

_COUNTED = ("pairs", "decidable", "correct", "misselected", "undecided", "both_read", "consistent")
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
_ONE_ORDER = "the swap rule is first_order: one order tells nothing of position"
_NO_PAIRS = "the run holds no pairs"
_TWO_ANSWERS = "two answers of one pair are not independent: no plain interval holds"


def report(engine: Engine, wanted: str, gate: str | None = None) -> dict[str, Any]:
    """Everything the report shows of one run and gate: where none is asked for the first of a live run's
    config, of other runs the first by name.

    Of a run with sessions alone everything about pairs is 0 or null, its gate null. Raises BadRequest for a
    run or a gate that is not there, and for a run without pairs and sessions.
    """
    with reading(engine) as connection:
        run = ask.run_named(connection, wanted)
        judges = _of_run(connection, "misselection_by_judge", run)
        agents = _agents(connection, run)
        if not judges and agents and gate is None:
            return _sessions_alone(run, agents)
        chosen = _gate(run, gate, [row["gate"] for row in judges])
        totals = next(row for row in judges if row["gate"] == chosen)
        independent = ask.is_one_pair_a_task(connection, run.run_id, chosen)
        buckets = _of_gate(connection, "misselection_by_gap", run, chosen, "lower is null, lower")
        answers = ask.answer_counts(connection, run.run_id, chosen)
        position = _position(connection, run, chosen, independent)
        found = {
            "run": _run(run, chosen),
            "pairs": _pairs(totals),
            "answers": {"total": sum(answers.values())}
            | {status: answers.get(status, 0) for status in PARSE_STATUSES},
            "rates": _rates(totals, answers, independent),
            "near_vs_wide": {
                kind: _bucket(_sum([row for row in buckets if row["is_near"] == near]), independent)
                for kind, near in (("near", 1), ("wide", 0))
            },
            "gap_buckets": [_bucket(row, independent) for row in buckets],
            "agents": agents,
            "imported": _imported(run),
            "position": position,
            "categories": _categories(connection, run, chosen, independent),
            "judges": [_judge(connection, run, row) for row in judges],
            "cost": ask.cost(connection, run.run_id, chosen, calls=sum(answers.values())),
        }
        return found if position else found | {"why": {"position": _ONE_ORDER}}


def _sessions_alone(run: Run, agents: list[dict[str, Any]]) -> dict[str, Any]:
    """The report of a run in which no two sessions make a pair."""
    none = dict.fromkeys((*_COUNTED, *_OUTCOMES), 0)
    empty = _bucket(_sum([]), True)
    return {
        "run": _run(run, None),
        "pairs": _pairs(none),
        "answers": dict.fromkeys(("total", *PARSE_STATUSES), 0),
        "rates": _rates(none, {}, True),
        "near_vs_wide": {"near": empty, "wide": empty},
        "gap_buckets": [],
        "agents": agents,
        "imported": _imported(run),
        "position": None,
        "categories": [],
        "judges": [],
        "cost": {
            "calls": 0,
            "prompt_tokens": None,
            "completion_tokens": None,
            "total_tokens": None,
            "usd": None,
        },
        "why": {"position": _NO_PAIRS},
    }


def _agents(connection: Connection, run: Run) -> list[dict[str, Any]]:
    asked = config_of(run) | json.loads(run.config_json)
    success_at = asked.get("success_at", SUCCESS_AT)
    rows = groupby(ask.task_sums(connection, run.run_id, success_at), key=itemgetter(0))
    found = []
    for agent, group in rows:
        tasks = list(group)
        sums = [TaskSum(row[3], row[4], row[5] or 0.0, row[6], row[7]) for row in tasks]
        found.append(agent_row(agent, sums, has_tasks=all(row[1] is not None for row in tasks)))
    # The databases do not agree on how names are sorted.
    return sorted(found, key=itemgetter("agent"))


def _imported(run: Run) -> dict[str, int] | None:
    """What the import of sessions found odd; of other runs nothing."""
    config = json.loads(run.config_json)
    names = ("clashing_ids", "odd_rewards")
    return {name: config[name] for name in names} if set(names) <= config.keys() else None


def headline(found: dict[str, Any]) -> str:
    """The finding in one or two plain sentences, with its denominators."""
    near, wide = found["near_vs_wide"]["near"], found["near_vs_wide"]["wide"]
    overall = found["rates"]["misselected_of_decided"]
    if not found["pairs"]["total"]:
        return "No two sessions make a pair: only what the agents achieved can be told."
    if found["run"]["gate"] == UNJUDGED:
        waiting = found["pairs"]["total"]
        return f"Waiting for a judge: {waiting:,} pair{'' if waiting == 1 else 's'}."
    if not overall["n"]:
        return "No pair has both a verified difference and a verdict for a side: nothing can be said yet."
    of_whom = f"Judge {found['run']['gate']}: of" if len(found["judges"]) > 1 else "Of"
    text = (
        f"{of_whom} {overall['n']:,} verdicts for a side, {overall['k']:,} ({overall['value']:.0%}) "
        "name the side with the lower verified reward"
    )
    parts = [_of_bucket(name, bucket) for name, bucket in (("near ties", near), ("wide gaps", wide))]
    text += "; " + ", ".join(parts) + "." if near["decidable"] and wide["decidable"] else "."
    if found["run"]["gap_source"] == "session" and not near["decidable"]:
        text += (
            " No decidable pair has a near gap (with 0/1 rewards and gap_source session none can): "
            "the empty near bucket is no good news."
        )
    return text


def _of_bucket(name: str, bucket: dict[str, Any]) -> str:
    decided = bucket["misselected_of_decided"]
    value = "no verdict" if decided["value"] is None else f"{decided['value']:.0%}"
    return f"{name} {decided['k']:,}/{decided['n']:,} ({value})"


def _run(run: Run, gate: str | None) -> dict[str, Any]:
    return {
        "run_id": run.run_id,
        "name": run.name,
        "kind": run.kind,
        "gate": gate,
        "swap_rule": run.swap_rule,
        "gap_source": run.gap_source,
        "gap_scope": run.gap_scope,
        "bucket_set": run.bucket_set,
        "config_hash": run.config_hash,
        "task_set_hash": run.task_set_hash,
        "prompt_set_hash": run.prompt_set_hash,
    }


def _gate(run: Run, wanted: str | None, gates: Sequence[str]) -> str:
    if not gates:
        raise BadRequest(
            f"run {run.run_id} holds no pairs: `reward-audit show {run.run_id}` says what it holds"
        )
    if wanted is None:
        configured = [Panel.model_validate(judge).gate for judge in config_of(run).get("judges", ())]
        return next((gate for gate in configured if gate in gates), sorted(gates)[0])
    if wanted not in gates:
        raise BadRequest(f"run {run.run_id} has no gate {wanted!r}, only {', '.join(sorted(gates))}")
    return wanted


def _of_run(connection: Connection, view: str, run: Run) -> list[dict[str, Any]]:
    return ask.rows(
        connection,
        f"select * from {view} where run_id = :run_id order by gate",  # noqa: S608 - our own views
        run_id=run.run_id,
    )


def _of_gate(connection: Connection, view: str, run: Run, gate: str, order: str) -> list[dict[str, Any]]:
    return ask.rows(
        connection,
        f"select * from {view} where run_id = :run_id and gate = :gate order by {order}",  # noqa: S608
        run_id=run.run_id,
        gate=gate,
    )


def _pairs(row: dict[str, Any]) -> dict[str, int]:
    return {"total": row["pairs"], "decidable": row["decidable"]} | {name: row[name] for name in _OUTCOMES}


def _rates(row: dict[str, Any], answers: dict[str, int], independent: bool) -> dict[str, Any]:
    calls = sum(answers.values())
    rates = pair_rates(row, independent=independent)
    return {
        name: rates[name] for name in ("accuracy", "misselected_of_decidable", "misselected_of_decided")
    } | {
        "error_calls": rate(
            answers.get("error", 0), calls, independent=False, clusters=row["pairs"], why=_TWO_ANSWERS
        )
    }


def _sum(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Several buckets as one: from the lowest edge to the highest."""
    total: dict[str, Any] = {name: sum(row[name] for row in rows) for name in _COUNTED}
    uppers = [row["upper"] for row in rows]
    total["lower"] = min((row["lower"] for row in rows), default=None)
    total["upper"] = None if not uppers or None in uppers else max(uppers)
    total["is_near"] = rows[0]["is_near"] if rows else None
    total["gap_bucket"] = " ".join(row["gap_bucket"] for row in rows)
    return total


def _bucket(row: dict[str, Any], independent: bool) -> dict[str, Any]:
    rates = pair_rates(row, independent=independent)
    return {
        "label": row["gap_bucket"],
        "lower": row["lower"],
        "upper": row["upper"],
        "is_near": row["is_near"],
        **{name: row[name] for name in _COUNTED[:5]},
        "misselected_of_decidable": rates["misselected_of_decidable"],
        "misselected_of_decided": rates["misselected_of_decided"],
        "consistent": rates["consistent"],
    }


def _position(connection: Connection, run: Run, gate: str, independent: bool) -> dict[str, Any] | None:
    found = _of_gate(connection, "position_bias", run, gate, "gap_bucket")
    rows = {row["gap_bucket"]: _position_of(row, independent) for row in found}
    if not rows:
        return None
    order = [label for label, *_ in ask.bucket_rows(connection, run.bucket_set) if label in rows]
    return rows["all"] | {"gap_buckets": [{"label": label} | rows[label] for label in order]}


def _position_of(row: dict[str, Any], independent: bool) -> dict[str, Any]:
    both = row["both_read"]
    return {
        "both_read": both,
        "consistent": rate(row["consistent"], both, independent=independent),
        "primacy": row["primacy"],
        "recency": row["recency"],
        "preference_fairness": row["preference_fairness"],
        "first_share": rate(
            row["first_named"],
            row["side_named"],
            independent=False,
            clusters=row["pairs"],
            why=_TWO_ANSWERS,
        ),
        "mcnemar_p": mcnemar_p(row["primacy"], row["recency"]),
    }


def _categories(connection: Connection, run: Run, gate: str, independent: bool) -> list[dict[str, Any]]:
    rows = _of_gate(connection, "misselection_by_category", run, gate, "category is null, category")
    return [{"category": row["category"]} | _group(row, independent) for row in rows]


def _judge(connection: Connection, run: Run, row: dict[str, Any]) -> dict[str, Any]:
    independent = ask.is_one_pair_a_task(connection, run.run_id, row["gate"])
    return {"gate": row["gate"]} | _group(row, independent)


def _group(row: dict[str, Any], independent: bool) -> dict[str, Any]:
    return {"pairs": _pairs(row), **pair_rates(row, independent=independent)}
