import json
import logging
import re

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from openapi_spec_validator import validate
from starlette.routing import Mount

from backend.auth.guard import PUBLIC, guarding_scopes, refuse_open_routes
from backend.auth.identity import effective_scopes

PATH_VALUES = {
    "{run_id}": "0b9c1d9e-0000-4000-8000-000000000000",
    "{sweep_id}": "0b9c1d9e-0000-4000-8000-000000000000",
    "{webhook_id}": "0b9c1d9e-0000-4000-8000-000000000000",
    "{delivery_id}": "0b9c1d9e-0000-4000-8000-000000000000",
    "{token_id}": "0b9c1d9e-0000-4000-8000-000000000000",
    "{name}": "x",
    "{check_id}": "check-0b9c1d9e0000",
    "{project}": "x",
    "{user}": "x",
}


def routes_of(app):
    for route in app.routes:
        if not isinstance(route, Mount):
            yield from ((method, route.path) for method in sorted(route.methods))


def concrete(path):
    for name, value in PATH_VALUES.items():
        path = path.replace(name, value)
    assert "{" not in path, "tell this test a value"
    return path


def test_every_route_refuses_strangers(app):
    stranger = TestClient(app)
    answered = {
        (method, path): stranger.request(method, concrete(path)).status_code
        for method, path in routes_of(app)
        if (method, path) not in PUBLIC
    }
    assert len(answered) > 25
    assert set(answered.values()) == {401}, answered


def test_a_forgotten_guard_keeps_the_service_from_starting():
    app = FastAPI()

    @app.get("/api/v1/forgotten")
    def forgotten():
        return "secret"

    with pytest.raises(RuntimeError, match="/api/v1/forgotten is open to anybody"):
        refuse_open_routes(app)


def test_everything_but_the_dashboard_is_enumerated(app):
    mounts = [route.path for route in app.routes if isinstance(route, Mount)]
    assert mounts == [""]
    assert {("GET", "/api/v1/stream"), ("POST", "/api/v1/ingest")} <= set(routes_of(app))


@pytest.mark.parametrize("scope", ["read", "write", "admin"])
def test_a_scope_opens_what_it_should_and_nothing_else(app, make_client, scope):
    """The matrix, by what the route asks for: 403 exactly where the caller's scopes lack it."""
    client = make_client(scope)
    for route in app.routes:
        if isinstance(route, Mount) or route.path.endswith("/stream"):
            continue
        for method in route.methods:
            needs = guarding_scopes(route.dependant)
            status = client.request(method, concrete(route.path)).status_code
            assert (status == 403) == (not needs <= effective_scopes([scope])), (method, route.path, status)


def test_unknown_paths_of_the_api_are_problems(client):
    unknown = client.get("/api/v1/nothing")
    assert (unknown.status_code, unknown.headers["content-type"]) == (404, "application/problem+json")
    assert unknown.json()["detail"] == "There is nothing at /api/v1/nothing."


def test_every_answer_carries_a_request_id(client):
    assert len(client.get("/api/v1/health").headers["x-request-id"]) == 32
    assert client.get("/api/v1/health", headers={"X-Request-ID": "mine-1"}).headers["x-request-id"] == "mine-1"
    forged = client.get("/api/v1/nothing", headers={"X-Request-ID": 'a"b <script>'})
    assert forged.headers["x-request-id"] == forged.json()["request_id"] != 'a"b <script>'


def test_method_not_allowed_is_a_problem(client):
    response = client.delete("/api/v1/health")
    assert (response.status_code, response.headers["content-type"]) == (405, "application/problem+json")
    assert response.headers["allow"] == "GET"


def test_broken_json_is_a_problem(client):
    response = client.post("/api/v1/runs", content=b'{"name": ', headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"] == ""


def test_unexpected_errors_say_nothing_of_the_inside(app, client, caplog):
    @app.get("/api/boom")
    def boom():
        raise ValueError("password=hunter2")

    app.router.routes.insert(0, app.router.routes.pop())
    with caplog.at_level(logging.ERROR):
        response = client.get("/api/boom")
    assert (response.status_code, response.headers["content-type"]) == (500, "application/problem+json")
    assert "hunter2" not in response.text
    assert response.json()["request_id"] == response.headers["x-request-id"]
    assert any(record.exc_info for record in caplog.records)


def test_the_openapi_document_is_valid_and_its_ids_are_stable(app, client):
    document = client.get("/api/v1/openapi.json").json()
    validate(document)
    assert document["openapi"].startswith("3.1")
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))
    assert {"runs_list", "runs_create", "runs_wait", "telemetry_ingest"} <= set(ids), ids
    assert "HTTPValidationError" not in json.dumps(document)
    assert "Problem" in document["components"]["schemas"]


def test_the_documentation_page_shows_every_operation_and_runs_nothing(app, client):
    page = client.get("/api/v1/docs")
    ids = [operation["operationId"] for path in app.openapi()["paths"].values() for operation in path.values()]
    assert len(ids) > 30
    assert all(f'id="{name}"' in page.text for name in ids)
    assert re.findall(r"<script|\bon\w+=|(?:src|href)=\"(?!#|/api/v1/openapi.json)", page.text) == []
    assert page.headers["content-security-policy"].startswith("default-src 'none'; style-src")


def test_html_names_what_it_may_load(client, launch):
    run = launch()
    figure = client.get(f"/api/v1/runs/{run['id']}/figures/reward.html")
    assert figure.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "content-security-policy" not in client.get("/api/v1/health").headers
