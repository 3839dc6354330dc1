"""What a configuration keeps where a change chooses another kind for one of its parts."""

from collections.abc import Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from contract.config.base import FolderPath
from contract.config.run import RunConfig


def carried_over(
    config: Mapping[str, Any], changes: Mapping[str, Any], model: type[BaseModel] = RunConfig
) -> dict[str, Any]:
    """The configuration for the changes to be laid over: a part that they give another `kind` keeps what the new kind
    knows too, so that nothing of the former kind is in the way.

    Its folder goes, for what lies there is of one kind. So does what equals the former kind's default, which nobody
    need have chosen, and the new kind has its own.
    """
    kept = dict(config)
    for key, field in model.model_fields.items():
        part, change = config.get(key), changes.get(key)
        if not isinstance(part, Mapping) or not isinstance(change, Mapping):
            continue
        former = _variant(field, part.get("kind"))
        chosen = _variant(field, change.get("kind", part.get("kind")))
        if former and chosen:
            known = part if former is chosen else _shared(part, former, chosen)
            kept[key] = carried_over(known, change, chosen)
    return kept


def _variant(field: FieldInfo, kind: object) -> type[BaseModel] | None:
    """The model of a part: the only one there is, or the one of that kind; without one, the default's if any."""
    options: list[type[BaseModel]] = [
        option
        for option in get_args(field.annotation) or (field.annotation,)
        if isinstance(option, type) and issubclass(option, BaseModel)
    ]
    if len(options) == 1:
        return options[0]
    if kind is None:
        return type(field.default) if isinstance(field.default, BaseModel) else None
    return next((option for option in options if option.model_fields["kind"].default == kind), None)


def _shared(part: Mapping[str, Any], former: type[BaseModel], chosen: type[BaseModel]) -> dict[str, Any]:
    """What the former kind does not know either stays, to be refused."""
    known = {key: field for key, field in former.model_fields.items() if key in part}
    meant = {key for key in known.keys() & chosen.model_fields if _is_meant(known[key], part[key])} - {"kind"}
    return {key: value for key, value in part.items() if key in meant or key not in known}


def _is_meant(field: FieldInfo, value: Any) -> bool:
    return FolderPath not in (field.annotation, *get_args(field.annotation)) and value != _default(field)


def _default(field: FieldInfo) -> Any:
    default = field.default
    return default.model_dump(mode="json") if isinstance(default, BaseModel) else default
