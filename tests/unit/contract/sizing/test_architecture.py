"""Shapes against the models' published sizes, and against a real model's parameters."""

from typing import get_args

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import Qwen3Config, Qwen3ForCausalLM, Qwen3MoeConfig, Qwen3MoeForCausalLM

from contract.config.policy import CheckpointPolicy, KnownModel, ScratchPolicy
from contract.sizing.architecture import KNOWN, Architecture, architecture_of, check_model

DENSE = Architecture(2, 32, 48, 4, 2, 16, 64, is_tied=False)
MIXTURE = Architecture(2, 32, 48, 4, 2, 16, 64, is_tied=False, num_experts=4, num_active_experts=2)
SIZES = {
    "vocab_size": 64,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}


@pytest.mark.parametrize(
    ("model", "billions", "active"),
    [("Qwen3-0.6B", 0.6, 0.6), ("Qwen3-8B", 8.2, 7.6), ("Qwen3-30B-A3B", 30.5, 3.0), ("Qwen3-235B-A22B", 235.1, 21.6)],
)
def test_known_models_have_their_published_sizes(model: KnownModel, billions: float, active: float) -> None:
    assert KNOWN[model].num_parameters / 1e9 == pytest.approx(billions, abs=0.05)
    assert KNOWN[model].num_active_parameters / 1e9 == pytest.approx(active, abs=0.05)


def test_every_model_that_can_be_named_is_known() -> None:
    assert set(KNOWN) == set(get_args(KnownModel))


@pytest.mark.parametrize("is_tied", [False, True])
def test_a_dense_model_counts_as_transformers_does(is_tied: bool) -> None:
    shape = Architecture(2, 32, 48, 4, 2, 16, 64, is_tied)
    model = Qwen3ForCausalLM(Qwen3Config(**SIZES, intermediate_size=48, tie_word_embeddings=is_tied))
    assert shape.num_parameters == model.num_parameters()


def test_a_mixture_counts_as_transformers_does() -> None:
    model = Qwen3MoeForCausalLM(
        Qwen3MoeConfig(
            **SIZES, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2, tie_word_embeddings=False
        )
    )
    assert MIXTURE.num_parameters == model.num_parameters()


def test_forward_flops_are_those_of_every_product_counted_by_torch() -> None:
    model = Qwen3ForCausalLM(
        Qwen3Config(**SIZES, intermediate_size=48, tie_word_embeddings=False, attn_implementation="eager")
    )
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(torch.zeros(1, 10, dtype=torch.int64))
    norms = 2 * 10 * (DENSE.num_layers * 2 * (DENSE.head_dim + DENSE.hidden_size))  # counted as products, but none
    assert 10 * DENSE.forward_flops(context=10) - norms == pytest.approx(counter.get_total_flops(), rel=0.01)


def test_the_cache_of_a_token_by_hand() -> None:
    # keys and values * 36 layers * 8 heads * 128 channels * 2 bytes
    assert KNOWN["Qwen3-8B"].kv_cache_bytes() == 2 * 36 * 8 * 128 * 2


def test_a_policy_names_its_shape() -> None:
    assert architecture_of(CheckpointPolicy(path="/m")) is None
    assert architecture_of(CheckpointPolicy(path="/m", model="Qwen3-8B")) == KNOWN["Qwen3-8B"]
    scratch = architecture_of(ScratchPolicy(num_layers=3, hidden_size=64, num_attention_heads=2))
    assert scratch is not None
    assert (scratch.num_layers, scratch.head_dim, scratch.vocabulary_size) == (3, 32, 48)


def test_a_checkpoint_s_shape_is_read_from_what_transformers_writes() -> None:
    dense = Qwen3Config(**SIZES, intermediate_size=48, tie_word_embeddings=False)
    mixture = Qwen3MoeConfig(
        **SIZES, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2, tie_word_embeddings=False
    )
    assert Architecture.from_hf_json(dense.to_dict()) == DENSE
    assert Architecture.from_hf_json(mixture.to_dict()) == MIXTURE
    with pytest.raises(ValueError, match=r"vocab_size is missing"):
        Architecture.from_hf_json({key: value for key, value in dense.to_dict().items() if key != "vocab_size"})


def test_another_shape_than_the_named_one_is_told_apart() -> None:
    check_model(None, DENSE, "/m")
    check_model("Qwen3-8B", KNOWN["Qwen3-8B"], "/m")
    with pytest.raises(ValueError, match=r"policy.model = Qwen3-8B: .* /m has num_layers = 28, and Qwen3-8B has 36"):
        check_model("Qwen3-8B", KNOWN["Qwen3-0.6B"], "/m")
