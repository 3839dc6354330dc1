"""The whole configuration of a run: one schema for the form, the command line, the API and the worker."""

import hashlib
import json
from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from contract.config.base import ConfigModel
from contract.config.grpo import CheckpointConfig, GrpoConfig, SamplesConfig, ValidationConfig
from contract.config.policy import PolicyConfig, ScratchPolicy
from contract.config.rollout import DrafterConfig, Eagle3Drafter, ProbeConfig, RolloutConfig, TorchRollout
from contract.config.task import ArithmeticTask, TaskConfig
from contract.config.trainer import TorchTrainer, TrainerConfig


class RunConfig(ConfigModel):
    """Everything that decides what a run computes. Where it runs, its name and its labels are not part of it."""

    schema_version: Literal[1] = 1
    """Version of this schema."""
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
    validation: ValidationConfig = ValidationConfig()
    """Held-out accuracy."""
    checkpoint: CheckpointConfig = CheckpointConfig()
    """Checkpoints for resuming."""
    samples: SamplesConfig = SamplesConfig()
    """Stored rollouts."""

    @model_validator(mode="after")
    def _check_across_fields(self) -> Self:
        """Every rule that needs more than one field; all that are broken are reported at once, each at its field."""
        broken = [
            InitErrorDetails(
                type=PydanticCustomError("cross_field", "{mend}", {"mend": mend}), loc=location, input=value
            )
            for location, value, mend in self._broken_rules()
        ]
        if broken:
            raise ValidationError.from_exception_data("RunConfig", broken)
        return self

    def _broken_rules(self) -> list[tuple[tuple[str, ...], object, str]]:
        """(field, value, what to do) of each broken rule."""
        rules: list[tuple[bool, tuple[str, ...], object, str]] = []
        policy, rollout, grpo = self.policy, self.rollout, self.grpo
        if isinstance(policy, ScratchPolicy):
            heads = policy.num_attention_heads
            rules += [
                (
                    policy.hidden_size % (2 * heads) != 0,
                    ("policy", "hidden_size"),
                    policy.hidden_size,
                    f"must be a multiple of {2 * heads} (twice num_attention_heads), so that heads are of even width",
                ),
                (
                    heads % policy.num_key_value_heads != 0,
                    ("policy", "num_key_value_heads"),
                    policy.num_key_value_heads,
                    f"must divide num_attention_heads = {heads}",
                ),
                (
                    isinstance(self.drafter, Eagle3Drafter) and policy.num_layers < 3,
                    ("policy", "num_layers"),
                    policy.num_layers,
                    "must be at least 3 with drafter eagle3, which reads a low, a middle and a high layer; "
                    "or choose drafter none",
                ),
            ]
        rules += [
            (
                rollout.temperature == 0,
                ("rollout", "temperature"),
                rollout.temperature,
                "must be above 0: greedy responses of a group are all equal, so advantages are all zero",
            ),
            (
                self.probe.num_prompts > grpo.num_prompts_per_step,
                ("probe", "num_prompts"),
                self.probe.num_prompts,
                f"must be at most grpo.num_prompts_per_step = {grpo.num_prompts_per_step}",
            ),
            (
                self.samples.num_samples > grpo.num_prompts_per_step * grpo.num_generations_per_prompt,
                ("samples", "num_samples"),
                self.samples.num_samples,
                "must be at most the number of responses of a step, "
                f"{grpo.num_prompts_per_step * grpo.num_generations_per_prompt}",
            ),
            (
                grpo.num_updates_per_step > grpo.num_prompts_per_step,
                ("grpo", "num_updates_per_step"),
                grpo.num_updates_per_step,
                f"must be at most grpo.num_prompts_per_step = {grpo.num_prompts_per_step}, so that each update has "
                "responses of its own",
            ),
            (
                rollout.num_engines > grpo.num_prompts_per_step,
                ("rollout", "num_engines"),
                rollout.num_engines,
                f"must be at most grpo.num_prompts_per_step = {grpo.num_prompts_per_step}, one prompt for each engine",
            ),
        ]
        return [(location, value, mend) for is_broken, location, value, mend in rules if is_broken]

    def sha256(self) -> str:
        """Hex digest of the canonical JSON form, defaults filled in: equal configurations have equal digests."""
        canonical = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()
