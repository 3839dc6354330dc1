import pytest

from workers.model.config import ModelConfig
from workers.model.qwen3 import Qwen3Policy


@pytest.fixture
def make_policy():
    """A small random policy; norms are random too, so that a misplaced one shows."""

    def make(*, tied: bool = False, seed: int = 0) -> Qwen3Policy:
        policy = Qwen3Policy(
            ModelConfig(
                vocab_size=48,
                hidden_size=32,
                intermediate_size=64,
                num_hidden_layers=4,
                num_attention_heads=4,
                num_key_value_heads=2,
                head_dim=16,
                rope_theta=5e4,
                rms_norm_eps=1e-5,
                tie_word_embeddings=tied,
                eos_token_ids=(1,),
            )
        )
        policy.initialize(seed)
        for index, parameter in enumerate(policy.parameters()):
            if parameter.ndim == 1:
                parameter.data.add_(0.1 * ((index * 7) % 5 - 2))
            else:
                parameter.data.mul_(3)
        return policy

    return make
