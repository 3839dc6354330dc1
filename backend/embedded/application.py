"""Foredeck's own processes: the schema and first user before the others, then API, worker and scheduler."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import httpx

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.ports import HOST, Ports
from backend.embedded.service import PythonService

SOURCE_DIR = Path(__file__).resolve().parents[2]
"""The repository: alembic.ini, examples/ and the packages."""


def environment(
    inherited: Mapping[str, str], home: Home, ports: Ports, database_url: str, redis_url: str
) -> dict[str, str]:
    """What all of Foredeck's processes are started with."""
    own = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "FOREDECK_HOME": str(home.root),
        "FOREDECK_EMBEDDED_RAY_DIR": str(home.ray_handshake),
        "PYTHONUNBUFFERED": "1",
        "MALLOC_ARENA_MAX": "2",  # glibc otherwise keeps an arena a thread, which idle threads never give back
    }
    return dict(inherited) | own | {"FOREDECK_PUBLIC_URL": public_url(inherited, ports)}


def public_url(inherited: Mapping[str, str], ports: Ports) -> str:
    return inherited.get("FOREDECK_PUBLIC_URL") or f"http://{HOST}:{ports.api}"


def migrate(surroundings: Mapping[str, str], home: Home) -> None:
    """Brings the schema to the newest version."""
    argv = [sys.executable, "-m", "alembic", "-c", str(SOURCE_DIR / "alembic.ini"), "upgrade", "head"]
    _run("The database schema cannot be brought up to date", argv, surroundings, home.logs / "migrate.log")


def bootstrap(surroundings: Mapping[str, str], home: Home) -> None:
    """Makes the first user, the local cluster and the command line's credentials, where they are missing."""
    argv = [sys.executable, "-m", "backend.bootstrap", "--credentials", str(home.credentials)]
    _run("The first user cannot be made", argv, surroundings, home.logs / "bootstrap.log")


def _run(trouble: str, argv: list[str], surroundings: Mapping[str, str], log: Path) -> None:
    done = subprocess.run(
        argv,
        cwd=SOURCE_DIR,
        env=dict(surroundings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        start_new_session=True,
    )
    log.write_text(done.stdout)
    if done.returncode != 0:
        end = "\n".join(done.stdout.splitlines()[-15:])
        raise EmbeddedError(f"{trouble}. The end of {log}:\n{end}")


def api(surroundings: Mapping[str, str], home: Home, ports: Ports) -> PythonService:
    """The HTTP service; open streams do not hold up its end for long."""
    argv = [sys.executable, "-m", "uvicorn", "backend.main:app", "--host", HOST, "--port", str(ports.api)]
    # h11 takes no more than 64 KiB of headers, where the faster parser would take whatever is sent.
    argv += ["--http", "h11", "--no-server-header", "--no-proxy-headers"]
    argv += ["--timeout-graceful-shutdown", "2", "--no-access-log"]

    def probe() -> str | None:
        try:
            answer = httpx.get(f"http://{HOST}:{ports.api}/api/v1/ready", timeout=5, trust_env=False)
        except httpx.HTTPError as error:
            return str(error) or type(error).__name__
        return None if answer.is_success else f"HTTP {answer.status_code}: {answer.text}"

    return PythonService("API", argv, surroundings, SOURCE_DIR, home.logs / "api.log", ports.api, probe)


def worker(surroundings: Mapping[str, str], home: Home) -> PythonService:
    argv = [sys.executable, "-m", "celery", "-A", "backend.celery_app", "worker", "--pool=threads", "--concurrency=4"]
    argv += ["--without-gossip", "--without-mingle", "--loglevel=info"]
    return PythonService("Worker", argv, surroundings, SOURCE_DIR, home.logs / "worker.log")


def beat(surroundings: Mapping[str, str], home: Home) -> PythonService:
    """Sends the periodic tasks; its clock file lies in the home folder."""
    argv = [sys.executable, "-m", "celery", "-A", "backend.celery_app", "beat", "--loglevel=warning", "--pidfile="]
    argv += [f"--schedule={home.root / 'beat-schedule'}"]
    return PythonService("Scheduler", argv, surroundings, SOURCE_DIR, home.logs / "beat.log")
