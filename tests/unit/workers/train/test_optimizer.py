import pytest
import torch
from torch import nn

from contract.config.trainer import AdamWOptimizer, MuonOptimizer
from workers.model.config import ModelConfig
from workers.model.qwen3 import Qwen3Policy
from workers.train.optimizer import build_optimizers


@pytest.fixture
def policy():
    policy = Qwen3Policy(
        ModelConfig(
            vocab_size=12,
            hidden_size=8,
            intermediate_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_key_value_heads=1,
            head_dim=4,
        )
    )
    policy.initialize(0)
    return policy


@pytest.mark.parametrize("config", [AdamWOptimizer(), MuonOptimizer()])
def test_every_parameter_has_one_optimizer(policy, config):
    policy.model.norm.weight.requires_grad_(False)
    owned = [
        id(p) for o in build_optimizers(policy.named_parameters(), config) for g in o.param_groups for p in g["params"]
    ]
    assert sorted(owned) == sorted(id(p) for p in policy.parameters() if p.requires_grad)


def test_muon_takes_the_matrices_inside_the_layers(policy):
    muon, adamw = build_optimizers(policy.named_parameters(), MuonOptimizer())
    assert len(muon.param_groups[0]["params"]) == 2 * 7
    others = {id(p) for p in adamw.param_groups[0]["params"]}
    assert {id(policy.model.embed_tokens.weight), id(policy.lm_head.weight), id(policy.model.norm.weight)} <= others
    assert (muon.param_groups[0]["lr"], adamw.param_groups[0]["lr"]) == (0.002, 1e-4)


@pytest.mark.parametrize("shape", [(24, 8), (8, 24)])
def test_muon_steps_along_the_orthogonalised_gradient(shape):
    """Slow reference: U V^T of the gradient's SVD, scaled by sqrt(max(1, rows / columns)). Five Newton-Schulz
    iterations leave singular values within about 0.3 of 1: the direction is compared closely, the size loosely."""
    parameter = nn.Parameter(torch.zeros(shape))
    parameter.grad = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    (muon, _) = build_optimizers(
        [("layers.0.weight", parameter), ("norm.weight", nn.Parameter(torch.ones(2)))],
        MuonOptimizer(learning_rate_matrices=0.02),
    )
    muon.step()
    u, _, v = torch.linalg.svd(parameter.grad, full_matrices=False)
    expected = -0.02 * max(1, shape[0] / shape[1]) ** 0.5 * (u @ v)
    cosine = torch.nn.functional.cosine_similarity(parameter.detach().flatten(), expected.flatten(), dim=0)
    assert cosine > 0.97
    assert parameter.detach().norm().item() == pytest.approx(expected.norm().item(), rel=0.3)
