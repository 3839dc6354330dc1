import random
from dataclasses import dataclass

import pytest
import torch

from workers.rollout.drafters.ngram import NgramDrafter
from workers.rollout.rows import Row


@dataclass
class Block:
    """All that a lookup reads of a PromptBlock."""

    prompts: list[list[int]]


def session_of(drafter, prompts, rows):
    """A session whose rows have these prompts of the block."""
    session = drafter.start(len(rows), 1000, None)
    session.prefill(Block(prompts))
    session.admit(torch.arange(len(rows)), torch.tensor(rows), torch.zeros(len(rows)))
    return session


def row_of(prompt, response):
    return Row(0, [*prompt, *response], len(prompt), 1000)


def proposals(session, rows, draft_length):
    draft = session.draft(rows, torch.zeros(len(rows), dtype=torch.int64), draft_length)
    if draft is None:
        return [[]] * len(rows)
    lengths = [draft.token_ids_RK.shape[1]] * len(rows) if draft.num_drafted_R is None else draft.num_drafted_R.tolist()
    return [tokens[:length] for tokens, length in zip(draft.token_ids_RK.tolist(), lengths, strict=True)]


def propose(prompt, response, draft_length, min_match=1, max_match=3):
    session = session_of(NgramDrafter(min_match, max_match), [prompt], [0])
    return proposals(session, [row_of(prompt, response)], draft_length)[0]


def looked_up_slowly(tokens, draft_length, min_match, max_match):
    """The rule by a search through the whole row; what follows beyond its end is what was proposed."""
    for length in range(min(max_match, len(tokens) - 1), min_match - 1, -1):
        for end in range(len(tokens) - 1, length - 1, -1):
            if tokens[end - length : end] == tokens[-length:]:
                proposal = []
                for i in range(draft_length):
                    at = end + i
                    proposal.append(tokens[at] if at < len(tokens) else proposal[at - len(tokens)])
                return proposal
    return []


def test_hand_computed_proposals():
    assert propose([5, 6, 7, 8, 9], [1, 6, 7], 2) == [8, 9]  # 6 7 stood in the prompt
    assert propose([5, 6, 7, 8, 6, 4], [7, 3, 6], 2) == [4, 7]  # the later of two places
    assert propose([1, 2, 3, 9, 2, 3, 8], [1, 2, 3], 1) == [9]  # the longest match, although 2 3 came later elsewhere
    assert propose([5, 6], [7], 3) == []  # 7 is new
    assert propose([5, 6], [7], 3, min_match=2) == []
    assert propose([5], [5], 3) == [5, 5, 5]  # a match that reaches the end goes round
    assert propose([1, 2, 3], [1, 2], 5) == [3, 1, 2, 3, 1]


@pytest.mark.parametrize("limits", [(1, 1), (1, 3), (2, 4), (3, 16)])
def test_every_round_of_a_growing_row_follows_the_slow_search(limits):
    rng = random.Random(limits[1])
    for _ in range(40):
        alphabet = rng.choice([2, 4, 9])
        prompt = [rng.randrange(alphabet) for _ in range(rng.randrange(1, 8))]
        row = row_of(prompt, [rng.randrange(alphabet)])
        session = session_of(NgramDrafter(*limits), [prompt], [0])
        while len(row.token_ids) < 40:
            length = rng.randrange(1, 7)
            assert proposals(session, [row], length)[0] == looked_up_slowly(row.token_ids, length, *limits)
            row.token_ids += [rng.randrange(alphabet) for _ in range(rng.randrange(1, 5))]


def test_rows_of_a_group_share_their_prompt_and_nothing_else():
    prompts = [[1, 2, 3], [1, 4, 5]]
    session = session_of(NgramDrafter(1, 2), prompts, [0, 1, 0])
    rows = [row_of(prompts[0], [1]), row_of(prompts[1], [1]), row_of(prompts[0], [7, 1, 8, 1])]
    assert proposals(session, rows, 1) == [[2], [4], [8]]
    rows[0].token_ids.append(7)  # the third row's 7 1 is no business of the first
    assert proposals(session, rows, 1)[0] == []


def test_a_row_that_is_moved_or_filled_anew_has_its_own_tokens():
    prompts = [[1, 2], [1, 3]]
    session = session_of(NgramDrafter(1, 2), prompts, [0, 1])
    rows = [row_of(prompts[0], [5, 6, 1]), row_of(prompts[1], [5, 7, 1])]
    assert proposals(session, rows, 1) == [[2], [3]]
    session.retire(0, [5, 6, 1])
    session.move_row(1, 0)
    rows[1].token_ids.append(5)
    assert proposals(session, [rows[1]], 1) == [[7]]
    session.admit(torch.tensor([0]), torch.tensor([0]), torch.tensor([9]))
    assert proposals(session, [row_of(prompts[0], [9, 1])], 1) == [[2]]
    assert proposals(session, [row_of(prompts[0], [9, 1, 5])], 1) == [[]]


@pytest.mark.parametrize("limits", [(0, 2), (3, 2)])
def test_limits_are_checked(limits):
    with pytest.raises(ValueError, match=r"min_match_tokens = \d, max_match_tokens = 2"):
        NgramDrafter(*limits)
