"""The points of a sweep: where they lie, and the configuration of each."""

import json
import math
from collections.abc import Iterable, Mapping
from itertools import combinations, product
from typing import Annotated, Any

from pydantic import TypeAdapter

from backend.errors import ProblemError
from backend.refusal import KEEP, Refused
from backend.runs.source import laid_over
from contract.config import RunConfig

Point = dict[str, Any]
MAX_WORDS = 80
_CONFIG: TypeAdapter[RunConfig | Refused] = TypeAdapter(Annotated[RunConfig, KEEP])


def points_of(data: Mapping[str, Any], max_points: int) -> tuple[list[Point], list[ProblemError]]:
    """Every point, in order: of a grid, the last axis changes first."""
    axes, listed = data.get("axes"), data.get("points")
    if (axes is None) == (listed is None):
        detail = "is required, or `points` in its place" if axes is None else "leave `axes` or `points` out"
        return [], [ProblemError(pointer="/axes", detail=detail)]
    num = math.prod(len(values) for values in axes.values()) if axes else len(listed or [])
    where = "/axes" if axes else "/points"
    if num > max_points:
        return [], [ProblemError(pointer=where, detail=f"make {num:,} runs; a sweep may have {max_points:,}")]
    problems = list(_overlaps(where, [axes] if axes else listed or []))
    return ([] if problems else _all(axes, listed or [])), problems


def _all(axes: Mapping[str, list[Any]] | None, listed: list[Point]) -> list[Point]:
    return [dict(zip(axes, values, strict=True)) for values in product(*axes.values())] if axes else listed


def _overlaps(where: str, points: Iterable[Mapping[str, Any]]) -> Iterable[ProblemError]:
    for index, point in enumerate(points):
        for outer, inner in combinations(sorted(point), 2):
            if inner.startswith(f"{outer}."):
                pointer = f"{where}/{inner}" if where == "/axes" else f"{where}/{index}/{inner}"
                yield ProblemError(pointer=pointer, detail=f"lies in {outer}, which is given beside it: leave one out")


def words(point: Point) -> str:
    """The point as people read it: `draft_length=3, kind=ngram`."""
    pairs = [f"{key.rpartition('.')[2]}={_plain(value)}" for key, value in point.items()]
    text = ", ".join(pairs)
    return text if len(text) <= MAX_WORDS else f"{text[: MAX_WORDS - 1]}…"


def _plain(value: Any) -> str:
    return value if isinstance(value, str) and value.isprintable() else json.dumps(value)


def config_of(base: Mapping[str, Any], point: Point) -> RunConfig | Refused:
    """The base with the point laid over it; what it refuses is told by keys of the configuration."""
    patch: dict[str, Any] = {}
    for key, value in point.items():
        *groups, last = key.split(".")
        here = patch
        for group in groups:
            here = here.setdefault(group, {})
        here[last] = value
    return _CONFIG.validate_python(laid_over(base, patch))


class Findings:
    """What is wrong with points: the same told once, with the first point that has it."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._axes: Mapping[str, list[Any]] | None = data.get("axes")
        self._found: dict[tuple[str, str], list[int]] = {}
        self._first: dict[tuple[str, str], ProblemError] = {}

    def add(self, index: int, point: Point, problem: ProblemError) -> None:
        """`problem` points into the point's configuration."""
        path = (problem.pointer or "").lstrip("/").replace("/", ".")
        key = next((key for key in point if _meet(key, path)), None)
        detail = problem.detail if path == key or not path else f"{path}: {problem.detail}"
        identity = (self._pointer(index, key, point), detail)
        self._found.setdefault(identity, []).append(index + 1)
        self._first.setdefault(identity, problem.model_copy(update={"detail": f"({words(point)}): {detail}"}))

    def _pointer(self, index: int, key: str | None, point: Point) -> str:
        if self._axes is None:
            return f"/points/{index}" + (f"/{key}" if key else "")
        if key is None:
            return "/axes"
        index = next(index for index, value in enumerate(self._axes[key]) if value is point[key])  # true equals 1
        return f"/axes/{key}/{index}"

    def problems(self) -> list[ProblemError]:
        return [
            problem.model_copy(
                update={"pointer": identity[0], "detail": _numbered(self._found[identity], problem.detail)}
            )
            for identity, problem in self._first.items()
        ]


def _numbered(numbers: list[int], detail: str) -> str:
    more = f", and of {len(numbers) - 1} more" if len(numbers) > 1 else ""
    return f"point {numbers[0]} {detail}{more}"


def _meet(key: str, path: str) -> bool:
    return path == key or path.startswith(f"{key}.") or (bool(path) and key.startswith(f"{path}."))
