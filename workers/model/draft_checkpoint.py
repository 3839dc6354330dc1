"""Drafts on disk: config.json and model.safetensors, told apart by the architecture that config.json names.

eagle3: as vLLM's Eagle3LlamaForCausalLM loads it. mtp: tensors named as in Qwen3-Next checkpoints. draft_model: any
Qwen3 checkpoint of the policy's vocabulary.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workers.model.config import ModelConfig, ModelConfigError
from workers.model.draft import DraftModule
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import (
    CheckpointError,
    load_parameters,
    read_json,
    read_tensors,
    save_policy,
    write_tensors,
)
from workers.model.mtp import MtpConfig, MtpModule

_LAYER_KEYS = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "rms_norm_eps",
    "rope_theta",
)
_POLICY_WIDTH = "target_hidden_size"
_CHANGING_FLAGS = ("norm_before_fc", "norm_output", "fc_norm")
"""Keys that have vLLM compute something else, which this head does not."""
_MTP_PREFIX = "mtp."
_OF_THE_POLICY = ("embed_tokens.weight", "lm_head.weight")
"""What an MTP module shares; checkpoints of whole models hold it too, and it is passed over."""


@dataclass(frozen=True, slots=True)
class _Format:
    """How one kind of draft is stored."""

    kind: str
    architectures: tuple[str, ...]
    """The first is the one that is written."""
    make: Callable[[Mapping[str, Any], ModelConfig], DraftModule]


def load_draft(folder: Path, policy: ModelConfig, kind: str | None = None) -> DraftModule:
    """The draft stored in a folder. Raises CheckpointError where it is none, not of this kind, or not for this policy.

    kind: eagle3, mtp or draft_model; any of them where not given.
    """
    path = folder / "config.json"
    document = read_json(path)
    known = [form for form in _FORMATS if kind in (None, form.kind)]
    named = document.get("architectures") or []
    found = next((form for form in known if set(form.architectures) & set(named)), None)  # type: ignore[call-overload]
    if found is None:
        raise CheckpointError(
            f"{path}: architectures = {document.get('architectures')}: must name "
            + " or ".join(f"{form.architectures[0]!r} for drafter.kind {form.kind}" for form in known)
        )
    try:
        draft = found.make(document, policy)
    except (ValueError, ModelConfigError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    _load(draft, folder)
    return draft


def save_draft(draft: DraftModule, folder: Path) -> None:
    """Write config.json and model.safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    if isinstance(draft, DraftModel):
        save_policy(draft.language_model, folder)
        return
    if isinstance(draft, MtpModule):
        document = _mtp_json(draft.config)
        tensors = {f"{_MTP_PREFIX}{name}": tensor for name, tensor in draft.state_dict().items()}
    else:
        assert isinstance(draft, Eagle3Head)
        document, tensors = _eagle_json(draft.config), draft.state_dict()
    (folder / "config.json").write_text(json.dumps(document, indent=2) + "\n")
    write_tensors(tensors, folder)


def _load(draft: DraftModule, folder: Path) -> None:
    tensors = read_tensors(folder)
    if isinstance(draft, DraftModel):
        load_parameters(draft.language_model, tensors, source=str(folder))
        return
    if isinstance(draft, MtpModule):
        tensors = {
            name.removeprefix(_MTP_PREFIX): tensor
            for name, tensor in tensors.items()
            if not name.endswith(_OF_THE_POLICY)
        }
    if isinstance(draft, Eagle3Head):
        tensors = _with_vocabulary(draft, tensors, folder)
    load_parameters(draft, tensors, source=str(folder))


def _with_vocabulary(head: Eagle3Head, tensors: dict[str, Tensor], folder: Path) -> dict[str, Tensor]:
    """The tensors with both maps between draft and policy tokens, checked; without any where it proposes all tokens."""
    d2t = tensors.pop("d2t", None)
    tensors.pop("t2d", None)
    if head.config.draft_vocab_size is None:
        if d2t is not None and d2t.any():
            raise CheckpointError(f"{folder}: d2t moves tokens, but draft_vocab_size is that of the whole vocabulary")
        return tensors
    if d2t is None or d2t.shape != (head.config.draft_vocab_size,):
        raise CheckpointError(f"{folder}: d2t must have draft_vocab_size = {head.config.draft_vocab_size} entries")
    token_ids_V = d2t + torch.arange(len(d2t))
    if not bool(((token_ids_V >= 0) & (token_ids_V < head.config.policy.vocab_size)).all()):
        raise CheckpointError(f"{folder}: d2t leads outside the policy's vocabulary")
    try:
        head.choose_vocabulary(token_ids_V)
    except ValueError as error:
        raise CheckpointError(f"{folder}: d2t: {error}") from error
    return tensors | {"d2t": d2t, "t2d": head.t2d}


