"""Configurations that earlier versions stored, read as they were meant."""

from typing import Any

from pydantic import ValidationError

from contract.config import RunConfig


def as_meant(config: dict[str, Any]) -> dict[str, Any]:
    """The stored configuration with what was certain before a key told it: a draft length was fixed."""
    drafter = config.get("drafter")
    if not isinstance(drafter, dict) or "draft_length" not in drafter or "draft_length_control" in drafter:
        return config
    return config | {"drafter": drafter | {"draft_length_control": "fixed"}}


def current(config: dict[str, Any]) -> RunConfig | None:
    """The stored configuration, resolved; None for one that an earlier version accepted and this one does not."""
    try:
        return RunConfig.model_validate(as_meant(config))
    except ValidationError:
        return None
