"""Shape of a Qwen3-family dense transformer, read from and written to a Hugging Face config.json."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

_SIZES = (
    "vocab_size",
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "max_position_embeddings",
)
# Keys that would change the computation in a way this model does not implement, with the only value it does.
_UNSUPPORTED_UNLESS: dict[str, object] = {
    "hidden_act": "silu",
    "attention_bias": False,
    "use_sliding_window": False,
}


class ModelConfigError(ValueError):
    """A config.json that this model cannot take up; the message names the key, its value and the mend."""


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """Everything that decides the shapes and the arithmetic of the model."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rope_theta: float = 10_000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    max_position_embeddings: int = 2048
    eos_token_ids: tuple[int, ...] = ()
    """Tokens that end a response; Qwen3 checkpoints name one or several."""

    def __post_init__(self) -> None:
        for key in _SIZES:
            value = getattr(self, key)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise ModelConfigError(f"{key} = {value!r}: must be a whole number of at least 1")
        if self.num_attention_heads % self.num_key_value_heads:
            raise ModelConfigError(
                f"num_key_value_heads = {self.num_key_value_heads}: "
                f"must divide num_attention_heads = {self.num_attention_heads}"
            )
        if self.head_dim % 2:
            raise ModelConfigError(f"head_dim = {self.head_dim}: must be even, for rotary embeddings turn pairs")
        if outside := [token for token in self.eos_token_ids if not 0 <= token < self.vocab_size]:
            raise ModelConfigError(f"eos_token_id = {outside[0]}: must be below vocab_size = {self.vocab_size}")

    @classmethod
    def from_hf_json(cls, document: Mapping[str, Any]) -> "ModelConfig":
        """Read a parsed config.json, as transformers 4 (`rope_theta`) or 5 (`rope_parameters`) writes it.

        Raises ModelConfigError for a missing key, another architecture or a feature that is not implemented.
        """
        if (model_type := document.get("model_type")) != "qwen3":
            raise ModelConfigError(f"model_type = {model_type!r}: must be 'qwen3', the family that is implemented")
        for key, supported in _UNSUPPORTED_UNLESS.items():
            if document.get(key, supported) != supported:
                raise ModelConfigError(f"{key} = {document[key]!r}: only {supported!r} is implemented")
        num_heads = _required(document, "num_attention_heads")
        return cls(
            vocab_size=_required(document, "vocab_size"),
            hidden_size=_required(document, "hidden_size"),
            intermediate_size=_required(document, "intermediate_size"),
            num_hidden_layers=_required(document, "num_hidden_layers"),
            num_attention_heads=num_heads,
            num_key_value_heads=document.get("num_key_value_heads") or num_heads,
            head_dim=document.get("head_dim") or _required(document, "hidden_size") // num_heads,
            rope_theta=_rope_theta(document),
            rms_norm_eps=float(document.get("rms_norm_eps", 1e-6)),
            tie_word_embeddings=bool(document.get("tie_word_embeddings", False)),
            max_position_embeddings=document.get("max_position_embeddings", 32_768),
            eos_token_ids=_token_ids(document.get("eos_token_id")),
        )

    def to_hf_json(self) -> dict[str, Any]:
        """The config.json that transformers 5 and vLLM load."""
        eos = self.eos_token_ids
        return {
            "architectures": ["Qwen3ForCausalLM"],
            "model_type": "qwen3",
            "dtype": "float32",
            "hidden_act": "silu",
            "attention_bias": False,
            "attention_dropout": 0.0,
            "use_sliding_window": False,
            **{key: getattr(self, key) for key in _SIZES},
            "rms_norm_eps": self.rms_norm_eps,
            "rope_parameters": {"rope_type": "default", "rope_theta": self.rope_theta},
            # Readers from before transformers 5 look for it here.
            "rope_theta": self.rope_theta,
            "tie_word_embeddings": self.tie_word_embeddings,
            "eos_token_id": list(eos) if len(eos) > 1 else eos[0] if eos else None,
        }


def _required(document: Mapping[str, Any], key: str) -> Any:
    if document.get(key) is None:
        raise ModelConfigError(f"{key} is missing: add it to config.json")
    return document[key]


def _rope_theta(document: Mapping[str, Any]) -> float:
    parameters = document.get("rope_parameters") or document.get("rope_scaling") or {}
    rope_type = parameters.get("rope_type", parameters.get("type", "default"))
    if rope_type != "default":
        raise ModelConfigError(f"rope_parameters.rope_type = {rope_type!r}: only 'default' is implemented")
    theta = parameters.get("rope_theta", document.get("rope_theta"))
    if theta is None:
        raise ModelConfigError("rope_theta is missing: add it to config.json, at the top or in rope_parameters")
    return float(theta)


def _token_ids(value: int | list[int] | None) -> tuple[int, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, int) else tuple(value)
