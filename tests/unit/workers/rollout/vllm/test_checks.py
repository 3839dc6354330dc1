import json

import pytest
import torch

from contract.config import RunConfig
from workers.model.draft_checkpoint import save_draft
from workers.model.hf_checkpoint import CheckpointError, save_policy
from workers.rollout.vllm.build import build_vllm_engine
from workers.rollout.vllm.checks import check_draft, max_sequence_tokens, policy_shape


@pytest.fixture
def folder(make_policy, make_head, tmp_path):
    policy = make_policy()
    save_policy(policy, tmp_path / "policy")
    save_draft(make_head(policy), tmp_path / "draft")
    return tmp_path


def change(folder, **keys):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | keys))


def config(drafter=None, **rollout):
    return RunConfig.model_validate(
        {
            "policy": {"kind": "checkpoint", "path": "/models/policy"},
            "rollout": {"kind": "vllm", "max_new_tokens": 60, **rollout},
            "drafter": {"kind": "none"} if drafter is None else drafter,
        }
    )


def test_a_sound_folder_passes(folder):
    policy = policy_shape(folder / "policy")
    assert policy.vocab_size == 12
    check_draft(config({"kind": "eagle3"}), policy, folder / "draft")
    check_draft(config({"kind": "ngram"}), policy, None)


def test_a_policy_without_weights_is_refused_before_anything_starts(folder):
    (folder / "policy" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"policy: has no \*\.safetensors file; give a folder with"):
        build_vllm_engine(config(), folder / "policy", None)


def test_a_policy_of_another_family_is_refused(folder):
    change(folder / "policy", model_type="mamba")
    with pytest.raises(CheckpointError, match=r"config\.json: model_type = 'mamba': must be qwen3 or qwen3_moe"):
        policy_shape(folder / "policy")


def test_a_mixture_with_more_positions_by_yarn_is_read(folder):
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 128, "rope_theta": 1e6}
    change(folder / "policy", model_type="qwen3_moe", rope_parameters=yarn, eos_token_id=[3, 4])
    assert policy_shape(folder / "policy") == (12, 512, 32, (3, 4))


def test_a_key_that_is_missing_is_named(folder):
    path = folder / "policy" / "config.json"
    path.write_text(json.dumps({"model_type": "qwen3"}))
    with pytest.raises(CheckpointError, match=r"max_position_embeddings is missing: add it to config\.json"):
        policy_shape(folder / "policy")


@pytest.mark.skipif(torch.cuda.is_available(), reason="a limit of processors")
def test_heads_that_processors_do_not_know_are_refused(folder):
    change(folder / "policy", head_dim=24)
    with pytest.raises(CheckpointError, match="head_dim = 24: vLLM on processors has 32, 64"):
        build_vllm_engine(config(), folder / "policy", None)


def test_a_draft_for_another_vocabulary_is_refused(folder):
    change(folder / "draft", vocab_size=100)
    with pytest.raises(CheckpointError, match="vocab_size = 100, but the policy has 12; give a draft"):
        build_vllm_engine(config({"kind": "eagle3"}), folder / "policy", folder / "draft")


def test_a_draft_without_weights_or_without_a_folder_is_refused(folder):
    policy = policy_shape(folder / "policy")
    (folder / "draft" / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match="draft: has no"):
        check_draft(config({"kind": "eagle3"}), policy, folder / "draft")
    with pytest.raises(ValueError, match=r"drafter\.kind = eagle3: needs the folder of a draft"):
        check_draft(config({"kind": "eagle3"}), policy, None)


def test_a_context_longer_than_the_models_is_refused(folder):
    policy = policy_shape(folder / "policy")
    assert max_sequence_tokens(config(), policy, folder) == 128
    assert max_sequence_tokens(config(max_sequence_tokens=100), policy, folder) == 100
    with pytest.raises(ValueError, match=r"rollout\.max_sequence_tokens = 129: must be at most 128"):
        build_vllm_engine(config(max_sequence_tokens=129), folder / "policy", None)
    with pytest.raises(ValueError, match=r"rollout\.max_new_tokens = 200: must be below 128"):
        max_sequence_tokens(config(max_new_tokens=200), policy, folder)
