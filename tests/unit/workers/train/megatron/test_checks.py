import importlib.util
import json

import pytest

from contract.config.trainer import MuonOptimizer
from tests.unit.workers.train.megatron.cases import POLICIES, run_config, trainer_config
from workers.train.megatron.checks import LayoutError, check, check_layout
from workers.train.megatron.process import RankProcess, make_rank
from workers.train.megatron.shape import PolicyShape


def shape(name="dense"):
    return PolicyShape.from_hf_json(POLICIES[name])


@pytest.mark.parametrize(
    ("policy", "trainer", "said"),
    [
        (
            "dense",
            {"tensor_parallel_size": 8},
            "tensor_parallel_size = 8: must divide the policy's num_attention_heads = 4",
        ),
        ("dense", {"tensor_parallel_size": 4}, "tensor_parallel_size = 4: must divide .* num_key_value_heads = 2"),
        ("dense", {"pipeline_parallel_size": 3}, "pipeline_parallel_size = 3: must divide .* num_hidden_layers = 4"),
        ("dense", {"expert_parallel_size": 2}, "expert_parallel_size = 2: must be 1, for the policy has no experts"),
        ("mixture", {"expert_parallel_size": 3}, "expert_parallel_size = 3: must divide .* num_experts = 4"),
        (
            "mixture",
            {"tensor_parallel_size": 2, "sequence_parallel": False},
            "sequence_parallel = False: must be true for a policy with experts",
        ),
    ],
)
def test_a_layout_that_the_policy_cannot_have_is_refused(policy, trainer, said):
    with pytest.raises(LayoutError, match=said):
        check_layout(trainer_config(**trainer), shape(policy))


@pytest.mark.parametrize(
    ("policy", "trainer"),
    [
        ("dense", {"tensor_parallel_size": 2, "pipeline_parallel_size": 4}),
        ("dense", {"tensor_parallel_size": 2, "sequence_parallel": False}),
        ("mixture", {"tensor_parallel_size": 2, "expert_parallel_size": 4}),
    ],
)
def test_a_layout_that_it_can_have_is_not(policy, trainer):
    check_layout(trainer_config(**trainer), shape(policy))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(POLICIES["dense"]))
    return tmp_path


def test_everything_is_checked_by_folder(folder):
    check(trainer_config(), folder)
    with pytest.raises(LayoutError, match="has no experts"):
        check(trainer_config(expert_parallel_size=2), folder)


@pytest.mark.skipif(importlib.util.find_spec("emerging_optimizers") is not None, reason="the package is here")
def test_muon_without_its_package_is_refused_with_the_mend(folder):
    trainer = {"optimizer": MuonOptimizer(), "distributed_optimizer": False}
    place = RankProcess(0, 1, "file:///nowhere")
    with pytest.raises(LayoutError, match=r"emerging_optimizers"):
        make_rank(run_config(folder, **trainer).model_dump_json(), place, str(folder), None)
    with pytest.raises(LayoutError, match=r"optimizer.kind = 'muon': needs the package emerging_optimizers .* adamw"):
        check(trainer_config(**trainer), folder)
