"""The engine on a CUDA device: the same code path as on a processor, by PyTorch's operations."""

import pytest
import torch
from scipy import stats

from contract.config.drafter import Eagle3Drafter
from workers.model.config import ModelConfig
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.drafters.trained import trained_drafting
from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

PROMPTS = [[3, 4, 5], [6], [7, 8, 9, 10]]


@pytest.fixture(scope="module")
def engine():
    config = ModelConfig(
        vocab_size=12,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=16,
        max_position_embeddings=128,
    )
    policy = Qwen3Policy(config)
    policy.initialize(0)
    with torch.no_grad():
        policy.lm_head.weight.mul_(3)
        policy.model.embed_tokens.weight.mul_(20)
    head = Eagle3Head(EagleConfig(config))
    head.initialize(policy, 1)

    drafting = trained_drafting(Eagle3Drafter(draft_length=3, draft_length_control="fixed"), head)
    engine = TorchRolloutEngine(config, 0, 256, "float32", drafting)
    engine.update_policy({name: tensor.cuda() for name, tensor in policy.state_dict().items()})
    engine.update_draft({name: tensor.cuda() for name, tensor in head.state_dict().items()})
    return engine


def test_greedy_output_is_that_without_speculation(engine):
    params = SamplingParams(0.0, 40, 0)
    plain, fast = (engine.generate(PROMPTS, 2, params, speculate=way).completions for way in (False, True))
    assert [c.token_ids for c in plain] == [c.token_ids for c in fast]


def test_samples_follow_the_same_distribution_as_without_speculation(engine):
    params = SamplingParams(1.0, 3, 1)
    counts = []
    for way in (False, True):
        completions = engine.generate(PROMPTS[:1], 20_000, params, speculate=way).completions
        ids = torch.tensor([sum(12**i * token for i, token in enumerate(c.token_ids)) for c in completions])
        counts.append(torch.bincount(ids, minlength=12**3))
    common = (counts[0] + counts[1]) >= 20
    table = torch.stack([part[common] for part in counts]).numpy()
    assert stats.chi2_contingency(table).pvalue > 1e-4
