"""What must hold between the trainer's settings, the policy's config.json and this machine; asked before building."""

import importlib.util
from pathlib import Path

from contract.config.trainer import MegatronTrainer, MuonOptimizer
from workers.train.megatron.shape import PolicyShape


class LayoutError(ValueError):
    """A setting that this policy or this machine cannot have; the message names the field, its value and the mend."""


def check(trainer: MegatronTrainer, policy_folder: Path | None) -> None:
    """Everything that can be told on a machine of the cluster before anything is made.

    policy_folder: None where there is none yet; what a policy from scratch must be, the configuration's rules say.
    Raises LayoutError, or CheckpointError for a config.json that cannot be read.
    """
    check_packages(trainer)
    if policy_folder is not None:
        check_layout(trainer, PolicyShape.read(policy_folder))


def check_layout(trainer: MegatronTrainer, shape: PolicyShape) -> None:
    """Raises LayoutError at the first setting that does not go with the policy."""
    dense, tensor, pipeline = shape.dense, trainer.tensor_parallel_size, trainer.pipeline_parallel_size
    for key, number in (
        ("num_attention_heads", dense.num_attention_heads),
        ("num_key_value_heads", dense.num_key_value_heads),
        ("intermediate_size", dense.intermediate_size if shape.mixture is None else 0),
    ):
        _must_divide("tensor_parallel_size", tensor, key, number)
    _must_divide("pipeline_parallel_size", pipeline, "num_hidden_layers", dense.num_hidden_layers)
    _check_experts(trainer, shape)


def check_packages(trainer: MegatronTrainer) -> None:
    """Raises LayoutError where this machine lacks what the settings need."""
    for package, mend in (
        ("megatron", "install the extra `megatron`"),
        ("psutil", "install it; without it Megatron-core's checkpoints wait for ever"),
    ):
        if importlib.util.find_spec(package) is None:
            raise LayoutError(f"trainer.kind = 'megatron': needs the package {package} on the cluster: {mend}")
    if isinstance(trainer.optimizer, MuonOptimizer) and importlib.util.find_spec("emerging_optimizers") is None:
        raise LayoutError(
            "trainer.optimizer.kind = 'muon': needs the package emerging_optimizers on the cluster: install "
            "github.com/NVIDIA-NeMo/Emerging-Optimizers there, or choose optimizer adamw"
        )


def _check_experts(trainer: MegatronTrainer, shape: PolicyShape) -> None:
    experts = trainer.expert_parallel_size
    if shape.mixture is None:
        if experts > 1:
            raise LayoutError(
                f"trainer.expert_parallel_size = {experts}: must be 1, for the policy has no experts "
                f"(model_type {shape.document.get('model_type')!r})"
            )
        return
    _must_divide("expert_parallel_size", experts, "num_experts", shape.mixture.num_experts)
    if trainer.tensor_parallel_size > 1 and not trainer.sequence_parallel:
        raise LayoutError(
            f"trainer.sequence_parallel = False: must be true for a policy with experts and tensor_parallel_size = "
            f"{trainer.tensor_parallel_size}, or every rank would train the experts on all tokens"
        )


def _must_divide(field: str, size: int, key: str, number: int) -> None:
    if number % size:
        raise LayoutError(f"trainer.{field} = {size}: must divide the policy's {key} = {number}")
