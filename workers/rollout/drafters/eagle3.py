"""Drafting with the EAGLE-3 head (workers.model.eagle3)."""

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.rollout.drafters.features import FeatureSession
from workers.rollout.operations import Chain, PackedLayer
from workers.rollout.packed_weights import PackedDraft, PackedPolicy
from workers.rollout.sampler import Sampler


class Eagle3Drafter:
    """The head's packed weights."""

    def __init__(self, head: PackedDraft, policy: PackedPolicy) -> None:
        self.head, self.policy = head, policy
        self.shape = head.config.shape
        self.operations = policy.operations_for(self.shape)
        self.chain = Chain(
            (head.layer,),
            head.normed_embedding_VD,
            head.head,
            fuse=head.fuse,
            carry_D=head.entry_norm_D,
            vocabulary_V=head.vocabulary_V,
        )

    @property
    def tap_layers(self) -> tuple[int, ...]:
        return self.head.config.tap_layers

    @property
    def layer(self) -> PackedLayer:
        return self.head.layer

    def start(self, num_rows: int, capacity: int, sampler: Sampler) -> FeatureSession:
        return FeatureSession(self, self.policy, num_rows, capacity, sampler)

    def fuse(self, features: Tensor) -> Tensor:
        return self.head.fuse(features)

    def enter(self, hidden: Tensor, next_ids: Tensor) -> tuple[Tensor, Tensor]:
        embedded = F.embedding(next_ids, self.head.normed_embedding_VD)
        x = self.operations.enter(hidden)
        normed = self.operations.add_norm(x, None)
        if self.head.entry_norm_D is not None:
            x = self.operations.enter(normed * self.head.entry_norm_D)
        return x, self.head.layer.qkv(torch.cat([embedded, normed], dim=-1))

    def carry(self, hidden: Tensor, normed: Tensor) -> Tensor:
        return hidden

    def scores(self, normed: Tensor) -> Tensor:
        logits, vocabulary_V = self.head.head(normed), self.head.vocabulary_V
        if vocabulary_V is None:
            return logits
        all_tokens = logits.new_full((*logits.shape[:-1], self.head.config.policy.vocab_size), float("-inf"))
        return all_tokens.index_copy_(-1, vocabulary_V, logits)
