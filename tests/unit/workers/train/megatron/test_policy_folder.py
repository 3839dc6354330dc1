import json

import pytest
import torch
from safetensors.torch import load_file

from tests.unit.workers.train.megatron.cases import DENSE, write_policy
from workers.model.hf_checkpoint import load_policy
from workers.train.megatron import policy_folder
from workers.train.megatron.shape import PolicyShape


@pytest.fixture
def stored(tmp_path):
    write_policy(tmp_path / "policy", DENSE, seed=0)
    return load_file(tmp_path / "policy" / "model.safetensors")


@pytest.mark.parametrize(("file_bytes", "is_one_file"), [(2**30, True), (20_000, False)])
def test_what_is_written_is_read_again(tmp_path, stored, monkeypatch, file_bytes, is_one_file):
    monkeypatch.setattr(policy_folder, "_FILE_BYTES", file_bytes)
    shape = PolicyShape.from_hf_json(DENSE)
    policy_folder.write_policy(tmp_path / "written", shape, iter(stored.items()), is_writer=True)
    policy = load_policy(tmp_path / "written")
    assert all(torch.equal(tensor, stored[name]) for name, tensor in policy.state_dict().items())
    assert (len(list((tmp_path / "written").glob("*.safetensors"))) == 1) == is_one_file
    document = json.loads((tmp_path / "written" / "config.json").read_text())
    assert document == DENSE | {"dtype": "float32"}


def test_other_ranks_walk_through_and_write_nothing(tmp_path, stored):
    shape, weights = PolicyShape.from_hf_json(DENSE), iter(stored.items())
    policy_folder.write_policy(tmp_path / "written", shape, weights, is_writer=False)
    assert next(weights, None) is None
    assert not (tmp_path / "written").exists()
