"""Shape of a Qwen3 policy, dense or a mixture of experts, read from a Hugging Face config.json."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workers.model.config import ModelConfig, ModelConfigError
from workers.model.hf_checkpoint import CheckpointError, read_json

_MODEL_TYPES = ("qwen3", "qwen3_moe")
_MIXTURE_KEYS = ("num_experts", "num_experts_per_tok", "moe_intermediate_size")
_ROPE_KEYS = {"rope_type", "type", "rope_theta"}
_YARN_KEYS = {"factor", "original_max_position_embeddings", "attention_factor", "beta_fast", "beta_slow", "truncate"}


@dataclass(frozen=True, slots=True)
class Mixture:
    """Experts in the place of every layer's feed-forward block."""

    num_experts: int
    num_experts_per_token: int
    intermediate_size: int
    """Inside one expert."""
    is_normalized: bool
    """Whether the chosen experts' weights are scaled to add up to 1."""


@dataclass(frozen=True, slots=True)
class Yarn:
    """Rotary embeddings stretched beyond the trained length (Peng et al. 2023, arXiv:2309.00071)."""

    factor: float
    original_max_positions: int
    attention_factor: float
    """Scales cos and sin; 0.1 ln(factor) + 1 where config.json names none."""
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    truncate: bool = True
    """Whether the corrected dimensions are rounded to whole ones."""

    @property
    def mscale(self) -> float:
        """m such that 0.1 m ln(factor) + 1 = attention_factor."""
        return (self.attention_factor - 1) / (0.1 * math.log(self.factor)) if self.factor > 1 else 0.0


@dataclass(frozen=True, slots=True)
class PolicyShape:
    """Everything that decides the shapes and the arithmetic of the policy."""

    dense: ModelConfig
    """Widths, heads and vocabulary; of a mixture too, whose feed-forward width it does not use."""
    mixture: Mixture | None
    yarn: Yarn | None
    document: Mapping[str, Any]
    """config.json as it was read."""

    @classmethod
    def read(cls, folder: Path) -> "PolicyShape":
        """Of a policy's folder. Raises CheckpointError that names file, key, value and mend."""
        path = folder / "config.json"
        document = read_json(path)
        try:
            return cls.from_hf_json(document)
        except ModelConfigError as error:
            raise CheckpointError(f"{path}: {error}") from error

    @classmethod
    def from_hf_json(cls, document: Mapping[str, Any]) -> "PolicyShape":
        """Read a parsed config.json, as transformers 4 or 5 writes it. Raises ModelConfigError."""
        if (kind := document.get("model_type")) not in _MODEL_TYPES:
            raise ModelConfigError(f"model_type = {kind!r}: must be one of {', '.join(_MODEL_TYPES)}")
        if "num_local_experts" in document:  # the name that transformers 5 writes
            document = {"num_experts": document["num_local_experts"], **document}
        yarn, plain = _yarn(document)
        dense = ModelConfig.from_hf_json({**plain, "model_type": "qwen3"})
        return cls(dense, _mixture(document) if kind == "qwen3_moe" else None, yarn, dict(document))


def _mixture(document: Mapping[str, Any]) -> Mixture:
    for key in _MIXTURE_KEYS:
        if not isinstance(value := document.get(key), int) or value < 1:
            raise ModelConfigError(f"{key} = {value!r}: must be a whole number of at least 1")
    for key, supported in (("decoder_sparse_step", 1), ("mlp_only_layers", [])):
        if (value := document.get(key) or supported) != supported:
            raise ModelConfigError(f"{key} = {value!r}: only {supported!r}, experts in every layer, is implemented")
    num_experts, chosen = document["num_experts"], document["num_experts_per_tok"]
    if chosen > num_experts:
        raise ModelConfigError(f"num_experts_per_tok = {chosen}: must be at most num_experts = {num_experts}")
    is_normalized = bool(document.get("norm_topk_prob", False))
    if chosen == 1 and is_normalized:
        raise ModelConfigError(
            "norm_topk_prob = True: must be false with num_experts_per_tok = 1, whose one weight would always be 1"
        )
    return Mixture(num_experts, chosen, document["moe_intermediate_size"], is_normalized)


def _yarn(document: Mapping[str, Any]) -> tuple[Yarn | None, dict[str, Any]]:
    """(the stretch, the document without it)."""
    rope = dict(document.get("rope_parameters") or document.get("rope_scaling") or {})
    if rope.get("rope_type", rope.get("type", "default")) != "yarn":
        return None, dict(document)
    if unknown := sorted(rope.keys() - _ROPE_KEYS - _YARN_KEYS):
        raise ModelConfigError(f"rope_scaling.{unknown[0]} = {rope[unknown[0]]!r}: not implemented, remove it")
    factor = rope.get("factor")
    if not isinstance(factor, int | float) or factor < 1:
        raise ModelConfigError(f"rope_scaling.factor = {factor!r}: must be a number of at least 1")
    original = rope.get("original_max_position_embeddings") or document.get("max_position_embeddings")
    if not isinstance(original, int) or original < 1:
        raise ModelConfigError(f"rope_scaling.original_max_position_embeddings = {original!r}: must be a whole number")
    yarn = Yarn(
        float(factor),
        original,
        float(rope.get("attention_factor") or 0.1 * math.log(factor) + 1),
        float(rope.get("beta_fast") or 32.0),
        float(rope.get("beta_slow") or 1.0),
        bool(rope.get("truncate", True)),
    )
    theta = rope.get("rope_theta", document.get("rope_theta"))
    plain = {key: value for key, value in document.items() if key not in ("rope_scaling", "rope_parameters")}
    return yarn, plain | ({} if theta is None else {"rope_theta": theta})
