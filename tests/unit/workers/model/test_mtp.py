import dataclasses

import pytest
import torch

from workers.model.draft import PolicyPass
from workers.model.mtp import MtpConfig, MtpModule

TOKENS = torch.randint(0, 48, (2, 9), generator=torch.Generator().manual_seed(5))


@pytest.fixture(params=[False, True], ids=["untied", "tied"])
def policy(request, make_policy):
    return make_policy(tied=request.param)


@pytest.fixture
def module(policy):
    module = MtpModule(MtpConfig(policy.config))
    module.initialize(policy, 3)
    return module


def test_it_reads_the_last_layer(module):
    assert module.tap_layers == (3,)


def test_embedding_norm_and_head_are_the_policys_as_they_are_now(policy, module):
    seen = PolicyPass(policy, TOKENS, policy(TOKENS, module.tap_layers).features_BTF.detach())
    with torch.no_grad():
        for change in (policy.model.embed_tokens.weight, policy.model.norm.weight, policy.head_weight):
            before = module(seen, 2)
            change.mul_(torch.linspace(0.5, 2.0, change.shape[-1]))
            assert all((a - b).abs().max() > 1e-3 for a, b in zip(before, module(seen, 2), strict=True))


def test_no_gradient_reaches_the_policy(policy, module):
    output = policy(TOKENS, module.tap_layers)
    sum(step.sum() for step in module(PolicyPass(policy, TOKENS, output.features_BTF.detach()), 3)).backward()
    assert all(parameter.grad is None for parameter in policy.parameters())
    assert all(parameter.grad is not None for parameter in module.parameters())


def test_an_engine_gets_what_the_module_shares_too(policy, module):
    exported = module.export(policy)
    assert torch.equal(exported["lm_head.weight"], policy.head_weight)
    assert torch.equal(exported["embed_tokens.weight"], policy.model.embed_tokens.weight)
    assert torch.equal(exported["policy_norm.weight"], policy.model.norm.weight)
    assert exported.keys() >= module.state_dict().keys()
    assert not any(tensor.requires_grad for tensor in exported.values())


def test_its_layer_has_sizes_of_its_own_but_the_policys_width(make_policy):
    config = make_policy().config
    module = MtpModule(MtpConfig(config, dataclasses.replace(config, intermediate_size=24, num_attention_heads=2)))
    assert list(module.layer.mlp.gate_proj.weight.shape) == [24, 32]
    assert list(module.layer.self_attn.q_proj.weight.shape) == [2 * 16, 32]
    with pytest.raises(ValueError, match="hidden_size = 16: must be the policy's, 32"):
        MtpConfig(config, dataclasses.replace(config, hidden_size=16))
