"""Webhooks, their deliveries and the attempts at them."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def upgrade() -> None:
    _webhook()
    _delivery()
    op.create_table(
        "webhook_attempt",
        sa.Column("id", sa.BigInteger(), nullable=False),
        sa.Column("delivery_id", sa.Uuid(), nullable=False),
        sa.Column("started_at", _TIME, nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=False),
        sa.Column("status", sa.Integer()),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_attempt"),
        sa.ForeignKeyConstraint(
            ["delivery_id"],
            ["webhook_delivery.id"],
            name="fk_webhook_attempt_delivery_id_webhook_delivery",
            ondelete="CASCADE",
        ),
    )
    op.create_index("ix_webhook_attempt_delivery_id_id", "webhook_attempt", ["delivery_id", "id"])


def _webhook() -> None:
    op.create_table(
        "webhook",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default="true", nullable=False),
        sa.Column("disabled_reason", sa.Text()),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text()),
        sa.Column("previous_secret_expires_at", _TIME),
        sa.Column("created_by_id", sa.Uuid()),
        sa.Column("created_at", _TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", _TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("failing_since", _TIME),
        sa.Column("num_failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("paused_until", _TIME),
        sa.Column("lock_token", sa.Uuid()),
        sa.Column("lock_expires_at", _TIME),
        sa.PrimaryKeyConstraint("id", name="pk_webhook"),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_webhook_project_id_project", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["created_by_id"], ["user_account.id"], name="fk_webhook_created_by_id_user_account", ondelete="SET NULL"
        ),
    )
    op.create_index("ix_webhook_project_id_created_at_id", "webhook", ["project_id", "created_at", "id"])


def _delivery() -> None:
    op.create_table(
        "webhook_delivery",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("webhook_id", sa.Uuid(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="pending", nullable=False),
        sa.Column("due_at", _TIME, server_default=sa.text("now()")),
        sa.Column("num_tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", _TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", _TIME),
        sa.CheckConstraint("state IN ('pending','succeeded','failed')", name=op.f("ck_webhook_delivery_state")),
        sa.PrimaryKeyConstraint("id", name="pk_webhook_delivery"),
        sa.ForeignKeyConstraint(
            ["webhook_id"], ["webhook.id"], name="fk_webhook_delivery_webhook_id_webhook", ondelete="CASCADE"
        ),
    )
    table = "webhook_delivery"
    op.create_index("ix_webhook_delivery_webhook_id_created_at_id", table, ["webhook_id", "created_at", "id"])
    op.create_index(
        "ix_webhook_delivery_webhook_id_due_at",
        table,
        ["webhook_id", "due_at"],
        postgresql_where=sa.text("due_at IS NOT NULL"),
    )
    op.create_index("ix_webhook_delivery_created_at", table, ["created_at"])
