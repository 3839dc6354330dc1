"""Shape suffixes: see workers.rollout.vllm.records."""

import math

import pytest
import torch

from workers.algo.lossless.identities import broken_rounds
from workers.rollout.engine import RoundRecord
from workers.rollout.vllm.records import draft_evidence, round_records
from workers.rollout.vllm.round_tap import PlayedRound
from workers.rollout.vllm.verification_log import Verified


def verified(policy, draft, top_ids=(), top_probs=()):
    number = len(policy)
    ids = torch.tensor(top_ids).reshape(number, -1).long()
    return Verified(torch.tensor(policy), torch.tensor(draft), ids, torch.tensor(top_probs).reshape(number, -1))


# Drawn from the prompt: 5. Drafted 6, 7, 8: two accepted, 9 in the place of 8. Without a draft: 4. Drafted 3, 2, 1: all
# accepted, but 2 ends the response.
TOKENS = [5, 6, 7, 9, 4, 3, 2]
ROUNDS = [PlayedRound(1, [6, 7, 8], 2, 3), PlayedRound(5, [3, 2, 1], 3, 2)]
VERIFIED = [
    verified([0.5, 0.25, 0.0], [0.5, 1.0, 0.125], [[6, 1], [7, 2], [3, 8]], [[0.5, 0.3], [1.0, 0.0], [0.8, 0.125]]),
    verified([1.0, 0.5, 0.5], [0.5, 0.5, 0.5], [[3], [2], [1]], [[0.5], [0.5], [0.5]]),
]


def test_rounds_put_together_are_the_response():
    records = round_records(TOKENS, ROUNDS, VERIFIED)
    log_half = math.log(0.5)
    assert [(r.drafted, r.num_accepted, r.emitted) for r in records] == [
        ([], 0, 5),
        ([6, 7, 8], 2, 9),
        ([], 0, 4),
        ([3, 2, 1], 2, None),
    ]
    assert records[3].draft_logprobs == pytest.approx([log_half] * 3)
    assert records[3].policy_logprobs == pytest.approx([0.0, log_half, log_half])
    assert records[1].policy_logprobs[2] < -80  # no probability at all, but a number
    assert list(broken_rounds(records, TOKENS)) == []


def test_without_drafts_every_token_was_a_round():
    assert round_records([5, 6], [], []) == [RoundRecord([], 0, 5, [], []), RoundRecord([], 0, 6, [], [])]


def test_evidence_is_of_the_accepted_positions_and_the_rejected_one_as_far_as_the_response_goes():
    evidence = draft_evidence([0, 3], {3: ROUNDS}, {3: VERIFIED})
    assert evidence.completion_M.tolist() == [3] * 5
    assert evidence.position_M.tolist() == [1, 2, 3, 5, 6]
    assert evidence.drafted_M.tolist() == [6, 7, 8, 3, 2]
    assert evidence.is_accepted_M.tolist() == [True, True, False, True, True]
    assert evidence.draft_probs_M.tolist() == [0.5, 1.0, 0.125, 0.5, 0.5]
    assert evidence.top_ids_MN.tolist() == [[6, 1], [7, 2], [3, 8], [3, -1], [2, -1]]
    assert evidence.top_probs_MN[3].tolist() == [0.5, 0.0]


def test_without_drafts_there_is_no_evidence():
    assert draft_evidence([0], {}, {}) is None
    assert draft_evidence([], {3: ROUNDS}, {3: VERIFIED}) is None
