import pytest
import torch
from transformers import Qwen3Config, Qwen3ForCausalLM

from workers.model.qwen3 import Qwen3Policy

TOKENS = torch.randint(0, 48, (3, 17), generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("tied", [False, True])
def test_logits_and_taps_match_transformers(make_policy, tied):
    policy = make_policy(tied=tied)
    theirs = Qwen3ForCausalLM(Qwen3Config.from_dict(policy.config.to_hf_json())).eval()
    theirs.load_state_dict(policy.state_dict(), strict=not tied)
    with torch.no_grad():
        expected = theirs(TOKENS, output_hidden_states=True)
        logits, features = policy(TOKENS, tap_layers=(0, 2))
    torch.testing.assert_close(logits, expected.logits, atol=1e-4, rtol=1e-4)
    assert logits.std() > 0.1
    states = expected.hidden_states  # [0] is the embedding, [i + 1] the output of layer i
    torch.testing.assert_close(features, torch.cat([states[1], states[3]], -1), atol=1e-4, rtol=1e-4)


def test_a_position_sees_nothing_after_it(make_policy):
    policy = make_policy()
    changed = TOKENS.clone()
    changed[:, 9:] = 3
    with torch.no_grad():
        torch.testing.assert_close(policy(TOKENS).logits_BTV[:, :9], policy(changed).logits_BTV[:, :9])


def test_initial_weights_follow_the_seed_and_the_stated_scale(make_policy):
    config = make_policy().config
    first, second, third = Qwen3Policy(config), Qwen3Policy(config), Qwen3Policy(config)
    first.initialize(1)
    second.initialize(1)
    third.initialize(2)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), second.parameters(), strict=True))
    assert not torch.equal(first.head_weight, third.head_weight)
    assert first.model.layers[0].mlp.gate_proj.weight.std().item() == pytest.approx((3 * 32) ** -0.5, rel=0.1)
    assert first.model.layers[0].mlp.down_proj.weight.std().item() == pytest.approx(0.02 / 8**0.5, rel=0.1)
