import json
import math

import pytest

from tests.unit.workers.train.megatron.cases import DENSE, POLICIES, YARN
from workers.model.config import ModelConfigError
from workers.model.hf_checkpoint import CheckpointError
from workers.train.megatron.shape import Mixture, PolicyShape

QWEN3_30B_A3B = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "attention_bias": False,
    "decoder_sparse_step": 1,
    "eos_token_id": 151645,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 6144,
    "max_position_embeddings": 40960,
    "mlp_only_layers": [],
    "model_type": "qwen3_moe",
    "moe_intermediate_size": 768,
    "norm_topk_prob": True,
    "num_attention_heads": 32,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000.0,
    "router_aux_loss_coef": 0.001,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 151936,
}


def test_a_published_mixture_is_read():
    shape = PolicyShape.from_hf_json(QWEN3_30B_A3B)
    assert shape.mixture == Mixture(128, 8, 768, True)
    assert (shape.dense.hidden_size, shape.dense.head_dim, shape.dense.num_key_value_heads) == (2048, 128, 4)
    assert shape.dense.rope_theta == 1e6
    assert shape.yarn is None


def test_a_mixture_is_read_as_transformers_5_writes_it():
    document = {**QWEN3_30B_A3B, "num_local_experts": QWEN3_30B_A3B["num_experts"]}
    del document["num_experts"]
    assert PolicyShape.from_hf_json(document).mixture == PolicyShape.from_hf_json(QWEN3_30B_A3B).mixture


def test_a_dense_policy_has_neither_experts_nor_stretch():
    shape = PolicyShape.from_hf_json(DENSE)
    assert (shape.mixture, shape.yarn) == (None, None)


def test_yarn_is_read_as_transformers_4_and_5_write_it():
    older = PolicyShape.from_hf_json(DENSE | {"rope_scaling": YARN})
    document = {key: value for key, value in DENSE.items() if key != "rope_theta"}
    newer = PolicyShape.from_hf_json(document | {"rope_parameters": YARN | {"rope_theta": 10_000.0}})
    assert older.yarn == newer.yarn
    assert older.dense.rope_theta == newer.dense.rope_theta == 10_000.0
    assert (older.yarn.factor, older.yarn.original_max_positions) == (4.0, 16)
    assert older.yarn.attention_factor == pytest.approx(0.1 * math.log(4) + 1)
    assert older.yarn.mscale == pytest.approx(1)


def test_an_attention_factor_of_its_own_is_kept():
    yarn = PolicyShape.from_hf_json(DENSE | {"rope_scaling": YARN | {"attention_factor": 1.5}}).yarn
    assert 0.1 * yarn.mscale * math.log(yarn.factor) + 1 == pytest.approx(1.5)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"model_type": "llama"}, "model_type = 'llama': must be one of qwen3, qwen3_moe"),
        ({"rope_scaling": YARN | {"factor": 0.5}}, "rope_scaling.factor = 0.5"),
        ({"rope_scaling": YARN | {"mscale": 2}}, "rope_scaling.mscale = 2: not implemented"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope_type = 'linear'"),
        ({"model_type": "qwen3_moe"}, "num_experts = None"),
        (POLICIES["mixture"] | {"num_experts_per_tok": 5}, "num_experts_per_tok = 5: must be at most num_experts = 4"),
        (POLICIES["mixture"] | {"mlp_only_layers": [0]}, "mlp_only_layers = \\[0\\]: only \\[\\]"),
        (POLICIES["mixture"] | {"decoder_sparse_step": 2}, "decoder_sparse_step = 2: only 1"),
        (POLICIES["mixture"] | {"num_experts_per_tok": 1}, "norm_topk_prob = True: must be false"),
    ],
)
def test_what_is_not_implemented_is_named(change, said):
    with pytest.raises(ModelConfigError, match=said):
        PolicyShape.from_hf_json(DENSE | change)


def test_an_error_names_the_file(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(DENSE | {"model_type": "gpt2"}))
    with pytest.raises(CheckpointError, match=r"config\.json: model_type = 'gpt2'"):
        PolicyShape.read(tmp_path)
