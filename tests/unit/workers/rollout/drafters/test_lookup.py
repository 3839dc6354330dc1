import torch

from workers.rollout.drafters.lookup import to_draft


def test_proposals_are_padded_to_the_longest():
    draft = to_draft([[3, 4, 5], [], [7]], torch.device("cpu"))
    assert draft.token_ids_RK.tolist() == [[3, 4, 5], [0, 0, 0], [7, 0, 0]]
    assert draft.num_drafted_R.tolist() == [3, 0, 1]
    assert draft.probs_RKV is None


def test_proposals_of_one_length_need_no_padding():
    draft = to_draft([[3, 4], [5, 6]], torch.device("cpu"))
    assert draft.token_ids_RK.tolist() == [[3, 4], [5, 6]]
    assert draft.num_drafted_R is None


def test_nothing_proposed_is_no_draft():
    assert to_draft([[], []], torch.device("cpu")) is None
