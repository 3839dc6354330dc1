"""Projects, roles in them, and where changes came from.

What there is goes into the project `default`; every user there is has administered everything so far, and goes on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "project",
        sa.Column("id", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_project"),
        sa.UniqueConstraint("name", name="uq_project_name"),
    )
    op.execute("INSERT INTO project (name) VALUES ('default')")
    _users()
    op.create_table(
        "project_member",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.CheckConstraint("role IN ('viewer','launcher','admin')", name=op.f("ck_project_member_role")),
        sa.ForeignKeyConstraint(
            ["project_id"], ["project.id"], name="fk_project_member_project_id_project", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["user_id"], ["user_account.id"], name="fk_project_member_user_id_user_account", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("project_id", "user_id", name="pk_project_member"),
    )
    op.create_index("ix_project_member_user_id", "project_member", ["user_id"])
    _references()


def _users() -> None:
    op.add_column("user_account", sa.Column("email", sa.Text()))
    for name, former in (("is_admin", "true"), ("is_active", "true")):
        op.add_column("user_account", sa.Column(name, sa.Boolean(), server_default=former, nullable=False))
    op.alter_column("user_account", "is_admin", server_default="false")
    op.add_column("user_account", sa.Column("oidc_issuer", sa.Text()))
    op.add_column("user_account", sa.Column("oidc_subject", sa.Text()))
    op.create_unique_constraint("uq_user_account_oidc_issuer", "user_account", ["oidc_issuer", "oidc_subject"])


def _references() -> None:
    op.add_column("run", sa.Column("project_id", sa.Uuid()))
    op.execute("UPDATE run SET project_id = (SELECT id FROM project)")
    op.alter_column("run", "project_id", nullable=False)
    op.create_foreign_key("fk_run_project_id_project", "run", "project", ["project_id"], ["id"])
    op.create_index("ix_run_project_id_created_at_id", "run", ["project_id", "created_at", "id"])
    op.add_column("api_token", sa.Column("project_id", sa.Uuid()))
    op.create_foreign_key(
        "fk_api_token_project_id_project", "api_token", "project", ["project_id"], ["id"], ondelete="CASCADE"
    )
    op.add_column("audit_entry", sa.Column("project_id", sa.Uuid()))
    op.create_foreign_key(
        "fk_audit_entry_project_id_project", "audit_entry", "project", ["project_id"], ["id"], ondelete="SET NULL"
    )
    op.create_index("ix_audit_entry_project_id_id", "audit_entry", ["project_id", "id"])
    op.add_column("audit_entry", sa.Column("address", sa.Text()))
    op.add_column("audit_entry", sa.Column("request_id", sa.Text()))
