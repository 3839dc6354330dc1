"""The action's inputs, as environment variables hold them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from cli import gates, overrides
from cli.errors import CommandError
from cli.github.labels import labels_of
from cli.labels import parsed
from foredeck import Gate

PREFIX = "FOREDECK_ACTION_"


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the workflow asks for; fields are named like the action's inputs, and empty ones count as not given."""

    config: str = ""
    example: str = ""
    overrides: str = ""
    name: str = ""
    project: str = ""
    cluster: str = ""
    labels: str = ""
    gates: str = ""
    gates_file: str = ""
    baseline: str = ""
    timeout: str = ""
    junit: str = ""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        return cls(**{name: environment.get(PREFIX + name.upper(), "").strip() for name in cls.__dataclass_fields__})

    @property
    def timeout_s(self) -> float:
        try:
            minutes = float(self.timeout)
        except ValueError as error:
            raise CommandError(f"timeout is {self.timeout!r}, but must be a number of minutes.") from error
        return 60 * minutes

    def body(self, environment: Mapping[str, str]) -> dict[str, Any]:
        """What is launched, as the API takes it.

        Raises:
            CommandError: neither or both of config and example, or a file or line that is wrong.
        """
        if bool(self.config) == bool(self.example):
            raise CommandError("Give either `config`, a file in the repository, or `example`, a configuration's name.")
        patch = overrides.parse(_lines(self.overrides))
        if self.config:
            own_name, config = overrides.read_file(Path(self.config))
            what: dict[str, Any] = {"config": overrides.merged(config, patch)}
        else:
            own_name, what = self.example, {"example": self.example, "overrides": patch}
        optional = {"project": self.project, "cluster": self.cluster}
        return {
            "name": self.name or own_name,
            **what,
            **{key: value for key, value in optional.items() if value},
            "labels": labels_of(environment) | parsed(_lines(self.labels)),
            "gates": [gate.model_dump(mode="json") for gate in self.own_gates()],
        }

    def own_gates(self) -> list[Gate]:
        file = Path(self.gates_file) if self.gates_file else None
        return gates.read(_lines(self.gates), file, self.baseline or None)


def _lines(text: str) -> list[str]:
    """One entry a line; empty lines and comments are left out."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]
