"""Sweeps, priorities, and limits of users and projects on clusters."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _sweep()
    op.add_column("run", sa.Column("priority", sa.Integer(), server_default="0", nullable=False))
    op.add_column("run", sa.Column("sweep_id", sa.Uuid()))
    op.add_column("run", sa.Column("sweep_point", postgresql.JSONB()))
    op.create_foreign_key("fk_run_sweep_id_sweep", "run", "sweep", ["sweep_id"], ["id"], ondelete="SET NULL")
    op.create_index("ix_run_sweep_id", "run", ["sweep_id"])
    op.add_column("cluster", sa.Column("max_concurrent_runs_per_user", sa.Integer()))
    op.add_column("cluster", sa.Column("max_concurrent_runs_per_project", sa.Integer()))


def _sweep() -> None:
    op.create_table(
        "sweep",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("labels", postgresql.JSONB(), server_default="{}", nullable=False),
        sa.Column("notes", sa.Text(), server_default="", nullable=False),
        sa.Column("cluster_id", sa.Uuid(), nullable=False),
        sa.Column("config", postgresql.JSONB(), nullable=False),
        sa.Column("keys", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("max_concurrent", sa.Integer()),
        sa.Column("created_by_id", sa.Uuid()),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sweep"),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name="fk_sweep_project_id_project"),
        sa.ForeignKeyConstraint(["cluster_id"], ["cluster.id"], name="fk_sweep_cluster_id_cluster"),
        sa.ForeignKeyConstraint(
            ["created_by_id"], ["user_account.id"], name="fk_sweep_created_by_id_user_account", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_sweep_project_id_created_at_id", "sweep", ["project_id", "created_at", "id"])
