import dataclasses
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from workers.model.draft_checkpoint import load_draft, save_draft
from workers.model.draft_model import DraftModel
from workers.model.eagle3 import Eagle3Head, EagleConfig
from workers.model.hf_checkpoint import CheckpointError, save_policy
from workers.model.mtp import MtpConfig, MtpModule


@pytest.fixture
def policy(make_policy):
    return make_policy()


@pytest.fixture
def head(policy):
    head = Eagle3Head(EagleConfig(policy.config, (0, 1, 3)))
    head.initialize(policy, 3)
    return head


@pytest.fixture
def reduced(policy):
    head = Eagle3Head(EagleConfig(policy.config, draft_vocab_size=3))
    head.choose_vocabulary(torch.tensor([2, 9, 30]))
    head.initialize(policy, 3)
    return head


@pytest.fixture
def narrow(policy):
    """Its sizes are all its own."""
    sizes = {"hidden_size": 24, "intermediate_size": 40, "num_attention_heads": 2, "num_key_value_heads": 1}
    layer = dataclasses.replace(policy.config, **sizes, head_dim=8, rope_theta=1e6, rms_norm_eps=1e-6)
    head = Eagle3Head(EagleConfig(policy.config, (0, 1, 3), layer=layer, norm_before_residual=True))
    head.initialize(policy, 3)
    return head


@pytest.fixture(params=["eagle3", "reduced", "narrow", "mtp", "draft_model"])
def draft(request, policy, head, reduced, narrow):
    """(kind, a draft of that kind)."""
    heads = {"eagle3": head, "reduced": reduced, "narrow": narrow}
    if request.param in heads:
        return "eagle3", heads[request.param]
    small = dataclasses.replace(policy.config, hidden_size=16, num_hidden_layers=1)
    of_own_sizes = MtpConfig(policy.config, dataclasses.replace(policy.config, intermediate_size=40))
    draft = MtpModule(of_own_sizes) if request.param == "mtp" else DraftModel(small)
    draft.initialize(policy, 3)
    return request.param, draft


