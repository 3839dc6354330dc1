import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend.main import create_app


@pytest.fixture
def make_app(settings):
    apps = []

    def make(**changes):
        apps.append(create_app(settings.model_copy(update=changes)))
        return TestClient(apps[-1])

    yield make
    for app in apps:
        app.state.database.close()


def test_all_is_well(make_app):
    client = make_app()
    assert client.get("/api/v1/health").json() == {"status": "ok"}
    ready = client.get("/api/v1/ready")
    checks = {"postgres": "ok", "schema": "ok", "redis": "ok"}
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "checks": checks})


@pytest.mark.parametrize(
    ("statement", "words"),
    [("UPDATE alembic_version SET version_num = 'older'", "is at older"), ("DROP TABLE alembic_version", "cannot be")],
)
def test_tables_of_another_version_are_not_ready(make_app, database, statement, words):
    with database.transaction() as session:
        session.execute(text(statement))
    ready = make_app().get("/api/v1/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    assert words in ready.json()["checks"]["schema"]


def test_without_redis_the_service_is_degraded_and_works(make_app):
    ready = make_app(redis_url="redis://127.0.0.1:1").get("/api/v1/ready")
    assert (ready.status_code, ready.json()["status"]) == (200, "degraded")
    assert "does not answer" in ready.json()["checks"]["redis"]


def test_without_postgres_it_is_unavailable_and_every_route_says_so(make_app):
    client = make_app(database_url="postgresql+psycopg://x@127.0.0.1:1/x")
    assert client.get("/api/v1/health").status_code == 200
    ready = client.get("/api/v1/ready")
    assert (ready.status_code, ready.json()["status"]) == (503, "unavailable")
    response = client.get("/api/v1/runs", headers={"Authorization": "Bearer fdk_00000000_x"})
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    assert response.headers["content-type"] == "application/problem+json"
    assert "127.0.0.1" not in response.text
