"""Policies in Hugging Face layout: config.json beside model.safetensors, or beside shards and their index."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from workers.model.config import ModelConfig, ModelConfigError
from workers.model.qwen3 import Qwen3Policy

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class CheckpointError(ValueError):
    """A checkpoint that cannot be read; the message names the file, and the tensor and shapes where one is at fault."""


def load_policy(folder: Path) -> Qwen3Policy:
    """The policy stored in a folder, in float32 whatever its files hold. Raises CheckpointError."""
    path = folder / "config.json"
    try:
        policy = Qwen3Policy(ModelConfig.from_hf_json(read_json(path)))
    except ModelConfigError as error:
        raise CheckpointError(f"{path}: {error}") from error
    load_parameters(policy, read_tensors(folder), source=str(folder))
    return policy


def save_policy(policy: Qwen3Policy, folder: Path) -> None:
    """Write config.json and model.safetensors, such that transformers and vLLM load them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(policy.config.to_hf_json(), indent=2) + "\n")
    write_tensors(policy.state_dict(), folder)


def read_json(path: Path) -> dict[str, object]:
    """A JSON object, or a CheckpointError that names the file."""
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file; give a folder in Hugging Face layout") from error
    except json.JSONDecodeError as error:
        raise CheckpointError(f"{path}: not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise CheckpointError(f"{path}: must hold a JSON object")
    return document


def read_tensors(folder: Path) -> dict[str, Tensor]:
    """Every tensor of a checkpoint by its name."""
    tensors: dict[str, Tensor] = {}
    for path in checkpoint_files(folder):
        try:
            with safe_open(path, framework="pt") as file:
                tensors |= {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        except (FileNotFoundError, SafetensorError) as error:
            raise CheckpointError(f"{path}: cannot be read as safetensors: {error}") from error
    return tensors


def write_tensors(tensors: Mapping[str, Tensor], folder: Path) -> None:
    """Write model.safetensors."""
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    save_file(contiguous, folder / _SINGLE, metadata={"format": "pt"})


@torch.no_grad()
def load_parameters(module: nn.Module, tensors: Mapping[str, Tensor], *, source: str) -> None:
    """Copy tensors into a module's parameters and buffers, every one of them and nothing else.

    A surplus lm_head.weight is let pass, since some writers store tied embeddings twice.
    source: where the tensors come from, for the message. Raises CheckpointError.
    """
    parameters = module.state_dict(keep_vars=True)
    if missing := sorted(parameters.keys() - tensors.keys()):
        raise CheckpointError(f"{source}: {len(missing)} tensors are missing, the first is {missing[0]}")
    if surplus := sorted(tensors.keys() - parameters.keys() - {"lm_head.weight"}):
        raise CheckpointError(f"{source}: {len(surplus)} tensors have no place in the model, the first is {surplus[0]}")
    for name, parameter in parameters.items():
        if tensors[name].shape != parameter.shape:
            raise CheckpointError(
                f"{source}: {name} has shape {list(tensors[name].shape)}, "
                f"but config.json makes it {list(parameter.shape)}"
            )
    for name, parameter in parameters.items():
        parameter.copy_(tensors[name])


def checkpoint_files(folder: Path) -> list[Path]:
    """The safetensors files of a folder, whether they exist or not. Raises CheckpointError for a broken index."""
    index = folder / _INDEX
    if not index.exists():
        return [folder / _SINGLE]
    weight_map = read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise CheckpointError(f"{index}: weight_map is missing or empty")
    return [folder / name for name in sorted(set(weight_map.values()))]
