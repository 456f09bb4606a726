"""A whole database, made up by arithmetic: several runs and gates, sessions, calls of all roles, labels.

Where `made` has one run as an import leaves it, here is whatever a view may meet: both rewards, one, none;
ties and near ties; answers that could not be read, failed, or were never asked for; sessions without a
pair, pairs without sessions, unnamed agents, NULL categories; every outcome, every flag, every swap rule.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import made

from audit.pipeline.rows import answer_in, mean_score, preference_or_null
from audit.verbs.gaps import GAUGE, SCORES
from audit.verbs.score import Scale, score
from audit.words.names import Answer
from audit.words.records import HumanLabel, JudgeLog, Judgment, Pair, ReviewItem, Run, Session

Rows = list[tuple[Any, ...]]
AT = "2026-01-{day:02d}T00:00:00.000Z"
BATCH = 2000
PANEL = ("judge-small", "judge-large", "Richter")
REASONS = ("satisfied_failed", "inconsistent", "panel_disagrees", "near_tie", "llm_labelled", "random")


class Plan(NamedTuple):
    """One run: which share of the pairs it has, under which gates, and how it scores them."""

    run: Run
    scale: Scale
    share: float
    gates: tuple[str, ...]


def _run(number: int, kind: str, scale: Scale, status: str = "complete") -> Run:
    day = AT.format(day=number)
    return Run(
        f"2026010{number}-000000000-madewhl{number}",
        "nightly" if number < 3 else f"run {number}",
        kind,
        "{}",
        f"hash{number}",
        "tasks" if kind == "live" else None,
        None,
        scale.swap_rule,
        scale.gap_source,
        "run",
        scale.buckets.name,
        status,
        day,
        None if status == "running" else day,
    )


def plans() -> list[Plan]:
    """Six runs: two nights of a panel and its member, one order only, net votes, no pairs, nothing yet."""
    both = Scale("both_agree", "session", GAUGE)
    one = Scale("first_order", "external", GAUGE)
    net = Scale("net_vote", "judge", SCORES)
    return [
        Plan(_run(1, "live", both), both, 0.4, ("judge-small", "panel")),
        Plan(_run(2, "live", both), both, 0.2, ("judge-small", "panel")),
        Plan(_run(3, "import", one), one, 0.2, ("gpt",)),
        Plan(_run(4, "import", net), net, 0.2, ("unjudged", "Gate B")),
        Plan(_run(5, "import", both, "stopped"), both, 0.0, ()),
        Plan(_run(6, "live", both, "running"), both, 0.0, ()),
    ]


def tables(pairs: int) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """(table, columns, rows) in the order in which they can be stored, a batch at a time."""
    chosen = plans()
    yield "audit_runs", Run._fields, [plan.run for plan in chosen]
    yield (
        "gap_buckets",
        ("bucket_set", "label", "lower", "upper", "closed", "is_near"),
        [(scale.name, *bucket) for scale in (GAUGE, SCORES) for bucket in scale.with_unknown()],
    )
    yield (
        "prompts",
        ("prompt_hash", "role", "name", "version", "text"),
        [
            (f"prompt{n}", "judge", "judge_pair", str(n), f"Which is better, in words {n}? \u4f60\u597d")
            for n in range(3)
        ],
    )
    for plan in chosen:
        # Under each gate stands the same pair of sessions.
        subjects = int(pairs * plan.share) // max(len(plan.gates), 1)
        yield from _sessions(plan, subjects if plan.gates else min(pairs // 10, 5000))
        yield from _pairs(plan, subjects)
        yield from _people(plan, subjects)


def _batches(numbers: range) -> Iterator[range]:
    for start in range(0, len(numbers), BATCH):
        yield numbers[start : start + BATCH]


def _key(plan: Plan, number: int) -> int:
    return number + int(plan.run.run_id[7]) * 7_919_111


def _session_id(plan: Plan, task: int, agent: int) -> str:
    return f"{plan.run.run_id[-8:]}-s{task:06d}-{agent:02d}"


def _agent(agent: int) -> str:
    """Sorted by their bytes, capitals stand before small letters: a database may think otherwise."""
    return f"Agent-{agent:02d}" if agent % 5 == 0 else made.AGENTS[agent]


def _category(task: int) -> str | None:
    return None if task % 11 == 0 else made.CATEGORIES[task % len(made.CATEGORIES)]


def _reward(plan: Plan, task: int, agent: int) -> float | None:
    """NULL, a share of five checks, or in the run of net votes any number, some of them nearly equal."""
    luck = made.chance(_key(plan, task * 20 + agent), 17)
    if luck < 0.02:
        return None
    met = int(6 * made.chance(_key(plan, task * 20 + agent), 19)) / 5
    return met + 1e-10 * agent + luck * (agent % 2) if plan.scale.swap_rule == "net_vote" else met


def _success(reward: float | None) -> int | None:
    return None if reward is None or abs(reward - 0.6) < 1e-6 else int(reward >= 1 - 1e-6)


def _sessions(plan: Plan, subjects: int) -> Iterator[tuple[str, Sequence[str], Rows]]:
    agents = len(made.AGENTS)
    tasks = -(-subjects // len(made.AGENT_PAIRS))
    for batch in _batches(range(tasks * agents)):
        rows = [_session(plan, *divmod(number, agents)) for number in batch]
        yield "sessions", Session._fields, list(rows)
        yield "judge_logs", JudgeLog._fields, [call for row in rows for call in _session_calls(plan, row)]


def _session(plan: Plan, task: int, agent: int) -> Session:
    reward = _reward(plan, task, agent)
    luck = made.chance(_key(plan, task * 20 + agent), 23)
    sources = ("rule",) * 12 + ("external",) * 4 + ("llm", "human", None)
    faults = (None,) * 94 + ("agent", "agent", "simulator", "verifier", "gateway")
    satisfaction = None if luck < 0.1 else round((luck + (reward or 0) % 1) / 2, 1)
    blank: dict[str, Any] = dict.fromkeys(Session._fields)
    known = {
        "session_id": _session_id(plan, task, agent),
        "run_id": plan.run.run_id,
        "task_id": f"task-{task:06d}",
        "category": _category(task),
        "task_fingerprint": f"print-{task}" if plan.run.kind == "live" else None,
        "agent": _agent(agent),
        "trial": 0,
        "transcript_json": None
        if luck > 0.9
        else '[{"role":"user","content":"Please change my booking \U0001f642"}]',
        "reward": reward,
        "success": _success(reward),
        "label_source": sources[int(luck * 1e4) % len(sources)],
        "satisfaction": satisfaction,
        "fault": faults[int(luck * 1e6) % len(faults)],
        "total_tokens": None if luck < 0.05 else 1000 + agent,
        "simulated_at": AT.format(day=7),
        "verified_at": None if reward is None else AT.format(day=8),
        "created_at": AT.format(day=7),
    }
    return Session(**blank | known)


def _session_calls(plan: Plan, row: Session) -> list[JudgeLog]:
    if plan.run.kind != "live":
        return []
    return [
        _call(plan, role, role, "ok", session_id=row.session_id, tokens=500 + len(role), choice=None)
        for role in ("agent", "user_simulator")
    ]


def _pairs(plan: Plan, subjects: int) -> Iterator[tuple[str, Sequence[str], Rows]]:
    for nth, gate in enumerate(plan.gates):
        for batch in _batches(range(subjects)):
            found = [_pair(plan, gate, nth, number) for number in batch]
            yield "audit_pairs", Pair._fields, [pair for pair, _ in found]
            yield "judge_logs", JudgeLog._fields, [call for _, calls in found for call in calls]


def _pair_id(plan: Plan, nth: int, number: int) -> str:
    return f"{plan.run.run_id[-8:]}-p{nth}{number:08d}"


def _pair(plan: Plan, gate: str, nth: int, number: int) -> tuple[Pair, list[JudgeLog]]:
    drawn = made.draw(number)
    key = _key(plan, number)
    luck = made.chance(key, 29 + nth)
    # Either agent may be side A; now and then one meets itself.
    agent_a, agent_b = (drawn.agent_b, drawn.agent_a) if number % 3 == 0 else (drawn.agent_a, drawn.agent_b)
    agent_b = agent_a if number % 211 == 0 else agent_b
    reward_a, reward_b = (_reward(plan, drawn.task, agent) for agent in (agent_a, agent_b))
    better = 1 if (reward_a or 0) >= (reward_b or 0) else -1
    judgments = [] if gate == "unjudged" else _judgments(plan, key + nth, better if luck > 0.25 else -better)
    ab, ba = answer_in("AB", judgments), answer_in("BA", judgments)
    score_a = mean_score([one.score_a for one in judgments])
    score_b = mean_score([one.score_b for one in judgments])
    external = None if luck > 0.97 else round(abs((reward_a or 0) - (reward_b or 0)) * 0.37, 3)
    scored = score(
        plan.scale, ab, ba,
        reward_a=reward_a, reward_b=reward_b, score_a=score_a, score_b=score_b, external_gap=external,
    )  # fmt: skip
    has_sessions, is_named, is_scored = luck > 0.02, luck < 0.98, not 0.5 < luck < 0.503
    known = {
        "pair_id": _pair_id(plan, nth, number),
        "source_pair_id": f"pair-{number}" if plan.run.kind == "import" else None,
        "run_id": plan.run.run_id,
        "gate": gate,
        "task_id": f"task-{drawn.task:06d}",
        "category": _category(drawn.task),
        "trial": 0,
        "agent_a": _agent(agent_a) if is_named else None,
        "agent_b": _agent(agent_b) if is_named else None,
        "session_a": _session_id(plan, drawn.task, agent_a) if has_sessions else None,
        "session_b": _session_id(plan, drawn.task, agent_b) if has_sessions else None,
        "success_a": _success(reward_a),
        "success_b": _success(reward_b),
        "reward_a": reward_a,
        "reward_b": reward_b,
        "pref_ab": preference_or_null(ab),
        "pref_ba": preference_or_null(ba),
        "judge_score_a": score_a,
        "judge_score_b": score_b,
        "external_gap": external,
        "total_tokens": 900 + number % 7,
        "cost_usd": number % 13 / 1000,
        "judged_at": None if ab == ba == "missing" else AT.format(day=9),
        "verified_at": None if reward_a is None or reward_b is None else AT.format(day=9),
        "created_at": AT.format(day=9),
    }
    if is_scored:
        known |= scored._asdict() | {"scored_at": AT.format(day=10)}
    blank: dict[str, Any] = dict.fromkeys(Pair._fields) | {"gap_bucket": "unknown"}
    profiles = PANEL if gate == "panel" else (gate,)
    calls = [
        call
        for member, profile in enumerate(profiles)
        for one in judgments
        for call in _judge_calls(plan, profile, known["pair_id"], one, made.chance(key + member, 31), drawn)
    ]
    return Pair(**blank | known), calls


def _judgments(plan: Plan, key: int, better: int) -> list[Judgment]:
    found = []
    for order in made.ORDERS[: 1 if plan.scale.swap_rule == "first_order" else 2]:
        luck = made.chance(key, 37 if order == "AB" else 41)
        if luck < 0.01:
            continue
        choice = made.choice(key, order, better)
        answer: Answer = "unreadable"
        if luck < 0.02:
            answer = "failed"
        elif choice:
            answer = made.preference_of(choice, order)
        side = answer if answer in ("A", "B", "tie") else None
        score_a, score_b = (int(luck * 100) % 10, int(luck * 1000) % 10) if side else (None, None)
        status = "error" if answer == "failed" else "ok" if side else "unreadable"
        found.append(Judgment(order, answer, choice if side else None, side, status, None, score_a, score_b))  # type: ignore[arg-type]
    return found


def _judge_calls(
    plan: Plan, profile: str, pair_id: str, one: Judgment, luck: float, drawn: made.Drawn
) -> Iterator[JudgeLog]:
    """One call, before it now and then one that failed; in a panel somebody may see it otherwise."""
    choice = "tie" if one.choice and luck < 0.05 else one.choice
    preference = made.preference_of(choice, one.order)
    more: dict[str, Any] = {
        "pair_id": pair_id,
        "presented_order": one.order,
        "prompt_hash": (None, "prompt0", "prompt1", "gone")[drawn.number % 4],
    }
    if luck > 0.99:
        yield _call(plan, "judge", profile, "error", choice=None, tokens=None, **more)
    text = made.reply(drawn, one.order)
    more |= {"attempt": 1 + (luck > 0.99), "raw_output": text, "preference": preference}
    tokens = None if luck < 0.02 else 700 + drawn.number % 50
    yield _call(plan, "judge", profile, one.parse_status, choice=choice, tokens=tokens, **more)


def _call(
    plan: Plan, role: str, profile: str, status: str, *, choice: str | None, tokens: int | None, **more: Any
) -> JudgeLog:
    blank: dict[str, Any] = dict.fromkeys(JudgeLog._fields)
    known = {
        "run_id": plan.run.run_id,
        "role": role,
        "profile": profile,
        "model": f"model-of-{profile}" if profile != "gpt" else None,
        "attempt": 1,
        "choice": choice,
        "parse_status": status,
        "prompt_tokens": None if tokens is None else tokens - 100,
        "completion_tokens": None if tokens is None else 100,
        "total_tokens": tokens,
        "latency_ms": None if tokens is None else tokens / 7,
        "created_at": AT.format(day=10 + len(role) % 3),
    }
    return JudgeLog(**blank | known | more)


def _people(plan: Plan, subjects: int) -> Iterator[tuple[str, Sequence[str], Rows]]:
    """Every fiftieth pair went out; people say what they like of it, and change their mind."""
    if not plan.gates:
        return
    for batch in _batches(range(0, subjects, 50)):
        labels: Rows = []
        items: Rows = []
        for number in batch:
            pair, drawn = _pair_id(plan, 0, number), made.draw(number)
            luck = made.chance(_key(plan, number), 43)
            reason = REASONS[number // 50 % len(REASONS)]
            items.append(
                ReviewItem(f"v-{pair}", plan.run.run_id, pair, None, reason, 50.0, "A", AT.format(day=11))
            )
            session = _session_id(plan, drawn.task, drawn.agent_a)
            for nth, who in enumerate(("ann", "bob", "ann", "cy")[: 1 + int(luck * 4)]):
                # ann's two words may be of the same moment: the later row counts.
                day = 12 + nth // 2 * (number % 3)
                turn = int(luck * 1000) + nth
                preference = ("A", "b", "TIE", "cannot tell", "withdrawn", "B")[turn % 6]
                success = ("1", "0", "True", "no", "cannot tell", "withdrawn", "yes")[turn % 7]
                at = AT.format(day=day)
                labels.append(HumanLabel(pair, None, who, "preference", preference, None, at))
                labels.append(HumanLabel(None, session, who, "success", success, "caf\u00e9", at))
        yield "review_items", ReviewItem._fields, items
        yield "human_labels", HumanLabel._fields, labels
