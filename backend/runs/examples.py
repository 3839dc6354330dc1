"""Ready configurations, from YAML files."""

import logging
from pathlib import Path

import yaml
from pydantic import ValidationError

from backend.runs.schemas import ConfigExample
from contract.config import RunConfig

logger = logging.getLogger(__name__)


def load(folder: Path) -> list[ConfigExample]:
    """Every example of the folder, by file name; one that is broken is left out and named in the log."""
    return [example for path in sorted(folder.glob("*.yaml")) if (example := _read(path))]


def _read(path: Path) -> ConfigExample | None:
    try:
        document = yaml.safe_load(path.read_text())
        config = RunConfig.model_validate(document["config"])
        return ConfigExample(
            name=document.get("name", path.stem),
            title=document.get("title", path.stem),
            description=document.get("description", ""),
            config=config.model_dump(mode="json"),
        )
    except (yaml.YAMLError, ValidationError, KeyError, TypeError, AttributeError) as error:
        logger.warning("an example is broken", extra={"path": str(path), "error": str(error)})
        return None
