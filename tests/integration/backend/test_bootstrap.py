import json
import stat

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import text

from backend import bootstrap


@pytest.fixture
def environment(monkeypatch, settings):
    values = {
        "DATABASE_URL": settings.database_url,
        "REDIS_URL": settings.redis_url,
        "FOREDECK_HOME": str(settings.home),
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_a_fresh_database_becomes_usable(environment, app, tmp_path, capsys):
    path = tmp_path / "home" / "credentials.json"
    bootstrap.main(["--credentials", str(path), "--login-link"])
    credentials = json.loads(path.read_text())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [child.name for child in path.parent.iterdir()] == ["credentials.json"]
    assert credentials["url"] == "http://127.0.0.1:8600"
    client = TestClient(app, headers={"Authorization": f"Bearer {credentials['token']}"})
    assert client.get("/api/v1/tokens").status_code == 200
    url, code = capsys.readouterr().out.strip().split("#code=")
    assert url == "http://127.0.0.1:8600/login"
    assert TestClient(app).post("/api/v1/session", json={"code": code}).status_code == 200


def test_a_token_that_works_is_kept_and_another_is_replaced(environment, app, database, tmp_path):
    path = tmp_path / "credentials.json"
    bootstrap.main(["--credentials", str(path)])
    first = path.read_text()
    bootstrap.main(["--credentials", str(path)])
    assert path.read_text() == first
    with database.transaction() as session:
        session.execute(text("UPDATE api_token SET revoked_at = now()"))
    bootstrap.main(["--credentials", str(path)])
    second = path.read_text()
    assert second != first
    path.write_text("[broken")
    bootstrap.main(["--credentials", str(path)])
    assert json.loads(path.read_text())["token"]


def test_the_local_cluster_follows_the_environment(environment, app, client):
    bootstrap.main([])
    assert client.get("/api/v1/clusters/local").json()["is_embedded"]
    environment.setenv("RAY_ADDRESS", "http://127.0.0.1:1")
    environment.setenv("FOREDECK_MAX_CONCURRENT_RUNS", "4")
    bootstrap.main([])
    cluster = client.get("/api/v1/clusters/local").json()
    assert (cluster["address"], cluster["max_concurrent_runs"], cluster["is_embedded"]) == (
        "http://127.0.0.1:1",
        4,
        False,
    )
    assert len(client.get("/api/v1/clusters").json()) == 1
