"""The whole engine against exact string probabilities of the policy: speculation must not change what is sampled.

Levels are fixed beforehand: a fair engine fails one of these tests in ten thousand seeds; broken rules must be rejected
beyond any doubt.
"""

import itertools

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


def sample_counts(tiny, temperature, speculate, draft_length):
    engine = tiny.engine(max_batch_size=1024, draft_length=draft_length)
    params = SamplingParams(temperature, MAX_NEW_TOKENS, seed=11)
    result = engine.generate([PROMPT], NUM_SAMPLES, params, speculate=speculate)
    counts = dict.fromkeys(all_responses(), 0)
    for completion in result.completions:
        counts[tuple(completion.token_ids)] += 1
    return counts, result.counters


def p_value(tiny, temperature=1.0, speculate=True, draft_length=3):
    """One-sample chi-square; strings expected less than five times share a cell."""
    probabilities = exact_probabilities(tiny.policy, temperature)
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    counts, _ = sample_counts(tiny, temperature, speculate, draft_length)
    common = [r for r, probability in probabilities.items() if probability * NUM_SAMPLES >= 5]
    observed, expected = [counts[r] for r in common], [probabilities[r] * NUM_SAMPLES for r in common]
    observed.append(NUM_SAMPLES - sum(observed))
    expected.append(NUM_SAMPLES - sum(expected))
    assert len(common) > 50
    return stats.chisquare(observed, expected, sum_check=False).pvalue


@pytest.mark.parametrize(("temperature", "draft_length"), [(1.0, 1), (1.0, 3), (0.6, 3)])
def test_speculative_samples_follow_the_policy(tiny, temperature, draft_length):
    assert p_value(tiny, temperature, draft_length=draft_length) > REJECTION_LEVEL


def test_autoregressive_samples_follow_the_policy(tiny):
    assert p_value(tiny, speculate=False) > REJECTION_LEVEL


def test_the_draft_is_neither_always_right_nor_always_wrong(tiny):
    _, counters = sample_counts(tiny, 1.0, speculate=True, draft_length=3)
    assert 0.1 < counters.num_accepted_tokens / counters.num_draft_tokens < 0.9


def accept_always(drafted, q, p, rng):
    return Verdict(torch.full((len(drafted),), drafted.shape[1]), draw(p[:, -1], rng))


def test_accepting_always_is_rejected(tiny, monkeypatch):
    monkeypatch.setattr(generation, "verify", accept_always)
    assert p_value(tiny) < BEYOND_DOUBT


def test_corrections_drawn_from_the_policy_are_rejected(tiny, monkeypatch):
    monkeypatch.setattr(acceptance, "_residual", lambda p_BV, drafted_B, q_BV: p_BV)
    assert p_value(tiny) < BEYOND_DOUBT


def test_a_draft_that_lies_about_its_probabilities_is_rejected(tiny, monkeypatch):
    honest = acceptance.verify
    monkeypatch.setattr(generation, "verify", lambda drafted, q, p, rng: honest(drafted, q.roll(1, -1), p, rng))
    assert p_value(tiny) < BEYOND_DOUBT


def test_greedy_notices_accepting_always(models, monkeypatch):
    params = SamplingParams(0.0, 20, 0)
    plain = models.engine().generate([PROMPT], 1, params, speculate=False).completions[0].token_ids
    assert models.engine().generate([PROMPT], 1, params).completions[0].token_ids == plain
    monkeypatch.setattr(generation, "verify", accept_always)
    assert models.engine().generate([PROMPT], 1, params).completions[0].token_ids != plain
