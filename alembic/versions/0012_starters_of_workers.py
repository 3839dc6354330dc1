"""Tokens of workers say for which attempt they are good; those there are stay good for any of their run's."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_token", sa.Column("attempt", sa.Integer(), nullable=True))
