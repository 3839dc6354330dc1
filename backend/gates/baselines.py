"""What a gate can be compared with, as it is written: `origin`, `run:<id>` or `label:<key>:<value>,...`."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from contract.gates.tokens import quoted

_FORMS = "origin, run:<id>, or label:<key>:<value>[,<key>:<value>...]"
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_./-]{0,62}")


@dataclass(frozen=True, slots=True)
class Baseline:
    """Of the three ways to name a run, the one that was taken; neither a run nor labels: the run's origin."""

    run_id: UUID | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_origin(self) -> bool:
        return self.run_id is None and not self.labels


def parse_baseline(text: str) -> Baseline:
    """Raises ValueError with what would fit."""
    kind, colon, rest = text.partition(":")
    if text == "origin":
        return Baseline()
    if kind == "run" and colon:
        return Baseline(run_id=_run_id(rest))
    if kind == "label" and colon:
        return Baseline(labels=dict(_label(part) for part in rest.split(",")))
    raise ValueError(f"found {quoted(text)}, expected {_FORMS}")


def _run_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise ValueError(f"found {quoted(text)} after run:, expected the id of a run") from None


def _label(text: str) -> tuple[str, str]:
    key, colon, value = text.partition(":")
    if not colon or not _KEY.fullmatch(key) or "\x00" in value:
        raise ValueError(f"found {quoted(text)} after label:, expected <key>:<value>")
    return key, value
