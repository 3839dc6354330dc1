"""Servers for all tests, started once: PostgreSQL and Valkey of their own, in a folder of their own, on free ports.

And, for tests of the whole, one installation as `foredeck up` makes it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import hypothesis
import psycopg
import pytest
import redis
from psycopg import sql
from sqlalchemy import create_engine
from xdist.scheduler import LoadScopeScheduling

from backend.embedded.binaries import system_dir_for
from backend.embedded.home import Home
from backend.embedded.postgres import PostgresServer
from backend.embedded.process import ServerProcess
from backend.embedded.records import load_records
from backend.embedded.valkey import ValkeyServer
from tests.databases import KeptDatabase, fresh_database
from tests.ports import free_base_port

REPOSITORY = Path(__file__).parent.parent
TEMPLATE = "foredeck_template"
# Tests need no durability, only its rules.
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "200"}
# What is tested is not speed, and machines are busy; the same examples every time, so that what fails fails again.
hypothesis.settings.register_profile("steady", deadline=None, derandomize=True)
hypothesis.settings.load_profile("steady")
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # As a shell starts what runs in its background; commands that tests interrupt would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
ORDER = ("unit", "integration", "e2e", "gpu")
USERS_OF_THE_INSTALLATION = (
    "tests/integration/cli/",
    "tests/integration/combinations/",
    "tests/integration/faults/",
    "tests/e2e/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is quick and precise first. Of the rest first what one of several processes gets whole and takes minutes
    (the installation's, the workers'): taken last, it would keep one busy while the others have nothing left to do."""
    items.sort(key=lambda item: (_stage(item), not _uses_the_installation(item.nodeid), not _is_long(item.nodeid)))
    for item in items:
        if "installation" in getattr(item, "fixturenames", ()) and not _uses_the_installation(item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid} uses the installation: name its folder in {__file__}, or each of "
                "several processes starts one of its own."
            )


def _stage(item: pytest.Item) -> int:
    return ORDER.index(item.path.relative_to(REPOSITORY / "tests").parts[0])


class ByFile(LoadScopeScheduling):
    """Shares tests out among processes: a file stays whole, and one process gets all that use the installation."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return "installation" if _uses_the_installation(path) else path


def _is_long(path: str) -> bool:
    return path.startswith("tests/integration/workers/")


def _uses_the_installation(path: str) -> bool:
    return path.startswith(USERS_OF_THE_INSTALLATION)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    config.option.loadscopereorder = False  # else files with many tests come first, whatever they take
    return ByFile(config, log)


@pytest.fixture(scope="session")
def services_home() -> Iterator[Path]:
    """A short-named folder for the session's servers."""
    home = Path(tempfile.mkdtemp(prefix="fdk-"))
    yield home
    shutil.rmtree(home)
    shutil.rmtree(system_dir_for(home), ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_server(services_home: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(services_home, free_base_port(), FAST)
    process = server.start()
    yield server
    server.stop(process)


@pytest.fixture(scope="session")
def valkey_server(services_home: Path) -> Iterator[ValkeyServer]:
    server = ValkeyServer(services_home, free_base_port())
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


@pytest.fixture(scope="session")
def kept_database(postgres_server: PostgresServer, template_database: str) -> Iterator[KeptDatabase]:
    kept = KeptDatabase(postgres_server, template_database)
    yield kept
    kept.drop()


@pytest.fixture
def database_url(kept_database: KeptDatabase) -> Iterator[str]:
    """SQLAlchemy URL of a database with the schema and nothing in it."""
    yield kept_database.url
    kept_database.empty()


@pytest.fixture(scope="module")
def module_database_url(postgres_server: PostgresServer, template_database: str) -> Iterator[str]:
    """One for all tests of a file."""
    with fresh_database(postgres_server, template_database) as url:
        yield url


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


@dataclass(frozen=True)
class Installation:
    """What `foredeck up` runs, seen from outside: its command line, its API and its processes."""

    home: Home
    base_port: int
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.base_port}"

    def foredeck(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs the command to its end."""
        return subprocess.run(
            [sys.executable, "-m", "cli.main", *arguments],
            env=self.environment,
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )

    def json_of(self, *arguments: str) -> Any:
        """What the command prints as JSON; it must succeed."""
        done = self.foredeck(*arguments, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout)

    def up(self) -> None:
        done = self.foredeck("up", "--detach", "--quiet", "--port", str(self.base_port))
        assert done.returncode == 0, done.stdout + done.stderr

    def launch(self, name: str, num_steps: int, *more: str) -> str:
        """The id of a new small run, of as few processes as there can be: each takes seconds to start."""
        settings = ("--set", f"grpo.num_steps={num_steps}", "--set", "rollout.num_engines=1")
        return self.json_of("launch", "examples/smoke.yaml", "--name", name, *settings, *more)["id"]

    def api(self) -> httpx.Client:
        token = json.loads(self.home.credentials.read_text())["token"]
        return httpx.Client(
            base_url=f"{self.url}/api/v1", headers={"Authorization": f"Bearer {token}"}, timeout=30, trust_env=False
        )

    def run(self, run_id: str) -> dict[str, Any]:
        with self.api() as client:
            return client.get(f"/runs/{run_id}").raise_for_status().json()

    def run_when(
        self, run_id: str, condition: Callable[[dict[str, Any]], bool], timeout_s: float = 150
    ) -> dict[str, Any]:
        """The run once the condition holds; what is wrong with it when it ends before."""
        deadline = time.monotonic() + timeout_s
        while not condition(run := self.run(run_id)):
            assert not run["is_ended"], f"{run['status']}: {run['status_reason']}"
            assert time.monotonic() < deadline, f"{run['status']}, {run['stage']} {run['step']}: {run['status_reason']}"
            threading.Event().wait(0.2)
        return run

    def supervisor_pid(self) -> int:
        records = load_records(self.home.processes)
        assert records is not None
        assert records.supervisor_pid is not None
        return records.supervisor_pid

    def process(self, name: str) -> ServerProcess | None:
        """The living process of a service."""
        records = load_records(self.home.processes)
        record = records.get(name) if records else None
        return record.find() if record else None


@pytest.fixture(scope="session")
def installation() -> Iterator[Installation]:
    """Everything, started by `foredeck up` in a home of its own, with patience cut short."""
    home = Home(Path(tempfile.mkdtemp(prefix="fdk-")))
    own = {
        "FOREDECK_HOME": str(home.root),
        "FOREDECK_HEARTBEAT_TIMEOUT_S": "10",
        "FOREDECK_RECONCILE_INTERVAL_S": "1",
    }
    users = ("DATABASE_URL", "REDIS_URL", "RAY_ADDRESS", "FOREDECK_URL", "FOREDECK_TOKEN", "FOREDECK_PORT")
    environment = {key: value for key, value in os.environ.items() if key not in users} | own
    installation = Installation(home, free_base_port(), environment)
    try:
        installation.up()
        yield installation
    finally:
        installation.foredeck("down")
        shutil.rmtree(home.root)
        shutil.rmtree(system_dir_for(home.root), ignore_errors=True)


@pytest.fixture(scope="session")
def trained_draft(installation: Installation) -> dict[str, Any]:
    """What `foredeck draft train` reports of the installation's first run."""
    return installation.json_of("draft", "train", "examples/smoke.yaml", "--name", "first", "--wait")


@pytest.fixture(scope="session")
def warm_installation(installation: Installation, trained_draft: dict[str, Any]) -> Installation:
    """The same after a first run: Ray is up, and the smoke example's policy and draft head are cached."""
    assert trained_draft["status"] == "succeeded"
    return installation
