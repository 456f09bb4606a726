"""The report in sentences: the finding first, then what a reader must know before leaning on a figure."""

from collections.abc import Iterator
from typing import Any

from audit.statistics.intervals import FEW_CLUSTERS
from audit.words.names import UNJUDGED, UNKNOWN_BUCKET

WIDE_INTERVAL = 0.3
# So many groups are named one by one.
_NAMED = 6
_WHEN = {
    "agent": "agents differ by",
    "session": "the rewards of two sessions differ by",
    "judge": "its own scores differ by",
    "external": "the gap given with the pair is",
}


_NO_GAP = {
    "agent": "it takes two agents by name that share two tasks or more with known rewards",
    "session": "it takes both rewards",
    "judge": "it takes the judge's scores of both sides",
    "external": "it takes a gap given in the file",
}


def scale_warnings(found: dict[str, Any]) -> list[str]:
    """What `score` is to say at once: that on this scale nothing can be told."""
    return list(_of_scale(found)) if found["pairs"]["total"] and found["run"]["gate"] != UNJUDGED else []


def headline(found: dict[str, Any]) -> str:
    """The finding in a few plain sentences, with its denominators."""
    near, wide = found["near_vs_wide"]["near"], found["near_vs_wide"]["wide"]
    overall = found["rates"]["misselected_of_decided"]
    if not found["pairs"]["total"]:
        if found["run"]["kind"] == "live" and found["run"]["status"] != "complete":
            return "No pair was made yet, as the run is not done: only what the agents achieved can be told."
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
            " No decidable pair has a near gap"
            + (" (with 0/1 rewards and gap_source session none can)" if found["has_binary_rewards"] else "")
            + ": the empty near bucket is no good news."
        )
    return f"{text} {trust_sentence(found)}".rstrip()


def judge_lines(run: dict[str, Any]) -> list[str]:
    """Which models the gate is, and plainly where one is none."""
    models = run["models"]
    if not models:
        return []
    asked = ", ".join(f"{model['model']} at {model['base_url']}" for model in models)
    lines = [f"judge model{'' if len(models) == 1 else 's'}: {asked}"]
    synthetic = [model["model"] for model in models if model["is_synthetic"]]
    if synthetic:
        lines.append(
            f"{', '.join(synthetic)} is a synthetic judge of this program (offline://), made to err: its "
            "figures say nothing of a model of yours."
        )
    return lines


def trust_sentence(found: dict[str, Any]) -> str:
    """From which gap on the judge can be trusted; empty where the pairs do not bear that out."""
    curve = found["error_curve"]
    if curve is None or not curve["trust"]:
        return ""
    gap, below = curve["trust"]["gap"], curve["trust"]["below"]
    when = _WHEN["agent" if curve["unit"] == "agent_pairs" else curve["gap_source"]]
    pairs = "agent pairs" if curve["unit"] == "agent_pairs" else "decided pairs"
    return (
        f"Trust this judge when {when} {gap['value']:.2g} or more (95%: {gap['low']:.2g} to "
        f"{gap['high']:.2g}); below, it picks the worse one in {below['value']:.0%} of pairs "
        f"({below['k']:,}/{below['n']:,} {pairs})."
    )


def notes(found: dict[str, Any]) -> list[str]:
    """What must be said beside the figures: few tasks, empty buckets, wide intervals, null results."""
    if not found["pairs"]["total"] or found["run"]["gate"] == UNJUDGED:
        return list(_of_satisfaction(found))
    return [
        *_of_scale(found),
        *_few_clusters(found),
        *_of_buckets(found),
        *_of_agent_pairs(found),
        *_of_nothing_seen(found),
        *_of_satisfaction(found),
    ]


def _of_scale(found: dict[str, Any]) -> Iterator[str]:
    """A scale on which nothing can be told: no pair has its gap, or none the orders that it wants."""
    run, pairs = found["run"], found["pairs"]
    unknown = next((row for row in found["gap_buckets"] if row["label"] == UNKNOWN_BUCKET), None)
    if unknown and unknown["pairs"] == pairs["total"]:
        yield (
            f"No pair has a gap of source {run['gap_source']} ({_NO_GAP[run['gap_source']]}): every gap is "
            "unknown, none near or wide"
            + (
                "."
                if run["gap_source"] == "session"
                else f"; `reward-audit score {run['run_id']} --gap-source session` takes that between the "
                "rewards of its two sessions."
            )
        )
    if pairs["decidable"] and pairs["incomplete"] == pairs["decidable"] and found["answers"]["total"]:
        yield (
            f"Every decidable pair is incomplete under {run['swap_rule']}, which wants both orders; where "
            f"the run has one alone, `reward-audit score {run['run_id']} --swap-rule first_order` takes that."
        )


