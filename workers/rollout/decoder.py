"""The policy's forward pass in generation: a few new tokens of every row against the cache.

Shape suffixes: R rows, N new tokens a row, D hidden size, F features.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.rollout.operations import KvCache, Operations
from workers.rollout.packed_weights import PackedLayer, PackedPolicy


def policy_forward(
    policy: PackedPolicy,
    token_ids_RN: Tensor,
    start_R: Tensor,
    span: int,
    cache: KvCache,
    tap_layers: Sequence[int] = (),
) -> tuple[Tensor, Tensor | None]:
    """What the head reads, [R, N, D], and the tapped layers' outputs, [R, N, F], where any is asked for.

    start_R: int64, position of each row's first new token. span: at least one more than the largest position.
    """
    operations = policy.operations
    x = operations.enter(F.embedding(token_ids_RN, policy.embedding_VD))
    size = x.shape[-1]
    features = None
    if tap_layers:
        features = torch.empty(*x.shape[:-1], len(tap_layers) * size, dtype=policy.dtype, device=x.device)
    placement = cache.place(start_R, token_ids_RN.shape[1], span)
    normed = operations.add_norm(x, None)
    for index, layer in enumerate(policy.layers):
        mixed = cache.attend(index, layer.qkv(normed), layer.qk_norm_HE, placement)
        tap = None
        if features is not None and index in tap_layers:
            at = list(tap_layers).index(index) * size
            tap = features[..., at : at + size]
        normed = finish_layer(operations, layer, x, mixed, tap)
    return normed, features


def finish_layer(
    operations: Operations, layer: PackedLayer, x: Tensor, mixed: Tensor, tap: Tensor | None = None
) -> Tensor:
    """Output projection and feed-forward block, each added to the residual stream; returns that, normed."""
    normed = operations.add_norm(x, layer.output(mixed))
    return operations.add_norm(x, layer.down(operations.silu_mul(layer.gate_up(normed))), tap)
