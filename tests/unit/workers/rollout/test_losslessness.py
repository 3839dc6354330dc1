"""The whole engine against exact string probabilities of the policy: speculation must not change what is sampled.

Levels are fixed beforehand: a fair engine fails one of these tests in ten thousand seeds; broken rules must be rejected
beyond any doubt.
"""

import itertools
import math

import pytest
import torch
from scipy import stats

from workers.algo import acceptance
from workers.algo.acceptance import Verdict, draw
from workers.rollout import generation
from workers.rollout.engine import SamplingParams

EOS = 0
PROMPT = [3, 1, 2]
VOCABULARY = range(5)
MAX_NEW_TOKENS = 4
NUM_SAMPLES = 12_000
REJECTION_LEVEL = 1e-4
BEYOND_DOUBT = 1e-9


@pytest.fixture(scope="module")
def tiny(make_models):
    return make_models(vocab_size=len(VOCABULARY), sharpness=1.5)


def all_responses():
    """Every string that ends at its first end token or at the limit."""
    for length in range(1, MAX_NEW_TOKENS + 1):
        for tokens in itertools.product(VOCABULARY, repeat=length):
            ends = tokens[-1] == EOS or length == MAX_NEW_TOKENS
            if ends and EOS not in tokens[:-1]:
                yield tokens


def exact_probabilities(policy, temperature):
    """P(response), by the training model in float32 over the whole tree of strings."""
    strings = torch.tensor(list(itertools.product(VOCABULARY, repeat=MAX_NEW_TOKENS)))
    prompts = torch.tensor([PROMPT]).expand(len(strings), -1)
    with torch.no_grad():
        logits = policy(torch.cat([prompts, strings], 1)).logits_BTV[:, len(PROMPT) - 1 : -1]
    logprobs = (logits / temperature).log_softmax(-1).double().gather(2, strings.unsqueeze(2)).squeeze(2).cumsum(1)
    rows = {tuple(string): row for string, row in zip(strings.tolist(), logprobs, strict=True)}
    padding = (1,) * MAX_NEW_TOKENS
    return {r: rows[(r + padding)[:MAX_NEW_TOKENS]][len(r) - 1].exp().item() for r in all_responses()}


def own_probabilities(tiny, precision):
    """P(response), by what the engine itself says of every string that it draws without speculation."""
    engine = tiny.engine(max_batch_size=1024, precision=precision)
    params = SamplingParams(1.0, MAX_NEW_TOKENS, seed=12)
    completions = engine.generate([PROMPT], NUM_SAMPLES, params, speculate=False).completions
    return {tuple(c.token_ids): math.exp(sum(c.logprobs)) for c in completions}


def sample_counts(tiny, temperature, speculate, draft_length, precision="float32"):
    engine = tiny.engine(max_batch_size=1024, draft_length=draft_length, precision=precision)
    params = SamplingParams(temperature, MAX_NEW_TOKENS, seed=11)
    result = engine.generate([PROMPT], NUM_SAMPLES, params, speculate=speculate)
    counts = dict.fromkeys(all_responses(), 0)
    for completion in result.completions:
        counts[tuple(completion.token_ids)] += 1
    return counts, result.counters


def p_value(tiny, temperature=1.0, speculate=True, draft_length=3):
    """Of what the engine draws, against the training model."""
    probabilities = exact_probabilities(tiny.policy, temperature)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    counts, _ = sample_counts(tiny, temperature, speculate, draft_length)
    return chi_square(counts, probabilities)


def bfloat16_p_value(tiny):
    """Of what the engine draws with speculation in the shipped precision, against the same engine without."""
    counts, _ = sample_counts(tiny, 1.0, speculate=True, draft_length=3, precision="bfloat16")
    return chi_square(counts, own_probabilities(tiny, "bfloat16"))


def chi_square(counts, probabilities):
    """One-sample p-value; strings expected less than five times, and those without a probability, share a cell."""
    common = [r for r, probability in probabilities.items() if probability * NUM_SAMPLES >= 5]
    observed, expected = [counts[r] for r in common], [probabilities[r] * NUM_SAMPLES for r in common]
    observed.append(NUM_SAMPLES - sum(observed))
    expected.append(NUM_SAMPLES - sum(expected))
    assert len(common) > 50
    return stats.chisquare(observed, expected, sum_check=False).pvalue


