from array import array

import torch

from workers.rollout.drafters.lookup import Proposals

CPU = torch.device("cpu")


def test_proposals_are_padded_to_the_longest():
    draft = Proposals.of([[3, 4, 5], [], [7]]).to_draft(CPU)
    assert draft.token_ids_RK.tolist() == [[3, 4, 5], [0, 0, 0], [7, 0, 0]]
    assert draft.num_drafted_R.tolist() == [3, 0, 1]
    assert draft.probs_RKV is None


def test_proposals_of_one_length_need_no_padding():
    draft = Proposals.of([[3, 4], [5, 6]]).to_draft(CPU)
    assert draft.token_ids_RK.tolist() == [[3, 4], [5, 6]]
    assert draft.num_drafted_R is None


def test_nothing_proposed_is_no_draft():
    assert Proposals.of([[], []]).to_draft(CPU) is None


def test_only_as_many_columns_as_are_filled():
    proposals = Proposals(array("q", [3, 4, 0, 0, 5, 0, 0, 0]), 4, array("q", [2, 1]))
    assert proposals.to_draft(CPU).token_ids_RK.tolist() == [[3, 4], [5, 0]]
