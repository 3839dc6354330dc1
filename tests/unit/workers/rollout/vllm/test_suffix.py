"""vLLM's suffix decoding in a real engine, with the package that it stands on."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from workers.algo.lossless.identities import broken_counts, broken_rounds
from workers.rollout.engine import SamplingParams

pytestmark = pytest.mark.skipif(find_spec("arctic_inference") is None, reason="needs arctic-inference")

PROMPTS = [[3, 1, 2, 5], [7, 8, 3]]
PARAMS = SamplingParams(1.0, 40, seed=1)
NUM_SAMPLES = 8
EVERY = range(len(PROMPTS) * NUM_SAMPLES)


@pytest.fixture(scope="module")
def built(build, make_policy):
    with build(make_policy(sharpness=24.0), None, {"kind": "suffix", "draft_length": 4}, max_batch_size=16) as built:
        yield built


@pytest.fixture(scope="module")
def result(built):
    """Of a call that is forgotten, every round of it recorded."""
    return built.engine.generate(
        PROMPTS, NUM_SAMPLES, PARAMS, record_rounds_of=EVERY, evidence_of=EVERY, remember=False
    )


def test_drafts_are_accepted(result):
    counters = result.counters
    assert counters.acceptance_length > 1.5
    assert 0.2 < counters.num_accepted_tokens / counters.num_draft_tokens < 1
    num_tokens = sum(len(completion.token_ids) for completion in result.completions)
    assert list(broken_counts(counters, num_tokens, len(result.completions))) == []


def test_rounds_are_the_responses_and_the_policys_probabilities_the_training_models(built, result):
    num_compared = 0
    for completion in result.completions:
        assert list(broken_rounds(completion.rounds, completion.token_ids)) == []
        context = list(PROMPTS[completion.prompt_index])
        for played in completion.rounds:
            if played.drafted:
                drafted = torch.tensor(played.drafted)[:, None]
                policy = built.logits(context, played.drafted).log_softmax(-1).gather(1, drafted)[:, 0]
                torch.testing.assert_close(torch.tensor(played.policy_logprobs), policy, atol=2e-4, rtol=0)
                num_compared += 1
            context += played.drafted[: played.num_accepted] + ([] if played.emitted is None else [played.emitted])
    assert num_compared > 30


def test_a_draft_that_was_looked_up_is_certain(result):
    assert all(r.draft_logprobs == [0.0] * len(r.drafted) for c in result.completions for r in c.rounds)
    evidence = result.evidence
    assert len(evidence.drafted_M) > 50
    assert evidence.draft_probs_M.unique().tolist() == [1.0]
    assert evidence.top_ids_MN[:, 0].tolist() == evidence.drafted_M.tolist()
    assert evidence.top_probs_MN[:, 0].unique().tolist() == [1.0]


def test_greedy_is_the_same_with_and_without_speculation(built):
    greedy = replace(PARAMS, temperature=0.0)
    fast, plain = (built.engine.generate(PROMPTS, 2, greedy, speculate=way, remember=False) for way in (True, False))
    assert fast.counters.num_accepted_tokens > 0
    assert plain.counters.num_drafts == 0
    for completion, other in zip(fast.completions, plain.completions, strict=True):
        assert completion.token_ids == other.token_ids
        scores = built.logits(PROMPTS[completion.prompt_index], completion.token_ids)
        assert completion.token_ids == scores.argmax(-1).tolist()


def test_responses_draft_for_later_ones_unless_they_are_forgotten(built, result):
    """The probe's and the validation's calls are not remembered: they would draft for what comes after them."""
    forgotten = built.engine.generate(PROMPTS, NUM_SAMPLES, PARAMS, remember=False)
    assert forgotten.counters == result.counters
    first = built.engine.generate(PROMPTS, NUM_SAMPLES, PARAMS)
    assert first.counters == result.counters
    second = built.engine.generate(PROMPTS, NUM_SAMPLES, PARAMS, remember=False)
    assert second.counters.acceptance_length > first.counters.acceptance_length + 0.3
