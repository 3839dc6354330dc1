"""Shapes of Qwen3-family models and what follows from them: parameters, KV cache, floating-point operations."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

from contract.config.policy import KnownModel, PolicyConfig, ScratchPolicy


@dataclass(frozen=True, slots=True)
class Architecture:
    """A decoder of grouped-query attention and SwiGLU feed-forward blocks, dense or a mixture of experts."""

    num_layers: int
    hidden_size: int
    intermediate_size: int
    """Of the feed-forward block; of each expert in a mixture."""
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocabulary_size: int
    is_tied: bool
    """The head is the embedding."""
    num_experts: int = 0
    num_active_experts: int = 0
    """Experts that a token goes through."""

    @classmethod
    def from_hf_json(cls, document: Mapping[str, Any]) -> "Architecture":
        """Of a checkpoint's parsed config.json, dense or a mixture. Raises ValueError for a size that is missing."""
        try:
            return cls._of(document)
        except KeyError as error:
            raise ValueError(f"{error.args[0]} is missing: add it to config.json") from error

    @classmethod
    def _of(cls, document: Mapping[str, Any]) -> "Architecture":
        heads = document["num_attention_heads"]
        # transformers 5 writes the second name.
        num_experts = document.get("num_experts") or document.get("num_local_experts") or 0
        return cls(
            num_layers=document["num_hidden_layers"],
            hidden_size=document["hidden_size"],
            intermediate_size=document["moe_intermediate_size" if num_experts else "intermediate_size"],
            num_attention_heads=heads,
            num_key_value_heads=document.get("num_key_value_heads") or heads,
            head_dim=document.get("head_dim") or document["hidden_size"] // heads,
            vocabulary_size=document["vocab_size"],
            is_tied=bool(document.get("tie_word_embeddings", False)),
            num_experts=num_experts,
            num_active_experts=document["num_experts_per_tok"] if num_experts else 0,
        )

    @property
    def attention_parameters(self) -> int:
        """Of one layer, its norms of queries, keys and input included."""
        width, e = self.hidden_size, self.head_dim
        products = width * e * (2 * self.num_attention_heads + 2 * self.num_key_value_heads)
        return products + 2 * e + width

    @property
    def feed_forward_parameters(self) -> int:
        """Of one layer or one expert: gate, up, down."""
        return 3 * self.hidden_size * self.intermediate_size

    @property
    def expert_parameters(self) -> int:
        """All experts of all layers; 0 in a dense model."""
        return self.num_layers * self.num_experts * self.feed_forward_parameters

    @property
    def embedding_parameters(self) -> int:
        return self.vocabulary_size * self.hidden_size

    @property
    def dense_layer_parameters(self) -> int:
        """Of one layer, what every token goes through: not the experts."""
        router = self.num_experts * self.hidden_size
        feed_forward = 0 if self.num_experts else self.feed_forward_parameters
        return self.attention_parameters + feed_forward + router + self.hidden_size

    @property
    def num_parameters(self) -> int:
        embeddings = self.embedding_parameters * (1 if self.is_tied else 2)
        return embeddings + self.num_layers * self.dense_layer_parameters + self.expert_parameters + self.hidden_size

    @property
    def num_active_parameters(self) -> int:
        """Those in products with one token: not the embedding that is looked up, of the experts the active ones."""
        experts = self.num_active_experts * self.feed_forward_parameters if self.num_experts else 0
        return self.num_layers * (self.dense_layer_parameters + experts) + self.embedding_parameters

    def kv_cache_bytes(self, bytes_per_value: int = 2) -> int:
        """Keys and values of one token in all layers."""
        return 2 * self.num_layers * self.num_key_value_heads * self.head_dim * bytes_per_value

    def forward_flops(self, context: float) -> float:
        """Floating-point operations of one token's forward pass that reads `context` positions in each layer.

        2 per active parameter, and 4 * layers * query heads * head_dim * context for scores and their product with
        the values (Narayanan et al. 2021, arXiv:2104.04473, eq. 3, with grouped queries and a causal mask). A backward
        pass costs twice as much.
        """
        attention = 4.0 * self.num_layers * self.num_attention_heads * self.head_dim * context
        return 2.0 * self.num_active_parameters + attention


def _qwen3(layers: int, hidden: int, intermediate: int, heads: int, kv_heads: int, tied: bool = False) -> Architecture:
    return Architecture(layers, hidden, intermediate, heads, kv_heads, 128, 151_936, tied)


KNOWN: dict[KnownModel, Architecture] = {
    "Qwen3-0.6B": _qwen3(28, 1024, 3072, 16, 8, True),
    "Qwen3-1.7B": _qwen3(28, 2048, 6144, 16, 8, True),
    "Qwen3-4B": _qwen3(36, 2560, 9728, 32, 8, True),
    "Qwen3-8B": _qwen3(36, 4096, 12_288, 32, 8),
    "Qwen3-14B": _qwen3(40, 5120, 17_408, 40, 8),
    "Qwen3-32B": _qwen3(64, 5120, 25_600, 64, 8),
    "Qwen3-30B-A3B": Architecture(48, 2048, 768, 32, 4, 128, 151_936, False, 128, 8),
    "Qwen3-235B-A22B": Architecture(94, 4096, 1536, 64, 4, 128, 151_936, False, 128, 8),
}
"""By the names under which they are published; shapes from their config.json."""

assert set(KNOWN) == set(get_args(KnownModel))

SCRATCH_VOCABULARY_SIZE = 48


def architecture_of(policy: PolicyConfig) -> Architecture | None:
    """The shape of a run's policy; None for a checkpoint of which no model is named."""
    if isinstance(policy, ScratchPolicy):
        heads = policy.num_attention_heads
        return Architecture(
            policy.num_layers,
            policy.hidden_size,
            policy.intermediate_size,
            heads,
            policy.num_key_value_heads,
            policy.hidden_size // heads,
            SCRATCH_VOCABULARY_SIZE,
            is_tied=False,
        )
    return KNOWN[policy.model] if policy.model else None


def check_model(model: KnownModel | None, found: Architecture, folder: str) -> None:
    """Raises ValueError where a checkpoint's shape is not that of the model that a configuration names."""
    expected = asdict(KNOWN[model]) if model else {}
    for size, value in asdict(found).items():
        if expected and expected[size] != value:
            raise ValueError(
                f"policy.model = {model}: the checkpoint in {folder} has {size} = {value}, and {model} has "
                f"{expected[size]}: name the model that it is, or leave policy.model out"
            )
