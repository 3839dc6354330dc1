"""The policy's forward pass in generation: a few new tokens of every row against the cache.

Shape suffixes: R rows, N new tokens a row, D hidden size, F features.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from workers.rollout.operations import KvCache, Packing
from workers.rollout.packed_weights import PackedPolicy


def policy_forward(
    policy: PackedPolicy,
    token_ids_RN: Tensor,
    start_R: Tensor,
    span: int,
    cache: KvCache,
    tap_layers: Sequence[int] = (),
    packing: Packing | None = None,
) -> tuple[Tensor, Tensor | None]:
    """What the head reads, [R, N, D], and the tapped layers' outputs, [R, N, F], where any is asked for.

    start_R: int64, position of each row's first new token. span: at least one more than the largest position. packing:
    which of the tokens there are to read, for operations that pack: the former is then [M, D] of these alone, and the
    latter 0 where there is none.
    """
    x = policy.operations.embed(token_ids_RN, policy.embedding_VD, packing)
    size = x.shape[-1]
    features = None
    if tap_layers:
        shape = (*token_ids_RN.shape, len(tap_layers) * size)
        features = (torch.empty if packing is None else torch.zeros)(shape, dtype=policy.dtype, device=x.device)
    placement = cache.place(start_R, token_ids_RN.shape[1], span, packing=packing)
    taps = {}
    if features is not None:
        taps = {layer: features[..., i * size : (i + 1) * size] for i, layer in enumerate(tap_layers)}
    return policy.operations.run_layers(policy.layers, x, cache, placement, taps), features