def _few_clusters(found: dict[str, Any]) -> Iterator[str]:
    rate = found["rates"]["misselected_of_decided"]
    if rate["n"] and rate["clusters"] < FEW_CLUSTERS:
        yield (
            f"Only {_count(rate['clusters'], 'task')} with a decided pair: how much tasks differ is hardly "
            "known, so take every interval as a rough one."
        )
        return
    parts = [(bucket["label"], bucket) for bucket in found["gap_buckets"]]
    parts += [(group["category"] or "no category", group) for group in found["categories"]]
    few = [
        f"{name} ({group['misselected_of_decided']['clusters']:,})"
        for name, group in parts
        if 0 < group["misselected_of_decided"]["clusters"] < FEW_CLUSTERS
    ]
    if few:
        more = f" and {len(few) - _NAMED:,} more" if len(few) > _NAMED else ""
        yield (
            f"Fewer than {FEW_CLUSTERS} tasks with a decided pair in {', '.join(few[:_NAMED])}{more}: take "
            "the intervals there as rough."
        )


def _of_buckets(found: dict[str, Any]) -> Iterator[str]:
    empty = [
        bucket["label"]
        for bucket in found["gap_buckets"]
        if bucket["label"] != UNKNOWN_BUCKET and not bucket["misselected_of_decided"]["n"]
    ]
    if empty:
        yield f"No decided pair in {', '.join(empty)}: nothing is known there, which is no good news."
    for name, words in (("near", "near ties"), ("wide", "wide gaps")):
        rate = found["near_vs_wide"][name]["misselected_of_decided"]
        if rate["low"] is not None and rate["high"] - rate["low"] > WIDE_INTERVAL:
            yield (
                f"Of {words} little can be said: {rate['k']:,}/{rate['n']:,} may stand for anything from "
                f"{rate['low']:.0%} to {rate['high']:.0%} (`reward-audit plan` says how many pairs it takes)."
            )


def _of_agent_pairs(found: dict[str, Any]) -> Iterator[str]:
    pairs = found["agent_pairs"]
    if pairs is None:
        return
    for half in ("near", "wide"):
        unresolved = pairs[f"unresolved_{half}"]
        if unresolved:
            yield (
                f"Of {_count(unresolved, f'{half} agent pair')} the verified rewards themselves cannot tell "
                "who is better (gap within 1.96 standard errors): a pick against them proves no error."
            )
    clusters = max(pairs["near"]["clusters"], pairs["wide"]["clusters"])
    if 0 < clusters < FEW_CLUSTERS:
        yield f"Only {_count(clusters, 'agent')}: take the intervals over agent pairs as rough."


def _of_nothing_seen(found: dict[str, Any]) -> Iterator[str]:
    """Null results, each with the smallest effect that this run could have seen."""
    change = found["near_minus_wide"]
    if change["low"] is not None and change["low"] <= 0 <= change["high"]:
        yield _nothing_seen(
            "Near ties and wide gaps do not differ beyond chance",
            f"a difference under {100 * change['smallest_seen']:.0f} points",
            is_possible=change["smallest_seen"] < 1,
        )
    position = found["position"]
    ends = position and position["preference_fairness_interval"]
    if ends and ends["low"] is not None and ends["low"] <= 0 <= ends["high"]:
        yield _nothing_seen(
            "No lean to a position beyond chance",
            f"a fairness within -+{position['smallest_seen']:.2g} of 0",
            is_possible=position["smallest_seen"] < 1,
        )


def _of_satisfaction(found: dict[str, Any]) -> Iterator[str]:
    satisfied = found["satisfaction"]
    ends = satisfied and satisfied["auc_interval"]
    if ends and ends["low"] is not None and ends["low"] <= 0.5 <= ends["high"]:
        yield _nothing_seen(
            "Satisfaction tells success no better than chance",
            f"an AUC within -+{satisfied['smallest_seen']:.2g} of 0.5",
            is_possible=satisfied["smallest_seen"] < 0.5,
        )
    rate = satisfied and satisfied["base_failure"]
    if rate and satisfied["clusters_are"] == "agents":
        yield (
            "No session names its task: the intervals of satisfaction cluster on "
            f"{_count(rate['clusters'], 'agent')}."
        )
    elif rate and rate["clusters"] < FEW_CLUSTERS and not found["pairs"]["total"]:
        yield f"Only {_count(rate['clusters'], 'task')}: take the intervals as rough."


def _nothing_seen(null: str, missed: str, *, is_possible: bool) -> str:
    """A null result, with what would have been missed. `is_possible`: there can be more than that."""
    if not is_possible:
        return f"{null}, in too little to have seen any such thing."
    return f"{null}; {missed} would mostly have been missed (80% power)."


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _of_bucket(name: str, bucket: dict[str, Any]) -> str:
    decided = bucket["misselected_of_decided"]
    value = "no verdict" if decided["value"] is None else f"{decided['value']:.0%}"
    return f"{name} {decided['k']:,}/{decided['n']:,} ({value})"
