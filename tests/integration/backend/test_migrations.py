import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from psycopg import connect
from sqlalchemy import create_engine, text

from backend.models import Base
from backend.settings import REPOSITORY


@pytest.fixture
def empty_database_url(postgres_server):
    with connect(postgres_server.conninfo(), autocommit=True) as connection:
        connection.execute("CREATE DATABASE test_migrations")
        yield postgres_server.url_of("test_migrations")
        connection.execute("DROP DATABASE test_migrations WITH (FORCE)")


def upgrade(monkeypatch, url):
    monkeypatch.setenv("DATABASE_URL", url)
    command.upgrade(Config(REPOSITORY / "alembic.ini"), "head")


def test_the_migrations_make_exactly_the_tables_of_the_models(monkeypatch, empty_database_url):
    upgrade(monkeypatch, empty_database_url)
    engine = create_engine(empty_database_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, Base.metadata) == []
        constraints = "SELECT conname FROM pg_constraint WHERE contype = 'c' AND conrelid = 'run'::regclass"
        assert connection.execute(text(constraints)).scalars().all() == ["ck_run_status"]
    engine.dispose()


def test_migrating_again_keeps_the_data(monkeypatch, empty_database_url):
    upgrade(monkeypatch, empty_database_url)
    with connect(empty_database_url.replace("+psycopg", "")) as connection:
        connection.execute("INSERT INTO user_account (name) VALUES ('kept')")
        connection.commit()
        upgrade(monkeypatch, empty_database_url)
        assert connection.execute("SELECT name FROM user_account").fetchall() == [("kept",)]


def test_there_is_one_head_and_no_package_in_the_folder():
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(Config(REPOSITORY / "alembic.ini"))
    assert len(script.get_heads()) == 1
    assert not (REPOSITORY / "alembic" / "__init__.py").exists()
