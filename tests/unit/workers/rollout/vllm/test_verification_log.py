"""Shape suffixes: see workers.rollout.vllm.verification_log."""

from types import SimpleNamespace

import pytest
import torch

from workers.rollout.vllm.verification_log import MAX_KEPT_OF_DRAFT, VerificationLog, added_name

REQUESTS = ["1.0-a", "1.1-b", "1.2-c"]
LOGITS = torch.tensor([[0.0, 1.0, 2.0], [1.0, 0.0, 0.0], [3.0, 0.0, 1.0]])
DRAFT_PROBS = torch.tensor([[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.0, 0.4, 0.6]])


def sampling(*temperatures):
    return SimpleNamespace(all_greedy=not any(temperatures), temperature=torch.tensor(temperatures))


@pytest.fixture
def log():
    """In the place of a sampler that returns what it was given."""
    return VerificationLog(lambda *given, **options: (given, options), lambda: REQUESTS)


def verify(log, draft_probs=DRAFT_PROBS, metadata=None):
    """Two drafted tokens of the first request, none of the second, one of the third."""
    drafted = torch.tensor([2, 0, 1], dtype=torch.int32)
    metadata = metadata or sampling(1.0, 1.0, 1.0)
    cumulative = torch.tensor([2, 2, 3])
    return log(
        drafted, [2, 0, 1], 2, cumulative, draft_probs, LOGITS, torch.tensor([[0]]), metadata, synthetic_mode=False
    )


def test_the_sampler_gets_what_it_would_get_without_the_log(log):
    given, options = verify(log)
    assert given[1:3] == ([2, 0, 1], 2)
    assert given[5] is LOGITS
    assert options == {"synthetic_mode": False}


def test_what_is_watched_is_kept_with_both_probabilities(log):
    log.watch(["1.0"], ["1.2"])
    verify(log)
    verify(log)
    kept = log.take()
    assert {name: len(rounds) for name, rounds in kept.items()} == {"1.0": 2, "1.2": 2}
    first, third = kept["1.0"][0], kept["1.2"][0]
    torch.testing.assert_close(first.policy_probs_K, torch.stack([LOGITS[0].softmax(0)[2], LOGITS[1].softmax(0)[0]]))
    assert first.draft_probs_K.tolist() == pytest.approx([0.7, 0.5])
    assert first.top_ids_KN.shape == (2, 0)
    assert third.draft_probs_K.tolist() == pytest.approx([0.4])
    assert third.top_ids_KN.tolist() == [[2, 1, 0]]
    assert third.top_probs_KN[0].tolist() == pytest.approx([0.6, 0.4, 0.0])


def test_a_draft_that_was_not_drawn_was_certain(log):
    log.watch([], ["1.0"])
    verify(log, draft_probs=None)
    (kept,) = log.take()["1.0"]
    assert kept.draft_probs_K.tolist() == [1.0, 1.0]
    assert kept.top_ids_KN.tolist() == [[2], [0]]


@pytest.mark.parametrize("metadata", [sampling(0.0, 1.0, 1.0), sampling(0.0, 0.0, 0.0)])
def test_greedy_is_certain_of_the_largest_logit(log, metadata):
    """vLLM gives logits in the place of the draft's probabilities there."""
    log.watch(["1.0"], [])
    verify(log, metadata=metadata)
    (kept,) = log.take()["1.0"]
    assert kept.policy_probs_K.tolist() == [1.0, 1.0]
    assert kept.draft_probs_K.tolist() == [1.0, 1.0]


def test_nothing_is_kept_of_what_is_not_watched_any_longer(log):
    log.watch(["1.0"], [])
    verify(log)
    assert log.take()
    verify(log)
    assert log.take() == {}


def test_a_large_vocabulary_is_cut():
    number = 100
    log = VerificationLog(lambda *given, **_: given, lambda: ["1.0-a"])
    log.watch([], ["1.0"])
    probs, logits = torch.arange(number).float()[None] / 4950, torch.zeros(1, number)
    log(torch.tensor([0]), [1], 1, torch.tensor([1]), probs, logits, torch.tensor([[0]]), sampling(1.0))
    (kept,) = log.take()["1.0"]
    assert kept.top_ids_KN.tolist() == [list(range(99, 99 - MAX_KEPT_OF_DRAFT, -1))]


def test_vllm_adds_to_the_names_of_requests():
    assert added_name("12.34-0badcafe") == "12.34"
