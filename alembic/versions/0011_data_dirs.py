"""Which folders of a cluster its runs may read; those there are go on to read any."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("cluster", sa.Column("data_dirs", postgresql.ARRAY(sa.Text()), nullable=True))
