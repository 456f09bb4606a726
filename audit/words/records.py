"""The rows that travel between the floors, one class a table that is written in bulk.

Field order is column order: `tuple(record)` is what the store writes. NamedTuples, because a million of
them are made in one import and nothing mutates them.
"""

from typing import NamedTuple

from audit.words.names import (
    Answer,
    Choice,
    GapScope,
    GapSource,
    Order,
    ParseStatus,
    Preference,
    Side,
    SwapRule,
)


class Session(NamedTuple):
    """One trajectory: one agent on one task, one trial. Unique by (run_id, task_id, agent, trial)."""

    session_id: str
    run_id: str
    task_id: str | None
    category: str | None
    task_fingerprint: str | None
    agent: str | None
    trial: int
    transcript_json: str | None
    end_reason: str | None
    final_state_json: str | None
    reward: float | None
    success: int | None
    checks_json: str | None
    label_source: str | None
    satisfaction: float | None
    judge_flip: float | None
    fault: str | None
    error: str | None
    source_json: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    simulated_at: str | None
    verified_at: str | None
    created_at: str


class Pair(NamedTuple):
    """One gate's verdict on one pair of sessions, with everything `score` makes of it."""

    pair_id: str
    source_pair_id: str | None
    run_id: str
    gate: str
    task_id: str
    category: str | None
    trial: int
    agent_a: str | None
    agent_b: str | None
    session_a: str | None
    session_b: str | None
    success_a: int | None
    success_b: int | None
    reward_a: float | None
    reward_b: float | None
    judge_pref: str | None
    pref_ab: str | None
    pref_ba: str | None
    is_consistent: int | None
    judge_score_a: float | None
    judge_score_b: float | None
    reward_gap: float | None
    gap_bucket: str
    session_gap: float | None
    agent_gap: float | None
    judge_gap: float | None
    external_gap: float | None
    outcome: str | None
    misselected: int | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    cost_usd: float | None
    judged_at: str | None
    verified_at: str | None
    scored_at: str | None
    created_at: str


class JudgeLog(NamedTuple):
    """One model call of any role. The database numbers the rows; nothing is ever changed in them."""

    run_id: str
    pair_id: str | None
    session_id: str | None
    role: str
    profile: str | None
    model: str | None
    served_model: str | None
    base_url: str | None
    presented_order: str | None
    attempt: int
    prompt_hash: str | None
    request_json: str | None
    raw_output: str | None
    parsed_json: str | None
    choice: str | None
    preference: str | None
    parse_status: str
    finish_reason: str | None
    prompt_tokens: int | None
    completion_tokens: int | None
    reasoning_tokens: int | None
    total_tokens: int | None
    latency_ms: float | None
    temperature: float | None
    seed: int | None
    error: str | None
    created_at: str


class ProviderBatch(NamedTuple):
    """One file of requests to one profile, for a provider's batch API or to be carried there by hand.

    `status` is ours (schema.py), `provider_status` the provider's word. A line is stored when its call is a
    row of judge_logs, failed when it may be asked again.
    """

    batch_id: str
    run_id: str
    profile: str
    status: str
    provider_status: str | None
    provider_batch_id: str | None
    input_file_id: str | None
    output_file_id: str | None
    error_file_id: str | None
    count_lines: int
    count_stored: int
    count_failed: int
    error: str | None
    created_at: str
    updated_at: str


class BatchLine(NamedTuple):
    """One request of a batch. `request_json` is NULL once it is settled: the call's row has it then."""

    custom_id: str
    batch_id: str
    pair_id: str | None
    session_id: str | None
    role: str
    profile: str
    presented_order: str | None
    attempt: int
    prompt_hash: str
    state: str
    request_json: str | None
    refused: str | None
    error: str | None


class ReviewItem(NamedTuple):
    """One pair, or one session of a run without pairs, that people are asked to look at.

    `weight`: one over the probability with which it was picked; `shown_first`: the side that people see
    first, NULL for a session.
    """

    review_id: str
    run_id: str
    pair_id: str | None
    session_id: str | None
    reason: str
    weight: float
    shown_first: Side | None
    created_at: str


