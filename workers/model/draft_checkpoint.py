"""Draft heads on disk: config.json and model.safetensors as vLLM's LlamaForCausalLMEagle3 loads them."""

import json
from pathlib import Path
from typing import Any

from workers.model.config import ModelConfig
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import CheckpointError, load_parameters, read_json, read_tensors, write_tensors

_ARCHITECTURE = "LlamaForCausalLMEagle3"
_SHARED_KEYS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "rms_norm_eps",
    "rope_theta",
)


def load_draft(folder: Path, policy: ModelConfig) -> Eagle3Head:
    """The head stored in a folder. Raises CheckpointError where it is not one, or not one for this policy."""
    path = folder / "config.json"
    document = read_json(path)
    if _ARCHITECTURE not in (document.get("architectures") or []):  # type: ignore[operator]
        raise CheckpointError(f"{path}: architectures = {document.get('architectures')}: must name {_ARCHITECTURE!r}")
    expected = _to_json(EagleConfig(policy))
    for key in _SHARED_KEYS:
        if document.get(key) != expected[key]:
            raise CheckpointError(
                f"{path}: {key} = {document.get(key)}, but the policy has {expected[key]}; "
                "give a draft head that was trained for this policy"
            )
    try:
        head = Eagle3Head(EagleConfig(policy, _taps(document)))
    except ValueError as error:
        raise CheckpointError(f"{path}: {error}") from error
    load_parameters(head, read_tensors(folder), source=str(folder))
    return head


def save_draft(head: Eagle3Head, folder: Path) -> None:
    """Write config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_to_json(head.config), indent=2) + "\n")
    write_tensors(head.state_dict(), folder)


def _to_json(config: EagleConfig) -> dict[str, Any]:
    policy = config.policy
    return {
        "architectures": [_ARCHITECTURE],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_act": "silu",
        "num_hidden_layers": 1,
        "draft_vocab_size": policy.vocab_size,
        "target_hidden_size": policy.hidden_size,
        "max_position_embeddings": policy.max_position_embeddings,
        "tie_word_embeddings": False,
        **{key: getattr(policy, key) for key in _SHARED_KEYS},
        # There a layer's number means the state before it, here the state after it.
        "eagle_aux_hidden_state_layer_ids": [tap + 1 for tap in config.tap_layers],
    }


def _taps(document: dict[str, object]) -> tuple[int, ...]:
    ids = document.get("eagle_aux_hidden_state_layer_ids")
    if not isinstance(ids, list) or not ids:
        raise ValueError(f"eagle_aux_hidden_state_layer_ids = {ids!r}: must list the fused layers")
    return tuple(int(number) - 1 for number in ids)
