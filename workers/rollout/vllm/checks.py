"""What is wrong with a run's folders and sizes, before an engine is started for them."""

from pathlib import Path
from typing import Any, NamedTuple

import torch

from contract.config import RunConfig
from contract.config.drafter import NoDrafter, TrainedDrafter
from contract.config.rollout import VllmRollout
from workers.model.hf_checkpoint import CheckpointError, read_json
from workers.starting_folders import check_draft as check_starting_draft
from workers.starting_folders import require_weights

_FAMILIES = ("qwen3", "qwen3_moe")
_HEAD_DIMS_ON_CPU = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""That vLLM's attention on processors knows."""


class PolicyShape(NamedTuple):
    """What an engine must know of its policy, dense or mixture; vLLM reads the rest."""

    vocab_size: int
    max_positions: int
    """With the positions that YaRN adds."""
    head_dim: int
    eos_token_ids: tuple[int, ...]


def policy_shape(folder: Path) -> PolicyShape:
    """Of the policy in a folder that has weights too. Raises CheckpointError."""
    path = folder / "config.json"
    document: dict[str, Any] = read_json(path)
    if (family := document.get("model_type")) not in _FAMILIES:
        raise CheckpointError(f"{path}: model_type = {family!r}: must be {' or '.join(_FAMILIES)}")
    try:
        positions, eos = document["max_position_embeddings"], document.get("eos_token_id")
        head_dim = document.get("head_dim") or document["hidden_size"] // document["num_attention_heads"]
        shape = PolicyShape(document["vocab_size"], _stretched(document, positions), head_dim, _token_ids(eos))
    except KeyError as error:
        raise CheckpointError(f"{path}: {error.args[0]} is missing: add it to config.json") from error
    require_weights(folder)
    if not torch.cuda.is_available() and head_dim not in _HEAD_DIMS_ON_CPU:
        raise CheckpointError(
            f"{path}: head_dim = {head_dim}: vLLM on processors has {', '.join(map(str, _HEAD_DIMS_ON_CPU))} only; "
            "choose rollout.kind torch, or a GPU"
        )
    return shape


def _stretched(document: dict[str, Any], positions: int) -> int:
    rope = document.get("rope_parameters") or document.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type")) != "yarn":
        return positions
    original = rope.get("original_max_position_embeddings", positions)
    return max(positions, int(original * rope.get("factor", 1)))


def _token_ids(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)


def max_sequence_tokens(config: RunConfig, policy: PolicyShape, policy_folder: Path) -> int:
    """Tokens of the longest sequence, prompt and response together. Raises ValueError."""
    rollout = config.rollout
    assert isinstance(rollout, VllmRollout)
    limit = policy.max_positions
    length = rollout.max_sequence_tokens or limit
    if length > limit:
        raise ValueError(
            f"rollout.max_sequence_tokens = {length}: must be at most {limit}, the positions of {policy_folder}"
        )
    if rollout.max_new_tokens >= length:
        raise ValueError(
            f"rollout.max_new_tokens = {rollout.max_new_tokens}: must be below {length}, the tokens of prompt and "
            "response together"
        )
    return length


def check_draft(config: RunConfig, policy: PolicyShape, folder: Path | None) -> None:
    """Raise ValueError or CheckpointError for a draft that this policy cannot have."""
    drafter = config.drafter
    if isinstance(drafter, NoDrafter) or not isinstance(drafter, TrainedDrafter):
        return
    if folder is None:
        raise ValueError(f"drafter.kind = {drafter.kind}: needs the folder of a draft, and there is none")
    check_starting_draft(folder, policy.vocab_size)
