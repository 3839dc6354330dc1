import pytest
import torch

from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine

PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 10, 11], [2, 2, 2, 2], [5, 1]]
GREEDY = SamplingParams(temperature=0.0, max_new_tokens=20, seed=0)
SAMPLED = SamplingParams(temperature=0.7, max_new_tokens=20, seed=7)


def policy_logprobs(policy, prompt, response, temperature):
    """The slow reference: the training model on prompt and response together."""
    with torch.no_grad():
        logits = policy(torch.tensor([prompt + response])).logits_BTV[0]
    rows = (logits / temperature).log_softmax(-1)[len(prompt) - 1 : -1]
    return rows.gather(1, torch.tensor(response).unsqueeze(1)).squeeze(1)


def greedy_reference(policy, prompt, max_new_tokens, eos):
    response = []
    while len(response) < max_new_tokens and eos not in response:
        with torch.no_grad():
            logits = policy(torch.tensor([prompt + response])).logits_BTV[0, -1]
        response.append(int(logits.argmax()))
    return response


@pytest.mark.parametrize("speculate", [True, False])
@pytest.mark.parametrize("max_batch_size", [1, 4, 64])
def test_greedy_is_the_argmax_of_the_policy(models, speculate, max_batch_size):
    result = models.engine(max_batch_size=max_batch_size).generate(PROMPTS, 1, GREEDY, speculate=speculate)
    for prompt, completion in zip(PROMPTS, result.completions, strict=True):
        assert completion.token_ids == greedy_reference(models.policy, prompt, 20, 0)
        assert completion.logprobs == [0.0] * len(completion.token_ids)


@pytest.mark.parametrize("speculate", [True, False])
def test_logprobs_are_the_policys_at_the_sampling_temperature(models, speculate):
    """Every token of rows that were refilled, moved and finished at different times, with prompts of several lengths:
    a key or value in the wrong place would show."""
    result = models.engine(max_batch_size=4).generate(PROMPTS, 3, SAMPLED, speculate=speculate)
    assert [completion.prompt_index for completion in result.completions] == [
        0,
        0,
        0,
        1,
        1,
        1,
        2,
        2,
        2,
        3,
        3,
        3,
        4,
        4,
        4,
    ]
    assert len({len(completion.token_ids) for completion in result.completions}) > 3
    for completion in result.completions:
        expected = policy_logprobs(models.policy, PROMPTS[completion.prompt_index], completion.token_ids, 0.7)
        torch.testing.assert_close(torch.tensor(completion.logprobs), expected, atol=2e-5, rtol=1e-4)


def test_bfloat16_stays_close_to_the_policy(models):
    result = models.engine(precision="bfloat16").generate(PROMPTS, 4, SAMPLED)
    for completion in result.completions:
        expected = policy_logprobs(models.policy, PROMPTS[completion.prompt_index], completion.token_ids, 0.7)
        assert (torch.tensor(completion.logprobs) - expected).abs().mean() < 0.05


@pytest.mark.parametrize("speculate", [True, False])
def test_responses_end_at_the_first_end_token_or_at_the_limit(models, speculate):
    result = models.engine(eos=[0, 6]).generate(PROMPTS, 24, SAMPLED, speculate=speculate)
    for completion in result.completions:
        tokens = completion.token_ids
        assert 1 <= len(tokens) <= 20
        assert not {0, 6} & set(tokens[:-1])
        assert completion.is_truncated == (tokens[-1] not in {0, 6})
        assert not completion.is_truncated or len(tokens) == 20
    assert len({completion.is_truncated for completion in result.completions}) == 2


@pytest.mark.parametrize("max_new_tokens", [1, 2, 3])
def test_short_limits_hold_within_a_round(models, max_new_tokens):
    params = SamplingParams(1.0, max_new_tokens, 3)
    result = models.engine(max_batch_size=4, eos=11).generate(PROMPTS, 9, params)
    assert len(result.completions) == 45
    assert max(len(completion.token_ids) for completion in result.completions) == max_new_tokens


