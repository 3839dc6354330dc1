"""Drafts of every trained kind in the engine: they draft what training scores, and change nothing of what is drawn."""

import itertools

import pytest
import torch
from scipy import stats
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode

from workers.algo.sampling import Truncation, sampling_probs
from workers.rollout import packed_weights
from workers.rollout.draft_lengths import FixedDraftLength
from workers.rollout.engine import SamplingParams
from workers.rollout.graphs import StaticOperations
from workers.rollout.torch_engine import TorchRolloutEngine

PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 10, 11]]
NUM_SAMPLES, MAX_NEW_TOKENS = 8_000, 3
REJECTION_LEVEL, BEYOND_DOUBT = 1e-4, 1e-9


@pytest.mark.parametrize(
    ("draft_length", "truncation"), [(1, Truncation()), (4, Truncation()), (2, Truncation(top_k=5, top_p=0.8))]
)
def test_drafting_is_what_training_scores(trained, drafts, draft_length, truncation):
    """Position by position, across rounds, refills and moved rows: the distributions that the engine drew its drafts
    from are those that the training code gives for the same tokens."""
    temperature = 0.8
    params = SamplingParams(temperature, 18, 4, truncation)
    trained.engine(max_batch_size=4, draft_length=draft_length).generate(PROMPTS, 5, params)
    assert len(drafts) > 40
    for so_far, drafted, probs in drafts:
        scores = trained.scores(so_far + drafted.tolist(), draft_length)
        torch.testing.assert_close(probs, sampling_probs(scores, temperature, truncation), atol=3e-5, rtol=2e-3)


class Alternating(FixedDraftLength):
    """Draft lengths that change from round to round, 0 among them."""

    def __init__(self, *_):
        super().__init__(4)
        self._lengths = itertools.cycle([2, 0, 4, 0, 0, 1, 3])

    def choose(self, num_sequences):
        return next(self._lengths)


def test_drafting_goes_on_after_rounds_without_a_draft(trained, drafts, monkeypatch):
    engine = trained.engine(max_batch_size=4, draft_length=4)
    monkeypatch.setattr(engine, "_lengths", lambda *_: Alternating())
    engine.generate(PROMPTS, 5, SamplingParams(0.8, 30, 4))
    lengths = {len(drafted) for _, drafted, _ in drafts}
    assert lengths == {1, 2, 3, 4}
    for so_far, drafted, probs in drafts:
        scores = trained.scores(so_far + drafted.tolist(), len(drafted))
        torch.testing.assert_close(probs, (scores / 0.8).softmax(-1), atol=3e-5, rtol=2e-3)


def test_a_long_stretch_without_a_draft_is_read_up(trained, drafts, monkeypatch):
    """Longer than what a session puts aside."""

    class Late(Alternating):
        def __init__(self):
            super().__init__()
            self._lengths = itertools.chain([0] * 40, itertools.repeat(2))

    engine = trained.engine(max_batch_size=4, draft_length=4, eos=99)
    monkeypatch.setattr(engine, "_lengths", lambda *_: Late())
    engine.generate(PROMPTS, 1, SamplingParams(0.8, 60, 4))
    assert min(len(so_far) for so_far, _, _ in drafts) > 40
    for so_far, drafted, probs in drafts:
        scores = trained.scores(so_far + drafted.tolist(), len(drafted))
        torch.testing.assert_close(probs, (scores / 0.8).softmax(-1), atol=3e-5, rtol=2e-3)


def test_prompts_are_read_once_a_group(make_trained, monkeypatch):
    from workers.rollout.drafters import draft_model

    widths = []
    forward = draft_model.policy_forward

    def counted(model, token_ids, *rest):
        widths.append(token_ids.numel())
        return forward(model, token_ids, *rest)

    monkeypatch.setattr(draft_model, "policy_forward", counted)
    make_trained("draft_model").engine(max_batch_size=8, draft_length=2).generate(
        [PROMPTS[0]], 8, SamplingParams(1, 1, 0)
    )
    assert widths == [len(PROMPTS[0])]


def all_responses():
    """Every string that ends at its first end token or at the limit."""
    for length in range(1, MAX_NEW_TOKENS + 1):
        for tokens in itertools.product(range(5), repeat=length):
            if (tokens[-1] == 0 or length == MAX_NEW_TOKENS) and 0 not in tokens[:-1]:
                yield tokens


