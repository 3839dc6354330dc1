import pytest

from workers.algo.lossless.identities import broken_counts, broken_rounds
from workers.rollout.engine import RoundRecord, SpeculationCounters


def counters(drafts=4, drafted=12, accepted=5, positions=(3, 2, 0)):
    return SpeculationCounters(drafts, drafted, accepted, list(positions))


def counted(num_tokens=12, num_responses=2, **changes):
    return list(broken_counts(counters(**changes), num_tokens, num_responses))


def test_counts_that_agree():
    """Two responses: a first token each, four rounds with five accepted tokens, one of which ended a response."""
    assert counted(num_tokens=2 + 5 + 3) == []
    assert counted(num_tokens=40) == []  # rounds without a draft
    assert list(broken_counts(SpeculationCounters(), 7, 3)) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"accepted": 6}, "add up to 5, not to 6"),
        ({"positions": (2, 3, 0)}, "later position"),
        ({"positions": (5, 0, 0)}, "later position"),
        ({"drafted": 4}, "above k"),
        ({"drafts": 5, "drafted": 4, "accepted": 4, "positions": (4, 0)}, "only 4 tokens were drafted"),
        ({"num_tokens": 6}, "fewer than 5 accepted and 4"),
    ],
)
def test_counts_that_contradict_each_other(changes, word):
    (message,) = counted(**changes)
    assert word in message


def played(drafted, num_accepted, emitted):
    return RoundRecord(drafted, num_accepted, emitted, [0.0] * len(drafted), [0.0] * len(drafted))


def test_rounds_make_the_response():
    rounds = [played([], 0, 7), played([5, 6], 1, 8), played([1, 2], 2, 9), played([3, 0], 2, None)]
    assert list(broken_rounds(rounds, [7, 5, 8, 1, 2, 9, 3, 0])) == []


@pytest.mark.parametrize(
    ("rounds", "response", "word"),
    [
        ([played([5, 6], 1, 8)], [5, 6, 8], "not the 2"),
        ([played([5, 6], 1, 8)], [5, 4], "not the 2"),
        ([played([5], 2, 8)], [5, 8], "accepted 2 of 1"),
        ([played([5], 1, None), played([], 0, 2)], [5, 2], "round 0 emitted no token"),
        ([played([5], 0, None)], [], "round 0 emitted no token"),
    ],
)
def test_rounds_that_do_not(rounds, response, word):
    (message,) = broken_rounds(rounds, response)
    assert word in message
