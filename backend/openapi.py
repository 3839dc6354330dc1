"""The OpenAPI document. Prints it: `python -m backend.openapi > frontend/openapi.json`."""

import json
import sys
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from backend.errors import MEDIA_TYPE, Problem
from backend.settings import Settings

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
    answer = {"description": "Problem", "content": {MEDIA_TYPE: {"schema": {"$ref": template.format(model="Problem")}}}}
    for operation in (operation for path in document["paths"].values() for operation in path.values()):
        operation["responses"].pop("422", None)
        operation["responses"]["default"] = answer
    return document


def main() -> None:
    from backend.main import create_app  # noqa: PLC0415 (the app itself imports this module)

    app = create_app(Settings.model_validate({"DATABASE_URL": "postgresql://unused"}))
    json.dump(app.openapi(), sys.stdout, indent=2, sort_keys=True)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
