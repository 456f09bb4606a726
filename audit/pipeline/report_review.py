"""The report's part about people: rates set right by what they say, and who agrees with whom."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from sqlalchemy import Connection

from audit.doors import ask_labelled, ask_review
from audit.doors.ask_labelled import Count, ReviewedPair, ReviewedSession
from audit.pipeline.report_sessions import cut_of
from audit.pipeline.review_import import conflicts, status_of
from audit.statistics.agreement import kappa
from audit.statistics.corrected import corrected
from audit.verbs.people import agreement_tables, by_subject, majority, post_stratified, unheard
from audit.words.names import TOLERANCE
from audit.words.records import HumanLabel, Run

NOT_REVIEWED = "no person has looked at a row of this run: `reward-audit review export` picks some"
NOT_HEARD = "people were sent rows of this run, and said nothing of them yet"
_DECIDED = ("correct", "misselected")
_PREFERENCES = ("A", "B", "tie")
_SUCCESSES = ("1", "0")


class _Row(NamedTuple):
    """A labelled row: what people say (0, 1), what is said without them, how many rows it stands for.

    `stratum`: from which it was drawn; NULL for a session, which may have come with pairs of several.
    """

    bucket: str
    task: str
    stratum: str | None
    label: int
    said: int
    weight: float


def review(
    connection: Connection, run: Run, gate: str | None, buckets: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any] | None, str | None]:
    """The part `review`, or NULL and why. `buckets` is the part `gap_buckets`.

    Misselected is here what people call so: the judge names a side, they prefer the other. It is of the
    decided pairs, or where no pair is decided of all in which the judge names a side. Satisfied but failed is
    over sessions, in a bucket over the sides of its pairs.
    """
    labels = ask_review.newest_labels(connection, run.run_id)
    if not labels:
        has_items = bool(ask_review.items(connection, run.run_id))
        return None, NOT_HEARD if has_items else NOT_REVIEWED
    preferred, succeeded = by_subject(labels, "preference"), by_subject(labels, "success")
    pairs = [] if gate is None else ask_labelled.reviewed_pairs(connection, run.run_id, gate)
    sessions = ask_labelled.reviewed_sessions(connection, run.run_id)
    status = status_of(connection, run)
    cut = cut_of(run)
    misselected, of = _misselected(connection, run, gate, pairs, preferred, buckets)
    failed = _satisfied_failed(connection, run, gate, _Heard(pairs, sessions, succeeded), cut, buckets)
    by_source = _contradicted(sessions, succeeded)
    return {
        **{name: status[name] for name in ("exported", "labelled", "annotators")},
        "conflicts": len(conflicts(labels)),
        "of": of,
        "unheard": _unheard(pairs, preferred, succeeded),
        "misselected": misselected.get(None),
        "satisfied_failed": failed.get(None),
        "gap_buckets": [
            {
                "label": bucket["label"],
                "misselected": misselected.get(bucket["label"]),
                "satisfied_failed": failed.get(bucket["label"]),
            }
            for bucket in buckets
        ],
        "kappa": _kappas(pairs, sessions, preferred, succeeded, cut)
        | {"between_people": _between(labels, pairs, sessions)},
        "rule_disagrees": by_source[True],
        "overruled": by_source[False],
    }, None


def _contradicted(
    sessions: Sequence[ReviewedSession], succeeded: Mapping[str, Mapping[str, str]]
) -> Counter[bool]:
    """Of how many sessions most people contradict the success; True: a rule's, which stands."""
    return Counter(
        session.label_source == "rule"
        for session in sessions
        if session.success is not None
        and majority(succeeded.get(session.session_id, {})) not in (None, str(session.success))
    )


