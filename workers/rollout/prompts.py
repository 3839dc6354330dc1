"""Prompts, run through the policy once for all their samples.

Shape suffixes: P prompts, T longest prompt, V vocabulary, F features.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.rollout.decoder import RotaryTable, policy_forward, rms_norm
from workers.rollout.kv_cache import KvCache
from workers.rollout.packed_weights import PackedPolicy
from workers.rollout.sampler import Sampler


@dataclass(frozen=True, slots=True)
class PromptBlock:
    """Prompts and what the policy made of them."""

    first: int
    """Index of the block's first prompt among all."""
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
        rotary: RotaryTable,
        tap_layers: Sequence[int],
    ) -> "PromptBlock":
        """Fill a cache of the prompts' own."""
        config, device = policy.config, policy.embedding_VD.device
        lengths_P = torch.tensor([len(prompt) for prompt in prompts], device=device)
        width = int(lengths_P.max())
        padded = [[*prompt, *[0] * (width - len(prompt))] for prompt in prompts]
        token_ids_PT = torch.tensor(padded, device=device)
        cache = KvCache.allocate(
            config.num_hidden_layers,
            len(prompts),
            width,
            config.num_key_value_heads,
            config.head_dim,
            transpose_keys=True,
            device=device,
        )
        positions_PT = torch.arange(width, device=device).expand(len(prompts), width)
        x, features = policy_forward(policy, token_ids_PT, positions_PT, width, cache, rotary, tap_layers)
        last = x[torch.arange(len(prompts), device=device), lengths_P - 1]
        next_probs_PV = sampler.probs(policy.head(rms_norm(last, config.rms_norm_eps)))
        return cls(first, token_ids_PT, lengths_P, cache, next_probs_PV, features)
