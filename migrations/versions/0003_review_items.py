"""What people were asked to look at, and indexes of what they said."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "review_items",
        sa.Column("review_id", sa.Text, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("pair_id", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("weight", sa.Float(53), nullable=False),
        sa.Column("shown_first", sa.Text),
        sa.Column("created_at", sa.Text, nullable=False),
        sa.CheckConstraint(
            "reason in ('satisfied_failed', 'inconsistent', 'panel_disagrees', 'near_tie', 'llm_labelled', "
            "'random')",
            name=op.f("ck_review_items_reason"),
        ),
        sa.CheckConstraint("weight > 0", name=op.f("ck_review_items_weight")),
        sa.CheckConstraint("shown_first in ('A', 'B')", name=op.f("ck_review_items_shown_first")),
        sa.CheckConstraint(
            "(pair_id is null) <> (session_id is null)", name=op.f("ck_review_items_one_subject")
        ),
        sa.ForeignKeyConstraint(
            ["run_id"], ["audit_runs.run_id"], name=op.f("fk_review_items_run_id_audit_runs")
        ),
        sa.ForeignKeyConstraint(
            ["pair_id"], ["audit_pairs.pair_id"], name=op.f("fk_review_items_pair_id_audit_pairs")
        ),
        sa.ForeignKeyConstraint(
            ["session_id"], ["sessions.session_id"], name=op.f("fk_review_items_session_id_sessions")
        ),
        sa.PrimaryKeyConstraint("review_id", name=op.f("pk_review_items")),
        sa.UniqueConstraint("pair_id", name=op.f("uq_review_items_pair_id")),
        sa.UniqueConstraint("session_id", name=op.f("uq_review_items_session_id")),
    )
    op.create_index("ix_review_items_run", "review_items", ["run_id"])
    op.create_index("ix_human_labels_pair", "human_labels", ["pair_id"])
    op.create_index("ix_human_labels_session", "human_labels", ["session_id"])


def downgrade() -> None:
    op.drop_index("ix_human_labels_session", "human_labels")
    op.drop_index("ix_human_labels_pair", "human_labels")
    op.drop_table("review_items")
