import dataclasses

import pytest
import torch

from workers.model.qwen3 import Qwen3Policy
from workers.rollout.decoder import policy_forward
from workers.rollout.packed_weights import PackedPolicy

TOKENS = torch.randint(0, 12, (3, 14), generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("is_verified", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_passes_over_pieces_give_the_training_models_logits_and_taps(models, is_verified, tied):
    """A prompt of five tokens at once, then short pieces, one position written twice as after a rejected draft."""
    config = dataclasses.replace(models.policy.config, tie_word_embeddings=tied)
    policy = Qwen3Policy(config)
    policy.load_state_dict({k: v for k, v in models.policy.state_dict().items() if not (tied and "lm_head" in k)})
    packed = PackedPolicy.pack(policy.state_dict(), config, torch.float32)
    cache = packed.operations.allocate_cache(config, 3, 3, 16, is_verified=is_verified)
    with torch.no_grad():
        expected_logits, expected_taps = policy(TOKENS, (0, 2))
    for start, length in [(0, 5), (5, 1), (6, 3), (8, 3), (11, 3)]:
        piece = TOKENS[:, start : start + length].clone()
        normed, taps = policy_forward(packed, piece, torch.full((3,), start), start + length, cache, (0, 2))
        logits = packed.head(normed)
        torch.testing.assert_close(logits, expected_logits[:, start : start + length], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(taps, expected_taps[:, start : start + length], atol=1e-4, rtol=1e-4)
