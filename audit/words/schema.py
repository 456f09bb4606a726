"""The tables, once, for both databases. Migrations build exactly this: a test compares them.

Booleans are INTEGER 0/1/NULL, times are text (`words.clock`), JSON is text. Constraint names follow one
convention, so that a later revision can name what it changes.
"""

from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column that is exactly INTEGER.
_Id = BigInteger().with_variant(Integer(), "sqlite")


def _text(name: str, *args: Any, **options: Any) -> Column[str]:
    return Column(name, Text, *args, **options)


def _integer(name: str, **options: Any) -> Column[int]:
    return Column(name, BigInteger, **options)


def _float(name: str) -> Column[float]:
    return Column(name, Float(53))


def _flag(name: str) -> Column[int]:
    return Column(name, Integer, CheckConstraint(f"{name} in (0, 1)", name=name))


audit_runs = Table(
    "audit_runs",
    metadata,
    _text("run_id", primary_key=True),
    _text("name", nullable=False),
    _text("kind", CheckConstraint("kind in ('live', 'import')", name="kind"), nullable=False),
    _text("config_json", nullable=False),
    _text("config_hash", nullable=False),
    _text("task_set_hash"),
    _text("prompt_set_hash"),
    _text("swap_rule", nullable=False),
    _text("gap_source", nullable=False),
    _text("gap_scope", nullable=False),
    _text("bucket_set", nullable=False),
    _text(
        "status",
        CheckConstraint("status in ('running', 'complete', 'stopped', 'failed')", name="status"),
        nullable=False,
    ),
    _text("created_at", nullable=False),
    _text("finished_at"),
)
# The same file under the same name is imported once, also by two imports at the same moment.
Index(
    "uq_audit_runs_import",
    audit_runs.c.name,
    audit_runs.c.config_hash,
    unique=True,
    sqlite_where=audit_runs.c.kind == "import",
    postgresql_where=audit_runs.c.kind == "import",
)

sessions = Table(
    "sessions",
    metadata,
    _text("session_id", primary_key=True),
    _text("run_id", ForeignKey("audit_runs.run_id"), nullable=False),
    _text("task_id"),
    _text("category"),
    _text("task_fingerprint"),
    _text("agent"),
    _integer("trial", nullable=False),
    _text("transcript_json"),
    _text("end_reason"),
    _text("final_state_json"),
    _float("reward"),
    _flag("success"),
    _text("checks_json"),
    _text("label_source"),
    _float("satisfaction"),
    _float("judge_flip"),
    _text("fault"),
    _text("error"),
    _text("source_json"),
    _integer("prompt_tokens"),
    _integer("completion_tokens"),
    _integer("total_tokens"),
    _text("simulated_at"),
    _text("verified_at"),
    _text("created_at", nullable=False),
    UniqueConstraint("run_id", "task_id", "task_fingerprint", "agent", "trial"),
)
# One id may stand for several tasks, which their fingerprints tell apart. Where there is none NULL would be
# distinct from NULL, and so would the same session twice.
Index(
    "uq_sessions_no_fingerprint",
    sessions.c.run_id,
    sessions.c.task_id,
    sessions.c.agent,
    sessions.c.trial,
    unique=True,
    sqlite_where=text("task_fingerprint is null"),
    postgresql_where=text("task_fingerprint is null"),
)

audit_pairs = Table(
    "audit_pairs",
    metadata,
    _text("pair_id", primary_key=True),
    _text("source_pair_id"),
    _text("run_id", ForeignKey("audit_runs.run_id"), nullable=False),
    _text("gate", nullable=False),
    _text("task_id", nullable=False),
    _text("category"),
    _integer("trial", nullable=False),
    _text("agent_a"),
    _text("agent_b"),
    _text("session_a", ForeignKey("sessions.session_id")),
    _text("session_b", ForeignKey("sessions.session_id")),
    _flag("success_a"),
    _flag("success_b"),
    _float("reward_a"),
    _float("reward_b"),
    _text("judge_pref"),
    _text("pref_ab"),
    _text("pref_ba"),
    _flag("is_consistent"),
    _float("judge_score_a"),
    _float("judge_score_b"),
    _float("reward_gap"),
    _text("gap_bucket", nullable=False, server_default="unknown"),
    _float("session_gap"),
    _float("agent_gap"),
    _float("judge_gap"),
    _float("external_gap"),
    _text("outcome"),
    _flag("misselected"),
    _integer("prompt_tokens"),
    _integer("completion_tokens"),
    _integer("total_tokens"),
    _float("cost_usd"),
    _text("judged_at"),
    _text("verified_at"),
    _text("scored_at"),
    _text("created_at", nullable=False),
    UniqueConstraint("run_id", "gate", "source_pair_id"),
    # Each view of counts is one scan of one of these, in index order, and never touches the table.
    Index(
        "ix_audit_pairs_gap", "run_id", "gate", "gap_bucket", "outcome", "is_consistent", "pref_ab", "pref_ba"
    ),
    Index("ix_audit_pairs_category", "run_id", "gate", "category", "outcome", "is_consistent"),
)

