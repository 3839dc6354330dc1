"""The run configuration over HTTP: its schema, ready examples and a dry check."""

from typing import Any

from fastapi import APIRouter

from backend.auth.guard import Reader
from backend.deps import SettingsDep
from backend.runs import examples
from backend.runs.schemas import ConfigExample, ConfigValidate, ConfigValidated
from contract.config import RunConfig
from contract.sizing.memory import estimate_memory

router = APIRouter(prefix="/run-config", tags=["run configuration"])


@router.get("/schema", operation_id="run_config_schema", summary="JSON Schema of the run configuration")
def get_schema(_: Reader) -> dict[str, Any]:
    return RunConfig.model_json_schema()


@router.get("/examples", operation_id="run_config_examples", summary="Ready configurations")
def list_examples(_: Reader, settings: SettingsDep) -> list[ConfigExample]:
    return examples.load(settings.examples_dir)


@router.post("/validate", operation_id="run_config_validate", summary="Check a configuration without launching it")
def validate(body: ConfigValidate, _: Reader) -> ConfigValidated:
    config = body.config
    return ConfigValidated(
        config=config.model_dump(mode="json"), config_sha256=config.sha256(), memory=estimate_memory(config)
    )
