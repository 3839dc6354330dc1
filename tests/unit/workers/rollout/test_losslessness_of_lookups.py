"""The engine with looked-up drafts and truncated sampling against exact string probabilities; greedy against itself.

Levels are fixed beforehand: a fair engine fails one of these tests in ten thousand seeds; broken rules must be rejected
beyond any doubt.
"""

import itertools

import pytest
import torch
from scipy import stats

from workers.algo import acceptance
from workers.algo.acceptance import Verdict, draw
from workers.algo.sampling import Truncation
from workers.rollout import generation
from workers.rollout.draft_lengths import FixedDraftLength
from workers.rollout.drafters.drafter import Drafting
from workers.rollout.drafters.ngram import NgramDrafter
from workers.rollout.drafters.suffix import SuffixDrafter
from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine

EOS = 0
PROMPT = [3, 1, 2, 3, 1]
VOCABULARY = range(5)
MAX_NEW_TOKENS = 4
NUM_SAMPLES = 8_000
REJECTION_LEVEL = 1e-4
BEYOND_DOUBT = 1e-9

TRUNCATIONS = {
    "none": Truncation(),
    "top-k": Truncation(top_k=3),
    "top-p": Truncation(top_p=0.8),
    "min-p": Truncation(min_p=0.5),
    "all": Truncation(top_k=4, top_p=0.9, min_p=0.1),
}


def ngram():
    return NgramDrafter(1, 3)


def suffix():
    return SuffixDrafter(1, 8, 100_000)


LOOKUPS = [pytest.param(ngram, id="ngram"), pytest.param(suffix, id="suffix")]


class CyclingDraftLength(FixedDraftLength):
    """Another k every round, 0 among them."""

    def __init__(self):
        super().__init__(4)
        self._lengths = itertools.cycle([2, 0, 4, 1, 0, 3])

    def choose_lookup(self, num_sequences):
        return next(self._lengths)

    choose = choose_lookup


@pytest.fixture(scope="module")
def tiny(make_models):
    return make_models(vocab_size=len(VOCABULARY), sharpness=4.0)


def engine_of(models, build, *, max_batch_size=512, draft_length=3, eos=EOS):
    drafting = Drafting(lambda *_: build(), has_weights=False, draft_length=draft_length)
    engine = TorchRolloutEngine(models.policy.config, eos, max_batch_size, "float32", drafting)
    engine.update_policy(models.policy.state_dict())
    return engine


def all_responses(stop=(EOS,), length_limit=MAX_NEW_TOKENS):
    """Every string that ends at its first end token or at the limit."""
    for length in range(1, length_limit + 1):
        for tokens in itertools.product(VOCABULARY, repeat=length):
            ends = tokens[-1] in stop or length == length_limit
            if ends and not set(stop) & set(tokens[:-1]):
                yield tokens


def cut_slowly(probs, truncation):
    """One distribution after top-k, top-p and min-p, token by token."""
    order = sorted(range(len(probs)), key=lambda token: -probs[token])
    kept = order[: truncation.top_k or None]
    total, mass, nucleus = sum(probs[token] for token in kept), 0.0, []
    for token in kept:
        if mass < truncation.top_p * total:
            nucleus.append(token)
        mass += probs[token]
    nucleus = [token for token in nucleus if probs[token] >= truncation.min_p * probs[order[0]]]
    total = sum(probs[token] for token in nucleus)
    return [probs[token] / total if token in nucleus else 0.0 for token in range(len(probs))]


def exact_probabilities(policy, temperature, truncation, stop=(EOS,)):
    """P(response), by the training model in float32 over the whole tree of strings."""
    strings = list(itertools.product(VOCABULARY, repeat=MAX_NEW_TOKENS - 1))
    with torch.no_grad():
        logits = policy(torch.tensor([[*PROMPT, *string] for string in strings])).logits_BTV[:, len(PROMPT) - 1 :]
    rows = (logits / temperature).softmax(-1).tolist()
    after = {}
    for string, row in zip(strings, rows, strict=True):
        for length in range(MAX_NEW_TOKENS):
            if string[:length] not in after:
                after[string[:length]] = cut_slowly(row[length], truncation)
    probabilities = {}
    for response in all_responses(stop):
        probabilities[response] = 1.0
        for at, token in enumerate(response):
            probabilities[response] *= after[response[:at]][token]
    assert sum(probabilities.values()) == pytest.approx(1, abs=1e-5)
    return probabilities


