"""Import rewards: outside rewards for the pairs of an imported run, whole file or nothing."""

import json
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, Engine

from audit.doors import ask, store
from audit.doors.db import writing
from audit.doors.files import Progress, sha256
from audit.doors.formats import rewards
from audit.pipeline.scoring import rescore, stored_buckets
from audit.verbs.gaps import GAUGE, SCORES, BucketSet
from audit.verbs.score import Scale
from audit.words import clock
from audit.words.errors import BadFile
from audit.words.names import GapSource
from audit.words.records import OutsideReward, Pair, Run
from audit.words.text import as_json


class Rewarded(NamedTuple):
    """The run; how many ids the file named, how many pairs changed, how many it does not name.

    `was` is the gap source and the bucket set before.
    """

    run: Run
    was: tuple[str, str]
    named: int
    changed: int
    kept: int


def import_rewards(
    engine: Engine,
    path: Path,
    wanted: str,
    *,
    replace: bool = False,
    buckets: BucketSet | None = None,
    progress: Progress | None = None,
) -> Rewarded:
    """Set the rewards of `path` on the run and score it; success is untouched.

    The gap source becomes external where the file gives gaps, else session. Raises BadFile for an unknown
    pair, for one that stands twice, and, without `replace`, for one whose rewards are set to other values.
    """
    with writing(engine) as connection:
        run = ask.run_named(connection, wanted)
        given = _given(path, progress)
        if not given:
            raise BadFile(str(path), "", "holds no rewards")
        gap_source: GapSource = "external" if any(r.gap is not None for r in given.values()) else "session"
        changed, kept = _set(connection, run, path, given, replace)
        was = (run.gap_source, run.bucket_set)
        chosen = buckets or stored_buckets(connection, run.bucket_set)
        if buckets is None and run.gap_source == "judge" and run.bucket_set == SCORES.name:
            # The buckets of the judge's scores go with them.
            chosen = GAUGE
        run = run._replace(gap_source=gap_source, bucket_set=chosen.name)
        store.add_buckets(connection, chosen.name, chosen.with_unknown())
        store.set_scale(connection, run.run_id, run.swap_rule, run.gap_source, run.gap_scope, run.bucket_set)
        stored = json.loads(run.config_json)
        stored["outside_rewards"] = {"name": path.name, "sha256": sha256(path)}
        run = run._replace(config_json=as_json(stored))
        store.set_config(connection, run.run_id, run.config_json)
        rescore(connection, run, Scale(run.swap_rule, run.gap_source, chosen))
    return Rewarded(run, was, len(given), changed, kept)


def _given(path: Path, progress: Progress | None) -> dict[str, OutsideReward]:
    given: dict[str, OutsideReward] = {}
    for reward in rewards.read(path, progress):
        earlier = given.get(reward.source_pair_id)
        if earlier is not None:
            raise BadFile(
                str(path),
                reward.place,
                f"source_pair_id {reward.source_pair_id!r} stands at {earlier.place} already",
            )
        given[reward.source_pair_id] = reward
    return given


def _set(
    connection: Connection, run: Run, path: Path, given: dict[str, OutsideReward], replace: bool
) -> tuple[int, int]:
    """Set what differs; how many pairs changed, and how many the file does not name."""
    unseen = dict(given)
    now = clock.now()
    changed = kept = 0
    of_session: dict[str, set[float | None]] = {}
    for batch in ask.pairs(connection, run.run_id):
        updates = []
        for pair in batch:
            reward = given.get(pair.source_pair_id or "")
            if reward is None:
                kept += 1
                continue
            unseen.pop(reward.source_pair_id, None)
            gap = pair.external_gap if reward.gap is None else reward.gap
            new = (reward.reward_a, reward.reward_b, gap)
            if new == (pair.reward_a, pair.reward_b, pair.external_gap):
                continue
            _refuse_overwriting(path, pair, reward, replace)
            updates.append(store.RewardUpdate(*new, now, pair.pair_id))
            for session, value in ((pair.session_a, new[0]), (pair.session_b, new[1])):
                if session is not None:
                    of_session.setdefault(session, set()).add(value)
        store.set_rewards(connection, updates)
        changed += len(updates)
    if unseen:
        stray = next(iter(unseen.values()))
        raise BadFile(
            str(path),
            stray.place,
            f"source_pair_id {stray.source_pair_id!r} is not in run {run.run_id}"
            + (f" (nor are {len(unseen) - 1} others)" if len(unseen) > 1 else ""),
        )
    # What the report says of agents is read from their sessions; one that was given two rewards has none.
    store.set_session_rewards(
        connection,
        {name: next(iter(values)) if len(values) == 1 else None for name, values in of_session.items()},
    )
    return changed, kept


def _refuse_overwriting(path: Path, pair: Pair, reward: OutsideReward, replace: bool) -> None:
    if replace or (pair.reward_a, pair.reward_b) in ((None, None), (reward.reward_a, reward.reward_b)):
        return
    raise BadFile(
        str(path),
        reward.place,
        f"source_pair_id {reward.source_pair_id!r} has rewards {pair.reward_a} and {pair.reward_b} already: "
        "say --replace to set others",
    )
