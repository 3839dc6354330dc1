"""How our code comes to a cluster, and which modules its runs may take rewards from."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    installed = sa.text("""'{"kind": "installed"}'::jsonb""")
    op.add_column("cluster", sa.Column("code", postgresql.JSONB(), server_default=installed, nullable=False))
    modules = sa.Column("reward_modules", sa.ARRAY(sa.Text()), server_default="{}", nullable=False)
    op.add_column("cluster", modules)
