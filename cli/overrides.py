"""`--set key.path=value`: changes to a configuration, and the files configurations are read from."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from cli import yaml_numbers
from cli.errors import CommandError
from contract.config.variants import carried_over


def parse(assignments: list[str]) -> dict[str, Any]:
    """Nested mapping of the assignments; values are read as YAML: numbers, true, null, lists, text.

    Raises:
        CommandError: no `=`, an empty key, a value that is not YAML, or a key that is both a value and a group.
    """
    patch: dict[str, Any] = {}
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        keys = path.strip().split(".")
        if not separator or not all(keys):
            raise CommandError(f"--set {assignment}: write key.path=value, as in --set grpo.num_steps=20.")
        _put(patch, keys, _value(assignment, text), assignment)
    return patch


def _value(assignment: str, text: str) -> Any:
    try:
        return yaml_numbers.load(text)
    except yaml.YAMLError as error:
        raise CommandError(f"--set {assignment}: the value is not YAML; quote it as text: '\"{text}\"'.") from error


def _put(patch: dict[str, Any], keys: list[str], value: Any, assignment: str) -> None:
    here = patch
    for key in keys[:-1]:
        here = here.setdefault(key, {})
        if not isinstance(here, dict):
            raise CommandError(f"--set {assignment}: {key} was given a value before, so it has no keys of its own.")
    here[keys[-1]] = value


def merged(config: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the patch laid over it; groups are merged, values and lists replaced.

    A group whose `kind` changes keeps only what the new kind knows.
    """
    return _laid_over(carried_over(config, patch), patch)


def _laid_over(config: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    result = deepcopy(config)
    for key, value in patch.items():
        old = result.get(key)
        result[key] = _laid_over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def read_file(path: Path) -> tuple[str, dict[str, Any]]:
    """Name and configuration from a file like those in examples/, or from one that holds the configuration alone.

    Raises:
        CommandError: it is not there, is not YAML or holds no mapping.
    """
    try:
        content = yaml_numbers.load(path.read_text())
    except OSError as error:
        raise CommandError(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not YAML: {error}") from error
    if not isinstance(content, dict):
        raise CommandError(f"{path} holds no mapping: see the files in examples/.")
    config = content.get("config", content)
    if not isinstance(config, dict):
        raise CommandError(f"{path}: `config` must be a mapping, not {config!r}.")
    return str(content.get("name", path.stem)) if "config" in content else path.stem, config
