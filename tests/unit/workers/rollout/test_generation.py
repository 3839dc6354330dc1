"""Counters and round records of whole calls."""

import math

import pytest

from workers.rollout.draft_lengths import FixedDraftLength
from workers.rollout.engine import SamplingParams

PROMPTS = [[3, 4, 5, 6, 7], [8], [9, 10, 11]]
SAMPLED = SamplingParams(temperature=1.0, max_new_tokens=17, seed=5)


@pytest.fixture(scope="module", params=[1, 3, 5])
def recorded(models, request):
    """A call whose every completion's rounds were recorded, and its draft length."""
    engine = models.engine(max_batch_size=5, draft_length=request.param, eos=[0, 6])
    return request.param, engine.generate(PROMPTS, 6, SAMPLED, record_rounds_of=range(18))


def test_rounds_put_together_are_the_response(recorded):
    _, result = recorded
    for completion in result.completions:
        told = []
        for round_ in completion.rounds:
            told += round_.drafted[: round_.num_accepted]
            told += [] if round_.emitted is None else [round_.emitted]
        assert told == completion.token_ids


def test_rounds_tell_the_policys_own_logprobs(recorded):
    _, result = recorded
    for completion in result.completions:
        position = 0
        for round_ in completion.rounds:
            accepted = round_.policy_logprobs[: round_.num_accepted]
            assert accepted == pytest.approx(completion.logprobs[position : position + round_.num_accepted], abs=1e-6)
            position += round_.num_accepted + (round_.emitted is not None)
            assert len(round_.drafted) == len(round_.draft_logprobs) == len(round_.policy_logprobs)
            assert all(math.isfinite(value) for value in round_.draft_logprobs + round_.policy_logprobs)


def test_only_a_last_round_emits_nothing_after_its_accepted_tokens(recorded):
    _, result = recorded
    for completion in result.completions:
        assert completion.rounds[0].drafted == []
        assert all(round_.emitted is not None for round_ in completion.rounds[:-1])


def test_counters_are_the_sums_over_rounds(recorded):
    draft_length, result = recorded
    rounds = [round_ for completion in result.completions for round_ in completion.rounds if round_.drafted]
    counters = result.counters
    assert counters.num_drafts == len(rounds) > 0
    assert counters.num_draft_tokens == draft_length * len(rounds)
    assert counters.num_accepted_tokens == sum(round_.num_accepted for round_ in rounds) > 0
    assert counters.accepted_at_position[:draft_length] == [
        sum(round_.num_accepted > position for round_ in rounds) for position in range(draft_length)
    ]
    assert set(counters.accepted_at_position[draft_length:]) == {0}
    assert 1 <= counters.acceptance_length <= draft_length + 1
    num_tokens = sum(len(completion.token_ids) for completion in result.completions)
    num_emitted = sum(round_.emitted is not None for round_ in rounds)
    assert num_tokens == len(result.completions) + counters.num_accepted_tokens + num_emitted


def test_without_speculation_nothing_is_counted_and_rounds_are_single_tokens(models):
    result = models.engine().generate(PROMPTS, 2, SAMPLED, speculate=False, record_rounds_of=[1])
    assert result.counters.num_drafts == 0
    assert result.counters.acceptance_length is None
    assert [round_.emitted for round_ in result.completions[1].rounds] == result.completions[1].token_ids
    assert [completion.rounds for completion in result.completions if completion is not result.completions[1]] == [
        []
    ] * 5


class SparseDraftLengths(FixedDraftLength):
    """One draft, then a round without; asked once in four of these."""

    stride = 4

    def __init__(self):
        super().__init__(2)
        self.asked, self.told = [], []
        self.num_emitted = self.num_lost = 0

    def choose(self, num_sequences):
        self.asked.append(2 if len(self.asked) % 2 == 0 else 0)
        return self.asked[-1]

    def observe(self, round_):
        self.told.append(round_.draft_length)
        self.num_emitted += round_.num_sequences + sum(round_.num_accepted)
        self.num_lost += round_.num_lost


def test_what_chooses_lengths_is_told_of_every_round_and_asked_once_in_a_stride_of_plain_ones(models):
    engine = models.engine(max_batch_size=2, draft_length=2, eos=[])
    lengths = SparseDraftLengths()
    engine._lengths = lambda *_: lengths
    result = engine.generate([[3, 4]], 2, SAMPLED)
    rounds = [2, 0, 0, 0, 0] * len(lengths.told)
    assert lengths.told == rounds[: len(lengths.told)]
    assert len(lengths.asked) == math.ceil(len(lengths.told) / 5) + math.ceil((len(lengths.told) - 1) / 5)
    assert sum(cost.num_rounds for cost in result.round_costs) == len(lengths.told)


def test_what_chooses_lengths_hears_of_tokens_behind_a_responses_end(models):
    engine = models.engine(max_batch_size=2, draft_length=2, eos=[])
    lengths = SparseDraftLengths()
    lengths.choose = lambda num_sequences: 2
    engine._lengths = lambda *_: lengths
    result = engine.generate([[3, 4]], 2, SAMPLED)
    # The first token of each is drawn from the prompt's pass.
    num_generated = sum(len(completion.token_ids) - 1 for completion in result.completions)
    assert lengths.num_lost > 0
    assert lengths.num_emitted - lengths.num_lost == num_generated