def _layer_config(document: Mapping[str, Any], policy: ModelConfig, policy_width: object) -> ModelConfig:
    """The shape of the draft's one layer, after what must be the policy's was compared with it."""
    for key, value, own in (
        ("vocab_size", document.get("vocab_size"), policy.vocab_size),
        (_POLICY_WIDTH if _POLICY_WIDTH in document else "hidden_size", policy_width, policy.hidden_size),
    ):
        if value != own:
            raise ValueError(
                f"{key} = {value}, but the policy has {own}; give a draft that was trained for this policy"
            )
    if (number := document.get("num_hidden_layers", 1)) != 1:
        raise ValueError(f"num_hidden_layers = {number}: only drafts of one layer are implemented")
    flags = (document.get("eagle_config") or {}) | document
    for key in _CHANGING_FLAGS:
        if flags.get(key):
            raise ValueError(f"{key} = {flags[key]}: not implemented, give a draft without it")
    return replace(
        ModelConfig.from_hf_json({**document, "model_type": "qwen3"}),
        tie_word_embeddings=policy.tie_word_embeddings,
        max_position_embeddings=policy.max_position_embeddings,
        eos_token_ids=policy.eos_token_ids,
    )


def _make_eagle(document: Mapping[str, Any], policy: ModelConfig) -> DraftModule:
    layer = _layer_config(document, policy, document.get(_POLICY_WIDTH, document.get("hidden_size")))
    ids = document.get("eagle_aux_hidden_state_layer_ids")
    if not isinstance(ids, list) or not ids:
        raise ValueError(f"eagle_aux_hidden_state_layer_ids = {ids!r}: must list the fused layers")
    taps = tuple(int(number) - 1 for number in ids)
    return Eagle3Head(
        EagleConfig(policy, taps, document.get("draft_vocab_size"), layer, bool(document.get("norm_before_residual")))
    )


def _make_mtp(document: Mapping[str, Any], policy: ModelConfig) -> DraftModule:
    layer = _layer_config(document, policy, document.get("hidden_size"))
    if (number := document.get("num_nextn_predict_layers", 1)) != 1:
        raise ValueError(f"num_nextn_predict_layers = {number}: only 1, applied again and again, is implemented")
    return MtpModule(MtpConfig(policy, layer))


def _make_draft_model(document: Mapping[str, Any], policy: ModelConfig) -> DraftModule:
    config = ModelConfig.from_hf_json(document)
    if config.vocab_size != policy.vocab_size:
        raise ValueError(
            f"vocab_size = {config.vocab_size}, but the policy has {policy.vocab_size}; "
            "give a draft model with the policy's tokenizer"
        )
    return DraftModel(config)


_FORMATS = (
    _Format("eagle3", ("LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM"), _make_eagle),
    _Format("mtp", ("Qwen3MTP",), _make_mtp),
    _Format("draft_model", ("Qwen3ForCausalLM",), _make_draft_model),
)


def _eagle_json(config: EagleConfig) -> dict[str, Any]:
    return {
        "architectures": [_FORMATS[0].architectures[0]],
        "model_type": "llama",
        "draft_vocab_size": config.draft_vocab_size or config.policy.vocab_size,
        _POLICY_WIDTH: config.policy.hidden_size,
        "norm_before_residual": config.norm_before_residual,
        **_layer_json(config.shape),
        # There a layer's number means the state before it, here the state after it.
        "eagle_aux_hidden_state_layer_ids": [tap + 1 for tap in config.tap_layers],
    }


def _mtp_json(config: MtpConfig) -> dict[str, Any]:
    return {
        "architectures": [_FORMATS[1].architectures[0]],
        "model_type": "qwen3_mtp",
        "num_nextn_predict_layers": 1,
        **_layer_json(config.shape),
    }


def _layer_json(shape: ModelConfig) -> dict[str, Any]:
    return {
        "dtype": "float32",
        "hidden_act": "silu",
        "num_hidden_layers": 1,
        "max_position_embeddings": shape.max_position_embeddings,
        "tie_word_embeddings": False,
        **{key: getattr(shape, key) for key in _LAYER_KEYS},
    }