class HumanLabel(NamedTuple):
    """What one person said of one pair or session. The database numbers the rows; none is ever changed.

    `value` of a preference: `A`, `B`, `tie`, `cannot tell`; of a success: `1`, `0`, `cannot tell`; of both
    `withdrawn`. An annotator's newest word on a subject is the one that counts.
    """

    pair_id: str | None
    session_id: str | None
    annotator: str
    kind: str
    value: str
    note: str | None
    created_at: str


class RawAnswer(NamedTuple):
    """What a file holds of one order of one pair: a reply, a recorded decision, or both.

    `choice` is by position, `preference` by side; a file gives one of them, or neither where none was read.
    `grammar` says how `raw_output` can be read, `error` that the call brought no answer. Scores are by
    position, as the judge gave them.
    """

    order: Order
    raw_output: str | None
    grammar: str | None = None
    is_recorded: bool = False
    choice: Choice | None = None
    preference: Preference | None = None
    decision: str | None = None
    score_first: float | None = None
    score_second: float | None = None
    finish_reason: str | None = None
    error: str | None = None


class Judgment(NamedTuple):
    """One order of one pair, read. `answer` is the preference, or why there is none; scores are by side."""

    order: Order
    answer: Answer
    choice: Choice | None
    preference: Preference | None
    parse_status: ParseStatus
    parsed_json: str | None
    score_a: float | None
    score_b: float | None


class ImportedPair(NamedTuple):
    """One pair of a foreign file, checked, its answers not yet read.

    Rewards are finite or NULL; `place` says where it stood in its file, for error messages.
    """

    place: str
    source_pair_id: str
    gate: str
    task_id: str
    answers: tuple[RawAnswer, ...]
    category: str | None = None
    trial: int = 0
    agent_a: str | None = None
    agent_b: str | None = None
    success_a: int | None = None
    success_b: int | None = None
    reward_a: float | None = None
    reward_b: float | None = None
    external_gap: float | None = None
    transcript_a: str | None = None
    transcript_b: str | None = None
    label_source: str | None = None
    judged_at: str | None = None


class ImportedSession(NamedTuple):
    """One session of a foreign file. `source_json` keeps what the tables have no column for.

    `transcript_json` is in OpenAI chat form; `success` NULL: not said, it follows from the reward where one
    is known; `is_odd`: the recorded reward is not what its own parts give, `error` says how.
    """

    place: str
    task_id: str | None
    agent: str
    success: int | None
    satisfaction: float | None
    judge_flip: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    total_tokens: int | None
    source_json: str
    trial: int = 0
    category: str | None = None
    task_fingerprint: str | None = None
    transcript_json: str | None = None
    end_reason: str | None = None
    reward: float | None = None
    checks_json: str | None = None
    label_source: str | None = None
    fault: str | None = None
    error: str | None = None
    is_odd: bool = False
    simulated_at: str | None = None


class OutsideReward(NamedTuple):
    """Rewards from elsewhere for one pair of an imported run; `gap` where the file gives one itself."""

    place: str
    source_pair_id: str
    reward_a: float
    reward_b: float
    gap: float | None


class Run(NamedTuple):
    """One row of audit_runs."""

    run_id: str
    name: str
    kind: str
    config_json: str
    config_hash: str
    task_set_hash: str | None
    prompt_set_hash: str | None
    swap_rule: SwapRule
    gap_source: GapSource
    gap_scope: GapScope
    bucket_set: str
    status: str
    created_at: str
    finished_at: str | None


# What a judge's answers say of a pair, directly or by score.
JUDGED = (
    "judge_pref",
    "pref_ab",
    "pref_ba",
    "is_consistent",
    "judge_score_a",
    "judge_score_b",
    "judge_gap",
    "outcome",
    "misselected",
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cost_usd",
    "judged_at",
    "scored_at",
)
