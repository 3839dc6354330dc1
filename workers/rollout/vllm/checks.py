"""What is wrong with a run's folders and sizes, before an engine is started for them."""

from pathlib import Path

from contract.config import RunConfig
from contract.config.drafter import NoDrafter, TrainedDrafter
from contract.config.rollout import VllmRollout
from workers.model.config import ModelConfig, ModelConfigError
from workers.model.hf_checkpoint import CheckpointError, read_json


def policy_config(folder: Path) -> ModelConfig:
    """Of the policy in a folder that has weights too. Raises CheckpointError."""
    path = folder / "config.json"
    try:
        config = ModelConfig.from_hf_json(read_json(path))
    except ModelConfigError as error:
        raise CheckpointError(f"{path}: {error}") from error
    require_weights(folder)
    return config


def require_weights(folder: Path) -> None:
    """Raise CheckpointError where a folder has none."""
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError(f"{folder}: has no *.safetensors file; give a folder with the model's weights")


def max_sequence_tokens(config: RunConfig, policy: ModelConfig, policy_folder: Path) -> int:
    """Tokens of the longest sequence, prompt and response together. Raises ValueError."""
    rollout = config.rollout
    assert isinstance(rollout, VllmRollout)
    limit = policy.max_position_embeddings
    length = rollout.max_sequence_tokens or limit
    if length > limit:
        raise ValueError(
            f"rollout.max_sequence_tokens = {length}: must be at most {limit}, the max_position_embeddings of "
            f"{policy_folder}"
        )
    if rollout.max_new_tokens >= length:
        raise ValueError(
            f"rollout.max_new_tokens = {rollout.max_new_tokens}: must be below {length}, the tokens of prompt and "
            "response together"
        )
    return length


def check_draft(config: RunConfig, policy: ModelConfig, folder: Path | None) -> None:
    """Raise ValueError or CheckpointError for a draft that this policy cannot have."""
    drafter = config.drafter
    if isinstance(drafter, NoDrafter) or not isinstance(drafter, TrainedDrafter):
        return
    if folder is None:
        raise ValueError(f"drafter.kind = {drafter.kind}: needs the folder of a draft, and there is none")
    document = read_json(folder / "config.json")
    require_weights(folder)
    if (size := document.get("vocab_size")) != policy.vocab_size:
        raise CheckpointError(
            f"{folder / 'config.json'}: vocab_size = {size}, but the policy has {policy.vocab_size}; give a draft that "
            "was trained for this policy"
        )