def chi_square(trained, draft_length=2):
    """p-value of the engine's samples against the training model's exact probabilities of all responses."""
    prompt = [3, 1, 2]
    strings = torch.tensor(list(itertools.product(range(5), repeat=MAX_NEW_TOKENS)))
    with torch.no_grad():
        logits = trained.policy(torch.cat([torch.tensor([prompt]).expand(len(strings), -1), strings], 1)).logits_BTV
    steps = logits[:, len(prompt) - 1 : -1].log_softmax(-1).gather(2, strings.unsqueeze(2)).squeeze(2).cumsum(1)
    rows = {tuple(string): row for string, row in zip(strings.tolist(), steps.double().exp(), strict=True)}
    expected = {r: rows[(r + (1,) * MAX_NEW_TOKENS)[:MAX_NEW_TOKENS]][len(r) - 1].item() for r in all_responses()}
    engine = trained.engine(max_batch_size=512, draft_length=draft_length)
    result = engine.generate([prompt], NUM_SAMPLES, SamplingParams(1.0, MAX_NEW_TOKENS, 11))
    assert 0.05 < result.counters.num_accepted_tokens / result.counters.num_draft_tokens < 0.95
    counts = dict.fromkeys(expected, 0)
    for completion in result.completions:
        counts[tuple(completion.token_ids)] += 1
    common = [r for r, p in expected.items() if p * NUM_SAMPLES >= 5]
    observed = [counts[r] for r in common] + [NUM_SAMPLES - sum(counts[r] for r in common)]
    ideal = [expected[r] * NUM_SAMPLES for r in common]
    assert len(common) > 30
    return stats.chisquare(observed, [*ideal, NUM_SAMPLES - sum(ideal)], sum_check=False).pvalue


def test_samples_follow_the_policy(kind, make_trained):
    assert chi_square(make_trained(kind, vocab_size=5, sharpness=1.5)) > REJECTION_LEVEL


@pytest.fixture
def static(monkeypatch):
    """Engines made from here on run their regions on static buffers; the operations of each model, in order."""
    made = []

    def choose(config, *rest):
        made.append(StaticOperations(config.rms_norm_eps, *rest))
        return made[-1]

    monkeypatch.setattr(packed_weights, "choose_operations", choose)
    return made


@pytest.mark.parametrize(
    ("temperature", "truncation"),
    [(0.0, Truncation()), (1.0, Truncation()), (1.0, Truncation(top_k=5, top_p=0.9, min_p=0.01))],
)
def test_regions_hold_nothing_that_a_graph_could_not(kind, make_trained, static, temperature, truncation):
    """Run on tensors that have shapes and no values: whatever the host would have to wait for and read is an error."""
    make_trained(kind).engine(max_batch_size=4).generate(PROMPTS, 2, SamplingParams(temperature, 12, 0, truncation))
    regions = [region for operations in static for region in operations._regions.values()]
    assert {"round", "draft", "read"} == {region.name for region in regions}
    with torch.inference_mode(), FakeTensorMode(allow_non_fake_inputs=True) as mode:
        for region in regions:
            fake = [None if x is None else mode.from_tensor(x.clone()) for x in region.inputs]
            for result, output in zip(region.function(*fake), region.outputs, strict=True):
                assert (result is None) == (output is None)
                assert result is None or (result.shape, result.dtype) == (output.shape, output.dtype)
        with pytest.raises(DataDependentOutputException):
            mode.from_tensor(torch.ones(1)).item()


def test_samples_follow_the_policy_on_static_buffers(kind, make_trained, static, monkeypatch):
    """As CUDA graphs repeat them: each region's first function, on padded rows, with lengths that change."""
    monkeypatch.setattr(TorchRolloutEngine, "_lengths", Alternating)
    assert chi_square(make_trained(kind, vocab_size=5, sharpness=1.5), draft_length=4) > REJECTION_LEVEL


def test_a_wrong_token_map_tells_wrong_probabilities_and_is_found(make_trained, monkeypatch):
    """The reduced vocabulary's scores at other tokens than those that are emitted for them."""
    from workers.rollout.drafters.drafter import Draft
    from workers.rollout.drafters.features import FeatureSession

    trained = make_trained("reduced", vocab_size=5, sharpness=1.5)
    draft = FeatureSession.draft

    def mapped_wrongly(self, rows, start_R, draft_length):
        token_ids, probs, num = draft(self, rows, start_R, draft_length)
        return Draft(token_ids, probs.roll(1, -1), num)

    monkeypatch.setattr(FeatureSession, "draft", mapped_wrongly)
    assert chi_square(trained) < BEYOND_DOUBT