def p_value(engine, probabilities, temperature=1.0, truncation=Truncation()):
    """Chi-square of what the engine draws in two calls; strings expected less than five times share a cell."""
    counts = dict.fromkeys(probabilities, 0)
    for seed in (11, 12):
        params = SamplingParams(temperature, MAX_NEW_TOKENS, seed, truncation)
        result = engine.generate([PROMPT, PROMPT], NUM_SAMPLES // 4, params)
        for completion in result.completions:
            counts[tuple(completion.token_ids)] += 1
    common = [r for r, probability in probabilities.items() if probability * NUM_SAMPLES >= 5]
    observed, expected = [counts[r] for r in common], [probabilities[r] * NUM_SAMPLES for r in common]
    if sum(expected) < NUM_SAMPLES - 5:
        observed.append(NUM_SAMPLES - sum(observed))
        expected.append(NUM_SAMPLES - sum(expected))
    impossible = sum(counts[r] for r, probability in probabilities.items() if probability == 0)
    assert len(common) > 10
    return 0.0 if impossible else stats.chisquare(observed, expected, sum_check=False).pvalue


@pytest.mark.parametrize("truncation", TRUNCATIONS.values(), ids=TRUNCATIONS.keys())
@pytest.mark.parametrize("build", LOOKUPS)
def test_samples_follow_the_truncated_policy(tiny, build, truncation):
    probabilities = exact_probabilities(tiny.policy, 1.3, truncation)
    assert p_value(engine_of(tiny, build), probabilities, 1.3, truncation) > REJECTION_LEVEL


@pytest.mark.parametrize("build", LOOKUPS)
def test_drafts_are_neither_always_right_nor_always_wrong_and_of_unequal_length(tiny, build):
    params = SamplingParams(1.0, MAX_NEW_TOKENS, 11)
    result = engine_of(tiny, build).generate([PROMPT], 1000, params, record_rounds_of=range(1000))
    assert 0.05 < result.counters.num_accepted_tokens / result.counters.num_draft_tokens < 0.9
    lengths = {len(record.drafted) for completion in result.completions for record in completion.rounds[1:]}
    assert len(lengths) > 1


@pytest.mark.parametrize("truncation", list(TRUNCATIONS.values())[1:], ids=list(TRUNCATIONS)[1:])
def test_a_draft_with_probabilities_follows_the_truncated_policy_too(tiny, truncation):
    probabilities = exact_probabilities(tiny.policy, 1.3, truncation)
    assert p_value(tiny.engine(max_batch_size=512), probabilities, 1.3, truncation) > REJECTION_LEVEL


@pytest.mark.parametrize("build", LOOKUPS)
def test_samples_follow_the_policy_where_k_changes_from_round_to_round(tiny, build, monkeypatch):
    engine = engine_of(tiny, build)
    monkeypatch.setattr(engine, "_lengths", lambda *_: CyclingDraftLength())
    assert p_value(engine, exact_probabilities(tiny.policy, 1.0, Truncation())) > REJECTION_LEVEL


@pytest.mark.parametrize("build", LOOKUPS)
def test_several_tokens_that_end_a_response_are_found_anywhere_in_a_block(tiny, build):
    stop = (EOS, 3)
    probabilities = exact_probabilities(tiny.policy, 1.0, Truncation(), stop)
    assert p_value(engine_of(tiny, build, eos=stop), probabilities) > REJECTION_LEVEL


def accept_always(drafted, q, p, rng, num_drafted=None):
    full = torch.full((len(drafted),), drafted.shape[1]) if num_drafted is None else num_drafted
    return Verdict(full, draw(p[torch.arange(len(p)), full], rng))


def padding_counts(drafted, q, p, rng, num_drafted=None):
    """Takes what stands behind a short draft for accepted tokens."""
    verdict = acceptance.verify(drafted, q, p, rng, num_drafted)
    if num_drafted is None:
        return verdict
    is_short = (verdict.num_accepted_B == num_drafted) & (num_drafted < drafted.shape[1])
    return Verdict(verdict.num_accepted_B + is_short, verdict.next_token_B)


def ends_in_a_residual(p, drafted, q, is_rejected, honest=acceptance._residual):
    return honest(p, drafted, q, is_rejected | True)


@pytest.mark.parametrize("build", LOOKUPS)
@pytest.mark.parametrize("broken", [accept_always, padding_counts])
def test_broken_verification_is_rejected(tiny, build, broken, monkeypatch):
    monkeypatch.setattr(generation, "verify", broken)
    assert p_value(engine_of(tiny, build), exact_probabilities(tiny.policy, 1.0, Truncation())) < BEYOND_DOUBT


@pytest.mark.parametrize("build", LOOKUPS)
@pytest.mark.parametrize(
    ("broken", "draft_length"), [(lambda p, *_: p, 3), (ends_in_a_residual, 1)], ids=["policy", "residual"]
)
def test_broken_corrections_are_rejected(tiny, build, broken, draft_length, monkeypatch):
    monkeypatch.setattr(acceptance, "_residual", broken)
    engine = engine_of(tiny, build, draft_length=draft_length)
    assert p_value(engine, exact_probabilities(tiny.policy, 1.0, Truncation())) < BEYOND_DOUBT


@pytest.mark.parametrize("left_out", ["top_k", "top_p", "min_p"])
def test_a_truncation_that_is_left_out_is_rejected(tiny, left_out):
    asked = Truncation(**{"top_k": {"top_k": 3}, "top_p": {"top_p": 0.8}, "min_p": {"min_p": 0.5}}[left_out])
    probabilities = exact_probabilities(tiny.policy, 1.3, asked)
    assert p_value(engine_of(tiny, suffix), probabilities, 1.3, Truncation()) < BEYOND_DOUBT


@pytest.mark.parametrize("build", LOOKUPS)
@pytest.mark.parametrize("eos", [(0,), (0, 5, 9)])
@pytest.mark.parametrize("max_batch_size", [1, 3, 8, 64])
def test_greedy_is_what_it_is_without_a_draft(models, build, max_batch_size, eos, monkeypatch):
    """Groups that share prompts, rows refilled and compacted, ends and limits inside blocks, and k that changes."""
    prompts = [[10, 4, 5, 1, 3, 7, 11, 6, 9, 7, a, b] for a in (1, 2, 8) for b in (10, 4, 3, 11, 6, 2)]
    engine = engine_of(models, build, max_batch_size=max_batch_size, draft_length=4, eos=eos)
    params = SamplingParams(0.0, 23, 0)
    plain = engine.generate(prompts, 2, params, speculate=False).completions
    fixed = engine.generate(prompts, 2, params)
    monkeypatch.setattr(engine, "_lengths", lambda *_: CyclingDraftLength())
    cycled = engine.generate(prompts, 2, params)
    for other in (fixed.completions, cycled.completions):
        assert [(c.token_ids, c.is_truncated) for c in other] == [(c.token_ids, c.is_truncated) for c in plain]
    assert fixed.counters.acceptance_length > 1.3
    assert cycled.counters.num_accepted_tokens > 0
    assert (len({len(c.token_ids) for c in plain}) > 2) == (len(eos) > 1)


def test_what_a_call_generates_drafts_for_the_next(models):
    engine = engine_of(models, suffix, draft_length=4)
    params = SamplingParams(0.0, 21, 0)
    first, second = (engine.generate([[4, 7, 1]], 1, params).counters.acceptance_length for _ in range(2))
    assert second == 5.0
    assert first < 4


def test_a_call_that_is_not_remembered_drafts_for_itself_alone(models):
    engine = engine_of(models, suffix, draft_length=4)
    params = SamplingParams(0.0, 21, 0)

    def length(remember):
        return engine.generate([[4, 7, 1]], 1, params, remember=remember).counters.acceptance_length

    first = length(remember=False)
    assert [length(remember=False), length(remember=True)] == [first, first]
    assert [length(remember=False), length(remember=True)] == [5.0, 5.0]
