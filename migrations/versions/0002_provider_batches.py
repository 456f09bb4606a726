"""Batches of requests at a provider, and their lines."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "provider_batches",
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("provider_status", sa.Text),
        sa.Column("provider_batch_id", sa.Text),
        sa.Column("input_file_id", sa.Text),
        sa.Column("output_file_id", sa.Text),
        sa.Column("error_file_id", sa.Text),
        sa.Column("count_lines", sa.BigInteger, nullable=False),
        sa.Column("count_stored", sa.BigInteger, nullable=False),
        sa.Column("count_failed", sa.BigInteger, nullable=False),
        sa.Column("error", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.Column("updated_at", sa.Text, nullable=False),
        sa.CheckConstraint(
            "status in ('planned', 'uploaded', 'submitting', 'accepted', 'exported', 'done')",
            name=op.f("ck_provider_batches_status"),
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["audit_runs.run_id"], name=op.f("fk_provider_batches_run_id_audit_runs")
        ),
        sa.PrimaryKeyConstraint("batch_id", name=op.f("pk_provider_batches")),
    )
    op.create_index("ix_provider_batches_run", "provider_batches", ["run_id", "status"])
    op.create_table(
        "batch_lines",
        sa.Column("custom_id", sa.Text, nullable=False),
        sa.Column("batch_id", sa.Text, nullable=False),
        sa.Column("pair_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("role", sa.Text, nullable=False),
        sa.Column("profile", sa.Text, nullable=False),
        sa.Column("presented_order", sa.Text),
        sa.Column("attempt", sa.BigInteger, nullable=False),
        sa.Column("prompt_hash", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("request_json", sa.Text),
        sa.Column("refused", sa.Text),
        sa.Column("error", sa.Text),
        sa.CheckConstraint(
            "state in ('open', 'stored', 'failed', 'refused', 'dropped')", name=op.f("ck_batch_lines_state")
        ),
        sa.CheckConstraint(
            "(pair_id is null) <> (session_id is null)", name=op.f("ck_batch_lines_one_subject")
        ),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["provider_batches.batch_id"], name=op.f("fk_batch_lines_batch_id_provider_batches")
        ),
        sa.ForeignKeyConstraint(
            ["pair_id"], ["audit_pairs.pair_id"], name=op.f("fk_batch_lines_pair_id_audit_pairs")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("fk_batch_lines_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("custom_id", name=op.f("pk_batch_lines")),
    )
    op.create_index("ix_batch_lines_batch", "batch_lines", ["batch_id", "state"])
    op.create_index("ix_batch_lines_pair", "batch_lines", ["pair_id"])
    op.create_index("ix_batch_lines_session", "batch_lines", ["session_id"])


def downgrade() -> None:
    op.drop_table("batch_lines")
    op.drop_table("provider_batches")
