"""What is recorded of rounds, by the engine at work: drafts of equal and unequal length, none, and k that changes."""

import itertools

import pytest
import torch

from workers.algo.sampling import Truncation, sampling_probs
from workers.rollout.draft_lengths import FixedDraftLength
from workers.rollout.drafters.drafter import Drafting
from workers.rollout.drafters.ngram import NgramDrafter
from workers.rollout.drafters.suffix import SuffixDrafter
from workers.rollout.engine import SamplingParams
from workers.rollout.torch_engine import TorchRolloutEngine

PROMPTS = [[10, 4, 5, 1, 3, 7, 11, 6, 9, 7], [3, 7, 11, 6, 9], [8, 2, 3]]
NUM_SAMPLES = 6
TRUNCATION = Truncation(top_k=8, top_p=0.95)
PARAMS = SamplingParams(1.2, 25, 3, TRUNCATION)


class CyclingDraftLength(FixedDraftLength):
    """Another k every round, 0 among them."""

    def __init__(self):
        super().__init__(4)
        self._lengths = itertools.cycle([2, 0, 4, 1, 3])

    def choose(self, num_sequences):
        return next(self._lengths)

    choose_lookup = choose


@pytest.fixture(scope="module", params=["eagle3", "ngram", "suffix"])
def result(request, models):
    """A call whose responses are all recorded, but for one, and all evident."""
    if request.param == "eagle3":
        engine = models.engine(max_batch_size=5, draft_length=4)
    else:
        drafter = NgramDrafter(1, 3) if request.param == "ngram" else SuffixDrafter(1, 8, 10_000)
        drafting = Drafting(lambda *_: drafter, has_weights=False, draft_length=4)
        engine = TorchRolloutEngine(models.policy.config, 0, 5, "float32", drafting)
        engine.update_policy(models.policy.state_dict())
    engine._lengths = lambda *_: CyclingDraftLength()
    number = len(PROMPTS) * NUM_SAMPLES
    return engine.generate(
        PROMPTS, NUM_SAMPLES, PARAMS, record_rounds_of=range(1, number), evidence_of=range(1, number)
    )


def test_only_what_was_asked_for_is_recorded(result):
    assert result.completions[0].rounds == []
    assert all(completion.rounds for completion in result.completions[1:])


def test_the_rounds_make_the_response(result):
    lengths = set()
    for completion in result.completions[1:]:
        assert completion.rounds[0].drafted == []
        tokens = []
        for record in completion.rounds:
            lengths.add(len(record.drafted))
            assert len(record.draft_logprobs) == len(record.policy_logprobs) == len(record.drafted)
            assert record.num_accepted <= len(record.drafted)
            tokens += record.drafted[: record.num_accepted]
            tokens += [] if record.emitted is None else [record.emitted]
        assert tokens == completion.token_ids
        assert all(record.emitted is not None for record in completion.rounds[:-1])
    assert lengths == {0, 1, 2, 3, 4}


def test_log_probabilities_are_the_policys_own(result, models):
    """Of accepted tokens as the response has them, of rejected ones as the training model says."""
    num_rejected = 0
    for completion in result.completions[1:]:
        prompt, at = PROMPTS[completion.prompt_index], 0
        for record in completion.rounds:
            accepted = record.policy_logprobs[: record.num_accepted]
            assert accepted == pytest.approx(completion.logprobs[at : at + record.num_accepted], abs=1e-6)
            at += record.num_accepted
            if record.num_accepted < len(record.drafted) and record.emitted is not None:
                with torch.no_grad():
                    logits = models.policy(torch.tensor([prompt + completion.token_ids[:at]])).logits_BTV[0, -1]
                p = sampling_probs(logits, PARAMS.temperature, TRUNCATION)[record.drafted[record.num_accepted]]
                recorded = record.policy_logprobs[record.num_accepted]
                assert recorded == pytest.approx(p.clamp_min(1e-38).log().item(), abs=1e-3)
                num_rejected += 1
            at += record.emitted is not None
    assert num_rejected > 10


def test_the_counters_are_those_of_the_rounds(result):
    """All but the first response, which is not recorded."""
    rounds = [record for completion in result.completions[1:] for record in completion.rounds if record.drafted]
    counters = result.counters
    others = len(result.completions[0].token_ids)
    assert 0 <= counters.num_drafts - len(rounds) <= others
    assert 0 <= counters.num_draft_tokens - sum(len(record.drafted) for record in rounds) <= 4 * others
    assert 0 <= counters.num_accepted_tokens - sum(record.num_accepted for record in rounds) <= others


def test_the_evidence_is_that_of_the_rounds(result):
    """Every accepted token, and the first rejected one where the response goes on, with its place and its q."""
    expected = []
    for index, completion in enumerate(result.completions):
        at = 0
        for record in completion.rounds:
            num_tested = min(record.num_accepted + (record.emitted is not None), len(record.drafted))
            for i in range(num_tested):
                q = pytest.approx(torch.tensor(record.draft_logprobs[i]).exp().item(), rel=1e-4, abs=1e-30)
                expected.append((index, at + i, record.drafted[i], i < record.num_accepted, q))
            at += record.num_accepted + (record.emitted is not None)
    found = result.evidence
    columns = (found.completion_M, found.position_M, found.drafted_M, found.is_accepted_M, found.draft_probs_M)
    rows = sorted(zip(*(column.tolist() for column in columns), strict=True))
    assert rows == expected
    assert {row[3] for row in rows} == {True, False}
