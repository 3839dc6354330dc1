"""The OpenAPI document as a page for people: no script, nothing from elsewhere."""

import json
from collections.abc import Iterator
from html import escape
from itertools import groupby
from typing import Any

_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
h3{margin:2.5rem 0 0;border-top:1px solid #8888;padding-top:1rem} code,pre{font:14px/1.45 ui-monospace,monospace}
pre{overflow:auto;padding:.75rem;border:1px solid #8886;border-radius:6px} summary{cursor:pointer}
td,th{text-align:left;vertical-align:top;padding:.2rem 1rem .2rem 0}
"""

Operation = tuple[str, str, dict[str, Any]]
"""Method, path and what the document says."""


def page(document: dict[str, Any], document_url: str) -> str:
    """HTML of the whole document, one section a tag and one entry an operation."""
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    sections = groupby(sorted(operations, key=_tag), key=_tag)
    body = "".join(f"<h2>{escape(tag)}</h2>{''.join(map(_entry, group))}" for tag, group in sections)
    title = escape(f"{document['info']['title']} API {document['info']['version']}")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{_STYLE}</style></head>'
        f"<body><h1>{title}</h1><p>{escape(document['info']['description'])} "
        f'As a machine reads it: <a href="{escape(document_url)}">OpenAPI</a>.</p>{body}</body></html>'
    )


def _tag(operation: Operation) -> str:
    return str(operation[2].get("tags", ["other"])[0])


def _entry(operation: Operation) -> str:
    return "".join(_parts(*operation))


def _parts(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    name = escape(operation["operationId"])
    yield f'<h3 id="{name}"><a href="#{name}"><code>{method} {escape(path)}</code></a></h3>'
    yield f"<p>{escape(operation.get('summary', ''))}</p>"
    if "description" in operation:
        yield f"<p>{escape(operation['description'])}</p>"
    yield "<p>Open to anybody.</p>" if "security" not in operation else ""
    yield _parameters(operation.get("parameters", []))
    if "requestBody" in operation:
        yield _content("Body", operation["requestBody"])
    for status, response in operation["responses"].items():
        if status != "default" and "$ref" not in response:
            yield _content(f"{status} {response['description']}", response)
    problems = ", ".join(status for status, response in operation["responses"].items() if "$ref" in response)
    yield f"<p>Problems: {problems}</p>" if problems else ""


def _parameters(parameters: list[dict[str, Any]]) -> str:
    rows = "".join(
        f"<tr><td><code>{escape(parameter['name'])}</code></td><td>{parameter['in']}"
        f"{', required' if parameter.get('required') else ''}</td>"
        f"<td>{escape(parameter.get('description', ''))}</td></tr>"
        for parameter in parameters
    )
    return f"<table>{rows}</table>" if rows else ""


def _content(title: str, of: dict[str, Any]) -> str:
    kinds = ", ".join(of.get("content", {})) or "no body"
    examples = [content["example"] for content in of.get("content", {}).values() if "example" in content]
    text = "".join(f"<pre>{escape(json.dumps(example, indent=2))}</pre>" for example in examples)
    head = f"{escape(title)} ({escape(kinds)})"
    return f"<details><summary>{head}</summary>{text}</details>" if text else f"<p>{head}</p>"
