from pathlib import Path

import pytest

from backend.embedded.errors import EmbeddedError
from backend.embedded.home import Home
from backend.embedded.plan import make_plan
from backend.embedded.ports import Ports
from backend.embedded.service import PythonService


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    home.create()
    return home


OWN = {"DATABASE_URL": "postgresql://me@db/foredeck", "REDIS_URL": "redis://cache:6379/0"}


def test_servers_of_the_users_own_are_used_and_none_started(home: Home) -> None:
    plan = make_plan(home, Ports(9000), OWN)
    assert plan.servers == []
    for service in plan.application:
        assert isinstance(service, PythonService)
        assert service.environment["DATABASE_URL"] == OWN["DATABASE_URL"]
        assert service.environment["REDIS_URL"] == OWN["REDIS_URL"]


def test_missing_servers_are_embedded_on_the_ports_after_the_base(home: Home) -> None:
    plan = make_plan(home, Ports(9000), {"REDIS_URL": OWN["REDIS_URL"]})
    assert [(server.name, server.port) for server in plan.servers] == [("PostgreSQL", 9001)]
    plan = make_plan(home, Ports(9000), {})
    assert [(server.name, server.port) for server in plan.servers] == [("PostgreSQL", 9001), ("Valkey", 9002)]
    api = plan.application[0]
    assert isinstance(api, PythonService)
    assert api.port == 9000
    assert "@127.0.0.1:9001/" in api.environment["DATABASE_URL"]
    assert "@127.0.0.1:9002/" in api.environment["REDIS_URL"]
    assert api.environment["FOREDECK_PUBLIC_URL"] == "http://127.0.0.1:9000"


def test_no_secret_is_among_the_arguments(home: Home) -> None:
    plan = make_plan(home, Ports(9000), {})
    password = (home.root / "postgres.password").read_text()
    for service in plan.application:
        assert isinstance(service, PythonService)
        assert password not in " ".join(service.argv)


def test_a_given_public_url_stays(home: Home) -> None:
    plan = make_plan(home, Ports(9000), OWN | {"FOREDECK_PUBLIC_URL": "https://foredeck.example"})
    assert isinstance(plan.application[0], PythonService)
    assert plan.application[0].environment["FOREDECK_PUBLIC_URL"] == "https://foredeck.example"


def test_ray_is_embedded_unless_an_address_is_given(home: Home) -> None:
    assert make_plan(home, Ports(9000), OWN).ray is not None
    assert make_plan(home, Ports(9000), OWN | {"RAY_ADDRESS": "http://head:8265"}).ray is None
    with pytest.raises(EmbeddedError, match=r"RAY_ADDRESS is 'ray://head:10001'.*http\(s\)"):
        make_plan(home, Ports(9000), OWN | {"RAY_ADDRESS": "ray://head:10001"})
