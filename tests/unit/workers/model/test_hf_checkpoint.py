import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import Qwen3ForCausalLM

from workers.model.hf_checkpoint import CheckpointError, load_policy, save_policy

TOKENS = torch.randint(0, 48, (2, 11), generator=torch.Generator().manual_seed(5))


def logits(model):
    with torch.no_grad():
        return model(TOKENS)[0]


@pytest.mark.parametrize("tied", [False, True])
def test_ours_loads_in_transformers_and_here(make_policy, tied, tmp_path):
    policy = make_policy(tied=tied)
    save_policy(policy, tmp_path)
    torch.testing.assert_close(logits(load_policy(tmp_path)), logits(policy), atol=0, rtol=0)
    theirs = Qwen3ForCausalLM.from_pretrained(tmp_path).eval()
    torch.testing.assert_close(theirs(TOKENS).logits.detach(), logits(policy), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("tied", [False, True])
def test_theirs_loads_here_from_one_file_and_from_shards(make_policy, tied, tmp_path):
    save_policy(make_policy(tied=tied), tmp_path / "ours")
    theirs = Qwen3ForCausalLM.from_pretrained(tmp_path / "ours").eval()
    for name, size in (("one", "1GB"), ("shards", "40KB")):
        theirs.save_pretrained(tmp_path / name, max_shard_size=size)
        loaded = logits(load_policy(tmp_path / name))
        torch.testing.assert_close(loaded, theirs(TOKENS).logits.detach(), atol=1e-4, rtol=1e-4)
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1


def test_missing_folder_file_tensor_and_wrong_shape_are_named(make_policy, tmp_path):
    with pytest.raises(CheckpointError, match=r"nowhere/config\.json: no such file"):
        load_policy(tmp_path / "nowhere")
    policy = make_policy()
    save_policy(policy, tmp_path)
    tensors = dict(policy.state_dict())
    norm = tensors.pop("model.norm.weight")
    save_file(tensors, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"1 tensors are missing, the first is model\.norm\.weight"):
        load_policy(tmp_path)
    save_file(tensors | {"model.norm.weight": norm[:-1].clone()}, tmp_path / "model.safetensors")
    with pytest.raises(
        CheckpointError, match=r"model\.norm\.weight has shape \[31\], but config\.json makes it \[32\]"
    ):
        load_policy(tmp_path)
    save_file(tensors | {"model.norm.weight": norm, "model.extra": norm.clone()}, tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"no place in the model, the first is model\.extra"):
        load_policy(tmp_path)


def test_broken_files_are_named(make_policy, tmp_path):
    save_policy(make_policy(), tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not safetensors at all")
    with pytest.raises(CheckpointError, match=r"model\.safetensors: cannot be read"):
        load_policy(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "gone.safetensors"}}))
    with pytest.raises(CheckpointError, match=r"gone\.safetensors: cannot be read"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"config\.json: not valid JSON"):
        load_policy(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(CheckpointError, match=r"config\.json: model_type = 'gpt2'"):
        load_policy(tmp_path)