def test_equal_seeds_give_equal_responses(models):
    engine = models.engine()
    first, again = (engine.generate(PROMPTS, 4, SAMPLED).completions for _ in range(2))
    other = engine.generate(PROMPTS, 4, SamplingParams(0.7, 20, 8)).completions
    assert [c.token_ids for c in first] == [c.token_ids for c in again]
    assert [c.logprobs for c in first] == [c.logprobs for c in again]
    assert [c.token_ids for c in first] != [c.token_ids for c in other]


def test_samples_of_one_prompt_differ(models):
    completions = models.engine().generate([PROMPTS[0]], 16, SAMPLED).completions
    assert len({tuple(completion.token_ids) for completion in completions}) > 8


def test_new_weights_take_effect_and_are_copies(models, make_models):
    engine, other = models.engine(), make_models(seed=9)
    before = engine.generate(PROMPTS, 1, GREEDY).completions
    state = {name: tensor.clone() for name, tensor in other.policy.state_dict().items()}
    engine.update_policy(state)
    for tensor in state.values():
        tensor.fill_(float("nan"))
    after = engine.generate(PROMPTS, 1, GREEDY).completions
    assert [c.token_ids for c in after] != [c.token_ids for c in before]
    assert [c.token_ids for c in after] == [greedy_reference(other.policy, prompt, 20, 0) for prompt in PROMPTS]


def test_new_draft_weights_change_acceptance_and_nothing_else(models):
    engine = models.engine()
    before = engine.generate(PROMPTS, 2, GREEDY)
    engine.update_draft({name: tensor.flip(0) for name, tensor in models.head.state_dict().items()})
    after = engine.generate(PROMPTS, 2, GREEDY)
    assert after.counters != before.counters
    assert [c.token_ids for c in after.completions] == [c.token_ids for c in before.completions]


def test_what_cannot_be_generated_is_refused_by_name(models):
    engine = models.engine()
    for prompts, num_samples, params, record, message in [
        ([], 1, SAMPLED, (), "prompts is empty"),
        ([[1], []], 1, SAMPLED, (), r"prompts\[1\] has 0 tokens: must have between 1 and 108"),
        ([[1] * 109], 1, SAMPLED, (), r"prompts\[0\] has 109 tokens"),
        ([[1, 12]], 1, SAMPLED, (), r"prompts\[0\] has a token outside 0 .. 11"),
        ([[1]], 0, SAMPLED, (), "num_samples = 0"),
        ([[1]], 1, SamplingParams(1.0, 0, 0), (), "max_new_tokens = 0"),
        ([[1]], 1, SamplingParams(-1.0, 4, 0), (), "temperature = -1.0"),
        ([[1]], 2, SAMPLED, (2,), "record_rounds_of or evidence_of has 2: must be below 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            engine.generate(prompts, num_samples, params, record_rounds_of=record)


def test_missing_weights_and_drafts_are_named(models):
    config = models.policy.config
    with pytest.raises(ValueError, match="draft_length = 0: must be between 1 and 16"):
        TorchRolloutEngine(config, 0, 4, "float32", models.drafting(draft_length=0))
    engine = TorchRolloutEngine(config, 0, 4, "float32", models.drafting(draft_length=2))
    with pytest.raises(RuntimeError, match=r"call update_policy\(\)"):
        engine.generate([[1]], 1, SAMPLED)
    engine.update_policy(models.policy.state_dict())
    with pytest.raises(RuntimeError, match=r"call update_draft\(\)"):
        engine.generate([[1]], 1, SAMPLED)
    assert engine.generate([[1]], 1, SAMPLED, speculate=False).counters.acceptance_length is None
    plain = TorchRolloutEngine(config, 0, 4, "float32")
    with pytest.raises(ValueError, match="drafter has no weights"):
        plain.update_draft(models.head.state_dict())
    plain.update_policy(models.policy.state_dict())
    assert plain.generate([[1]], 1, SAMPLED).counters.num_drafts == 0