def _misselected(
    connection: Connection,
    run: Run,
    gate: str | None,
    pairs: Sequence[ReviewedPair],
    preferred: Mapping[str, Mapping[str, str]],
    buckets: Sequence[Mapping[str, Any]],
) -> tuple[dict[str | None, dict[str, Any]], str | None]:
    """Bucket label (NULL: all) -> the corrected rate; and of which pairs it is."""
    if gate is None:
        return {}, None
    counts = ask_labelled.decided_pairs(connection, run.run_id, gate)
    of = "decided" if counts else "sided"
    counts = counts or ask_labelled.sided_pairs(connection, run.run_id, gate)
    said = [majority(preferred.get(pair.item, {})) for pair in pairs]
    weights = post_stratified(
        [pair.reason for pair in pairs], [pair.weight for pair in pairs], [one is not None for one in said]
    )
    rows = [
        _Row(
            pair.gap_bucket,
            pair.task_id,
            pair.reason,
            int(one in ("A", "B") and one != pair.judge_pref),
            pair.misselected or 0,
            weight,
        )
        for pair, one, weight in zip(pairs, said, weights, strict=True)
        if weight and (pair.outcome in _DECIDED if of == "decided" else pair.judge_pref in ("A", "B"))
    ]
    heard = Counter(pair.reason for pair, one in zip(pairs, said, strict=True) if one is not None)
    return _by_bucket(rows, [b["label"] for b in buckets], counts, heard), of


def _unheard(
    pairs: Sequence[ReviewedPair],
    preferred: Mapping[str, Mapping[str, str]],
    succeeded: Mapping[str, Mapping[str, str]],
) -> dict[str, dict[str, int]]:
    """For either rate: the reasons, with their numbers of pairs, of which no label is about any."""

    def of(names: Sequence[Sequence[str]], said: Mapping[str, Mapping[str, str]]) -> dict[str, int]:
        is_said = [any(majority(said.get(name, {})) for name in several) for several in names]
        return unheard([pair.reason for pair in pairs], [pair.weight for pair in pairs], is_said)

    return {
        "misselected": of([(pair.item,) for pair in pairs], preferred),
        "satisfied_failed": of([(pair.session_a, pair.session_b) for pair in pairs], succeeded),
    }


class _Heard(NamedTuple):
    pairs: Sequence[ReviewedPair]
    sessions: Sequence[ReviewedSession]
    succeeded: Mapping[str, Mapping[str, str]]


def _satisfied_failed(
    connection: Connection,
    run: Run,
    gate: str | None,
    heard: _Heard,
    cut: float,
    buckets: Sequence[Mapping[str, Any]],
) -> dict[str | None, dict[str, Any]]:
    """The same of satisfied sessions that failed.

    A session is held by several pairs, each of which might have gone out: what its picked pairs weigh is
    shared among all that hold it (P. Lavallee, Indirect Sampling, 2007, chapter 2).
    """
    sessions = {
        session.session_id: session
        for session in heard.sessions
        if session.success is not None and (session.satisfaction or 0) >= cut - TOLERANCE
    }
    said = {
        session.session_id: majority(heard.succeeded.get(session.session_id, {}))
        for session in heard.sessions
    }
    sides = [(p, session) for p in heard.pairs for session in (p.session_a, p.session_b)]
    weights = post_stratified(
        [pair.reason for pair, _ in sides],
        [pair.weight for pair, _ in sides],
        [said.get(session) is not None for _, session in sides],
    )
    overall: dict[str, float] = defaultdict(float)
    in_bucket: dict[tuple[str, str], float] = defaultdict(float)
    for (pair, session), weight in zip(sides, weights, strict=True):
        if weight and session in sessions:
            overall[session] += weight / sessions[session].pairs
            in_bucket[pair.gap_bucket, session] += weight
    overall.update(_alone(connection, run, heard, said, sessions) if not heard.pairs else {})

    def row(bucket: str, session: str, weight: float) -> _Row:
        one = sessions[session]
        return _Row(bucket, one.task_id, None, int(said[session] == "0"), 1 - int(one.success or 0), weight)

    counts = [] if gate is None else ask_labelled.satisfied_sides(connection, run, gate, cut - TOLERANCE)
    by_bucket = _by_bucket(
        [row(bucket, session, weight) for (bucket, session), weight in in_bucket.items()],
        [bucket["label"] for bucket in buckets],
        counts,
    )
    everything = ask_labelled.satisfied_sessions(connection, run.run_id, cut - TOLERANCE)
    rows = [row("", session, weight) for session, weight in overall.items()]
    return {**by_bucket, None: _one(rows, everything)}


