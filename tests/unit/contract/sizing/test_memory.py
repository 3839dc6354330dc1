"""The estimate of memory: by hand, in its directions, and as a refusal."""

from typing import Any

import pytest
import torch
from pydantic import ValidationError

from contract.config import RunConfig
from contract.config.policy import ScratchPolicy
from contract.sizing.architecture import KNOWN, architecture_of
from contract.sizing.memory import GIB, DeviceMemory, draft_parameters, estimate_memory
from workers.data.tokenizer import character_tokenizer
from workers.model.qwen3 import Qwen3Policy
from workers.train.draft_pretraining import new_draft
from workers.train.trainer import TrainingBatch
from workers.train.warm_up import model_config

SHAPE = KNOWN["Qwen3-8B"]
BASE: dict[str, Any] = {
    "policy": {"kind": "checkpoint", "path": "/models/Qwen3-8B", "model": "Qwen3-8B"},
    "rollout": {"kind": "vllm", "max_new_tokens": 4096, "num_engines": 4},
    "drafter": {"kind": "none"},
    "trainer": {"kind": "megatron", "num_processes": 4, "tensor_parallel_size": 2, "micro_batch_size": 1},
    "resources": {"num_nodes": 2, "gpus_per_node": 4, "placement": "separate", "num_generation_nodes": 1},
}


def _config(**changes: dict[str, Any]) -> RunConfig:
    return RunConfig.model_validate(BASE | {part: BASE.get(part, {}) | change for part, change in changes.items()})


def _devices(**changes: dict[str, Any]) -> dict[str, DeviceMemory]:
    estimate = estimate_memory(_config(**changes))
    assert estimate is not None
    return {device.role: device for device in estimate.devices}


def _parts(device: DeviceMemory) -> dict[str, float]:
    return {part.name: part.gib for part in device.parts}


def test_megatron_in_bfloat16_by_hand() -> None:
    # 2 tensor-parallel ranks; 2 data-parallel ranks share the optimiser's 12 bytes a parameter.
    share = (SHAPE.num_parameters - SHAPE.hidden_size) / 2
    parts = _parts(_devices()["training"])
    assert parts["weights"] == pytest.approx(share * 2 / GIB)
    assert parts["gradients"] == pytest.approx(share * 4 / GIB)
    assert parts["optimizer"] == pytest.approx(share * 12 / 2 / GIB)


def test_an_engine_by_hand() -> None:
    sequence = 4096 + _config().task.longest_prompt()
    parts = _parts(_devices(rollout={"max_batch_size": 2})["generation"])
    assert parts["engine's weights"] == pytest.approx(SHAPE.num_parameters * 2 / GIB)
    assert parts["KV cache"] == pytest.approx(2 * sequence * SHAPE.kv_cache_bytes() / GIB)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"tensor_parallel_size": 4}, "weights"),
        ({"num_processes": 8}, "optimizer"),
        ({"pipeline_parallel_size": 2}, "weights"),
        ({"recompute": "full"}, "activations"),
    ],
)
def test_what_is_cut_takes_less(change: dict[str, Any], part: str) -> None:
    resources = {"num_nodes": 3}
    before = _parts(_devices(resources=resources)["training"])[part]
    assert _parts(_devices(trainer=change, resources=resources)["training"])[part] < before


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"grpo": {"kl_penalty": 0.01}}, "reference policy"),
        ({"drafter": {"kind": "eagle3", "draft_vocabulary_size": 32_000}}, "draft and its optimizer"),
    ],
)
def test_what_is_asked_for_besides_is_counted(changes: dict[str, Any], part: str) -> None:
    assert part not in _parts(_devices()["training"])
    assert _parts(_devices(**changes)["training"])[part] > 1


def test_the_total_is_the_sum_of_the_parts() -> None:
    for device in _devices().values():
        assert device.total_gib == pytest.approx(sum(part.gib for part in device.parts))


def test_colocated_devices_hold_both() -> None:
    separate = _devices()
    together = _devices(resources={"num_nodes": 1, "placement": "colocated", "num_generation_nodes": 0})
    (device,) = together.values()
    assert device.total_gib == pytest.approx(sum(part.total_gib for part in separate.values()))


def test_the_cache_takes_what_the_share_of_the_gpu_leaves() -> None:
    engine = _parts(_devices(rollout={"max_batch_size": 512}, resources={"gpu_memory_gib": 80})["generation"])
    assert sum(engine.values()) == pytest.approx(0.6 * 80)


def test_what_cannot_fit_is_refused_with_what_takes_the_room() -> None:
    with pytest.raises(ValidationError) as refused:
        _config(trainer={"tensor_parallel_size": 1}, resources={"gpu_memory_gib": 80})
    (error,) = refused.value.errors()
    assert error["loc"] == ("resources", "gpu_memory_gib")
    assert "training needs about" in error["msg"]
    assert "optimizer" in error["msg"]


def test_nothing_is_estimated_of_an_unnamed_checkpoint() -> None:
    config = _config(policy={"model": None}, resources={"gpu_memory_gib": 1})
    assert estimate_memory(config) is None


@pytest.mark.parametrize(
    "drafter",
    [
        {"kind": "eagle3"},
        {"kind": "eagle3", "draft_vocabulary_size": 16, "shape": {"hidden_size": 64, "num_attention_heads": 4}},
        {"kind": "mtp"},
        {"kind": "mtp", "shape": {"intermediate_size": 96}},
        {"kind": "draft_model"},
    ],
)
def test_a_draft_counts_as_the_one_that_is_made(drafter: dict[str, Any]) -> None:
    config = RunConfig.model_validate({"drafter": drafter})
    assert isinstance(config.policy, ScratchPolicy)
    shape = architecture_of(config.policy)
    assert shape is not None
    policy = Qwen3Policy(model_config(config.policy, character_tokenizer()))
    tokens = torch.arange(48).unsqueeze(0)
    draft = new_draft(config.drafter, policy, TrainingBatch(tokens, torch.ones(1, 48), torch.zeros(1, 48), 1.0), 0)
    matrices = sum(parameter.numel() for parameter in draft.parameters() if parameter.dim() > 1)
    norms = sum(parameter.numel() for parameter in draft.parameters()) - matrices
    assert draft_parameters(config, shape) - matrices in {0, norms}
