"""The OpenAPI document. Prints it: `python -m backend.openapi > frontend/openapi.json`."""

import json
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from backend import openapi_problems
from backend.auth.identity import CSRF_HEADER
from backend.errors import MEDIA_TYPE, SAFE_METHODS, Problem
from backend.openapi_examples import PROBLEM, REQUESTS, RESPONSES
from backend.settings import Settings

_WITH_LOCATION = frozenset(
    {
        "clusters_check",
        "clusters_create",
        "projects_create",
        "runs_clone",
        "runs_create",
        "sweeps_create",
        "users_create",
        "webhooks_create",
    }
)
_UNUSED = ("HTTPValidationError", "ValidationError")


def install(app: FastAPI) -> None:
    """Has the app describe its errors as what they are."""

    def build() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = build  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    document = get_openapi(
        title=app.title, version=app.version, description=app.description, summary=app.summary, routes=app.routes
    )
    schemas = document["components"]["schemas"]
    for name in _UNUSED:
        schemas.pop(name, None)
    template = "#/components/schemas/{model}"
    problem = Problem.model_json_schema(ref_template=template)
    schemas.update(problem.pop("$defs"))
    schemas["Problem"] = problem
    content = {MEDIA_TYPE: {"schema": {"$ref": template.format(model="Problem")}, "example": PROBLEM}}
    document["components"]["responses"] = openapi_problems.components(content)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = {"description": "Problem", "content": content}
            _describe_caller(method, operation)
            openapi_problems.describe(method, path, operation)
            _describe_location(operation)
            _add_examples(operation)
    return document


def _describe_caller(method: str, operation: dict[str, Any]) -> None:
    """Only a run's own token may report for it; a change with the session cookie needs a header beside it."""
    if operation["operationId"] == "telemetry_ingest":
        operation["security"] = [{"HTTPBearer": []}]
    elif method.upper() not in SAFE_METHODS and "security" in operation:
        operation.setdefault("parameters", []).append(
            {
                "name": CSRF_HEADER,
                "in": "header",
                "required": False,
                "description": "With the session cookie, and only then, needed: csrf_token of GET /api/v1/session.",
                "schema": {"type": "string"},
            }
        )


def _describe_location(operation: dict[str, Any]) -> None:
    for status in ("201", "202"):
        if operation["operationId"] in _WITH_LOCATION and status in operation["responses"]:
            schema = {"type": "string", "format": "uri-reference"}
            operation["responses"][status]["headers"] = {
                "Location": {"description": "Path of what was made.", "schema": schema}
            }


def _add_examples(operation: dict[str, Any]) -> None:
    name = operation["operationId"]
    if name in REQUESTS:
        operation["requestBody"]["content"]["application/json"]["example"] = REQUESTS[name]
    for status, response in operation["responses"].items():
        if status.startswith("2") and name in RESPONSES:
            response["content"]["application/json"]["example"] = RESPONSES[name]


def main() -> None:
    from backend.main import create_app  # noqa: PLC0415 (the app itself imports this module)

    app = create_app(Settings.model_validate({"DATABASE_URL": "postgresql://unused"}))
    json.dump(app.openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