def edit(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_saved_draft_is_loaded_equal(draft, policy, tmp_path):
    kind, saved = draft
    save_draft(saved, tmp_path)
    loaded = load_draft(tmp_path, policy.config, kind)
    assert loaded.config == saved.config
    for (name, before), (_, after) in zip(saved.state_dict().items(), loaded.state_dict().items(), strict=True):
        assert torch.equal(before, after), name


def test_a_draft_of_another_kind_is_refused_by_name(draft, policy, tmp_path):
    kind, saved = draft
    save_draft(saved, tmp_path)
    other = {"eagle3": "mtp", "mtp": "draft_model", "draft_model": "eagle3"}[kind]
    with pytest.raises(CheckpointError, match=f"must name .* for drafter.kind {other}"):
        load_draft(tmp_path, policy.config, other)


def test_eagle3_is_laid_out_as_vllm_reads_it(head, tmp_path):
    save_draft(head, tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    assert document["architectures"] == ["LlamaForCausalLMEagle3"]
    # Their layer number means the state before the layer.
    assert document["eagle_aux_hidden_state_layer_ids"] == [1, 2, 4]
    assert document["draft_vocab_size"] == 48
    tensors = load_file(tmp_path / "model.safetensors")
    assert {name.split(".")[0] for name in tensors} == {"embed_tokens", "fc", "midlayer", "norm", "lm_head"}
    assert {"midlayer.hidden_norm.weight", "midlayer.self_attn.q_proj.weight"} <= set(tensors)
    assert list(tensors["midlayer.self_attn.k_proj.weight"].shape) == [2 * 16, 2 * 32]


def test_a_head_of_its_own_width_is_laid_out_as_vllm_reads_it(narrow, tmp_path):
    """Everything has the head's width but what fc reads; config.json names both widths."""
    save_draft(narrow, tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    assert (document["hidden_size"], document["target_hidden_size"], document["head_dim"]) == (24, 32, 8)
    assert document["norm_before_residual"] is True
    shapes = {name: list(tensor.shape) for name, tensor in load_file(tmp_path / "model.safetensors").items()}
    assert shapes["embed_tokens.weight"] == shapes["lm_head.weight"] == [48, 24]
    assert shapes["fc.weight"] == [24, 3 * 32]
    assert shapes["midlayer.self_attn.q_proj.weight"] == [2 * 8, 2 * 24]
    assert shapes["midlayer.mlp.down_proj.weight"] == [24, 40]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_hidden_layers": 2}, "num_hidden_layers = 2: only drafts of one layer"),
        ({"norm_output": True}, "norm_output = True: not implemented"),
        ({"eagle_config": {"norm_before_fc": True}}, "norm_before_fc = True: not implemented"),
        ({"attention_bias": True}, "attention_bias = True: only False"),
        ({"target_hidden_size": 64}, "target_hidden_size = 64, but the policy has 32"),
        ({"vocab_size": 50}, "vocab_size = 50, but the policy has 48"),
    ],
)
def test_a_head_that_computes_otherwise_is_refused(head, policy, tmp_path, change, message):
    save_draft(head, tmp_path)
    edit(tmp_path, **change)
    with pytest.raises(CheckpointError, match=message):
        load_draft(tmp_path, policy.config)


def test_a_reduced_vocabulary_is_laid_out_as_vllm_reads_it(reduced, tmp_path):
    """targets = arange(draft_vocab_size) + d2t, and t2d marks them among the policy's tokens."""
    save_draft(reduced, tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["draft_vocab_size"] == 3
    tensors = load_file(tmp_path / "model.safetensors")
    assert (torch.arange(3) + tensors["d2t"]).tolist() == [2, 9, 30]
    assert tensors["d2t"].dtype == torch.int64
    assert tensors["t2d"].dtype == torch.bool
    assert tensors["t2d"].shape == (48,)
    assert list(tensors["lm_head.weight"].shape) == [3, 32]


def test_maps_of_the_whole_vocabulary_are_passed_over_where_they_move_nothing(head, policy, tmp_path):
    save_draft(head, tmp_path)
    file = tmp_path / "model.safetensors"
    maps = {"d2t": torch.zeros(48, dtype=torch.int64), "t2d": torch.ones(48, dtype=torch.bool)}
    save_file(load_file(file) | maps, file)
    assert load_draft(tmp_path, policy.config).vocabulary_V is None
    save_file(load_file(file) | {"d2t": torch.ones(48, dtype=torch.int64)}, file)
    with pytest.raises(CheckpointError, match="d2t moves tokens"):
        load_draft(tmp_path, policy.config)


@pytest.mark.parametrize(
    ("d2t", "message"),
    [
        (torch.tensor([2, 8, 46]), "outside the policy's vocabulary"),
        (torch.tensor([2, 1, 9]), "2 different tokens chosen: must be 3"),
        (torch.tensor([2, 1]), "must have draft_vocab_size = 3 entries"),
    ],
)
def test_a_broken_map_is_refused(reduced, policy, tmp_path, d2t, message):
    save_draft(reduced, tmp_path)
    file = tmp_path / "model.safetensors"
    save_file(load_file(file) | {"d2t": d2t}, file)
    with pytest.raises(CheckpointError, match=message):
        load_draft(tmp_path, policy.config)


def test_mtp_is_named_as_in_qwen3_next_checkpoints(policy, tmp_path):
    module = MtpModule(MtpConfig(policy.config))
    save_draft(module, tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert {
        "mtp.fc.weight",
        "mtp.norm.weight",
        "mtp.pre_fc_norm_hidden.weight",
        "mtp.pre_fc_norm_embedding.weight",
        "mtp.layers.0.input_layernorm.weight",
        "mtp.layers.0.self_attn.q_norm.weight",
        "mtp.layers.0.mlp.down_proj.weight",
    } <= set(tensors)
    shared = {"model.embed_tokens.weight": torch.zeros(48, 32), "lm_head.weight": torch.zeros(48, 32)}
    save_file(tensors | shared, tmp_path / "model.safetensors")
    assert isinstance(load_draft(tmp_path, policy.config), MtpModule)
    edit(tmp_path, num_nextn_predict_layers=2)
    with pytest.raises(CheckpointError, match="num_nextn_predict_layers = 2: only 1"):
        load_draft(tmp_path, policy.config)


def test_any_qwen3_checkpoint_of_the_policys_vocabulary_is_a_draft_model(make_policy, tmp_path):
    policy = make_policy(tied=True)
    save_policy(policy, tmp_path)
    assert isinstance(load_draft(tmp_path, policy.config), DraftModel)
    with pytest.raises(CheckpointError, match="vocab_size = 48, but the policy has 50"):
        load_draft(tmp_path, dataclasses.replace(policy.config, vocab_size=50))


def test_what_is_no_head_of_this_policy_is_refused_by_name(head, policy, tmp_path):
    save_draft(head, tmp_path)
    with pytest.raises(CheckpointError, match=r"config\.json: target_hidden_size = 32, but the policy has 64"):
        load_draft(tmp_path, dataclasses.replace(policy.config, hidden_size=64))
    edit(tmp_path, eagle_aux_hidden_state_layer_ids=None)
    with pytest.raises(CheckpointError, match=r"eagle_aux_hidden_state_layer_ids = None: must list"):
        load_draft(tmp_path, policy.config)
    edit(tmp_path, eagle_aux_hidden_state_layer_ids=[1, 9])
    with pytest.raises(CheckpointError, match=r"config\.json: tap_layers = \[0, 8\]"):
        load_draft(tmp_path, policy.config)
    edit(tmp_path, architectures=["GPT2LMHeadModel"])
    with pytest.raises(CheckpointError, match=r"must name 'LlamaForCausalLMEagle3' .* or 'Qwen3MTP'"):
        load_draft(tmp_path, policy.config)
