"""The OpenAPI document says what the service does."""

import re

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from backend.openapi_examples import PROBLEM, REQUESTS, RESPONSES
from contract.config import RunConfig
from contract.telemetry.events import IngestRequest

UNSAFE = {"post", "patch", "delete", "put"}


@pytest.fixture
def document(app):
    return app.openapi()


@pytest.fixture
def operations(document):
    return {
        operation["operationId"]: (method, operation)
        for path in document["paths"].values()
        for method, operation in path.items()
    }


def check(document, schema, example):
    Draft202012Validator({**schema, "components": document["components"]}).validate(example)


def json_of(content):
    return content.get("content", {}).get("application/json")


def test_every_body_and_every_answer_has_an_example_of_its_schema(document, operations):
    num_requests = num_responses = 0
    for name, (_, operation) in operations.items():
        if "requestBody" in operation:
            content = json_of(operation["requestBody"])
            check(document, content["schema"], content["example"])
            num_requests += 1
        for status, response in operation["responses"].items():
            if status.startswith("2") and json_of(response):
                assert "example" in json_of(response), name
                check(document, json_of(response)["schema"], json_of(response)["example"])
                num_responses += 1
    assert (num_requests, num_responses) == (len(REQUESTS), len(RESPONSES)), "no example without its operation"
    assert num_requests >= 9


def test_a_wrong_example_would_be_found(document):
    with pytest.raises(ValidationError):
        check(document, {"$ref": "#/components/schemas/RunRead"}, RESPONSES["runs_get"] | {"status": "dancing"})
    check(document, {"$ref": "#/components/schemas/Problem"}, PROBLEM)


def test_the_examples_can_be_sent_as_they_stand(client, document, operations):
    paths = {
        operation["operationId"]: (method, path)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    run_id = client.post("/api/v1/runs", json=REQUESTS["runs_create"]).json()["id"]
    client.post("/api/v1/users", json={"name": "ada"})
    client.post("/api/v1/projects", json={"name": "research"})
    webhook_id = client.post("/api/v1/webhooks", json=REQUESTS["webhooks_create"]).json()["id"]
    named = {"{run_id}": run_id, "{user}": "ada", "{project}": "research", "{webhook_id}": webhook_id}
    named["{sweep_id}"] = client.post("/api/v1/sweeps", json=REQUESTS["sweeps_create"]).json()["id"]
    named["{name}"] = REQUESTS["clusters_create"]["name"]
    sent = {}
    for name in sorted(REQUESTS.keys() - {"session_create", "telemetry_ingest"}):  # these need a secret of their own
        method, path = paths[name]
        url = re.sub(r"{\w+}", lambda parameter: named[parameter[0]], path)
        response = client.request(method, url, json=REQUESTS[name])
        sent[name] = response.status_code
        assert response.is_success, response.text
    assert len(sent) >= 7
    IngestRequest.model_validate(REQUESTS["telemetry_ingest"])
    RunConfig.model_validate(RESPONSES["runs_get"]["config"])


def test_changes_tell_of_the_csrf_header_and_ingest_takes_bearers_only(operations):
    for name, (method, operation) in operations.items():
        headers = [parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "header"]
        takes_cookie = {"APIKeyCookie": []} in operation.get("security", [])
        assert ("X-CSRF-Token" in headers) == (method in UNSAFE and takes_cookie), name
    assert operations["telemetry_ingest"][1]["security"] == [{"HTTPBearer": []}]


def test_the_location_header_is_described_where_it_is_sent(client, operations):
    described = {
        name
        for name, (_, operation) in operations.items()
        if any("Location" in response.get("headers", {}) for response in operation["responses"].values())
    }
    made_by = {"runs_create", "runs_clone", "clusters_create", "clusters_check", "users_create", "projects_create"}
    made_by |= {"sweeps_create", "webhooks_create"}
    assert described == made_by
    run = client.post("/api/v1/runs", json=REQUESTS["runs_create"])
    clone = client.post(f"{run.headers['location']}/clone", json=REQUESTS["runs_clone"])
    cluster = client.post("/api/v1/clusters", json=REQUESTS["clusters_create"])
    user = client.post("/api/v1/users", json=REQUESTS["users_create"])
    project = client.post("/api/v1/projects", json=REQUESTS["projects_create"])
    webhook = client.post("/api/v1/webhooks", json=REQUESTS["webhooks_create"])
    for made in (run, clone, cluster, user, project, webhook):
        assert client.get(made.headers["location"]).status_code == 200
