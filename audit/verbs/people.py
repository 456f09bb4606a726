"""What several people say of one row, and what their words weigh."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from audit.words.records import HumanLabel
from audit.words.review import CANNOT_TELL


def by_subject(labels: Iterable[HumanLabel], kind: str) -> dict[str, dict[str, str]]:
    """pair_id or session_id -> annotator -> value, from each newest word; `cannot tell` says nothing."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for label in labels:
        if label.kind == kind and label.value != CANNOT_TELL:
            found[label.pair_id or label.session_id or ""][label.annotator] = label.value
    return found


def majority(said: Mapping[str, str]) -> str | None:
    """What most people say; NULL where nobody does, or two values are said as often."""
    first = Counter(said.values()).most_common(2)
    if not first or (len(first) == 2 and first[0][1] == first[1][1]):
        return None
    return first[0][0]


def post_stratified(strata: Sequence[str], weights: Sequence[float], is_said: Sequence[bool]) -> list[float]:
    """For each row that was picked, how many rows it stands for: 0 where nobody said anything of it.

    What was picked and not labelled is stood for by the labelled of its stratum, as if those had been left
    out at random.
    """
    whole: dict[str, float] = defaultdict(float)
    heard: Counter[str] = Counter()
    for stratum, weight, said in zip(strata, weights, is_said, strict=True):
        whole[stratum] += weight
        heard[stratum] += said
    return [
        whole[stratum] / heard[stratum] if said else 0.0
        for stratum, said in zip(strata, is_said, strict=True)
    ]


def unheard(strata: Sequence[str], weights: Sequence[float], is_said: Sequence[bool]) -> dict[str, int]:
    """Stratum -> how many rows it has, of those that were picked from and of which nobody said anything.

    `post_stratified` gives them no weight: what is told of all is told from the other strata alone.
    """
    whole: dict[str, float] = defaultdict(float)
    for stratum, weight in zip(strata, weights, strict=True):
        whole[stratum] += weight
    heard = {stratum for stratum, said in zip(strata, is_said, strict=True) if said}
    return {stratum: round(rows) for stratum, rows in sorted(whole.items()) if stratum not in heard}


def agreement_tables(
    rated: Iterable[tuple[str, str | None, str | None]], classes: Sequence[str]
) -> list[list[list[int]]]:
    """For each task: how often each class of the first rater met each of the second, of those named.

    `rated`: the task of a row, and what either rater says of it. Never without a table.
    """
    counts: dict[str, Counter[tuple[str | None, str | None]]] = defaultdict(Counter)
    for task, one, other in rated:
        if one in classes and other in classes:
            counts[task][one, other] += 1
    return [
        [[said[one, other] for other in classes] for one in classes]
        for said in counts.values() or (Counter(),)
    ]
