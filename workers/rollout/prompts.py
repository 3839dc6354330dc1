"""Prompts, run through the policy once for all their samples.

Shape suffixes: P prompts, T longest prompt, V vocabulary, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.rollout.decoder import policy_forward
from workers.rollout.operations import KvCache, Packing
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.sampler import Sampler


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """Prompts and what the policy made of them."""

    first: int
    """Index of the block's first prompt among all."""
    prompts: Sequence[Sequence[int]]
    token_ids_PT: Tensor
    """int64, right-padded."""
    lengths_P: Tensor
    cache: KvCache
    next_probs_PV: Tensor
    """Distribution of each response's first token."""
    features_PTF: Tensor | None
    """Features at every position, where a drafter wants them."""

    @classmethod
    def run(
        cls,
        policy: PackedPolicy,
        prompts: Sequence[Sequence[int]],
        first: int,
        sampler: Sampler,
        tap_layers: Sequence[int],
    ) -> "PromptBlock":
        """Fill a cache of the prompts' own."""
        config, device = policy.config, policy.embedding_VD.device
        lengths_P = torch.tensor([len(prompt) for prompt in prompts], device=device)
        width = max(map(len, prompts))
        padded = [[*prompt, *[0] * (width - len(prompt))] for prompt in prompts]
        token_ids_PT = torch.tensor(padded, device=device)
        cache = policy.operations.allocate_cache(
            config, config.num_hidden_layers, len(prompts), width, is_verified=True
        )
        start_P = torch.zeros(len(prompts), dtype=torch.int64, device=device)
        if policy.operations.tile:
            packing = Packing.of(lengths_P)
            normed, features = policy_forward(policy, token_ids_PT, start_P, width, cache, tap_layers, packing)
            last = normed[lengths_P.cumsum(0) - 1]
        else:
            normed, features = policy_forward(policy, token_ids_PT, start_P, width, cache, tap_layers)
            last = normed[torch.arange(len(prompts), device=device), lengths_P - 1]
        return cls(first, prompts, token_ids_PT, lengths_P, cache, sampler.probs(policy.head(last)), features)
