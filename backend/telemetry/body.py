"""The body of an ingest request, parsed in the route's thread rather than on the event loop."""

import json
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from contract.telemetry.events import IngestRequest


async def _read(request: Request) -> bytes:
    return await request.body()


def _parse(body: Annotated[bytes, Depends(_read)]) -> IngestRequest:
    try:
        return IngestRequest.model_validate_json(body)
    except ValidationError as error:
        problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)]
        is_json = problems[0]["type"] != "json_invalid"
        raise RequestValidationError(problems, body=json.loads(body) if is_json else None) from error


IngestBody = Annotated[IngestRequest, Depends(_parse)]


def ingest_request_schema() -> dict[str, Any]:
    """The request body for the OpenAPI document, with every reference written out."""
    schema = IngestRequest.model_json_schema()
    definitions = schema.pop("$defs")
    return {
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": _written_out(schema, definitions)}},
        }
    }


def _written_out(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_written_out(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return _written_out(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    return {key: _written_out(value, definitions) for key, value in node.items() if key != "discriminator"}
