"""A multi-token-prediction module (DeepSeek-V3, arXiv:2412.19437, section 2.2), as trained.

One decoder layer of the policy's kind reads, at position t, the policy's last hidden state and the embedding of token
t + 1, joins them by `fc`, and scores token t + 2 through the policy's own head. To draft further the same module takes
its own normed output in the place of the policy's. It has neither embedding nor head: it uses the policy's as they are
at that moment. Parameter names are those of Qwen3-Next checkpoints under `mtp.`, as vLLM's Qwen3NextMTP reads them; the
layer is a dense Qwen3 one, as the policy's are.

Shape suffixes: B sequences, T positions, N start positions of a draft, V vocabulary, D hidden size.
"""

from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.model.config import ModelConfig
from workers.model.draft import PolicyPass, draw_weights
from workers.model.layers import RMSNorm
from workers.model.qwen3 import Attention, DecoderLayer, Qwen3Policy
from workers.model.unroll import UnrolledDraft


@dataclass(frozen=True, slots=True)
class MtpConfig:
    """Shape of the module: its width is the policy's, whose embedding and head it shares."""

    policy: ModelConfig
    layer: ModelConfig | None = None
    """Feed-forward width, heads and rope_theta of its layer; the policy's where not given."""

    def __post_init__(self) -> None:
        layer = replace(self.layer or self.policy, num_hidden_layers=1)
        if layer.hidden_size != self.policy.hidden_size:
            raise ValueError(
                f"hidden_size = {layer.hidden_size}: must be the policy's, {self.policy.hidden_size}, whose embedding "
                "and head the module shares"
            )
        object.__setattr__(self, "layer", layer)

    @property
    def shape(self) -> ModelConfig:
        """Of the layer."""
        assert self.layer is not None
        return self.layer

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """The policy's last layer."""
        return (self.policy.num_hidden_layers - 1,)


class MtpModule(UnrolledDraft):
    """The module."""

    def __init__(self, config: MtpConfig) -> None:
        super().__init__()
        policy = config.policy
        d, eps = policy.hidden_size, policy.rms_norm_eps
        self.config = config
        self.pre_fc_norm_embedding = RMSNorm(d, eps)
        self.pre_fc_norm_hidden = RMSNorm(d, eps)
        self.fc = nn.Linear(2 * d, d, bias=False)
        self.layers = nn.ModuleList([DecoderLayer(config.shape)])
        self.norm = RMSNorm(d, eps)

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return self.config.tap_layers

    @property
    def shape(self) -> ModelConfig:
        return self.config.shape

    @property
    def layer(self) -> DecoderLayer:
        """The one decoder layer."""
        (layer,) = self.layers
        assert isinstance(layer, DecoderLayer)
        return layer

    @property
    def attention(self) -> Attention:
        return self.layer.self_attn

    @torch.no_grad()
    def initialize(self, policy: Qwen3Policy, seed: int) -> None:
        """Take the final norm, which feeds the shared head, from the policy; draw the rest."""
        draw_weights(self.parameters(), seed)
        self.norm.weight.copy_(policy.model.norm.weight)

    def features(self, seen: PolicyPass) -> Tensor:
        """The policy's last hidden state as its head reads it."""
        assert seen.features_BTF is not None
        norm = seen.policy.model.norm
        return F.rms_norm(seen.features_BTF, norm.weight.shape, norm.weight.detach(), norm.eps)

    def embed(self, seen: PolicyPass) -> Tensor:
        """The policy's embedding, normed."""
        return self.pre_fc_norm_embedding(
            F.embedding(seen.token_ids_BT, seen.policy.model.embed_tokens.weight.detach())
        )

    def enter(self, embedded_BND: Tensor, hidden_BND: Tensor) -> tuple[Tensor, Tensor]:
        """The joined input is the residual stream."""
        normed = self.pre_fc_norm_hidden(hidden_BND)
        residual = self.fc(torch.cat([embedded_BND.to(normed.dtype), normed], dim=-1))
        return residual, self.layer.input_layernorm(residual)

    def leave(self, residual_BND: Tensor, seen: PolicyPass) -> tuple[Tensor, Tensor]:
        """The next step reads what the head reads."""
        normed = self.norm(residual_BND + self.layer.mlp(self.layer.post_attention_layernorm(residual_BND)))
        return normed, F.linear(normed, seen.policy.head_weight.detach())

    def export(self, policy: Qwen3Policy) -> dict[str, Tensor]:
        """Its own weights, and the policy's embedding, final norm and head, which an engine folds into them."""
        return {
            **super().export(policy),
            "embed_tokens.weight": policy.model.embed_tokens.weight.detach(),
            "policy_norm.weight": policy.model.norm.weight.detach(),
            "lm_head.weight": policy.head_weight.detach(),
        }
