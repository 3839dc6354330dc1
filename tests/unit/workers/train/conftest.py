"""A policy so small that a training step takes milliseconds."""

from dataclasses import replace

import pytest
import torch

from workers.model.config import ModelConfig
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.mtp import MtpConfig, MtpModule
from workers.model.qwen3 import Qwen3Policy
from workers.train.trainer import TrainingBatch


@pytest.fixture
def model_config():
    return ModelConfig(
        vocab_size=48,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        eos_token_ids=(1,),
    )


@pytest.fixture
def make_policy(model_config):
    def make(seed=0):
        policy = Qwen3Policy(model_config)
        policy.initialize(seed)
        return policy

    return make


@pytest.fixture
def make_draft(model_config, make_policy):
    def make(kind="eagle3", seed=1):
        draft = {
            "eagle3": lambda: Eagle3Head(EagleConfig(model_config)),
            "reduced": lambda: Eagle3Head(EagleConfig(model_config, draft_vocab_size=20)),
            "mtp": lambda: MtpModule(MtpConfig(model_config)),
            "draft_model": lambda: DraftModel(replace(model_config, num_hidden_layers=1)),
        }[kind]()
        draft.initialize(make_policy(), seed)
        return draft

    return make


@pytest.fixture
def batch():
    """Six responses of 3 to 8 tokens after prompts of two."""
    generator = torch.Generator().manual_seed(3)
    token_ids = torch.randint(2, 48, (6, 10), generator=generator)
    mask = torch.zeros(6, 10)
    for row, length in enumerate([8, 3, 5, 4, 8, 6]):
        mask[row, 2 : 2 + length] = 1
        token_ids[row, 2 + length :] = 0
    engine = -torch.rand(6, 10, generator=generator) * mask
    return TrainingBatch(token_ids, mask, engine, 0.9)
