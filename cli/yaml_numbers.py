"""YAML as people write it: PyYAML follows YAML 1.1, in which 1e-3 is a text."""

import re
from typing import Any

import yaml

_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+$")


class _Loader(yaml.SafeLoader):
    """SafeLoader, with the numbers of YAML 1.2."""


_Loader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))


def load(text: str) -> Any:
    """Raises yaml.YAMLError."""
    return yaml.load(text, _Loader)  # noqa: S506 (a SafeLoader)
