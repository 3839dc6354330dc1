import dataclasses
import json

import pytest
import torch

from workers.model.draft_checkpoint import load_draft, save_draft
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import CheckpointError


@pytest.fixture
def head(make_policy):
    policy = make_policy()
    head = Eagle3Head(EagleConfig(policy.config, (0, 1, 3)))
    head.initialize(policy, 3)
    return head


def test_a_saved_head_is_loaded_equal(head, tmp_path):
    save_draft(head, tmp_path)
    loaded = load_draft(tmp_path, head.config.policy)
    assert loaded.config == head.config
    for (name, saved), (_, read) in zip(head.state_dict().items(), loaded.state_dict().items(), strict=True):
        assert torch.equal(saved, read), name


def test_files_are_laid_out_as_vllm_reads_them(head, tmp_path):
    save_draft(head, tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    assert document["architectures"] == ["LlamaForCausalLMEagle3"]
    # Their layer number means the state before the layer.
    assert document["eagle_aux_hidden_state_layer_ids"] == [1, 2, 4]
    assert {name.split(".")[0] for name in head.state_dict()} == {"embed_tokens", "fc", "midlayer", "norm", "lm_head"}
    assert {"midlayer.hidden_norm.weight", "midlayer.self_attn.q_proj.weight"} <= set(head.state_dict())
    assert list(head.state_dict()["midlayer.self_attn.k_proj.weight"].shape) == [2 * 16, 2 * 32]


def test_what_is_no_head_of_this_policy_is_refused_by_name(head, tmp_path):
    policy = head.config.policy
    save_draft(head, tmp_path)
    with pytest.raises(CheckpointError, match=r"config\.json: hidden_size = 32, but the policy has 64"):
        load_draft(tmp_path, dataclasses.replace(policy, hidden_size=64))
    path = tmp_path / "config.json"
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"eagle_aux_hidden_state_layer_ids": None}))
    with pytest.raises(CheckpointError, match=r"eagle_aux_hidden_state_layer_ids = None: must list"):
        load_draft(tmp_path, policy)
    path.write_text(json.dumps(document | {"eagle_aux_hidden_state_layer_ids": [1, 9]}))
    with pytest.raises(CheckpointError, match=r"config\.json: tap_layers = \[0, 8\]"):
        load_draft(tmp_path, policy)
    path.write_text(json.dumps(document | {"architectures": ["Qwen3ForCausalLM"]}))
    with pytest.raises(CheckpointError, match="must name 'LlamaForCausalLMEagle3'"):
        load_draft(tmp_path, policy)
