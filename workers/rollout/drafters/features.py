"""Drafting with a head of one decoder layer on the policy's features, as EAGLE-3 and multi-token prediction do.

After a pass the head reads the policy's features of every token that was just verified, and from the last one drafts on
with its own outputs. What it wrote for rejected tokens lies beyond the row's length and is overwritten. Passes without
a draft only put their features aside, so that they cost next to nothing until the head reads them all at once.

Shape suffixes: R rows, J positions of one pass, P positions put aside, K drafted tokens, D hidden size, F features,
W width of queries, keys and values, V vocabulary.
"""

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import torch
from torch import Tensor

from workers.algo.acceptance import Randomness
from workers.model.config import ModelConfig
from workers.rollout.drafters.drafter import Draft, Verified
from workers.rollout.operations import Chain, KvCache, Operations, PackedLayer, Unread
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.prompts import PromptBlock
from workers.rollout.rows import Row
from workers.rollout.sampler import Sampler, column

_MAX_ASIDE = 32
"""Positions a row that are put aside before the head has to read them."""


class FeatureHead(Protocol):
    """A head's packed weights."""

    @property
    def tap_layers(self) -> tuple[int, ...]:
        """Layers of the policy whose outputs it reads."""

    @property
    def layer(self) -> PackedLayer:
        """Its decoder layer."""

    @property
    def shape(self) -> ModelConfig:
        """Of that layer."""

    @property
    def operations(self) -> Operations:
        """By which it is computed."""

    @property
    def chain(self) -> Chain | None:
        """What all steps of a draft can be computed from at once, for a head that is one."""

    def fuse(self, features: Tensor) -> Tensor:
        """The policy's features [..., F] as the head's input [..., D]."""

    def enter(self, hidden: Tensor, next_ids: Tensor) -> tuple[Tensor, Tensor]:
        """The residual stream [..., D] that starts from an input and the token after it, and its qkv [..., W]."""

    def carry(self, hidden: Tensor, normed: Tensor) -> Tensor:
        """The next step's input, from the residual stream after the layer and from that normed, all [..., D]."""

    def scores(self, normed: Tensor) -> Tensor:
        """Logits [..., V] over the policy's vocabulary, -inf for tokens that the head never proposes."""


