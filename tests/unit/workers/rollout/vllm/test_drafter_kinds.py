"""Every other drafter in a real engine: what it says of its drafts against the code that trains it."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from workers.model.config import ModelConfig
from workers.model.draft_model import DraftModel
from workers.model.mtp import MtpConfig, MtpModule
from workers.rollout.engine import SamplingParams

PROMPTS = [[3, 1, 2, 5], [7, 8, 3]]
PARAMS = SamplingParams(1.0, 12, seed=1)
NUM_SAMPLES = 8
EVERY = range(len(PROMPTS) * NUM_SAMPLES)
REPETITIVE = [[3, 4, 5, 3, 4, 5, 3, 4, 5, 3, 4]]


@pytest.fixture(scope="module")
def policy(make_policy):
    return make_policy()


@pytest.fixture(scope="module")
def make_draft(policy, make_head):
    def make(kind):
        if kind == "reduced eagle3":
            head = make_head(policy, draft_vocab_size=5)
            head.choose_vocabulary(torch.tensor([0, 2, 3, 7, 11]))
            return head
        if kind == "narrow eagle3":
            return make_head(policy, layer=narrow(policy.config))
        draft = MtpModule(MtpConfig(policy.config)) if kind == "mtp" else DraftModel(small(policy.config))
        draft.initialize(policy, 2)
        return draft

    return make


def small(config: ModelConfig) -> ModelConfig:
    return replace(config, num_hidden_layers=1, num_attention_heads=1)


def narrow(config: ModelConfig) -> ModelConfig:
    """Half of the policy's sizes, as drafts are made that are not told any."""
    return replace(config, hidden_size=config.hidden_size // 2, intermediate_size=32, num_attention_heads=1)


@pytest.mark.parametrize("kind", ["mtp", "draft_model", "reduced eagle3", "narrow eagle3"])
def test_a_trained_draft_says_what_it_was_trained_to_say(build, policy, make_draft, kind):
    draft = make_draft(kind)
    drafter = {"kind": kind.split()[-1], "draft_length": 3}
    with build(policy, draft, drafter, max_batch_size=16) as built:
        check_rounds(built)
        with torch.no_grad():
            for parameter in draft.parameters():
                if parameter.ndim == 2 and parameter.requires_grad:
                    parameter.mul_(1.5)
        built.engine.update_weights("draft", draft.export(policy).items())
        check_rounds(built)


def check_rounds(built):
    """Draft and policy as the engine recorded them, of drafted tokens behind rejections too; greedy is the policy's."""
    result = built.engine.generate(PROMPTS, NUM_SAMPLES, PARAMS, record_rounds_of=EVERY)
    num_compared = 0
    for completion in result.completions[::3]:
        context = list(PROMPTS[completion.prompt_index])
        for played in completion.rounds:
            if played.drafted:
                drafted = torch.tensor(played.drafted)[:, None]
                draft = built.draft_logits(context, played.drafted).log_softmax(-1).gather(1, drafted)[:, 0]
                torch.testing.assert_close(torch.tensor(played.draft_logprobs), draft, atol=1e-4, rtol=0)
                num_compared += 1
            context += played.drafted[: played.num_accepted] + ([] if played.emitted is None else [played.emitted])
    assert num_compared > 5
    greedy = built.engine.generate(PROMPTS, 1, replace(PARAMS, temperature=0.0)).completions
    for prompt, completion in zip(PROMPTS, greedy, strict=True):
        assert completion.token_ids == built.logits(prompt, completion.token_ids).argmax(-1).tolist()


def test_without_a_drafter_min_p_is_known(build, policy):
    from workers.algo.sampling import Truncation, sampling_probs

    truncation = Truncation(min_p=0.3)
    with build(policy, max_batch_size=16) as built:
        result = built.engine.generate(PROMPTS, 4, replace(PARAMS, truncation=truncation))
        assert (result.counters.num_drafts, result.evidence, result.round_costs) == (0, None, [])
        for completion in result.completions:
            probs = sampling_probs(
                built.logits(PROMPTS[completion.prompt_index], completion.token_ids), 1.0, truncation
            )
            chosen = probs.gather(1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            torch.testing.assert_close(torch.tensor(completion.logprobs), chosen.log(), atol=2e-5, rtol=0)
        with pytest.raises(ValueError, match="drafter has no weights"):
            built.engine.update_weights("draft", [])


@pytest.fixture(
    scope="module",
    params=[
        {"kind": "ngram", "min_match_tokens": 1},
        pytest.param(
            {"kind": "suffix"},
            marks=pytest.mark.skipif(find_spec("arctic_inference") is None, reason="needs arctic-inference"),
        ),
    ],
    ids=["ngram", "suffix"],
)
def looked_up(build, make_policy, request):
    """On a policy that is sure of itself, and draft lengths that are measured."""
    drafter = {"draft_length": 4, "draft_length_control": "measured", **request.param}
    with build(make_policy(sharpness=8.0), None, drafter, max_batch_size=4) as built:
        yield built


def test_costs_are_measured_of_all_lengths_before_the_first_call(looked_up):
    result = looked_up.engine.generate(REPETITIVE, 4, SamplingParams(1.0, 40, 0), record_rounds_of=[0])
    controller = looked_up.engine._draft_lengths
    for number in (1, 2, 4):
        assert all(controller.predicted_s(number, length, 20.0) > 0 for length in range(5))
        # It has heard how long sequences are.
        assert len(REPETITIVE[0]) < controller.costs._contexts[number] < len(REPETITIVE[0]) + 40
    assert all(cost.predicted_s > 0 for cost in result.round_costs)
    assert any(r.draft_logprobs == [0.0] * len(r.drafted) for r in result.completions[0].rounds if r.drafted)


def test_what_the_controller_does_not_choose_is_not_drafted(looked_up, monkeypatch):
    params = SamplingParams(0.0, 40, 0)
    looked_up.engine.generate(REPETITIVE, 4, params)
    controller = looked_up.engine._draft_lengths
    monkeypatch.setattr(controller, "choose_lookup", lambda number: 4)
    monkeypatch.setattr(controller, "width", lambda drafted: min(2, max(drafted)))
    cut = looked_up.engine.generate(REPETITIVE, 4, params, record_rounds_of=[0])
    assert max(len(r.drafted) for r in cut.completions[0].rounds) == 2
    monkeypatch.setattr(controller, "choose_lookup", lambda number: 0)
    none = looked_up.engine.generate(REPETITIVE, 4, params, record_rounds_of=[0])
    assert none.counters.num_drafts == 0
    assert {cost.draft_length for cost in none.round_costs} == {0}
    assert none.completions[0].token_ids == cut.completions[0].token_ids