judge_logs = Table(
    "judge_logs",
    metadata,
    Column("log_id", _Id, primary_key=True, autoincrement=True),
    _text("run_id", ForeignKey("audit_runs.run_id"), nullable=False),
    _text("pair_id", ForeignKey("audit_pairs.pair_id")),
    _text("session_id", ForeignKey("sessions.session_id")),
    _text("role", nullable=False),
    _text("profile"),
    _text("model"),
    _text("served_model"),
    _text("base_url"),
    _text("presented_order"),
    _integer("attempt", nullable=False),
    _text("prompt_hash"),
    _text("request_json"),
    _text("raw_output"),
    _text("parsed_json"),
    _text("choice"),
    _text("preference"),
    _text("parse_status", nullable=False),
    _text("finish_reason"),
    _integer("prompt_tokens"),
    _integer("completion_tokens"),
    _integer("reasoning_tokens"),
    _integer("total_tokens"),
    _float("latency_ms"),
    _float("temperature"),
    _integer("seed"),
    _text("error"),
    _text("created_at", nullable=False),
    Index("ix_judge_logs_pair", "pair_id", "presented_order", "attempt"),
    Index("ix_judge_logs_run", "run_id", "role", "profile", "parse_status"),
)

# planned    its lines are here, nothing is sent
# uploaded   the provider has the file, and does nothing with it
# submitting the provider was, or was about to be, told to begin: only it knows whether it has
# accepted   the provider has begun
# exported   written to a file, for somebody else to send
# done       every line has its answer, or is given up
_BATCH_STATUS = "status in ('planned', 'uploaded', 'submitting', 'accepted', 'exported', 'done')"
# open    waits for its answer
# stored  its call is a row of judge_logs
# failed  no answer came: it may be asked again, as another line
# refused the gateway refused a part of the request: it is asked again without
# dropped it was given up, or never worked on: it may be asked again
_LINE_STATE = "state in ('open', 'stored', 'failed', 'refused', 'dropped')"

provider_batches = Table(
    "provider_batches",
    metadata,
    _text("batch_id", primary_key=True),
    _text("run_id", ForeignKey("audit_runs.run_id"), nullable=False),
    _text("profile", nullable=False),
    _text("status", CheckConstraint(_BATCH_STATUS, name="status"), nullable=False),
    _text("provider_status"),
    _text("provider_batch_id"),
    _text("input_file_id"),
    _text("output_file_id"),
    _text("error_file_id"),
    _integer("count_lines", nullable=False),
    _integer("count_stored", nullable=False),
    _integer("count_failed", nullable=False),
    _text("error"),
    _text("created_at", nullable=False),
    _text("updated_at", nullable=False),
    Index("ix_provider_batches_run", "run_id", "status"),
)

batch_lines = Table(
    "batch_lines",
    metadata,
    _text("custom_id", primary_key=True),
    _text("batch_id", ForeignKey("provider_batches.batch_id"), nullable=False),
    _text("pair_id", ForeignKey("audit_pairs.pair_id")),
    _text("session_id", ForeignKey("sessions.session_id")),
    _text("role", nullable=False),
    _text("profile", nullable=False),
    _text("presented_order"),
    _integer("attempt", nullable=False),
    _text("prompt_hash", nullable=False),
    _text("state", CheckConstraint(_LINE_STATE, name="state"), nullable=False),
    _text("request_json"),
    _text("refused"),
    _text("error"),
    CheckConstraint("(pair_id is null) <> (session_id is null)", name="one_subject"),
    Index("ix_batch_lines_batch", "batch_id", "state"),
    # For the database, which looks for them where a pair or a session is to be deleted.
    Index("ix_batch_lines_pair", "pair_id"),
    Index("ix_batch_lines_session", "session_id"),
)

prompts = Table(
    "prompts",
    metadata,
    _text("prompt_hash", primary_key=True),
    _text("role", nullable=False),
    _text("name", nullable=False),
    _text("version", nullable=False),
    _text("text", nullable=False),
)

human_labels = Table(
    "human_labels",
    metadata,
    Column("label_id", _Id, primary_key=True, autoincrement=True),
    _text("pair_id", ForeignKey("audit_pairs.pair_id")),
    _text("session_id", ForeignKey("sessions.session_id")),
    _text("annotator", nullable=False),
    _text("kind", CheckConstraint("kind in ('success', 'preference')", name="kind"), nullable=False),
    _text("value", nullable=False),
    _text("note"),
    _text("created_at", nullable=False),
    CheckConstraint("(pair_id is null) <> (session_id is null)", name="one_subject"),
    Index("ix_human_labels_pair", "pair_id"),
    Index("ix_human_labels_session", "session_id"),
)

# `weight` is one over the probability with which the item was picked, `reason` the stratum it is from.
_REASONS = (
    "reason in ('satisfied_failed', 'inconsistent', 'panel_disagrees', 'near_tie', 'llm_labelled', 'random')"
)

review_items = Table(
    "review_items",
    metadata,
    _text("review_id", primary_key=True),
    _text("run_id", ForeignKey("audit_runs.run_id"), nullable=False),
    _text("pair_id", ForeignKey("audit_pairs.pair_id"), unique=True),
    _text("session_id", ForeignKey("sessions.session_id"), unique=True),
    _text("reason", CheckConstraint(_REASONS, name="reason"), nullable=False),
    Column("weight", Float(53), CheckConstraint("weight > 0", name="weight"), nullable=False),
    _text("shown_first", CheckConstraint("shown_first in ('A', 'B')", name="shown_first")),
    _text("created_at", nullable=False),
    CheckConstraint("(pair_id is null) <> (session_id is null)", name="one_subject"),
    Index("ix_review_items_run", "run_id"),
)

gap_buckets = Table(
    "gap_buckets",
    metadata,
    _text("bucket_set", primary_key=True),
    _text("label", primary_key=True),
    _float("lower"),
    _float("upper"),
    _text("closed", CheckConstraint("closed in ('left', 'right')", name="closed")),
    _flag("is_near"),
)

# Which wording of the files in sql/ the views were made from: a changed view needs no revision.
view_digest = Table("view_digest", metadata, _text("digest", primary_key=True))