class FeatureSession:
    """The head's cache, and for each row the features it has not read yet."""

    def __init__(self, head: FeatureHead, policy: PackedPolicy, num_rows: int, capacity: int, sampler: Sampler) -> None:
        self.head, self.policy, self.sampler = head, policy, sampler
        self.operations = head.operations
        self.device = policy.embedding_VD.device
        self.num_rows = num_rows
        self.layers = (head.layer,) if head.chain is None else head.chain.layers
        # What stands behind a row's own positions aside is written too, and means nothing.
        self.cache = self.operations.keep_cache(
            "draft", head.shape, 1, num_rows, capacity + _MAX_ASIDE, is_verified=False
        )
        self.num_features = len(head.tap_layers) * policy.config.hidden_size
        self.start_R = torch.zeros(num_rows, dtype=torch.int64, device=self.device)
        """Position of each row's first feature that was not read."""
        self.count_R = torch.zeros(num_rows, dtype=torch.int64, device=self.device)
        """How many were not."""
        self.max_count = 0
        """The largest of these, or more."""
        self.features_RPF, self.next_ids_RP = self._buffers(1)

    def prefill(self, block: PromptBlock) -> None:
        """Write the head's keys and values for all positions whose next token the prompt holds."""
        assert block.features_PTF is not None
        num_prompts, width = block.token_ids_PT.shape
        self.block = block
        self.block_cache = self._allocate(num_prompts, width)
        start_P = torch.zeros(num_prompts, dtype=torch.int64, device=self.device)
        _, qkv = self.head.enter(self.head.fuse(block.features_PTF), block.token_ids_PT.roll(-1, 1))
        self.block_cache.write(0, qkv, self.head.layer.qk_norm_HE, self.block_cache.place(start_P, width, width))

    def admit(self, rows: Tensor, prompts: Tensor, first_tokens: Tensor) -> None:
        """Put the features of each prompt's last token aside."""
        assert self.block.features_PTF is not None
        last_R = self.block.lengths_P[prompts] - 1
        self.cache.copy_rows(rows, self.block_cache, prompts, self.block.token_ids_PT.shape[1])
        self.features_RPF[rows, 0] = self.block.features_PTF[prompts, last_R]
        self.next_ids_RP[rows, 0] = first_tokens
        self.start_R[rows] = last_R
        self.count_R[rows] = 1
        self.max_count = max(self.max_count, 1)

    def draft(self, rows: Sequence[Row], start_R: Tensor, draft_length: int) -> Draft:
        """Draw draft_length tokens one after the other."""
        num_rows = len(start_R)
        if (drafted := self._draft_at_once(num_rows, draft_length)) is not None:
            return drafted
        span = max(len(row.token_ids) for row in rows) + draft_length
        hidden, qkv = self._read(num_rows)
        randomness = self.operations.randomness(num_rows, draft_length, self.sampler.generator)
        span = self.operations.round_span(span)
        steps, settings = partial(self._steps, draft_length, span), (draft_length, span, self.sampler.settings)
        return Draft(*self.operations.region("draft", steps, (hidden, qkv, start_R, randomness), settings))

    def _steps(
        self, draft_length: int, span: int, hidden: Tensor, qkv: Tensor, start_R: Tensor, randomness: Randomness
    ) -> tuple[Tensor, Tensor]:
        """Token ids [R, K] and their distributions, from the first step's residual stream and qkv."""
        token_ids: list[Tensor] = []
        probs: list[Tensor] = []
        for step in range(draft_length):
            if step > 0:
                x, qkv = self.head.enter(hidden, token_ids[-1].unsqueeze(1))
            else:
                x = hidden
            placement = self.cache.place(start_R - 1 + step, 1, span)
            hidden = torch.empty(x.shape, dtype=self.policy.dtype, device=self.device)
            normed = self.operations.run_layers(self.layers, x, self.cache, placement, {0: hidden}, qkv)
            hidden = self.head.carry(hidden, normed)
            probs.append(self.sampler.probs(self.head.scores(normed.squeeze(1))))
            token_ids.append(self.sampler.draw(probs[-1], column(randomness, step)))
        return torch.stack(token_ids, 1), torch.stack(probs, 1)

    def _draft_at_once(self, num_rows: int, draft_length: int) -> Draft | None:
        if self.head.chain is None or self.sampler.truncation.is_active:
            return None
        drafted = self.operations.draft_chain(
            *(self.head.chain, self._unread(num_rows), self.cache, draft_length),
            *(self.sampler.temperature, self.sampler.generator),
        )
        if drafted is None:
            return None
        self.max_count = 0
        return Draft(*drafted)

    def observe(self, verified: Verified) -> None:
        """Put a pass's features aside; what the head has read is forgotten."""
        assert verified.features_RJF is not None
        num_rows, num_new = verified.token_ids_RJ.shape
        if self.max_count + num_new > _MAX_ASIDE:
            self._read(num_rows)
        if self.max_count == 0:
            self.features_RPF, self.next_ids_RP = verified.features_RJF, verified.token_ids_RJ
            self.start_R, self.count_R = verified.start_R, verified.num_new_R
        else:
            self._append(verified)
        self.max_count += num_new

    def retire(self, row: int, token_ids: list[int]) -> None:
        """Nothing to keep."""

    def move_row(self, source: int, target: int) -> None:
        self.cache.move_row(source, target)
        for tensor in (self.features_RPF, self.next_ids_RP, self.start_R, self.count_R):
            tensor[target] = tensor[source]

    def _append(self, verified: Verified) -> None:
        assert verified.features_RJF is not None
        num_rows, num_new = verified.token_ids_RJ.shape
        if self.features_RPF.shape[1] < _MAX_ASIDE:
            width = self.features_RPF.shape[1]
            kept = self.features_RPF[:num_rows], self.next_ids_RP[:num_rows]
            self.features_RPF, self.next_ids_RP = self._buffers(_MAX_ASIDE)
            self.features_RPF[:num_rows, :width], self.next_ids_RP[:num_rows, :width] = kept
        count_R = self.count_R[:num_rows]
        columns = count_R.unsqueeze(1) + torch.arange(num_new, device=self.device)
        at = (torch.arange(num_rows, device=self.device).unsqueeze(1), columns)
        self.features_RPF.index_put_(at, verified.features_RJF)
        self.next_ids_RP.index_put_(at, verified.token_ids_RJ)
        self.count_R = count_R + verified.num_new_R

    def _read(self, num_rows: int) -> tuple[Tensor, Tensor]:
        """Let the head read what was put aside; residual stream and qkv of each row's last position of it."""
        unread = self._unread(num_rows)
        self.max_count = 0
        x, qkv = self.operations.region("read", self._take_in, unread)
        return x, qkv

    def _take_in(
        self, features_RPF: Tensor, next_ids_RP: Tensor, start_R: Tensor, count_R: Tensor
    ) -> tuple[Tensor, Tensor]:
        x, qkv = self.head.enter(self.head.fuse(features_RPF), next_ids_RP)
        placement = self.cache.place(start_R, next_ids_RP.shape[1], 1)
        self.cache.write(0, qkv, self.head.layer.qk_norm_HE, placement)
        at = (torch.arange(len(start_R), device=self.device), count_R - 1)
        return x[at].unsqueeze(1), qkv[at].unsqueeze(1)

    def _unread(self, num_rows: int) -> Unread:
        width = min(self.max_count, self.features_RPF.shape[1])
        return Unread(
            self.features_RPF[:num_rows, :width],
            self.next_ids_RP[:num_rows, :width],
            self.start_R[:num_rows],
            self.count_R[:num_rows],
        )

    def _buffers(self, width: int) -> tuple[Tensor, Tensor]:
        features = torch.zeros(self.num_rows, width, self.num_features, dtype=self.policy.dtype, device=self.device)
        return features, torch.zeros(self.num_rows, width, dtype=torch.int64, device=self.device)

    def _allocate(self, num_rows: int, capacity: int) -> KvCache:
        # One new token a step: nothing to gain from keys that lie channel by channel.
        return self.operations.allocate_cache(self.head.shape, 1, num_rows, capacity, is_verified=False)
