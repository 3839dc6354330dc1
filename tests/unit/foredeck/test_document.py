"""The client against the API document: what it reads and what it asks for must be in there."""

import inspect
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from backend.main import create_app
from backend.settings import Settings
from foredeck import Foredeck, Problem, ProblemError, models

Schema = dict[str, Any]
Types = set[str]
# Where the client's name differs from the document's.
NAMES: dict[str, str] = {
    "Run": "RunRead",
    "Attempt": "AttemptRead",
    "Alarm": "AlarmRead",
    "Alarms": "AlarmsRead",
    "Series": "SeriesRead",
    "LogLine": "LogLineRead",
    "LoginLink": "LoginLinkRead",
    "CreatedToken": "TokenCreated",
    "Token": "TokenRead",
    "User": "UserRead",
    "Project": "ProjectRead",
    "Member": "MemberRead",
    "AuditEntry": "AuditEntryRead",
    "Cluster": "ClusterRead",
    "CheckStarted": "ClusterCheckStarted",
    "Gate": "GateRead",
    "GateBaseline": "BaselineFigure",
    "GateEvaluation": "GateEvaluationRead",
    "Sweep": "SweepRead",
    "Webhook": "WebhookRead",
    "CreatedWebhook": "WebhookCreated",
    "Delivery": "DeliveryRead",
}
BASES = {"Answer", "Page", "Versioned", "RunFields"}


@pytest.fixture(scope="module")
def document() -> Schema:
    return create_app(Settings.model_validate({"DATABASE_URL": "postgresql://unused"})).openapi()


MODELS = [getattr(models, name) for name in models.__all__ if name not in BASES]


@pytest.mark.parametrize("model", [*MODELS, Problem, ProblemError], ids=lambda model: model.__name__)
def test_every_field_of_the_client_is_in_the_document_with_its_type(document: Schema, model: type) -> None:
    schemas = document["components"]["schemas"]
    name = NAMES.get(model.__name__, model.__name__)
    assert name in schemas, f"the document has no {name}"
    own = model.model_json_schema()  # type: ignore[attr-defined]
    problems = list(_differences(own, schemas[name], own.get("$defs", {}), schemas, model.__name__))
    assert problems == []


def _differences(own: Schema, theirs: Schema, own_defs: Schema, schemas: Schema, path: str) -> Iterator[str]:
    """What the service may send that the client does not understand."""
    mine = {json_type: each for each in _alternatives(own, own_defs) for json_type in _types(each)}
    for other in _alternatives(theirs, schemas):
        for json_type in _types(other):
            accepted = (
                mine.get(json_type) or mine.get("any") or (mine.get("number") if json_type == "integer" else None)
            )
            if accepted is None:
                yield f"{path}: the document says {json_type}, the client reads {sorted(mine)}"
            else:
                yield from _inside(accepted, other, own_defs, schemas, path)


def _inside(own: Schema, theirs: Schema, own_defs: Schema, schemas: Schema, path: str) -> Iterator[str]:
    if "items" in own and "items" in theirs:
        yield from _differences(own["items"], theirs["items"], own_defs, schemas, f"{path}[]")
    mine, given = own.get("additionalProperties"), theirs.get("additionalProperties")
    if isinstance(mine, dict) and isinstance(given, dict):
        yield from _differences(mine, given, own_defs, schemas, f"{path}{{}}")
    for name, schema in own.get("properties", {}).items():
        if name not in theirs.get("properties", {}):
            yield f"{path}.{name}: is not in the document"
        elif name in own.get("required", ()) and name not in theirs.get("required", ()):
            yield f"{path}.{name}: the service may leave it out"
        else:
            yield from _differences(schema, theirs["properties"][name], own_defs, schemas, f"{path}.{name}")


def _alternatives(schema: Schema, definitions: Schema) -> Iterator[Schema]:
    if "$ref" in schema:
        yield from _alternatives(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    elif one_of := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
        for each in one_of:
            yield from _alternatives(each, definitions)
    else:
        yield schema


def _types(schema: Schema) -> Types:
    if "const" in schema or "enum" in schema:
        names = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
        return {names[type(value)] for value in schema.get("enum", [schema.get("const")])}
    found = schema.get("type", "any")
    return set(found) if isinstance(found, list) else {found}


class Recorder(httpx.BaseTransport):
    """Takes every request and refuses it, so that no answer is needed."""

    def __init__(self) -> None:
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        return httpx.Response(418, json={"detail": "no"})


class Examples:
    """A value for each parameter of the client's methods, by its name."""

    VALUES: ClassVar[dict[str, Any]] = {
        "run_id": "11111111-2222-4333-8444-555555555555",
        "body": {},
        "labels": {"branch": "main"},
        "limit": 5,
        "timeout_s": 1.0,
        "after": 3,
        "from_step": 2,
        "max_points": 10,
        "patience_s": 0.0,
        "scopes": ["read"],
        "expires_at": None,
        "file": None,
        "form": "csv",
        "run_ids": ["11111111-2222-4333-8444-555555555555"],
        "names": ["reward/train_mean"],
        "level": "info",
        "sweep_id": "11111111-2222-4333-8444-555555555555",
        "webhook_id": "11111111-2222-4333-8444-555555555555",
        "events": ["run.failed"],
        "gates": [models.Gate(assertion="reward >= 0.5")],
        "evaluation_id": "11111111-2222-4333-8444-555555555555",
    }

    @classmethod
    def of(cls, method: Any) -> tuple[list[Any], dict[str, Any]]:
        positional, named = [], {}
        for parameter in inspect.signature(method).parameters.values():
            value = cls.VALUES.get(parameter.name, "text")
            if parameter.kind is parameter.VAR_POSITIONAL:
                positional += value
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                positional.append(value)
        return positional, named


def _calls() -> list[tuple[str, str]]:
    service = Foredeck("http://x", "t")
    areas = {name: area for name, area in vars(service).items() if not name.startswith("_")}
    return [
        (area, name)
        for area, holder in areas.items()
        for name, _ in inspect.getmembers(holder, inspect.ismethod)
        if not name.startswith("_")
    ]


@pytest.mark.parametrize(("area", "name"), _calls())
def test_every_request_of_the_client_is_in_the_document(document: Schema, area: str, name: str) -> None:
    recorder = Recorder()
    method = getattr(getattr(Foredeck("http://x", "t", patience_s=0, transport=recorder), area), name)
    positional, named = Examples.of(method)
    with pytest.raises(Exception, match="no"):  # noqa: PT012  some of them are generators
        result = method(*positional, **named)
        next(result)
    (request,) = recorder.requests
    operation = _operation(document, request)
    known = {parameter["name"] for parameter in operation.get("parameters", []) if parameter["in"] == "query"}
    assert set(parse_qs(urlsplit(str(request.url)).query)) <= known
    headers = {
        parameter["name"].lower() for parameter in operation.get("parameters", []) if parameter["in"] == "header"
    }
    own = {"idempotency-key", "if-match", "last-event-id"} & set(request.headers)
    assert own <= headers
    if request.content:
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        (body,) = _alternatives(schema, document["components"]["schemas"])
        assert set(json.loads(request.content)) <= set(body["properties"])


def _operation(document: Schema, request: httpx.Request) -> Schema:
    for path, operations in document["paths"].items():
        pattern = re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path))
        if re.fullmatch(pattern, request.url.path) and request.method.lower() in operations:
            operation: Schema = operations[request.method.lower()]
            return operation
    raise AssertionError(f"{request.method} {request.url.path} is not in the document")
