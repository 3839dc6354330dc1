import pytest
from transformers import Qwen3Config

from workers.model.config import ModelConfig, ModelConfigError

TINY = ModelConfig(
    vocab_size=48,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=3,
    num_attention_heads=4,
    num_key_value_heads=2,
    head_dim=16,
    rope_theta=5e4,
    tie_word_embeddings=True,
    eos_token_ids=(1,),
)


@pytest.mark.parametrize("eos", [(), (1,), (1, 7)])
def test_written_config_is_read_back_equal_here_and_through_transformers(eos):
    config = ModelConfig.from_hf_json(TINY.to_hf_json() | {"eos_token_id": list(eos) or None})
    assert config.eos_token_ids == eos
    assert ModelConfig.from_hf_json(config.to_hf_json()) == config
    theirs = Qwen3Config.from_dict(config.to_hf_json())
    assert ModelConfig.from_hf_json(theirs.to_dict()) == config


def test_rope_theta_of_older_files_is_read():
    document = TINY.to_hf_json()
    del document["rope_parameters"]
    assert ModelConfig.from_hf_json(document).rope_theta == 5e4


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama"}, "model_type = 'llama'"),
        ({"hidden_size": None}, "hidden_size is missing"),
        ({"hidden_size": 0}, "hidden_size = 0"),
        ({"num_key_value_heads": 3}, "num_key_value_heads = 3: must divide"),
        ({"head_dim": 15}, "head_dim = 15: must be even"),
        ({"eos_token_id": 48}, "eos_token_id = 48: must be below"),
        ({"attention_bias": True}, "attention_bias = True"),
        ({"rope_parameters": {"rope_type": "yarn", "rope_theta": 1e4}}, "'yarn'"),
        ({"rope_parameters": None, "rope_theta": None}, "rope_theta is missing"),
    ],
)
def test_what_cannot_be_computed_is_refused_by_name(change, message):
    with pytest.raises(ModelConfigError, match=message):
        ModelConfig.from_hf_json(TINY.to_hf_json() | change)
