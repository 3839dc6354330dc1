"""The folders that a run starts from, looked at in the driver, before machines and GPUs are taken for it."""

from pathlib import Path

from contract.config import RunConfig
from contract.config.drafter import TrainedDrafter
from contract.config.policy import CheckpointPolicy
from contract.config.rollout import TorchRollout
from contract.config.trainer import MegatronTrainer, TorchTrainer
from contract.sizing.architecture import Architecture, check_model
from workers.model.config import ModelConfig, ModelConfigError
from workers.model.hf_checkpoint import CheckpointError, read_json
from workers.train.megatron.checks import check as check_megatron


def check_starting_folders(config: RunConfig) -> None:
    """Raises ValueError, CheckpointError among them, that names folder or field, value and mend."""
    policy = Path(config.policy.path) if isinstance(config.policy, CheckpointPolicy) else None
    if policy is not None:
        _check_policy(config, policy)
    if isinstance(config.trainer, MegatronTrainer):
        check_megatron(config.trainer, policy)
    drafter = config.drafter
    if isinstance(drafter, TrainedDrafter) and drafter.path is not None and policy is not None:
        check_draft(Path(drafter.path), architecture_in(policy).vocabulary_size)


def architecture_in(policy: Path) -> Architecture:
    """The shape of the policy in a folder. Raises CheckpointError."""
    path = policy / "config.json"
    document = read_json(path)
    try:
        return Architecture.from_hf_json(document)
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error


def require_weights(folder: Path) -> None:
    """Raises CheckpointError where a folder has none."""
    if not any(folder.glob("*.safetensors")):
        raise CheckpointError(f"{folder}: has no *.safetensors file; give a folder with the model's weights")


def check_draft(folder: Path, vocabulary_size: int) -> None:
    """Raises CheckpointError for a folder without a draft's weights, or with those of another vocabulary."""
    document = read_json(folder / "config.json")
    require_weights(folder)
    if (size := document.get("vocab_size")) != vocabulary_size:
        raise CheckpointError(
            f"{folder / 'config.json'}: vocab_size = {size}, but the policy has {vocabulary_size}; give a draft that "
            "was trained for this policy"
        )


def _check_policy(config: RunConfig, folder: Path) -> None:
    assert isinstance(config.policy, CheckpointPolicy)
    check_model(config.policy.model, architecture_in(folder), str(folder))
    require_weights(folder)
    if isinstance(config.rollout, TorchRollout) or isinstance(config.trainer, TorchTrainer):
        path = folder / "config.json"
        try:
            ModelConfig.from_hf_json(read_json(path))
        except ModelConfigError as error:
            raise CheckpointError(
                f"{path}: {error}; or choose rollout.kind vllm and trainer.kind megatron, which know more"
            ) from error
