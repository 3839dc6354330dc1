"""Each attempt remembers what it brought: attempts that bring nothing are limited, others are not."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("attempt", sa.Column("last_checkpoint_step", sa.Integer(), nullable=True))
