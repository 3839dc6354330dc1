"""What is wrong with a run's folders is told in the driver: here without a process, a GPU or weights in memory."""

import json

import pytest

from contract.config import RunConfig
from workers.starting_folders import check_starting_folders

DENSE = {
    "model_type": "qwen3",
    "vocab_size": 9,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "rope_theta": 1e4,
    "max_position_embeddings": 64,
}
MIXTURE = DENSE | {
    "model_type": "qwen3_moe",
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 16,
    "norm_topk_prob": True,
}
MEGATRON = {"kind": "megatron", "num_processes": 2}


def _folder(path, document, *, has_weights=True):
    path.mkdir()
    (path / "config.json").write_text(json.dumps(document))
    if has_weights:
        (path / "model.safetensors").touch()
    return str(path)


@pytest.fixture
def check(tmp_path):
    """Checks a configuration whose policy is of that shape."""

    def checked(document, *, has_weights=True, policy=None, **parts):
        folder = _folder(tmp_path / "policy", document, has_weights=has_weights)
        config = {"policy": {"kind": "checkpoint", "path": folder, **(policy or {})}, "drafter": {"kind": "none"}}
        check_starting_folders(RunConfig.model_validate(config | parts))

    return checked


def test_a_policy_that_can_be_trained_passes(check):
    check(DENSE)


def test_a_mixture_is_for_vllm_and_megatron(check):
    check(MIXTURE, rollout={"kind": "vllm"}, trainer=MEGATRON | {"tensor_parallel_size": 2})


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"document": DENSE, "has_weights": False}, r"policy: has no \*.safetensors file; give a folder"),
        ({"document": {"model_type": "qwen3"}}, r"config.json: num_attention_heads is missing: add it"),
        ({"document": DENSE, "policy": {"model": "Qwen3-8B"}}, r"policy.model = Qwen3-8B: .* num_layers = 3"),
        ({"document": MIXTURE}, r"model_type = 'qwen3_moe': .*; or choose rollout.kind vllm and trainer.kind megatron"),
        ({"document": MIXTURE, "trainer": MEGATRON}, r"model_type = 'qwen3_moe'"),
        (
            {"document": DENSE, "trainer": MEGATRON | {"pipeline_parallel_size": 2}},
            r"pipeline_parallel_size = 2: must divide the policy's num_hidden_layers = 3",
        ),
    ],
)
def test_what_cannot_be_trained_is_told_with_its_mend(check, given, error):
    with pytest.raises(ValueError, match=error):
        check(**given)


def test_a_folder_that_is_not_there_is_named(tmp_path):
    config = RunConfig.model_validate({"policy": {"kind": "checkpoint", "path": str(tmp_path / "gone")}})
    with pytest.raises(ValueError, match=r"gone/config.json: no such file; give a folder in Hugging Face layout"):
        check_starting_folders(config)


@pytest.mark.parametrize(
    ("document", "has_weights", "error"),
    [
        ({"vocab_size": 11}, True, r"vocab_size = 11, but the policy has 9; give a draft that was trained for this"),
        ({"vocab_size": 9}, False, r"draft: has no \*.safetensors file"),
    ],
)
def test_a_draft_for_another_policy_is_refused(tmp_path, check, document, has_weights, error):
    draft = _folder(tmp_path / "draft", document, has_weights=has_weights)
    with pytest.raises(ValueError, match=error):
        check(DENSE, drafter={"kind": "eagle3", "path": draft})


def test_a_policy_from_scratch_has_no_folder_to_look_at():
    check_starting_folders(RunConfig())
