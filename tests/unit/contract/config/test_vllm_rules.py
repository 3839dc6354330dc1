"""What vLLM cannot do of what PyTorch's engine can."""

import pytest
from pydantic import ValidationError

from contract.config import RunConfig


def told(**parts):
    with pytest.raises(ValidationError) as error:
        RunConfig.model_validate(parts)
    (detail,) = error.value.errors()
    return ".".join(map(str, detail["loc"])), detail["msg"]


def vllm(**rollout):
    return {"kind": "vllm", **rollout}


@pytest.mark.parametrize(
    ("rollout", "drafter"), [({"min_p": 0.1}, {"kind": "ngram"}), ({"min_p": 0.1, "top_p": 0.9}, {"kind": "none"})]
)
def test_min_p_goes_with_neither_drafts_nor_top_p(rollout, drafter):
    location, message = told(rollout=vllm(**rollout), drafter=drafter)
    assert location == "rollout.min_p"
    assert "must be 0 with rollout vllm, unless drafter is none and top_p is 1" in message
    RunConfig.model_validate({"rollout": rollout, "drafter": drafter})


def test_min_p_alone_is_fine():
    RunConfig.model_validate({"rollout": vllm(min_p=0.1), "drafter": {"kind": "none"}})


@pytest.mark.parametrize("part", ["rollout", "validation"])
def test_temperatures_that_vllm_would_raise_are_refused(part):
    parts = {"rollout": vllm()}
    parts[part] = parts.get(part, {}) | {"temperature": 0.005}
    location, message = told(**parts)
    assert location == f"{part}.temperature"
    assert "at least 0.01" in message


def test_greedy_validation_is_fine():
    RunConfig.model_validate({"rollout": vllm(), "validation": {"temperature": 0}})


def test_a_sequence_is_longer_than_its_response():
    location, message = told(rollout=vllm(max_new_tokens=128, max_sequence_tokens=128))
    assert location == "rollout.max_sequence_tokens"
    assert "must be more than max_new_tokens = 128" in message


def test_suffix_decoding_has_no_shortest_match():
    drafter = {"kind": "suffix", "min_match_tokens": 3}
    location, message = told(rollout=vllm(), drafter=drafter)
    assert location == "drafter.min_match_tokens"
    assert "must be left at 2 with rollout vllm" in message
    RunConfig.model_validate({"drafter": drafter})