def test_speculation_in_bfloat16_follows_the_engine_without_it(tiny):
    probabilities = own_probabilities(tiny, "bfloat16")
    exact = exact_probabilities(tiny.policy, 1.0)
    differences = [abs(math.log(p / exact[string])) for string, p in probabilities.items()]
    assert 1e-3 < max(differences) < 0.5  # it is another precision, and the same policy
    assert bfloat16_p_value(tiny) > REJECTION_LEVEL


def test_in_bfloat16_too_broken_rules_are_rejected(tiny, monkeypatch):
    monkeypatch.setattr(acceptance, "_residual", lambda p_BV, *_: p_BV)
    assert bfloat16_p_value(tiny) < BEYOND_DOUBT
    monkeypatch.undo()
    monkeypatch.setattr(generation, "verify", accept_always)
    assert bfloat16_p_value(tiny) < BEYOND_DOUBT


@pytest.mark.parametrize(("temperature", "draft_length"), [(1.0, 1), (1.0, 3), (0.6, 3)])
def test_speculative_samples_follow_the_policy(tiny, temperature, draft_length):
    assert p_value(tiny, temperature, draft_length=draft_length) > REJECTION_LEVEL


def test_autoregressive_samples_follow_the_policy(tiny):
    assert p_value(tiny, speculate=False) > REJECTION_LEVEL


def test_the_draft_is_neither_always_right_nor_always_wrong(tiny):
    _, counters = sample_counts(tiny, 1.0, speculate=True, draft_length=3)
    assert 0.1 < counters.num_accepted_tokens / counters.num_draft_tokens < 0.9


def accept_always(drafted, q, p, rng, *_):
    return Verdict(torch.full((len(drafted),), drafted.shape[1]), draw(p[:, -1], rng))


def test_accepting_always_is_rejected(tiny, monkeypatch):
    monkeypatch.setattr(generation, "verify", accept_always)
    assert p_value(tiny) < BEYOND_DOUBT


def test_corrections_drawn_from_the_policy_are_rejected(tiny, monkeypatch):
    monkeypatch.setattr(acceptance, "_residual", lambda p_BV, *_: p_BV)
    assert p_value(tiny) < BEYOND_DOUBT


def test_a_draft_that_lies_about_its_probabilities_is_rejected(tiny, monkeypatch):
    honest = acceptance.verify
    monkeypatch.setattr(generation, "verify", lambda drafted, q, p, rng, *_: honest(drafted, q.roll(1, -1), p, rng))
    assert p_value(tiny) < BEYOND_DOUBT


def test_greedy_notices_accepting_always(models, monkeypatch):
    params = SamplingParams(0.0, 20, 0)
    plain = models.engine().generate([PROMPT], 1, params, speculate=False).completions[0].token_ids
    assert models.engine().generate([PROMPT], 1, params).completions[0].token_ids == plain
    monkeypatch.setattr(generation, "verify", accept_always)
    assert models.engine().generate([PROMPT], 1, params).completions[0].token_ids != plain


def greatest_departure(models):
    """By how much the policy's logits prefer a greedy token to the one in its place with speculation, at most.

    Relative to the largest logit; where two responses differ, only the first difference says something.
    """
    prompts = [[a, b, 2] for a in range(1, 11) for b in range(1, 11)]
    engine, params = models.engine(max_batch_size=100, precision="bfloat16"), SamplingParams(0.0, 24, 0)
    plain, fast = (engine.generate(prompts, 1, params, speculate=way).completions for way in (False, True))
    departures = [0.0]
    for prompt, one, other in zip(prompts, plain, fast, strict=True):
        pairs = zip(one.token_ids, other.token_ids, strict=False)
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), None)
        if at is None:
            assert one.token_ids == other.token_ids
            continue
        with torch.no_grad():
            logits = models.policy(torch.tensor([prompt + one.token_ids[:at]])).logits_BTV[0, -1]
        gap = logits[one.token_ids[at]] - logits[other.token_ids[at]]
        departures.append((gap.abs() / logits.abs().max()).item())
    return max(departures)


def test_greedy_in_bfloat16_departs_from_itself_only_at_near_ties(models, monkeypatch):
    """Drafted tokens are verified in a pass of another shape, whose sums may round otherwise: 8 bits of mantissa."""
    assert greatest_departure(models) < 4 * 2**-8
    monkeypatch.setattr(generation, "verify", accept_always)
    assert greatest_departure(models) > 0.3
