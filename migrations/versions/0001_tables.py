"""The tables of the first release."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite numbers rows by itself only in a column that is exactly INTEGER.
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "audit_runs",
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("config_json", sa.Text, nullable=False),
        sa.Column("config_hash", sa.Text, nullable=False),
        sa.Column("task_set_hash", sa.Text),
        sa.Column("prompt_set_hash", sa.Text),
        sa.Column("swap_rule", sa.Text, nullable=False),
        sa.Column("gap_source", sa.Text, nullable=False),
        sa.Column("gap_scope", sa.Text, nullable=False),
        sa.Column("bucket_set", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("finished_at", sa.Text),
        sa.CheckConstraint("kind in ('live', 'import')", name=op.f("ck_audit_runs_kind")),
        sa.CheckConstraint(
            "status in ('running', 'complete', 'stopped', 'failed')", name=op.f("ck_audit_runs_status")
        ),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_audit_runs")),
    )
    op.create_index(
        "uq_audit_runs_import",
        "audit_runs",
        ["name", "config_hash"],
        unique=True,
        sqlite_where=sa.text("kind = 'import'"),
        postgresql_where=sa.text("kind = 'import'"),
    )
    op.create_table(
        "gap_buckets",
        sa.Column("bucket_set", sa.Text, nullable=False),
        sa.Column("label", sa.Text, nullable=False),
        sa.Column("lower", sa.Float(53)),
        sa.Column("upper", sa.Float(53)),
        sa.Column("closed", sa.Text),
        sa.Column("is_near", sa.Integer),
        sa.CheckConstraint("closed in ('left', 'right')", name=op.f("ck_gap_buckets_closed")),
        sa.CheckConstraint("is_near in (0, 1)", name=op.f("ck_gap_buckets_is_near")),
        sa.PrimaryKeyConstraint("bucket_set", "label", name=op.f("pk_gap_buckets")),
    )
    op.create_table(
        "prompts",
        sa.Column("prompt_hash", sa.Text, nullable=False),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("prompt_hash", name=op.f("pk_prompts")),
    )
    op.create_table(
        "view_digest",
        sa.Column("digest", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_view_digest")),
    )
    op.create_table(
        "sessions",
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text),
        sa.Column("category", sa.Text),
        sa.Column("task_fingerprint", sa.Text),
        sa.Column("agent", sa.Text),
        sa.Column("trial", sa.BigInteger, nullable=False),
        sa.Column("transcript_json", sa.Text),
        sa.Column("end_reason", sa.Text),
        sa.Column("final_state_json", sa.Text),
        sa.Column("reward", sa.Float(53)),
        sa.Column("success", sa.Integer),
        sa.Column("checks_json", sa.Text),
        sa.Column("label_source", sa.Text),
        sa.Column("satisfaction", sa.Float(53)),
        sa.Column("judge_flip", sa.Float(53)),
        sa.Column("fault", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("source_json", sa.Text),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("total_tokens", sa.BigInteger),
        sa.Column("simulated_at", sa.Text),
        sa.Column("verified_at", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.CheckConstraint("success in (0, 1)", name=op.f("ck_sessions_success")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["audit_runs.run_id"], name=op.f("fk_sessions_run_id_audit_runs")
        ),
        sa.PrimaryKeyConstraint("session_id", name=op.f("pk_sessions")),
        sa.UniqueConstraint(
            "run_id",
            "task_id",
            "task_fingerprint",
            "agent",
            "trial",
            name=op.f("uq_sessions_run_id_task_id_task_fingerprint_agent_trial"),
        ),
    )
    op.create_index(
        "uq_sessions_no_fingerprint",
        "sessions",
        ["run_id", "task_id", "agent", "trial"],
        unique=True,
        sqlite_where=sa.text("task_fingerprint is null"),
        postgresql_where=sa.text("task_fingerprint is null"),
    )
    op.create_table(
        "audit_pairs",
        sa.Column("pair_id", sa.Text, nullable=False),
        sa.Column("source_pair_id", sa.Text),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("gate", sa.Text, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("category", sa.Text),
        sa.Column("trial", sa.BigInteger, nullable=False),
        sa.Column("agent_a", sa.Text),
        sa.Column("agent_b", sa.Text),
        sa.Column("session_a", sa.Text),
        sa.Column("session_b", sa.Text),
        sa.Column("success_a", sa.Integer),
        sa.Column("success_b", sa.Integer),
        sa.Column("reward_a", sa.Float(53)),
        sa.Column("reward_b", sa.Float(53)),
        sa.Column("judge_pref", sa.Text),
        sa.Column("pref_ab", sa.Text),
        sa.Column("pref_ba", sa.Text),
        sa.Column("is_consistent", sa.Integer),
        sa.Column("judge_score_a", sa.Float(53)),
        sa.Column("judge_score_b", sa.Float(53)),
        sa.Column("reward_gap", sa.Float(53)),
        sa.Column("gap_bucket", sa.Text, nullable=False, server_default="unknown"),
        sa.Column("session_gap", sa.Float(53)),
        sa.Column("agent_gap", sa.Float(53)),
        sa.Column("judge_gap", sa.Float(53)),
        sa.Column("external_gap", sa.Float(53)),
        sa.Column("outcome", sa.Text),
        sa.Column("misselected", sa.Integer),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("total_tokens", sa.BigInteger),
        sa.Column("cost_usd", sa.Float(53)),
        sa.Column("judged_at", sa.Text),
        sa.Column("verified_at", sa.Text),
        sa.Column("scored_at", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.CheckConstraint("success_a in (0, 1)", name=op.f("ck_audit_pairs_success_a")),
        sa.CheckConstraint("success_b in (0, 1)", name=op.f("ck_audit_pairs_success_b")),
        sa.CheckConstraint("is_consistent in (0, 1)", name=op.f("ck_audit_pairs_is_consistent")),
        sa.CheckConstraint("misselected in (0, 1)", name=op.f("ck_audit_pairs_misselected")),
        sa.ForeignKeyConstraint(
            ["run_id"], ["audit_runs.run_id"], name=op.f("fk_audit_pairs_run_id_audit_runs")
        ),
        sa.ForeignKeyConstraint(
            ["session_a"], ["sessions.session_id"], name=op.f("fk_audit_pairs_session_a_sessions")
        ),
        sa.ForeignKeyConstraint(
            ["session_b"], ["sessions.session_id"], name=op.f("fk_audit_pairs_session_b_sessions")
        ),
        sa.PrimaryKeyConstraint("pair_id", name=op.f("pk_audit_pairs")),
        sa.UniqueConstraint(
            "run_id", "gate", "source_pair_id", name=op.f("uq_audit_pairs_run_id_gate_source_pair_id")
        ),
    )
    op.create_index(
        "ix_audit_pairs_category", "audit_pairs", ["run_id", "gate", "category", "outcome", "is_consistent"]
    )
    op.create_index(
        "ix_audit_pairs_gap",
        "audit_pairs",
        ["run_id", "gate", "gap_bucket", "outcome", "is_consistent", "pref_ab", "pref_ba"],
    )
    op.create_table(
        "human_labels",
        sa.Column("label_id", ROW_NUMBER, nullable=False),
        sa.Column("pair_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("annotator", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("note", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.CheckConstraint("kind in ('success', 'preference')", name=op.f("ck_human_labels_kind")),
        sa.CheckConstraint(
            "(pair_id is null) <> (session_id is null)", name=op.f("ck_human_labels_one_subject")
        ),
        sa.ForeignKeyConstraint(
            ["pair_id"], ["audit_pairs.pair_id"], name=op.f("fk_human_labels_pair_id_audit_pairs")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("fk_human_labels_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("label_id", name=op.f("pk_human_labels")),
    )
    op.create_table(
        "judge_logs",
        sa.Column("log_id", ROW_NUMBER, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("pair_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("profile", sa.Text),
        sa.Column("model", sa.Text),
        sa.Column("served_model", sa.Text),
        sa.Column("base_url", sa.Text),
        sa.Column("presented_order", sa.Text),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("prompt_hash", sa.Text),
        sa.Column("request_json", sa.Text),
        sa.Column("raw_output", sa.Text),
        sa.Column("parsed_json", sa.Text),
        sa.Column("choice", sa.Text),
        sa.Column("preference", sa.Text),
        sa.Column("parse_status", sa.Text, nullable=False),
        sa.Column("finish_reason", sa.Text),
        sa.Column("prompt_tokens", sa.BigInteger),
        sa.Column("completion_tokens", sa.BigInteger),
        sa.Column("reasoning_tokens", sa.BigInteger),
        sa.Column("total_tokens", sa.BigInteger),
        sa.Column("latency_ms", sa.Float(53)),
        sa.Column("temperature", sa.Float(53)),
        sa.Column("seed", sa.BigInteger),
        sa.Column("error", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["audit_runs.run_id"], name=op.f("fk_judge_logs_run_id_audit_runs")
        ),
        sa.ForeignKeyConstraint(
            ["pair_id"], ["audit_pairs.pair_id"], name=op.f("fk_judge_logs_pair_id_audit_pairs")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("fk_judge_logs_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("log_id", name=op.f("pk_judge_logs")),
    )
    op.create_index("ix_judge_logs_pair", "judge_logs", ["pair_id", "presented_order", "attempt"])
    op.create_index("ix_judge_logs_run", "judge_logs", ["run_id", "role", "profile", "parse_status"])


def downgrade() -> None:
    op.drop_table("judge_logs")
    op.drop_table("human_labels")
    op.drop_table("audit_pairs")
    op.drop_table("sessions")
    op.drop_table("view_digest")
    op.drop_table("prompts")
    op.drop_table("gap_buckets")
    op.drop_table("audit_runs")
