import dataclasses

import pytest
import torch

from workers.model.qwen3 import Qwen3Policy
from workers.rollout.decoder import RotaryTable, causal_bias, policy_forward, rms_norm
from workers.rollout.kv_cache import KvCache
from workers.rollout.packed_weights import PackedPolicy

TOKENS = torch.randint(0, 12, (3, 14), generator=torch.Generator().manual_seed(3))


def test_bias_hides_what_comes_after_each_query():
    bias = causal_bias(torch.tensor([[1, 2]]), span=4, num_groups=2)
    inf = float("inf")
    assert bias[0, 0].tolist() == [[0, 0, -inf, -inf], [0, 0, 0, -inf]] * 2


@pytest.mark.parametrize("transpose_keys", [True, False])
@pytest.mark.parametrize("tied", [True, False])
def test_passes_over_pieces_give_the_training_models_logits_and_taps(models, transpose_keys, tied):
    """A prompt of five tokens at once, then short pieces, one position written twice as after a rejected draft."""
    config = dataclasses.replace(models.policy.config, tie_word_embeddings=tied)
    policy = Qwen3Policy(config)
    policy.load_state_dict({k: v for k, v in models.policy.state_dict().items() if not (tied and "lm_head" in k)})
    packed = PackedPolicy.pack(policy.state_dict(), config, torch.float32)
    cache = KvCache.allocate(3, 3, 16, 2, 8, transpose_keys=transpose_keys, device=torch.device("cpu"))
    rotary = RotaryTable.build(16, config, torch.device("cpu"))
    with torch.no_grad():
        expected_logits, expected_taps = policy(TOKENS, (0, 2))
    for start, length in [(0, 5), (5, 1), (6, 3), (8, 3), (11, 3)]:
        positions = torch.arange(start, start + length).expand(3, -1)
        piece = TOKENS[:, start : start + length].clone()
        x, taps = policy_forward(packed, piece, positions, start + length, cache, rotary, (0, 2))
        logits = packed.head(rms_norm(x, config.rms_norm_eps))
        torch.testing.assert_close(logits, expected_logits[:, start : start + length], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(taps, expected_taps[:, start : start + length], atol=1e-4, rtol=1e-4)
