import json

import pytest

from contract.config.drafter import (
    DraftModelDrafter,
    Eagle3Drafter,
    MtpDrafter,
    NgramDrafter,
    NoDrafter,
    SuffixDrafter,
)
from workers.rollout.vllm import drafters
from workers.rollout.vllm.drafters import speculative_config, stage_draft


def told(drafter, folder=None):
    return speculative_config(drafter, folder, max_batch_size=16, max_new_tokens=100)


def test_without_a_drafter_nothing_is_told():
    assert told(NoDrafter()) is None


def test_ngram_matches_what_the_configuration_says():
    assert told(NgramDrafter(draft_length=5, min_match_tokens=3, max_match_tokens=7)) == {
        "method": "ngram",
        "num_speculative_tokens": 5,
        "num_speculative_tokens_per_batch_size": [(1, 16, 5)],
        "prompt_lookup_min": 3,
        "prompt_lookup_max": 7,
    }


@pytest.mark.parametrize("drafter", [Eagle3Drafter(), MtpDrafter(), DraftModelDrafter()])
def test_trained_drafts_are_drawn_from_their_distribution(drafter, tmp_path):
    config = told(drafter, tmp_path)
    assert (config["method"], config["model"]) == (drafter.kind, str(tmp_path))
    assert config["draft_sample_method"] == "probabilistic"
    with pytest.raises(ValueError, match=rf"drafter\.kind = {drafter.kind}: needs the folder"):
        told(drafter)


def test_suffix_names_the_package_that_it_needs(monkeypatch):
    monkeypatch.setattr(drafters.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"drafter\.kind is suffix.*needs arctic-inference.*make setup-suffix"):
        told(SuffixDrafter())


def test_suffix_is_told_what_vllm_knows_of_it(monkeypatch):
    monkeypatch.setattr(drafters.importlib.util, "find_spec", lambda name: object())
    config = told(SuffixDrafter(draft_length=6, max_match_tokens=12, max_stored_tokens=5000))
    assert config["method"] == "suffix"
    assert config["suffix_decoding_max_tree_depth"] == 18
    assert config["suffix_decoding_max_cached_requests"] == 50


def test_a_staged_draft_has_the_same_files_under_a_path_that_says_nothing(tmp_path):
    folder = tmp_path / "eagle3-of-yesterday"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "qwen3_mtp", "vocab_size": 7}))
    (folder / "model.safetensors").write_bytes(b"weights")
    stage = tmp_path / "stage"
    stage.mkdir()
    staged = stage_draft(folder, stage)
    assert staged == stage / "draft"
    assert (staged / "model.safetensors").read_bytes() == b"weights"
    assert json.loads((staged / "config.json").read_text()) == {"model_type": "qwen3", "vocab_size": 7}
