"""Ready configurations, from YAML files."""

from pathlib import Path

import yaml

from backend.runs.schemas import ConfigExample
from contract.config import RunConfig


def load(folder: Path) -> list[ConfigExample]:
    """Every example of the folder, by file name; its configuration with defaults filled in."""
    return [_read(path) for path in sorted(folder.glob("*.yaml"))]


def _read(path: Path) -> ConfigExample:
    document = yaml.safe_load(path.read_text())
    config = RunConfig.model_validate(document["config"])
    return ConfigExample(
        name=document.get("name", path.stem),
        title=document.get("title", path.stem),
        description=document.get("description", ""),
        config=config.model_dump(mode="json"),
    )
