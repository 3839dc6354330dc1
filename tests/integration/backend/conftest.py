"""The service over a real database and a real Valkey, without its background thread."""

from collections.abc import Iterator

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from backend import bootstrap
from backend.auth.service import issue_user_token
from backend.db import Database
from backend.main import create_app
from backend.settings import Settings

CONFIG = {"grpo": {"num_steps": 7}, "drafter": {"kind": "none"}}


@pytest.fixture
def settings(database_url, redis_url, tmp_path) -> Settings:
    return Settings.model_validate(
        {
            "DATABASE_URL": database_url,
            "REDIS_URL": redis_url,
            "FOREDECK_HOME": str(tmp_path),
            "FOREDECK_FRONTEND_DIR": str(tmp_path / "dist"),
            "FOREDECK_EMBEDDED_RAY_DIR": str(tmp_path),
        }
    )


@pytest.fixture
def app(settings) -> Iterator[FastAPI]:
    app = create_app(settings)
    with app.state.database.transaction() as session:
        bootstrap.ensure(session, settings)
    yield app
    app.state.database.close()


@pytest.fixture
def database(app) -> Database:
    return app.state.database


@pytest.fixture
def make_client(app, database):
    """A client whose token has the given scopes; without scopes, one that is nobody."""

    def make(*scopes: str) -> TestClient:
        if not scopes:
            return TestClient(app)
        with database.transaction() as session:
            user = bootstrap.ensure(session, app.state.settings)
            token = issue_user_token(session, user, "test", list(scopes))
        return TestClient(app, headers={"Authorization": f"Bearer {token}"})

    return make


@pytest.fixture
def client(make_client) -> TestClient:
    """A client that may do everything a user can."""
    return make_client("admin")


@pytest.fixture
def launch(client):
    """Launches a small run; returns it as the API shows it."""

    def launch(**fields):
        response = client.post("/api/v1/runs", json={"name": "test", "config": CONFIG, **fields})
        assert response.status_code == 202, response.text
        return response.json()

    return launch
