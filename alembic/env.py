"""Runs migrations against DATABASE_URL, or on the connection that a caller hands over."""

from alembic import context
from sqlalchemy import Connection, create_engine, pool, text

from backend.models import Base
from backend.settings import database_url

LOCK = text("SELECT pg_advisory_xact_lock(7203913)")


def migrate(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_server_default=True)
    with context.begin_transaction():
        connection.execute(LOCK)  # of two that start at once, one migrates and the other finds it done
        context.run_migrations()


def main() -> None:
    given = context.config.attributes.get("connection")
    if given is not None:
        migrate(given)
        return
    engine = create_engine(database_url(), poolclass=pool.NullPool)
    with engine.connect() as connection:
        migrate(connection)
    engine.dispose()


main()
