"""Gates of runs, and what they were judged to be."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("run", sa.Column("gates", JSONB(), server_default="[]", nullable=False))
    op.add_column("run", sa.Column("gates_verdict", sa.Text()))
    op.create_table(
        "gate_evaluation",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column(
            "created_at", sa.DateTime(timezone=True), server_default=sa.text("clock_timestamp()"), nullable=False
        ),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("evaluated_by", sa.Text()),
        sa.Column("run_status", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("results", JSONB(), nullable=False),
        sa.CheckConstraint("verdict IN ('passed','failed')", name=op.f("ck_gate_evaluation_verdict")),
        sa.CheckConstraint("trigger IN ('end','request')", name=op.f("ck_gate_evaluation_trigger")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name="fk_gate_evaluation_run_id_run", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_gate_evaluation"),
    )
    op.create_index("ix_gate_evaluation_run_id_created_at", "gate_evaluation", ["run_id", "created_at"])
