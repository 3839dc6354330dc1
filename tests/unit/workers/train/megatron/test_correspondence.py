"""Parameters and checkpoints, without ranks; tests of layouts do the same with them."""

import pytest
import torch

from tests.unit.workers.train.megatron.cases import POLICIES
from workers.train.megatron.correspondence import Correspondence
from workers.train.megatron.shape import PolicyShape


def units(policy="dense", *, padded=49, pipeline_size=1, expert_size=1):
    shape = PolicyShape.from_hf_json(POLICIES[policy])
    return list(
        Correspondence(shape, padded_vocabulary=padded, pipeline_size=pipeline_size, expert_size=expert_size).units()
    )


def by_name(found):
    return {name: unit for unit in found for name in unit.hf_names}


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("policy", ["dense", "tied", "mixture"])
def test_cut_and_put_together_again_every_tensor_is_what_it_was(policy, size):
    for unit in units(policy, padded=50):
        tensors = [torch.randn(shape) for shape in unit.hf_shapes]
        whole = unit.join(tensors)
        assert tuple(whole.shape) == unit.shape
        shards = [unit.shard(whole, rank, size) for rank in range(size)]
        assert torch.equal(unit.unshard(shards), whole)
        back = unit.split(unit.unshard(shards))
        assert all(torch.equal(a, b) for a, b in zip(tensors, back, strict=True))


def test_each_key_and_value_head_stands_behind_the_queries_that_read_it():
    """4 query heads, 2 key and value heads, 16 rows each: q0 q1 k0 v0, q2 q3 k1 v1."""
    unit = by_name(units())["model.layers.0.self_attn.q_proj.weight"]
    query, key, value = (
        torch.arange(heads).repeat_interleave(16)[:, None].expand(-1, 32) + offset
        for heads, offset in ((4, 0), (2, 10), (2, 20))
    )
    joined = unit.join([query, key, value])
    assert joined[::16, 0].tolist() == [0, 1, 10, 20, 2, 3, 11, 21]
    assert unit.shard(joined, 1, 2)[::16, 0].tolist() == [2, 3, 11, 21]


def test_each_rank_has_a_part_of_the_gate_and_the_same_part_of_the_projection():
    unit = by_name(units())["model.layers.0.mlp.up_proj.weight"]
    gate, up = torch.arange(48.0)[:, None].expand(-1, 32), 100 + torch.arange(48.0)[:, None].expand(-1, 32)
    second = unit.shard(unit.join([gate, up]), 1, 2)
    assert torch.equal(second, torch.cat([gate[24:], up[24:]]))


def test_every_stage_has_its_layers_and_every_expert_rank_its_experts():
    found = by_name(units("mixture", pipeline_size=2, expert_size=2))
    last = found["model.layers.1.mlp.experts.3.down_proj.weight"]
    assert (last.stage, last.expert_rank) == (1, 1)
    assert last.local_names[0] == "decoder.layers.0.mlp.experts.local_experts.1.linear_fc2.weight"
    assert last.local_names[1] == "decoder.layers.0.mlp.experts.linear_fc2.weight1"
    assert found["model.embed_tokens.weight"].stage == 0
    assert found["lm_head.weight"].stage == found["model.norm.weight"].stage == 1


def test_a_tied_embedding_is_the_last_stages_head_too():
    found = by_name(units("tied", pipeline_size=2))
    assert "lm_head.weight" not in found
    assert found["model.embed_tokens.weight"].copy_name == "output_layer.weight"
