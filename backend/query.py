"""Query parameters that no route reads, or that are given twice: none may pass unnoticed."""

from collections.abc import Mapping
from inspect import isclass
from typing import Any, get_args, get_origin

from fastapi import FastAPI, Request
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from backend.auth.guard import PUBLIC
from backend.errors import ProblemError, invalid

Known = dict[tuple[str, str], Mapping[str, bool]]
"""By method and path: the names of the parameters, and whether they may be repeated."""


def install(app: FastAPI) -> None:
    """Notes what the app's routes read; after they are all included."""
    known: Known = {}
    for route in app.routes:
        if isinstance(route, APIRoute):
            names = _names(route)
            known |= {(method, route.path): names for method in route.methods}
    app.state.known_query_parameters = known


def check(request: Request) -> None:
    """A dependency of every route. Raises ApiError (422). What is open to all is left out: an identity provider adds
    parameters of its own to the address that it sends browsers back to."""
    key = (request.method, request.scope["route"].path)
    if key in PUBLIC:
        return
    known: Known = request.app.state.known_query_parameters
    problems = _problems(request, known[key])
    if problems:
        raise invalid(problems)


def _problems(request: Request, names: Mapping[str, bool]) -> list[ProblemError]:
    problems = []
    for name in request.query_params:
        if name not in names:
            there_are = ", ".join(names) or "none"
            detail = f"unknown parameter: remove it or mend its spelling; there are: {there_are}"
            problems.append(ProblemError(parameter=name[:200], detail=detail))
        elif not names[name] and len(request.query_params.getlist(name)) > 1:
            problems.append(ProblemError(parameter=name, detail="must be given once"))
    return problems


def _names(route: APIRoute) -> dict[str, bool]:
    names: dict[str, bool] = {}
    for field in get_flat_dependant(route.dependant).query_params:
        annotation = field.field_info.annotation
        if isclass(annotation) and issubclass(annotation, BaseModel):
            own = annotation.model_fields.items()
            names |= {each.alias or name: _is_list(each.annotation) for name, each in own}
        else:
            names[field.alias] = _is_list(annotation)
    return names


def _is_list(annotation: Any) -> bool:
    return get_origin(annotation) is list or any(_is_list(part) for part in get_args(annotation))
