"""The whole configuration of a run: one schema for the form, the command line, the API and the worker."""

import hashlib
import json
from typing import Any, Literal, Self, TypeVar

from pydantic import Field, ModelWrapValidatorHandler, model_validator
from pydantic_core import ErrorDetails, InitErrorDetails, PydanticCustomError, ValidationError

from contract.config.audit import AuditConfig
from contract.config.base import ConfigModel
from contract.config.drafter import DrafterConfig, Eagle3Drafter
from contract.config.grpo import CheckpointConfig, GrpoConfig, SamplesConfig, ValidationConfig
from contract.config.policy import PolicyConfig, ScratchPolicy
from contract.config.resources import ResourcesConfig, WeightSyncConfig
from contract.config.rollout import ProbeConfig, RolloutConfig, TorchRollout
from contract.config.rules import BrokenRule, Location, broken_rules, left_out_beside, meant_key, without
from contract.config.task import ArithmeticTask, TaskConfig
from contract.config.trainer import TorchTrainer, TrainerConfig

_Config = TypeVar("_Config")


class RunConfig(ConfigModel):
    """Everything that decides what a run computes. Where it runs, its name and its labels are not part of it."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
    job: Literal["grpo", "draft_training"] = "grpo"
    """grpo: the whole run. draft_training: only train a draft on the starting policy's rollouts, report what share of
    its proposals is accepted, and keep it for other runs."""
    seed: int = Field(42, ge=0, lt=2**31)
    """Seeds prompts, sampling and initial weights."""
    task: TaskConfig = ArithmeticTask()
    """Prompts and reward."""
    policy: PolicyConfig = ScratchPolicy()
    """The model that learns; it is also the verifier of drafted tokens."""
    rollout: RolloutConfig = TorchRollout()
    """The engine that generates responses."""
    drafter: DrafterConfig = Eagle3Drafter()
    """What proposes tokens for the policy to verify."""
    probe: ProbeConfig = ProbeConfig()
    """The speedup measurement."""
    grpo: GrpoConfig = GrpoConfig()
    """The algorithm."""
    trainer: TrainerConfig = TorchTrainer()
    """The policy's training."""
    weight_sync: WeightSyncConfig = WeightSyncConfig()
    """From trainer to engines."""
    resources: ResourcesConfig = ResourcesConfig()
    """Machines and GPUs."""
    audit: AuditConfig = AuditConfig()
    """Tests that samples follow the policy, and limits of the alarms."""
    validation: ValidationConfig = ValidationConfig()
    """Held-out accuracy."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """Checkpoints for resuming."""
    samples: SamplesConfig = SamplesConfig()
    """Stored rollouts."""

    @model_validator(mode="wrap")
    @classmethod
    def _check_across_fields(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Every broken field and every broken rule at once, each at its place."""
        data = _with_kinds(data)
        try:
            config: Self | None = handler(data)
            broken, doubtful = [], set[Location]()
        except ValidationError as error:
            config, doubtful = _salvaged(data, error, handler)
            broken = [_field_detail(detail, data, config) for detail in error.errors(include_url=False)]
        if config is not None:
            broken += [_rule_detail(rule) for rule in broken_rules(config, doubtful)]
        if config is None or broken:
            raise ValidationError.from_exception_data("RunConfig", broken)
        return config

    def sha256(self) -> str:
        """Hex digest of the canonical JSON form, defaults filled in: equal configurations have equal digests."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()


def _with_kinds(data: Any) -> Any:
    """The data with the default `kind` in parts that leave theirs out, as any other key may be left out."""
    if not isinstance(data, dict):
        return data
    defaults = {name: getattr(field.default, "kind", None) for name, field in RunConfig.model_fields.items()}
    return {
        name: {"kind": defaults[name], **part} if isinstance(part, dict) and defaults.get(name) else part
        for name, part in data.items()
    }


def _salvaged(
    data: Any, error: ValidationError, handler: ModelWrapValidatorHandler[_Config]
) -> tuple[_Config | None, set[Location]]:
    """(what is valid of the data, with defaults in place of the rest; fields that these defaults say nothing about)."""
    doubtful: set[Location] = set()
    while isinstance(data, dict):
        unknown = [detail["loc"] for detail in error.errors() if detail["type"] == "extra_forbidden"]
        doubtful = doubtful.union(*(left_out_beside(data, location) for location in unknown))
        data, taken = without(data, [detail["loc"] for detail in error.errors()])
        doubtful |= taken
        try:
            return handler(data), doubtful
        except ValidationError as next_error:
            error = next_error
        if not taken:
            break
    return None, doubtful


def _field_detail(detail: ErrorDetails, data: Any, valid: RunConfig | None) -> InitErrorDetails:
    """The same error, to be raised together with others; an unknown key is told the known one that it resembles."""
    meant = meant_key(data, detail["loc"], valid) if detail["type"] == "extra_forbidden" else None
    reason: PydanticCustomError | str = detail["type"]
    if meant:
        reason = PydanticCustomError("unknown_key", "unknown key; did you mean {meant}?", {"meant": meant})
    return InitErrorDetails(type=reason, loc=detail["loc"], input=detail["input"], ctx=detail.get("ctx", {}))


def _rule_detail(rule: BrokenRule) -> InitErrorDetails:
    reason = PydanticCustomError("cross_field", "{mend}", {"mend": rule.mend})
    return InitErrorDetails(type=reason, loc=rule.location, input=rule.value)
