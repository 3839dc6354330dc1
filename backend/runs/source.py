"""Where a run's configuration comes from: one is given or an example named, and changes are laid over it."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import TypeAdapter

from backend.errors import ProblemError
from backend.refusal import KEEP, Refused
from backend.runs import examples
from backend.runs.merge_patch import merge_patch
from backend.runs.schemas import RunCreate
from contract.config.variants import carried_over

_CREATE: TypeAdapter[RunCreate | Refused] = TypeAdapter(Annotated[RunCreate, KEEP])


class Sourced(NamedTuple):
    """What is to be launched, with its configuration resolved, and where its configuration can be mended."""

    body: RunCreate | Refused
    pointer: str


def resolved(body: RunCreate | Refused, examples_dir: Path) -> Sourced:
    """The same with `config` as the only source of its configuration."""
    data = body.data if isinstance(body, Refused) else body.model_dump(mode="json", exclude_unset=True)
    if not isinstance(data, dict):
        return Sourced(body, "/config")
    refused = body.problems if isinstance(body, Refused) else []
    base, problems = base_of(data, refused, examples_dir)
    if base is None or not isinstance(data.get("overrides", {}), dict):
        return Sourced(Refused(data, [*refused, *problems]) if problems else body, "/config")
    if data.get("example") is None and not data.get("overrides"):
        return Sourced(body, "/config")
    rest = {key: value for key, value in data.items() if key not in {"example", "overrides"}}
    return created(rest | {"config": laid_over(base, data.get("overrides", {}))})


def base_of(
    data: Mapping[str, Any], refused: list[ProblemError], examples_dir: Path
) -> tuple[dict[str, Any] | None, list[ProblemError]]:
    """The configuration that overrides are laid over, or what is wrong with it beyond what was refused before."""
    config, example = data.get("config"), data.get("example")
    if touches(refused, "/config", "/example"):
        return None, []
    if config is None and example is None:
        return None, [ProblemError(pointer="/config", detail="is required, or an `example` in its place")]
    if config is not None and example is not None:
        detail = "takes the place of `config`: leave one of the two out"
        return None, [ProblemError(pointer="/example", detail=detail, value=example)]
    return (config, []) if example is None else _example(example, examples_dir)


def _example(name: str, folder: Path) -> tuple[dict[str, Any] | None, list[ProblemError]]:
    known = {example.name: example.config for example in examples.load(folder)}
    if name in known:
        return known[name], []
    detail = f"no such example; there are: {', '.join(known) or 'none'}"
    return None, [ProblemError(pointer="/example", detail=detail, value=name)]


def touches(problems: list[ProblemError], *pointers: str) -> bool:
    """Whether something is wrong there or below."""
    return any(f"{problem.pointer}/".startswith(f"{pointer}/") for problem in problems for pointer in pointers)


def laid_over(config: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration with a JSON merge patch on top; a part that changes its kind keeps what both kinds know."""
    merged: dict[str, Any] = merge_patch(carried_over(config, overrides), overrides)
    return merged


def created(data: dict[str, Any]) -> Sourced:
    """What is to be launched, where overrides made its configuration: what is wrong with that is wrong with them."""
    body = _CREATE.validate_python(data)
    if isinstance(body, Refused):
        body = Refused(body.data, [_renamed(problem) for problem in body.problems])
    return Sourced(body, "/overrides")


def _renamed(problem: ProblemError) -> ProblemError:
    return problem.model_copy(update={"pointer": re.sub("^/config", "/overrides", problem.pointer or "")})
