"""Drafting with a multi-token-prediction module (workers.model.mtp).

Shape suffixes: V vocabulary, D hidden size.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.model.mtp import MtpConfig
from workers.rollout.drafters.features import FeatureSession
from workers.rollout.operations import Chain, Linear, PackedLayer
from workers.rollout.packed_weights import PackedPolicy, Weights, pack_linear, pack_policy_layer
from workers.rollout.sampler import Sampler


@dataclass(frozen=True, slots=True)
class PackedMtp:
    """The module with what it shares with the policy."""

    config: MtpConfig
    policy_norm_D: Tensor
    """Weight of the policy's final norm, through which its features come."""
    joined_embedding_VD: Tensor
    """Every token's share of what `fc` makes, its norm included: it depends on nothing else."""
    join: Linear
    """The hidden state's share, its norm folded in."""
    layer: PackedLayer
    norm_D: Tensor
    """Weight of the module's own final norm; in the head it is folded."""
    head: Linear

    @classmethod
    def pack(cls, state: Mapping[str, Tensor], config: MtpConfig, dtype: torch.dtype) -> "PackedMtp":
        """From the names of MtpModule.export(). Raises ValueError naming a tensor that is missing or misshapen."""
        weights, model = Weights(state, "multi-token-prediction module"), config.policy
        v, d = model.vocab_size, model.hidden_size
        joined = weights.take("fc.weight", d, 2 * d).float()
        embedding = weights.take("embed_tokens.weight", v, d).float()
        normed = F.rms_norm(
            embedding, (d,), weights.take("pre_fc_norm_embedding.weight", d).float(), model.rms_norm_eps
        )
        norm = weights.take("norm.weight", d)
        return cls(
            config,
            weights.take("policy_norm.weight", d).to(dtype, copy=True),
            F.linear(normed, joined[:, :d]).to(dtype),
            pack_linear(joined[:, d:] * weights.take("pre_fc_norm_hidden.weight", d), dtype),
            pack_policy_layer(weights, "layers.0.", config.shape, dtype),
            norm.to(dtype, copy=True),
            pack_linear(weights.take("lm_head.weight", v, d) * norm, dtype),
        )


class MtpDrafter:
    """The module's packed weights, as a head on the policy's last hidden state."""

    def __init__(self, module: PackedMtp, policy: PackedPolicy) -> None:
        self.module, self.policy = module, policy
        self.shape = module.config.shape
        self.operations = policy.operations_for(self.shape)
        self.chain = Chain(
            (module.layer,),
            module.joined_embedding_VD,
            module.head,
            join=module.join,
            feature_norm_D=module.policy_norm_D.float().contiguous(),
            carry_D=module.norm_D.float().contiguous(),
        )
        self.eps = self.shape.rms_norm_eps

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return self.module.config.tap_layers

    @property
    def layer(self) -> PackedLayer:
        return self.module.layer

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> FeatureSession:
        return FeatureSession(self, self.policy, num_rows, capacity, sampler)

    def fuse(self, features: Tensor) -> Tensor:
        return self._norm(features) * self.module.policy_norm_D

    def enter(self, hidden: Tensor, next_ids: Tensor) -> tuple[Tensor, Tensor]:
        residual = F.embedding(next_ids, self.module.joined_embedding_VD) + self.module.join(self._norm(hidden))
        x = self.operations.enter(residual)
        return x, self.module.layer.qkv(self.operations.add_norm(x, None))

    def carry(self, hidden: Tensor, normed: Tensor) -> Tensor:
        return normed * self.module.norm_D

    def scores(self, normed: Tensor) -> Tensor:
        return self.module.head(normed)

    def _norm(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, x.shape[-1:], None, self.eps)
