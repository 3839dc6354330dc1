"""What to start: the user's own servers where they are given, embedded ones otherwise."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from backend.embedded import application
from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.ports import Ports
from backend.embedded.postgres import PostgresServer
from backend.embedded.ray import RayService
from backend.embedded.service import Service
from backend.embedded.valkey import ValkeyServer


@dataclass(frozen=True)
class Preparation:
    """Something that is done once, between servers and application."""

    title: str
    run: Callable[[], None]


@dataclass(frozen=True)
class Plan:
    """All parts of one installation, in order."""

    ports: Ports
    servers: list[Service]
    preparations: list[Preparation] = field(default_factory=list)
    application: list[Service] = field(default_factory=list)
    ray: RayService | None = None
    """Started only when wanted; none when RAY_ADDRESS names a cluster."""


def make_plan(home: Home, ports: Ports, environment: Mapping[str, str]) -> Plan:
    """Reads DATABASE_URL, REDIS_URL and RAY_ADDRESS. Raises EmbeddedError on an address that cannot be one."""
    servers: list[Service] = []
    database_url = environment.get("DATABASE_URL")
    if not database_url:
        postgres = PostgresServer(home.root, ports.postgres)
        servers.append(postgres)
        database_url = postgres.url
    redis_url = environment.get("REDIS_URL")
    if not redis_url:
        valkey = ValkeyServer(home.root, ports.valkey)
        servers.append(valkey)
        redis_url = valkey.url
    surroundings = application.environment(environment, home, ports, database_url, redis_url)
    return Plan(
        ports=ports,
        servers=servers,
        preparations=[
            Preparation("Bringing the schema up to date", lambda: application.migrate(surroundings, home)),
            Preparation(
                "Checking the first user and the local cluster", lambda: application.bootstrap(surroundings, home)
            ),
        ],
        application=[
            application.api(surroundings, home, ports),
            application.worker(surroundings, home),
            application.beat(surroundings, home),
        ],
        ray=_embedded_ray(home, ports, environment),
    )


def _embedded_ray(home: Home, ports: Ports, environment: Mapping[str, str]) -> RayService | None:
    address = environment.get("RAY_ADDRESS")
    if not address:
        return RayService(home, ports, application.SOURCE_DIR)
    if not address.startswith(("http://", "https://")):
        raise EmbeddedError(
            f"RAY_ADDRESS is {address!r}, but must be the http(s) address of a Ray job server, such as "
            "http://head:8265. Unset it to let Foredeck start Ray on this machine."
        )
    return None
