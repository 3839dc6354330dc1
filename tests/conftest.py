"""Servers for all tests, started once: PostgreSQL and Valkey of their own, in a folder of their own, on free ports."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
import redis
from psycopg import sql
from sqlalchemy import create_engine

from backend.embedded.binaries import system_dir_for
from backend.embedded.ports import free_port
from backend.embedded.postgres import PostgresServer
from backend.embedded.valkey import ValkeyServer

REPOSITORY = Path(__file__).parent.parent
TEMPLATE = "foredeck_template"
# Tests need no durability, only its rules.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}
ORDER = ("unit", "integration", "e2e", "gpu")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is quick and precise first."""
    items.sort(key=lambda item: ORDER.index(item.path.relative_to(REPOSITORY / "tests").parts[0]))


@pytest.fixture(scope="session")
def services_home() -> Iterator[Path]:
    """A short-named folder for the session's servers."""
    home = Path(tempfile.mkdtemp(prefix="fdk-"))
    yield home
    shutil.rmtree(home)
    shutil.rmtree(system_dir_for(home), ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(services_home: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(services_home, free_port(), FAST)
    process = server.start()
    yield server
    server.stop(process)


@pytest.fixture(scope="session")
def valkey_server(services_home: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(services_home, free_port())
    process = server.start()
    yield server
    server.stop(process)


@pytest.fixture(scope="session")
def template_database(postgres_server: PostgresServer) -> str:
    """Name of a database that holds the migrated, empty schema."""
    with psycopg.connect(postgres_server.conninfo(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    _build_schema(postgres_server.url_of(TEMPLATE))
    return TEMPLATE


def _build_schema(url: str) -> None:
    configuration = REPOSITORY / "alembic.ini"
    if configuration.exists():
        from alembic import command
        from alembic.config import Config

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DATABASE_URL", url)
            command.upgrade(Config(configuration), "head")
    else:
        from backend.models import Base

        engine = create_engine(url)
        Base.metadata.create_all(engine)
        engine.dispose()


@pytest.fixture
def database_url(postgres_server: PostgresServer, template_database: str) -> Iterator[str]:
    """SQLAlchemy URL of a fresh database with the schema in it, dropped afterwards."""
    name = f"test_{uuid4().hex}"
    with psycopg.connect(postgres_server.conninfo(), autocommit=True) as connection:
        database = sql.Identifier(name)
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(database, sql.Identifier(template_database))
        )
        yield postgres_server.url_of(name)
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))


@pytest.fixture(scope="session")
def redis_databases() -> Iterator[int]:
    return iter(range(1, 1024))


@pytest.fixture
def redis_url(valkey_server: ValkeyServer, redis_databases: Iterator[int]) -> Iterator[str]:
    """URL of an empty Redis database that no other test has used."""
    url = valkey_server.url_of(next(redis_databases))
    yield url
    with redis.Redis.from_url(url) as client:
        client.flushdb()
