from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from workers.model.config import ModelConfig
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.qwen3 import Qwen3Policy
from workers.rollout.drafters.drafter import Drafting
from workers.rollout.drafters.eagle3 import Eagle3Drafter
from workers.rollout.packed_weights import PackedDraft
from workers.rollout.torch_engine import TorchRolloutEngine

EOS = 0


@dataclass(frozen=True)
class Models:
    """A policy, a draft head that agrees with it now and then, and engines made of them."""

    policy: Qwen3Policy
    head: Eagle3Head

    def engine(
        self, *, max_batch_size=8, draft_length=3, precision="float32", eos=EOS, is_controlled=False
    ) -> TorchRolloutEngine:
        drafting = self.drafting(draft_length, is_controlled)
        engine = TorchRolloutEngine(self.policy.config, eos, max_batch_size, precision, drafting)
        engine.update_policy(self.policy.state_dict())
        engine.update_draft(self.head.state_dict())
        return engine

    def drafting(self, draft_length=3, is_controlled=False) -> Drafting:
        def build(policy, state):
            return Eagle3Drafter(PackedDraft.pack(state, self.head.config, policy.dtype), policy)

        return Drafting(build, has_weights=True, draft_length=draft_length, is_controlled=is_controlled)


@pytest.fixture(scope="session")
def make_models() -> Callable[..., Models]:
    def make(vocab_size: int = 12, sharpness: float = 3.0, seed: int = 0) -> Models:
        config = ModelConfig(
            vocab_size=vocab_size,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=8,
            max_position_embeddings=128,
            eos_token_ids=(EOS,),
        )
        policy = Qwen3Policy(config)
        policy.initialize(seed)
        generator = torch.Generator().manual_seed(1)
        with torch.no_grad():
            policy.lm_head.weight.mul_(50 * 0.02 * sharpness)
            policy.model.embed_tokens.weight.mul_(20)
            for parameter in policy.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
        head = Eagle3Head(EagleConfig(config))
        head.initialize(policy, 2)
        with torch.no_grad():
            for parameter in head.parameters():
                if parameter.ndim == 1:
                    parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.2)
        return Models(policy, head)

    return make


@pytest.fixture(scope="session")
def models(make_models) -> Models:
    return make_models()