def _alone(
    connection: Connection,
    run: Run,
    heard: _Heard,
    said: Mapping[str, str | None],
    sessions: Mapping[str, ReviewedSession],
) -> dict[str, float]:
    """session_id -> weight, where sessions went out by themselves."""
    items = [item for item in ask_review.items(connection, run.run_id) if item.session_id]
    names = [item.session_id or "" for item in items]
    weights = post_stratified(
        [item.reason for item in items],
        [item.weight for item in items],
        [said.get(name) is not None for name in names],
    )
    return {name: weight for name, weight in zip(names, weights, strict=True) if weight and name in sessions}


def _by_bucket(
    rows: Sequence[_Row],
    buckets: Sequence[str],
    counts: Sequence[Count],
    heard: Mapping[str, int] | None = None,
) -> dict[str | None, dict[str, Any]]:
    of_bucket: dict[str, list[Count]] = defaultdict(list)
    for count in counts:
        of_bucket[count.gap_bucket].append(count)
    found: dict[str | None, dict[str, Any]] = {
        label: _one([row for row in rows if row.bucket == label], of_bucket[label], heard)
        for label in buckets
    }
    return found | {None: _one(rows, counts, heard)}


def _one(
    rows: Sequence[_Row], counts: Iterable[Count], heard: Mapping[str, int] | None = None
) -> dict[str, Any]:
    """`counts`: of all rows, in any bucket; `heard`: labels of each stratum, also those of no such row."""
    whole: Counter[str] = Counter()
    flagged: Counter[str] = Counter()
    for count in counts:
        whole[count.task_id] += count.rows
        flagged[count.task_id] += count.flagged
    places = {task: place for place, task in enumerate(whole)}
    strata = list(heard or ())
    return corrected(
        [row.label for row in rows],
        [row.said for row in rows],
        [row.weight for row in rows],
        [flagged[task] for task in whole],
        list(whole.values()),
        [places[row.task] for row in rows],
        [strata.index(row.stratum or "") for row in rows] if heard else None,
        [heard[stratum] for stratum in strata] if heard else None,
    )


def _kappas(
    pairs: Sequence[ReviewedPair],
    sessions: Sequence[ReviewedSession],
    preferred: Mapping[str, Mapping[str, str]],
    succeeded: Mapping[str, Mapping[str, str]],
    cut: float,
) -> dict[str, Any]:
    """Cohen's kappa of judge and people on preferences and on satisfaction, and of verifier and people."""
    sides = [(pair.task_id, pair.judge_pref, majority(preferred.get(pair.item, {}))) for pair in pairs]
    dones = [(session, majority(succeeded.get(session.session_id, {}))) for session in sessions]
    satisfied = [
        (session.task_id, str(int(session.satisfaction >= cut - TOLERANCE)), done)
        for session, done in dones
        if session.satisfaction is not None
    ]
    verified = [
        (session.task_id, str(session.success), done)
        for session, done in dones
        if session.success is not None
    ]
    return {
        "judge_people": kappa(agreement_tables(sides, _PREFERENCES)),
        "satisfaction_people": kappa(agreement_tables(satisfied, _SUCCESSES)),
        "verifier_people": kappa(agreement_tables(verified, _SUCCESSES)),
    }


def _between(
    labels: Sequence[HumanLabel], pairs: Sequence[ReviewedPair], sessions: Sequence[ReviewedSession]
) -> list[dict[str, Any]]:
    """Cohen's kappa of every two annotators who spoke of the same rows, of preferences and of successes."""
    tasks = {pair.item: pair.task_id for pair in pairs} | {one.session_id: one.task_id for one in sessions}
    found = []
    for kind, classes in (("preference", _PREFERENCES), ("success", _SUCCESSES)):
        said = by_subject(labels, kind)
        people = sorted({who for values in said.values() for who in values})
        for one, other in combinations(people, 2):
            both = [
                (tasks.get(row, row), v[one], v[other]) for row, v in said.items() if one in v and other in v
            ]
            if both:
                tables = agreement_tables(both, classes)
                found.append({"kind": kind, "annotators": [one, other], **kappa(tables)})
    return found
